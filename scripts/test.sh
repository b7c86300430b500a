#!/bin/bash
# Runs every test that this machine can run; says at the end what was skipped and why.
#
#   scripts/test.sh [STAGE…]      stages: workspace loom miri vm (default: all)
#
# METE_STAGE_LIMIT bounds the processor time of each stage, in seconds (default 3600). A stage also ends when it uses no
# processor time for METE_STAGE_STILL seconds (default 900). Time that passes does not count, because other load on the
# machine makes everything take longer; a virtual machine is bounded by the clock, too (METE_VM_LIMIT, scripts/vm/test.sh).
# METE_TEST_SUDO=1 runs the test programs, not the build, as root by a sudo that asks nothing.
# shellcheck disable=SC2329 # the stages are called by name
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$root" || exit

target=${CARGO_TARGET_DIR:-$root/target}
log=$target/test.log
summary=$target/test-summary.txt
failed=0

used_by() { cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" -v ticks="$(getconf CLK_TCK)" -f scripts/processor-time.awk; }

# watch PROCESS: ends it once it has used up its processor time, or has used none for long.
watch() {
	local used before=0 still=0
	while sleep 5; do
		used=$(used_by "$1")
		still=$((used > before ? 0 : still + 5))
		before=$used
		[ "$used" -lt "${METE_STAGE_LIMIT:-3600}" ] && [ "$still" -lt "${METE_STAGE_STILL:-900}" ] && continue
		say "ending a stage that has used $used s of processor time, none of it in the last $still s"
		kill "$1"
		return
	done
}

# timeout gives the command a process group of its own: neither Ctrl-C nor a test that hangs leaves anything behind. Its
# own limit of a day is never reached.
bounded() (
	local child='' watcher=''
	# shellcheck disable=SC2086 # one of them may not be there yet
	trap 'kill $child $watcher; exit 143' INT TERM
	timeout --kill-after=10 1d env --default-signal=INT,QUIT "$@" </dev/null &
	child=$!
	watch "$child" >&2 &
	watcher=$!
	wait "$child"
	status=$?
	kill "$watcher" 2>/dev/null
	exit "$status"
)

stage() {
	local name=$1 status began=$SECONDS
	printf '\n== %s ==\n' "$name" | tee -a "$log"
	bounded "${@:2}" | tee -ia "$log"
	status=${PIPESTATUS[0]}
	printf '\nmete: the stage %s took %s s\n' "$name" $((SECONDS - began)) | tee -a "$log"
	[ "$status" = 0 ] && return
	failed=1
	# 143: its processor time is used up; 124: a virtual machine's time.
	case $status in 143 | 124) status="limit reached" ;; esac
	printf '== %s == failed with status: %s\n' "$name" "${status// /-}" | tee -a "$log"
}

# skip STAGE REASON
skip() { printf '\n== %s ==\nSKIPPED: %s: %s\n' "$1" "$1" "$2" | tee -a "$log"; }

# The libraries and programs first: tests link C programs against the one and start the other, and
# cargo builds for a test only what its own crate depends on. With all targets, because crates that the tests need have
# other features of some dependencies, and what is built without them would be built twice.
build() { stage build cargo build --workspace --all-targets; }

workspace() {
	stage workspace cargo test --workspace --no-fail-fast -- --show-output
	# Probes as on architectures whose code is not patched.
	stage flag-check cargo test --package mete-probe --features flag-check --test live -- --show-output
}

