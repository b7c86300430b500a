#!/bin/bash
# Runs the integration tests of a crate in the virtual machine, where fentry, cgroup v2 and
# sched_ext work on any host. Built here, run inside.
#
#   scripts/vm/test.sh [--modules | --newest] [--counted] [CRATE [PROGRAM…]]     default: mete-kernel, all programs of its tests
#
# --modules: the tests of kernel modules, under the distribution's own kernel. --newest: under the newest kernel that Debian has packaged. --counted: time goes by instructions.
# METE_VM_PROCESSORS is the number of its processors (default 2). METE_VM_LIMIT bounds the run inside, in seconds
# (default 3600: other load on the machine makes it many times slower). METE_VM_TESTS names the tests, by parts of their names, if not
# all of them are to run. METE_CHURN_SECONDS, METE_CHURN_SEED and
# METE_CHURN_KILLS go to the tests of mete-ext (tests/churn.rs).
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../env.sh"

# test_programs CRATE [PROGRAM…]: those that cargo says it built, one path a line; the build's own messages go to stderr.
# Built with the whole workspace, as the other tests are: for one crate alone, its dependencies would have other features, and
# be compiled once more.
test_programs() {
	(
		set -o pipefail
		wanted=("${@:2}")
		[ $# -gt 1 ] || wanted=('*')
		cargo test --manifest-path "$root/Cargo.toml" --workspace "${wanted[@]/#/--test=}" --no-run --message-format=json-render-diagnostics |
			sed -n "/crates\/$1#.*\"test\":true/s/.*\"executable\":\"\([^\"]*\)\".*/\1/p"
	)
}

# One after another: two emulated processors are not worth sharing.
# shellcheck disable=SC2016 # expanded inside
run_all='
status=0
for program; do
	"$program" --show-output --test-threads=1 $METE_VM_TESTS || status=$?
done
exit $status'

# run_crate CRATE [PROGRAM…]
run_crate() {
	local programs
	programs=$(test_programs "$@") || give_up "the tests of $1 do not build"
	[ -n "$programs" ] || give_up "$1 has no integration tests to run"
	mapfile -t programs <<<"$programs"
	[ $# = 1 ] || [ ${#programs[@]} = $(($# - 1)) ] || give_up "$1 has not all of these programs: ${*:2}"
	cd "$root/crates/$1" || exit
	"$root/scripts/vm/run.sh" "${kernel[@]}" --limit "${METE_VM_LIMIT:-3600}" \
		env METE_VM_TESTS="$tests" METE_CHURN_SECONDS="${METE_CHURN_SECONDS:-}" METE_CHURN_SEED="${METE_CHURN_SEED:-}" METE_CHURN_KILLS="${METE_CHURN_KILLS:-}" bash -c "$run_all" tests "${programs[@]}"
}

kernel=()
tests=${METE_VM_TESTS:-}
if [ "${1:-}" = --modules ]; then
	kernel=(--modules)
	tests=of_modules
	shift
elif [ "${1:-}" = --newest ]; then
	kernel=(--newest)
	shift
fi
if [ "${1:-}" = --counted ]; then
	kernel+=(--counted)
	shift
fi
[ $# -gt 0 ] || set -- mete-kernel
run_crate "$@"
