#!/bin/bash
# Checks that each crate uses only crates on floors below its own, and those that the table in ARCHITECTURE.md names; and that
# its modules do not use each other in circles.
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$root" || exit

# floor_of CRATE
floor_of() { awk -F'[|`]' -v crate="$1" '$4 == crate { print $2 + 0; exit }' ARCHITECTURE.md; }

# used_by FOLDER: the crates of ours among its dependencies, those of its tests left out.
used_by() { awk '/^\[/ { own = /^\[dependencies\]/ } own && /^mete-/ { print $1 }' "$1/Cargo.toml"; }

# below FLOOR: the crates on lower floors.
below() { awk -F'[|`]' -v floor="$1" '$2 ~ /^ [0-9]+ $/ && $2 + 0 < floor { print $4 }' ARCHITECTURE.md; }

# listed CRATE FLOOR: the crates that its row says it uses, by their names or as all below but those that are named.
listed() {
	local cell names
	cell=$(awk -F'|' -v crate=" \`$1\`" 'index($3, crate) == 1 { print $5; exit }' ARCHITECTURE.md)
	# shellcheck disable=SC2016 # The backticks are Markdown's.
	names=$(grep -o '`[a-z]*`' <<<"$cell" | sed 's/`\(.*\)`/mete-\1/')
	case $cell in
	*"all below but"*) below "$2" | grep -vxF "$names" ;;
	*) echo "$names" ;;
	esac
}

# circle_in FOLDER: fails, and prints the modules, if there is one.
circle_in() {
	local said
	said=$(find "$1/src" -name '*.rs' ! -path '*/bin/*' -print0 | xargs -0 awk -f scripts/circles.awk | tsort 2>&1 >/dev/null)
	[ -z "$said" ] || { grep -o 'crate::.*' <<<"$said" | sort -u | xargs && return 1; }
}

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
	differing=$(comm -3 <(used_by "$folder" | sort) <(listed "$crate" "$floor" | grep . | sort) | tr -d '\t' | xargs)
	if [ -n "$differing" ]; then
		say "$crate uses other crates than its row in ARCHITECTURE.md says: $differing"
		wrong=1
	fi
	if ! circle=$(circle_in "$folder"); then
		say "modules of $crate use each other in a circle: $circle"
		wrong=1
	fi
done
exit $wrong
