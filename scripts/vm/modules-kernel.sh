#!/bin/bash
# Unpacks the distribution's own kernel for tests of kernel modules, which the test kernel does not have: a download of
# some 100 MB. Leaves .cache/vm/modules with the image and a first file system that has what mounting the host's takes
# (15 MB). Nothing is installed but what packs it.
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../env.sh"
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

tools=(busybox-static cpio gzip xz-utils)
place=$root/.cache/vm/modules
# In this order, where the kernel has them as modules.
modules=(fscache netfs 9pnet 9pnet_virtio 9p overlay)

# The newest one, and none of those for clouds, real time or debugging.
choose_package() {
	apt-cache search --names-only '^linux-image-[0-9].*-amd64$' | sed 's/ .*//' | grep -Ev -- '-(cloud|rt|dbg|unsigned)' | sort -V | tail -n 1 | grep .
}

unpack_module() {
	case $1 in
	*.ko) cat "$1" ;;
	*.ko.xz) xz -dc "$1" ;;
	*.ko.zst) zstd -qdc "$1" ;;
	*) give_up "$1 is packed in a way that this script does not know" ;;
	esac
}

pack_first_file_system() {
	local from=$1 into=$2 module file
	mkdir -p "$into"/{bin,proc,dev,root,modules}
	cp "$(command -v busybox)" "$into/bin/busybox"
	cp "$root/scripts/vm/modules-init" "$into/init"
	for module in "${modules[@]}"; do
		file=$(find "$from" -name "$module.ko*" -print -quit)
		[ -z "$file" ] || unpack_module "$file" >"$into/modules/$module.ko"
	done
	printf '%s\n' "${modules[@]}" >"$into/modules/order"
	(cd "$into" && find . | cpio --quiet -o -H newc | gzip)
}

[ "$(uname -m)" = x86_64 ] || give_up "the virtual machine is for x86-64 machines."
on_debian || give_up "this script knows Debian's kernel packages."
if ! package=$(choose_package); then
	refresh_lists
	package=$(choose_package) || give_up "no linux-image package in this release."
fi
install_missing "${tools[@]}"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/mete-modules.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "unpacking $package"
(cd "$work" && apt-get -q -q download "$package" && dpkg-deb -x ./*.deb kernel) >&2
mkdir -p "$place"
cp "$work"/kernel/boot/vmlinuz-* "$place/bzImage"
pack_first_file_system "$work/kernel" "$work/first" >"$place/initrd.new"
mv "$place/initrd.new" "$place/initrd"
say "the kernel with modules is in $place"
