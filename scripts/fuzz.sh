#!/bin/bash
# Runs fuzz targets with the toolchain that builds everything else.
#
#   scripts/fuzz.sh [TARGET…] [-- OPTION…]      default: all of fuzz/fuzz_targets, for METE_FUZZ_SECONDS each (default 60)
#
# As many targets run side by side as there are processors. What is behind -- goes to libFuzzer as it is. Inputs that
# reached something new stay in .cache/fuzz/corpus and are where the next run begins; inputs that fail go to
# .cache/fuzz/failures. A target's output is in .cache/fuzz/TARGET.log.
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$root" || exit

cache=$root/.cache/fuzz
triple=$(rustc -vV | sed -n 's/^host: //p')
seconds=${METE_FUZZ_SECONDS:-60}

# What libFuzzer needs of the compiler: counts of what is reached, what values are compared with, and memory that is guarded.
# These are options that compilers offer to nightly toolchains only. With the first variable the stable one takes them too,
# so that fuzzing needs no second toolchain.
instrumented=(
	-Zsanitizer=address -Cpasses=sancov-module
	-Cllvm-args=-sanitizer-coverage-{level=4,inline-8bit-counters,pc-table,trace-compares}
	-Cllvm-args=-simplifycfg-branch-fold-threshold=0 --cfg=fuzzing
)

# Cargo does not know these options, nor where they are left out, so what was built with others lies elsewhere.
built=${CARGO_TARGET_DIR:-$root/target}/fuzz-build-$({ echo "${instrumented[*]}" && cat scripts/fuzz-rustc.sh; } | cksum | cut -d' ' -f1)
programs=$built/$triple/release

build() {
	RUSTC_BOOTSTRAP=1 RUSTC_WRAPPER=$root/scripts/fuzz-rustc.sh METE_INSTRUMENTED=${instrumented[*]} cargo build \
		--manifest-path fuzz/Cargo.toml --release --target "$triple" --target-dir "$built" "${@/#/--bin=}"
}

# Where a target begins beside what was found before: texts and files of the kind that it reads.
seeds_of() {
	case $1 in
	schema) echo "$root/schemas" ;;
	program) echo "$cache/seeds/program" ;;
	esac
}

make_seeds() {
	mkdir -p "$cache/seeds/program"
	printf 'int main(void) { return 0; }\n' | cc -x c -o "$cache/seeds/program/empty" - || give_up "cc does not compile an empty program."
}

# Targets that read files write them first, and a trace is synchronised with its disk; memory has none.
temporary_directory() { mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" mete-fuzz.XXXXXX; }

# run_target TARGET OPTION…: one line of what came of it.
run_target() {
	local name=$1 log=$cache/$1.log temporary status seeds
	shift
	mkdir -p "$cache/corpus/$name" "$cache/failures/$name"
	mapfile -t seeds < <(seeds_of "$name")
	temporary=$(temporary_directory) || return
	TMPDIR=$temporary "$programs/$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=300 \
		-print_final_stats=1 -artifact_prefix="$cache/failures/$name/" "$@" "$cache/corpus/$name" "${seeds[@]}" >"$log" 2>&1 &
	# Each target has a shell of its own, which ends here. A shell runs no trap while it waits for a program in front.
	# shellcheck disable=SC2064 # these are known now
	trap "kill $!; rm -rf '$temporary'; exit 143" INT TERM
	wait $!
	status=$?
	rm -rf "$temporary"
	if [ $status = 0 ]; then
		say "fuzzing $name: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs, none failed"
	else
		grep -E 'panicked|ERROR|SUMMARY|Test unit written' -A 1 "$log" | tail -n 20 >&2
		say "fuzzing $name: failed with status $status; all it said is in $log. To see it again:"
		say "  $programs/$name $cache/failures/$name/…"
	fi
	return $status
}

targets=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	[ -e "fuzz/fuzz_targets/$1.rs" ] || give_up "no such fuzz target: $1; there are $(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g')"
	targets+=("$1")
	shift
done
[ "${1:-}" != -- ] || shift
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//')

build "${targets[@]}" || give_up "the fuzz targets do not build."
make_seeds
export -f run_target seeds_of temporary_directory say
export cache programs seconds root
printf '%s\0' "${targets[@]}" | xargs -0 -P "$(nproc)" -I '{}' bash -c 'run_target "$@"' run_target '{}' "$@"
