#!/bin/bash
# Installs what the build needs and this machine lacks; quick when nothing is missing.
#
#   scripts/setup.sh        compilers, headers, Rust
#   scripts/setup.sh check  what judges formatting and scripts
#   scripts/setup.sh vm     what the tests in the virtual machine need
#   scripts/setup.sh readers   what reads converted traces in tests: babeltrace2, pyarrow, perfetto
#   scripts/setup.sh mounts    what lets ordinary users mount parameters: fusermount3
#
# Debian and Ubuntu packages are installed by apt-get, as root or by a sudo that asks nothing;
# Rust by rustup. Elsewhere the script says what to install.
set -uo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

missing=()  # for people
packages=() # for apt-get

# need WHAT PACKAGE...
need() {
	missing+=("$1")
	packages+=("${@:2}")
}

has_header() { printf '#include <%s>\n' "$1" | cc -E -x c - >/dev/null 2>&1; }

# The clang to install: the tested one, or the newest that is packaged.
clang_package() {
	local version
	for version in 19 18 17 16; do
		is_packaged "clang-$version" && echo "clang-$version" && return
	done
	at_least "$clang_wanted" "$(packaged_version clang)" && echo clang
}

check_c() {
	have cc || need "a C compiler (cc)" gcc libc6-dev
	have c++ || need "a C++ compiler (c++)" g++
	have make || need "make" make
	have pkg-config || need "pkg-config" pkg-config
	has_header gelf.h || need "the headers of libelf" libelf-dev
	has_header zlib.h || need "the headers of zlib" zlib1g-dev
	[ -n "${CLANG:-}" ] || need "clang $clang_wanted or newer" CLANG
}

rust_is_complete() { cargo_is_new_enough && cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }

check_vm() {
	have qemu-system-x86_64 || need "QEMU for x86-64" qemu-system-x86
}

check_judges() {
	have git || need "git" git
	have shellcheck || need "shellcheck" shellcheck
	have clang-format-19 || need "clang-format 19" clang-format-19
}

check_readers() {
	have babeltrace2 || need "babeltrace2" babeltrace2
	python3 -c 'import ensurepip, venv' 2>/dev/null || need "python3 with venv" python3-venv
}

check_mounts() {
	have fusermount3 || need "fusermount3" fuse3
}

# Python's packages go into the target directory, where the tests look for them.
setup_readers() {
	local place=$root/target/python
	"$place/bin/python3" -c 'import pyarrow, perfetto' 2>/dev/null && return
	say "installing Python packages into $place: pyarrow, perfetto, protobuf"
	python3 -m venv "$place" && "$place/bin/pip" install --quiet pyarrow perfetto protobuf >&2 ||
		say "they could not be installed; the tests that need them will be skipped"
}

# Replaces the place holder once the package lists are there to choose from.
choose_clang() {
	local i name
	for i in "${!packages[@]}"; do
		[ "${packages[i]}" = CLANG ] || continue
		refresh_lists
		name=$(clang_package)
		[ -n "$name" ] || can_be_root || name=clang-19
		[ -n "$name" ] || give_up "this release packages no clang $clang_wanted or newer; install one from https://apt.llvm.org and run this again."
		packages[i]=$name
	done
}

list_and_give_up() {
	say "on Debian and Ubuntu this script installs what is missing; here, please install it yourself and run this again:"
	printf '  - %s\n' "$@" >&2
	exit 1
}

rust_by_rustup() {
	say "installing Rust: rustup toolchain stable (minimal, with rustfmt and clippy)"
	rustup toolchain install stable --profile minimal --component rustfmt,clippy --no-self-update >&2 || return
	rustup default >/dev/null 2>&1 || rustup default stable >&2
}

fetch() { curl --proto '=https' --tlsv1.2 -sSf "$1"; }

# Fetched whole before it runs; the host that the toolchain comes from has the installer, too.
rust_by_installer() {
	have curl || install_packages curl ca-certificates || return
	say "installing Rust: rustup from https://sh.rustup.rs into $(dirname "$cargo_bin") (minimal, with rustfmt and clippy; your shell's profile is left alone)"
	local installer
	installer=$(fetch https://sh.rustup.rs) ||
		installer=$(fetch https://static.rust-lang.org/rustup/rustup-init.sh) || return
	RUSTUP_INIT_SKIP_PATH_CHECK=yes sh -s -- -y --profile minimal --component rustfmt,clippy --no-modify-path \
		<<<"$installer" >&2
}

# rustup where it is; else the distribution's rustup; else its Rust, if new enough; else rustup's
# own installer.
install_rust() {
	PATH=$cargo_bin:$PATH
	if have rustup; then
		cargo_is_new_enough && rustup component add rustfmt clippy >&2 && return
		rust_by_rustup
		return
	fi
	refresh_lists
	# Without root, only rustup's installer can help.
	if can_be_root && is_packaged rustup && install_packages rustup ca-certificates; then
		rust_by_rustup
	elif at_least "$rust_wanted" "$(packaged_version cargo)"; then
		install_packages cargo rustfmt rust-clippy
	else
		rust_by_installer
	fi
}

setup_packages() {
	[ ${#missing[@]} -gt 0 ] || return 0
	choose_clang
	install_packages "${packages[@]}" || give_up "apt-get failed; see its message above."
}

setup_rust() {
	install_rust
	find_cargo
	rust_is_complete || give_up "Rust $rust_wanted or newer with rustfmt and clippy could not be installed; see https://rustup.rs, then run this again."
}

main() {
	local rust=here
	case ${1:-build} in
	build)
		check_c
		rust_is_complete || rust=missing
		;;
	check) check_judges ;;
	vm) check_vm ;;
	readers) check_readers ;;
	mounts) check_mounts ;;
	*) give_up "usage: scripts/setup.sh [check|vm|readers|mounts]" ;;
	esac
	if ! on_debian; then
		[ $rust = here ] || missing+=("Rust $rust_wanted or newer with rustfmt and clippy (https://rustup.rs)")
		[ ${#missing[@]} -eq 0 ] || list_and_give_up "${missing[@]}"
	fi
	setup_packages
	[ $rust = here ] || setup_rust
	[ "${1:-}" != readers ] || setup_readers
	find_clang
	say "nothing is missing${CLANG:+ (${CLANG##*/}, cargo $(cargo_version))}"
}

main "$@"