# The crates that have a test file of this name.
crates_with() {
	local file
	for file in crates/*/tests/"$1.rs"; do
		[ -e "$file" ] && basename "$(dirname "$(dirname "$file")")"
	done
}

# Models of the memory ordering; loom explores the interleavings.
loom() {
	local crate
	for crate in $(crates_with loom); do
		stage loom env CARGO_TARGET_DIR="$target/loom" RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" \
			LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}" \
			cargo test --package "$crate" --test loom --profile loom -- --show-output
	done
}

miri() {
	local crate
	if ! has_toolchain nightly || ! RUSTUP_TOOLCHAIN=nightly cargo miri --version >/dev/null 2>&1; then
		skip miri "no nightly toolchain with Miri; rustup toolchain install nightly --component miri,rust-src"
		return
	fi
	for crate in $(crates_with miri); do
		stage miri env RUSTUP_TOOLCHAIN=nightly CARGO_TARGET_DIR="$target/miri" \
			cargo miri test --package "$crate" --test miri -- --show-output
	done
}

# What runs beside this script, by name: a process group each, so that all of it can be ended. Each leaves its exit status in a
# file: the shell forgets that of a process whose number another one has got since.
jobs=()

# beside NAME COMMAND…: begins once a processor is free.
beside() {
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do sleep 1; done
	rm -f "$target/$1.status"
	set -m
	with_own_log "$@" &
	set +m
	jobs+=("$1")
}

end_jobs() {
	local group
	for group in $(jobs -rp); do kill -- "-$group" 2>/dev/null; done
}

wait_for_jobs() {
	local name status
	wait
	for name in "${jobs[@]}"; do
		status=$(cat "$target/$name.status" 2>/dev/null) || say "$name has ended without a result" 2>&1 | tee -a "$log"
		[ "$status" = 0 ] || failed=1
	done
}

# with_own_log NAME COMMAND…: what others log meanwhile does not come in between.
with_own_log() {
	local whole=$log
	log=$target/$1.log
	: >"$log"
	failed=0
	"${@:2}"
	# shellcheck disable=SC2016 # expanded by the other shell
	flock "$whole" sh -c 'cat "$1" >>"$2"' sh "$log" "$whole"
	echo "$failed" >"$target/$1.status"
}

# The stages of the host, one after the other.
on_host() {
	local name
	for name; do "$name"; done
}

# A virtual machine emulates its processors one after the other on one of the host's. So there is one machine for each of
# these at a time, and as a rule a machine for each test program, because short pieces of work are shared out most evenly. The
# tests of the host wait for much, and take one processor.
vm() {
	local crate
	# Where shares of processor time are asserted, time must not depend on what else the host does.
	for crate in mete-ext mete-dispatch mete-shares; do
		each_program "$crate" --counted
	done
	# The newest kernel knows other names and flags. It looks at slices four times as seldom as the test kernel, and an emulated
	# processor stands still for as long while another one runs: there is one.
	METE_VM_PROCESSORS=1 METE_VM_MEMORY=3G METE_VM_TESTS="does_not_grow another_class nested ten_groups a_sleeper_among_hogs who_goes_ahead takes_over every_policy" \
		vm_beside mete-ext-newest --newest --counted mete-ext shares outside
	# It also lets tasks run beside those in real time, which takes a second processor to see.
	METE_VM_MEMORY=3G METE_VM_TESTS="part_of_a_processor nothing_is_lost a_group_has_nothing" \
		vm_beside mete-ext-newest-two --newest --counted mete-ext adverse churn
	in_machines 3 mete-kernel
	vm_beside mete-kernel-modules --modules mete-kernel
}

# each_program CRATE [OPTION…]
each_program() {
	local file program processors
	for file in "crates/$1"/tests/*.rs; do
		program=$(basename "$file" .rs)
		processors=${METE_VM_PROCESSORS:-}
		case $program in
			# What is to hold on any number of processors is seen where they are more than the host has.
			processors) processors=8 ;;
			# While one emulated processor runs another one stands still, and the clock goes on: in what a program took is then
			# what another processor did.
			cost) processors=1 ;;
		esac
		METE_VM_PROCESSORS=$processors vm_beside "$1-$program" "${@:2}" "$1" "$program"
	done
}

# in_machines NUMBER CRATE: to boot takes as long as some programs run, so several have a machine together.
in_machines() {
	local files nth at programs
	files=("crates/$2"/tests/*.rs)
	for ((nth = 0; nth < $1; nth++)); do
		programs=()
		for ((at = nth; at < ${#files[@]}; at += $1)); do programs+=("$(basename "${files[at]}" .rs)"); done
		[ ${#programs[@]} -gt 0 ] || continue
		vm_beside "$2-$((nth + 1))" "$2" "${programs[@]}"
	done
}

# vm_beside NAME [OPTION…] CRATE [PROGRAM…]
vm_beside() {
	local reason options status=0
	mapfile -t options < <(printf '%s\n' "$@" | grep -e '^--')
	reason=$(scripts/vm/run.sh "${options[@]}" --check 2>&1) || status=$?
	if [ "$status" = 77 ]; then
		skip "vm-$1" "${reason#mete: }"
		return
	elif [ "$status" != 0 ]; then
		say "cannot tell whether virtual machines run here: $reason" 2>&1 | tee -a "$log"
		failed=1
		return
	fi
	beside "vm-$1" in_vm "$@"
}

# in_vm NAME [OPTION…] CRATE [PROGRAM…]: what it prints follows when it has ended.
in_vm() {
	local printed=$target/vm-$1.out
	stage "vm-$1" scripts/vm/test.sh "${@:2}" >"$printed" 2>&1
	flock "$target/vm.lock" cat "$printed"
}

# Cargo starts test programs by way of the target's runner.
run_as_root() {
	sudo -n true 2>/dev/null || give_up "METE_TEST_SUDO is set, but sudo asks for a password here; run sudo true first, or leave it out."
	local triple
	triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
	# What tests start is not to be taken for what a user has started by sudo.
	export "CARGO_TARGET_${triple}_RUNNER=sudo -n -E env -u SUDO_UID -u SUDO_GID"
}

mkdir -p "$target"
: >"$log"
[ -z "${METE_TEST_SUDO:-}" ] || run_as_root
[ $# -gt 0 ] || set -- workspace loom miri vm
host=()
with_vm=
for name; do
	case $name in
	workspace | loom | miri) host+=("$name") ;;
	vm) with_vm=yes ;;
	*) give_up "no such test stage: $name (workspace, loom, miri, vm)" ;;
	esac
done
trap end_jobs EXIT
case "${host[*]} $with_vm" in *workspace* | *yes) build ;; esac
[ ${#host[@]} -eq 0 ] || beside host on_host "${host[@]}"
[ -z "$with_vm" ] || vm
wait_for_jobs
trap - EXIT
awk -f scripts/summary.awk "$log" | tee "$summary"
exit "$failed"
