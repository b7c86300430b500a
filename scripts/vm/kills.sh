#!/bin/bash
# Kills schedulers, recorders and their keepers in the virtual machine, in any order: nothing may be left.
#
#   scripts/vm/kills.sh [RUNS [LONGEST_GAP_MS [AT_ONCE]]]     default: 2000 60000 16
#
# The short version is in the tests of mete-sched and mete-parameters. METE_VM_LIMIT bounds each of the two runs, in seconds
# (default 14400); METE_KILLS_CRATES names one of the two, so that both can be run beside each other.
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../env.sh"

kills_of() {
	cargo test --manifest-path "$root/Cargo.toml" --package "$1" --test kills --no-run --message-format=json-render-diagnostics |
		sed -n 's/.*"executable":"\([^"]*kills-[^"]*\)".*/\1/p'
}

worst=0
for crate in ${METE_KILLS_CRATES:-mete-sched mete-parameters}; do
	program=$(kills_of "$crate")
	[ -n "$program" ] || give_up "the kills of $crate do not build"
	"$root/scripts/vm/run.sh" --limit "${METE_VM_LIMIT:-14400}" env METE_KILLS="${1:-2000}" \
		METE_KILLS_LONGEST_GAP_MS="${2:-60000}" METE_KILLS_AT_ONCE="${3:-16}" METE_KILLS_GRACE_MS=20000 \
		"$program" --nocapture || worst=$?
done
exit "$worst"
