#!/bin/bash
# Runs a command as root in a small virtual machine: a test kernel of its own, this machine's root
# file system underneath (read-only, changes stay in memory). Output and exit status come back.
#
#   scripts/vm/run.sh [--modules | --newest] [--counted [--turns]] [--processors N] [--share DIR] [--limit SECONDS] COMMAND [ARGUMENT…]
#   scripts/vm/run.sh [--modules | --newest] --check    can this machine do that? exit status 77 and the reason if not
#   scripts/vm/run.sh --kernel               is there a test kernel? its path, or exit status 1
#
# QEMU emulates the processor (no hardware virtualisation needed): some 25 times slower than the
# host. --modules: with the distribution's own kernel and some modules of it, not the test kernel; --newest: with the newest
# one that Debian has packaged (scripts/vm/modules-kernel.sh unpacks both). --counted: time inside goes by instructions, four nanoseconds each, so that load on the
# host changes nothing that the guest sees; programs find METE_VM_COUNTED=1 then. --turns: and no processor stands still for long while others run, if those pause
# at times (see take_turns). --processors: METE_VM_PROCESSORS, or two, if it is not given. METE_VM_MEMORY is
# its memory (default 2G; ten thousand processes need more). --share makes
# DIR writable from inside. Exit status 124: the limit (default 300 s) was reached; 125: the machine did not get as far
# as the command, its console is printed.
# The kernel image: METE_VM_KERNEL, or ../shared/vm/bzImage, or .cache/vm/bzImage beside the
# sources (scripts/vm/build-kernel.sh makes the last).
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../env.sh"

limit=300
shared=
initrd=
with_modules=
counted=()
# Where time goes by instructions, a processor runs up to the next moment at which a timer is set, and the others stand still
# meanwhile. If all their timers have gone off and wait to be served, that is far away: up to 30 ms were seen. A filter of
# packets sets one every 0.1 ms. There are no packets: no driver is there for its card, and it leads nowhere. But who never
# executes PAUSE then runs up to each of these moments, and the processors behind it not at all.
take_turns=(-netdev 'user,id=none,restrict=on' -device 'ne2k_pci,netdev=none,romfile='
	-object 'filter-buffer,id=turns,netdev=none,interval=100')
processors=${METE_VM_PROCESSORS:-2}

find_kernel() {
	local image
	for image in "${METE_VM_KERNEL:-}" "$root/../shared/vm/bzImage" "$root/.cache/vm/bzImage"; do
		[ -r "$image" ] && realpath "$image" && return
	done
	return 1
}

cannot() {
	say "$*"
	exit 77
}

check() {
	[ "$(uname -m)" = x86_64 ] || cannot "the test kernel is for x86-64 machines"
	have qemu-system-x86_64 || cannot "QEMU is not installed; make vm-setup installs it"
	if [ -n "$with_modules" ]; then
		kernel=$root/.cache/vm/$with_modules/bzImage
		initrd=$root/.cache/vm/$with_modules/initrd
		[ -r "$initrd" ] || cannot "there is no packaged kernel in .cache/vm/$with_modules; make vm-setup unpacks one (a download of 100 MB)"
		return
	fi
	kernel=$(find_kernel) || cannot "there is no test kernel; make vm-setup builds one (about ten minutes)"
}

# What the machine's first process, scripts/vm/init, reads: where to be and what to run.
write_orders() {
	printf 'cd %q || exit 125\n' "$PWD"
	printf 'export CLANG=%q METE_CLANG_INSIDE=%q\n' "$root/scripts/vm/clang.sh" "${CLANG:-clang-19}"
	[ ${#counted[@]} -eq 0 ] || printf 'export METE_VM_COUNTED=1\n'
	[ -z "$shared" ] || printf 'mount_shared %q\n' "$shared"
	printf 'run %s\n' "$(printf '%q ' "$@")"
}

# 9p: the host's root, read-only, and the folder with the orders. One emulation thread, because
# QEMU 7.2 with several was seen to crash a guest while the kernel patched its own code.
qemu_arguments() {
	printf '%s\n' \
		-machine q35 -accel tcg,thread=single -cpu max -smp "$processors" -m "${METE_VM_MEMORY:-2G}" \
		-nodefaults -display none -monitor none -no-reboot \
		-kernel "$kernel" \
		-append "console=ttyS0 loglevel=4 panic=-1 ro root=root rootfstype=9p rootflags=trans=virtio,version=9p2000.L,msize=524288,cache=loose init=$root/scripts/vm/init" \
		-serial "file:$orders/console" \
		-device virtio-rng-pci \
		-chardev stdio,id=output,signal=off -device virtio-serial-pci -device virtserialport,chardev=output,name=output \
		-virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$orders,mount_tag=orders,security_model=none,multidevs=remap"
	[ ${#counted[@]} -eq 0 ] || printf '%s\n' "${counted[@]}"
	[ -z "$initrd" ] || printf '%s\n' -initrd "$initrd"
	[ -z "$shared" ] || printf '%s\n' -virtfs "local,path=$shared,mount_tag=shared,security_model=none,multidevs=remap"
}

# Programs inside have the host compile (clang.sh).
serve_compiler() {
	local ready
	while [ -d "$orders/compiled" ]; do
		for ready in "$orders"/compiled/*/ready; do
			[ -e "$ready" ] && compile_in "${ready%/ready}"
		done
		sleep 0.05
	done
}

compile_in() {
	local arguments
	rm -f "$1/ready"
	mapfile -d '' arguments <"$1/arguments"
	(cd "$1/files" && exec "${CLANG:-clang-19}" "${arguments[@]}") >"$1/stdout" 2>"$1/stderr" </dev/null
	echo $? >"$1/status.new"
	mv "$1/status.new" "$1/status"
}

boot() {
	local arguments status
	orders=$(mktemp -d "${TMPDIR:-/tmp}/mete-vm.XXXXXX") || exit
	mkdir -m 1777 "$orders/compiled"
	serve_compiler &
	# shellcheck disable=SC2064 # the number now
	trap "rm -rf '$orders'; wait $! 2>/dev/null" EXIT
	write_orders "$@" >"$orders/orders"
	mapfile -t arguments < <(qemu_arguments)
	# An input that never ends: at its end QEMU would close the port and the command's output block.
	mkfifo "$orders/no-input"
	timeout --foreground --kill-after=5 "$limit" qemu-system-x86_64 "${arguments[@]}" <>"$orders/no-input"
	status=$?
	[ "$status" != 124 ] && status=$(cat "$orders/status" 2>/dev/null || echo 125)
	case $status in
	124) say "the virtual machine was stopped after $limit s; the end of its console:" ;;
	125) say "the virtual machine did not get as far as the command; the end of its console:" ;;
	*) exit "$status" ;;
	esac
	tail -n 40 "$orders/console" >&2
	exit "$status"
}

while :; do
	case ${1:-} in
	--check)
		check
		exit
		;;
	--kernel)
		find_kernel
		exit
		;;
	--modules | --newest) with_modules=${1#--} && shift ;;
	--counted) counted+=(-icount 'shift=2,sleep=off') && shift ;;
	--turns) counted+=("${take_turns[@]}") && shift ;;
	--processors) processors=$2 && shift 2 ;;
	--share) shared=$(realpath "$2") && shift 2 || exit ;;
	--limit) limit=$2 && shift 2 ;;
	-*) give_up "unknown option $1; see the top of $0" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || give_up "no command given; see the top of $0"
check
boot "$@"
