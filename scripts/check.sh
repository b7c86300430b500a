#!/bin/bash
# Formatting, lints with warnings denied by the tested Rust, documentation, and that what is not built every day still
# compiles. All of it, even if one part fails.
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$root" || exit

failed=()

part() {
	say "checking: $1"
	"${@:2}" || failed+=("$1")
}

# part_if_present TOOL NAME COMMAND…
part_if_present() {
	if have "$1"; then
		part "${@:2}"
	else
		say "not checked: $2 ($1 is not installed)"
	fi
}

# The unit as it is installed, with a program that is there.
unit() {
	local folder status=0
	folder=$(mktemp -d)
	sed 's|@PREFIX@/bin/mete|/bin/true|' packaging/mete-schedule.service.in >"$folder/mete-schedule.service"
	systemd-analyze verify --man=no "$folder/mete-schedule.service" || status=$?
	rm -r "$folder"
	return "$status"
}

# Not the generated ones: vmlinux.h, and the programs of schemata.
mapfile -t c_files < <(git ls-files '*.c' '*.h' ':!:*vmlinux*' ':!:*/bpf/schemas/*')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run scripts/vm/init scripts/vm/modules-init)

# Other versions have other lints, which would fail a tree that was right when it was committed; what they say is shown.
lints_of=1.95
deny=()
if [ "$(cargo_version | cut -d. -f1,2)" = "$lints_of" ]; then
	deny=(-D warnings)
	export RUSTDOCFLAGS=-Dwarnings
else
	say "warnings are shown and not denied: this is not Rust $lints_of"
fi

part "Rust formatting" cargo fmt --all --check
part "lints" cargo clippy --workspace --all-targets -- "${deny[@]}"
part "documentation" cargo doc --workspace --no-deps
part "the floors of the crates" scripts/floors.sh
part "the log facility's core without std" cargo check --package mete-log --no-default-features
part "the Tracy client as a peer" cargo clippy --package mete-bench --features tracy --all-targets -- "${deny[@]}"
# With METE_FUZZ_NEXT they are built and run next.
[ -n "${METE_FUZZ_NEXT:-}" ] || part "fuzz targets" env CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/fuzz" \
	cargo check --manifest-path fuzz/Cargo.toml
# Other versions format differently; 19 is the one that the code was formatted by.
part_if_present clang-format-19 "C formatting" clang-format-19 --dry-run -Werror "${c_files[@]}"
part_if_present systemd-analyze "the unit for systemd" unit
part_if_present shellcheck "scripts" shellcheck -x -S warning "${scripts[@]}"

for name in "${failed[@]}"; do
	say "failed: $name"
done
[ ${#failed[@]} -eq 0 ]
