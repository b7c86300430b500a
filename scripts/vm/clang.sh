#!/bin/bash
# clang for programs inside the virtual machine: the host compiles (scripts/vm/run.sh), which is some thirty times faster than to emulate a
# compiler. CLANG names this inside. The directory in which it is called is copied there, and objects are copied back.
set -uo pipefail
compiled=/run/orders/compiled
[ -d "$compiled" ] || exec "${METE_CLANG_INSIDE:-clang-19}" "$@"

place=$(mktemp -d "$compiled/XXXXXX") || exit
trap 'rm -rf "$place"' EXIT
mkdir "$place/files"
printf '%s\0' "$@" >"$place/arguments"
case " $* " in
*' -c '*) cp -r . "$place/files" || exit ;;
esac
touch "$place/ready"
# A pause without a program of its own, which would have to be emulated, too.
exec {nothing}<> <(:)
until [ -e "$place/status" ]; do read -rt 0.05 -u "$nothing"; done
cat "$place/stdout"
cat "$place/stderr" >&2
cp "$place"/files/*.o . 2>/dev/null
exit "$(cat "$place/status")"
