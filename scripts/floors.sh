#!/bin/bash
# Checks that each crate uses only crates on floors below its own, as the table in ARCHITECTURE.md has them.
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$root" || exit

# floor_of CRATE
floor_of() { awk -F'[|`]' -v crate="$1" '$4 == crate { print $2 + 0; exit }' ARCHITECTURE.md; }

# used_by FOLDER: the crates of ours among its dependencies, those of its tests left out.
used_by() { awk '/^\[/ { own = /^\[dependencies\]/ } own && /^mete-/ { print $1 }' "$1/Cargo.toml"; }

wrong=0
for folder in crates/*; do
	crate=$(awk -F'"' '/^name = / { print $2; exit }' "$folder/Cargo.toml")
	floor=$(floor_of "$crate")
	if [ -z "$floor" ]; then
		say "$crate has no floor in ARCHITECTURE.md"
		wrong=1
		continue
	fi
	for used in $(used_by "$folder"); do
		[ "$(floor_of "$used")" -lt "$floor" ] && continue
		say "$crate on floor $floor uses $used, which is not below it: see ARCHITECTURE.md"
		wrong=1
	done
done
exit $wrong
