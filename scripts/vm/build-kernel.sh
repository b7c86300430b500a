#!/bin/bash
# Builds the test kernel from the distribution's packaged kernel source, for machines without one.
# Takes some twelve processor-minutes and 4 GB while it builds; leaves .cache/vm/bzImage (8 MB).
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../env.sh"
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

# sched_ext came with 6.12.
kernel_wanted=6.12
tools=(bc bison cpio dwarves flex gcc libc6-dev libelf-dev libssl-dev make perl python3 xz-utils)
cache=$root/.cache/vm
image=$cache/bzImage

# The oldest packaged source that will do: what the tests are known to pass on.
choose_source() {
	local version
	for version in $(apt-cache search --names-only '^linux-source-[0-9.]+$' | sed 's/^linux-source-\([0-9.]*\) .*/\1/' | sort -V); do
		at_least $kernel_wanted "$version" && echo "linux-source-$version" && return
	done
	return 1
}

configure() {
	make -s -C "$1" O="$2" KCONFIG_ALLCONFIG="$root/scripts/vm/kernel.config" allnoconfig
	local option unmet=()
	while read -r option; do
		grep -qxF "$option" "$2/.config" || unmet+=("$option")
	done < <(grep '^CONFIG_' "$root/scripts/vm/kernel.config")
	[ ${#unmet[@]} -eq 0 ] || give_up "this kernel source does not accept: ${unmet[*]}"
}

build() {
	local work=$1 source
	say "unpacking $2"
	tar -C "$work" -xf "/usr/src/$2.tar.xz"
	source=$(echo "$work"/linux-source-*)
	mkdir -p "$work/build" "$cache"
	configure "$source" "$work/build"
	say "building the test kernel with $(nproc) jobs"
	make -s -C "$source" O="$work/build" -j "$(nproc)" bzImage >&2
	cp "$work/build/arch/x86/boot/bzImage" "$image.new"
	mv "$image.new" "$image"
}

[ "$(uname -m)" = x86_64 ] || give_up "the test kernel is built for and on x86-64 only."
on_debian || give_up "this script knows Debian's kernel source packages; elsewhere build Linux $kernel_wanted or newer with scripts/vm/kernel.config and name the image in METE_VM_KERNEL."
if ! package=$(choose_source); then
	refresh_lists
	package=$(choose_source) || give_up "no linux-source package of $kernel_wanted or newer in this release; name a kernel image in METE_VM_KERNEL."
fi
install_missing "$package" "${tools[@]}"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/mete-kernel.XXXXXX")
trap 'rm -rf "$work"' EXIT
build "$work" "$package"
say "the test kernel is $image"
