#!/bin/bash
# Unpacks a packaged kernel for tests: a download of some 100 MB. Leaves its image and a first file system that has what
# mounting the host's takes (15 MB). Nothing is installed but what packs it.
#
#   scripts/vm/modules-kernel.sh             the distribution's own, for tests of kernel modules: .cache/vm/modules
#   scripts/vm/modules-kernel.sh --newest    the newest one that Debian has packaged: .cache/vm/newest
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../env.sh"
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

tools=(busybox-static cpio gzip xz-utils)
name=modules
# Where apt keeps its lists; --newest has its own, of other releases of Debian than this machine's.
lists=()
# In this order, where the kernel has them as modules.
modules=(fscache netfs 9pnet 9pnet_virtio 9p overlay)

# Where this machine has its own packages from, if it is Debian, or METE_DEBIAN.
# shellcheck disable=SC2016 # apt's own variables
archive() {
	echo "${METE_DEBIAN:-$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		sed -n 's/^Debian Debian //p' | head -n 1)}" | grep .
}

use_lists_of_all_releases() {
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg release from
	install_missing debian-archive-keyring
	from=$(archive) || give_up "no archive of Debian is among this machine's package sources; METE_DEBIAN names the address of one."
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
	for release in sid trixie-backports; do
		echo "deb [signed-by=$keys] $from $release main"
	done >"$work/sources.list"
	lists=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache")
	apt-get -q -q -o APT::Sandbox::User=root "${lists[@]}" update >&2 || say "some of Debian's package lists could not be fetched; going on"
}

# The newest one, and none of those for clouds, real time or debugging.
choose_package() {
	apt-cache "${lists[@]}" search --names-only '^linux-image-[0-9].*-amd64$' | sed 's/ .*//' | grep -Ev -- '-(cloud|rt|dbg|unsigned)' | sort -V | tail -n 1 | grep .
}

# unpack_package PACKAGE: into $work/kernel. Newer ones have their image and modules in packages of their own.
unpack_package() {
	local part
	for part in image binary modules; do
		part=${1/linux-image/linux-$part}
		apt-cache "${lists[@]}" show "$part" >/dev/null 2>&1 || continue
		(cd "$work" && apt-get -q -q -o APT::Sandbox::User=root "${lists[@]}" download "$part" && dpkg-deb -x "$part"_*.deb kernel) >&2
	done
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
install_missing "${tools[@]}"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/mete-modules.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ "${1:-}" = --newest ]; then
	name=newest
	use_lists_of_all_releases
fi
place=$root/.cache/vm/$name
if ! package=$(choose_package); then
	refresh_lists
	package=$(choose_package) || give_up "no linux-image package in this release."
fi
say "unpacking $package"
unpack_package "$package"
mkdir -p "$place"
image=$(find "$work/kernel" -name 'vmlinuz*' -print -quit | grep .) || give_up "$package has no image of a kernel."
rm -f "$place/initrd"
cp "$image" "$place/bzImage"
pack_first_file_system "$work/kernel" "$work/first" >"$place/initrd.new"
mv "$place/initrd.new" "$place/initrd"
say "the kernel is in $place"
