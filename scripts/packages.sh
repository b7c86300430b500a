# shellcheck shell=bash
# Sourced after env.sh: installs Debian and Ubuntu packages without asking.

on_debian() { [ -e /etc/debian_version ] && have apt-get; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
	else
		sudo -n env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
	fi
}

can_be_root() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }

# The upstream version that would be installed, such as 1.85.0.
packaged_version() {
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/ *Candidate: \([0-9]*:\)\{0,1\}\([0-9.]*\).*/\2/p'
}

# Whether the distribution has the package, in a version that can be installed.
is_packaged() { [ -n "$(packaged_version "$1")" ]; }

# Package lists are fetched at most once, and only when something has to be installed.
lists_are_fresh=
refresh_lists() {
	[ -n "$lists_are_fresh" ] && return
	lists_are_fresh=yes
	can_be_root || return 0
	say "fetching the package lists (apt-get update)"
	as_root apt-get -q -q -o DPkg::Lock::Timeout=120 update || say "some package lists could not be fetched; going on"
}

missing_packages() {
	local package
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -x installed >/dev/null || echo "$package"
	done
}

# install_missing NAME...: those that are not there.
install_missing() {
	local packages
	mapfile -t packages < <(missing_packages "$@")
	install_packages "${packages[@]}"
}

# install_packages NAME...; --no-remove, because nothing that is already there may have to go.
install_packages() {
	[ $# -gt 0 ] || return 0
	can_be_root || give_up "root is needed to install packages; run this line, then the same command again:
  sudo apt-get update && sudo apt-get install --no-install-recommends $*"
	refresh_lists
	say "installing packages: $*"
	as_root apt-get -q -q -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 --no-remove --no-install-recommends \
		install "$@" 2>&1 | sed -E '/^(Selecting|Preparing|Unpacking|Processing|\(Reading)/d' >&2
}
