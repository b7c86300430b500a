#!/bin/bash
# Formatting, lints with warnings denied, documentation. All of it, even if one part fails.
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

mapfile -t c_files < <(git ls-files '*.c' '*.h' ':!:*vmlinux*')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run scripts/vm/init)
clang_format=${CLANG/clang/clang-format}

part "Rust formatting" cargo fmt --all --check
part "lints" cargo clippy --workspace --all-targets -- -D warnings
part "documentation" env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps
part_if_present "$clang_format" "C formatting" "$clang_format" --dry-run -Werror "${c_files[@]}"
part_if_present shellcheck "scripts" shellcheck -x "${scripts[@]}"

for name in "${failed[@]}"; do
	say "failed: $name"
done
[ ${#failed[@]} -eq 0 ]
