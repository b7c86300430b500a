# shellcheck shell=bash
# Sourced by the other scripts: finds the tools that the build needs where they may stand, and
# sets PATH, RUSTUP_TOOLCHAIN and CLANG accordingly. Installs nothing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cargo_bin=${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
# The oldest clang that compiles BPF for cpu v4.
clang_wanted=16

say() { printf 'mete: %s\n' "$*" >&2; }
give_up() {
	say "$*"
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# at_least WANTED FOUND: compares version numbers.
at_least() { [ -n "$2" ] && printf '%s\n%s\n' "$1" "$2" | sort -VC; }

cargo_version() { cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }
cargo_is_new_enough() { at_least "$rust_wanted" "$(cargo_version)"; }

# Asked first, because some versions of rustup download a toolchain that is merely named.
has_toolchain() { rustup toolchain list 2>/dev/null | grep "^$1-" >/dev/null; }

# The user's own choice of toolchain wins where it is new enough.
find_cargo() {
	cargo_is_new_enough && return
	PATH=$cargo_bin:$PATH
	export PATH
	cargo_is_new_enough && return
	has_toolchain stable || return 0
	# A default that is missing or too old: this build alone uses the stable one.
	export RUSTUP_TOOLCHAIN=stable
	cargo_is_new_enough || unset RUSTUP_TOOLCHAIN
}

clang_major() { "$1" --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p'; }

# 19 is what the programs are tested with; then the newest, then whatever is called clang.
clang_candidates() {
	printf 'clang-%s\n' 19 {25..20} 18 17 16
	echo clang
}

find_clang() {
	[ -n "${CLANG:-}" ] && return
	local name
	for name in $(clang_candidates); do
		if have "$name" && at_least "$clang_wanted" "$(clang_major "$name")"; then
			export CLANG=$name
			return
		fi
	done
}

find_cargo
find_clang
