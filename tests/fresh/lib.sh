# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by the scripts that source this file
#
# Another Debian in a folder, for tests that need a machine which differs from this one. The scripts that
# source this file have sourced scripts/lib.sh, and set $release, $dist, $work (a scratch folder), $new (the
# new root) and $folders (what enter.sh shows there).
PATH=$PATH:/usr/sbin:/sbin # debootstrap

skip() {
	echo "$*"
	exit 77
}

step() {
	note "$SECONDS s: $*"
}

# The README asks for these.
packages=(git make)

need_root_folder() {
	[ -z "${QCU_FRESH:-}" ] || skip "this is the fresh machine"
	[ "$(id -u)" -eq 0 ] || skip "only root can make a Debian in a folder"
	command -v debootstrap >/dev/null || skip "debootstrap is not installed"
	unshare --mount --pid --fork true 2>/dev/null || skip "there are no mount and process namespaces here"
}

# enter COMMAND...: runs COMMAND in the fresh machine, with an environment of its own and with $folders.
enter() {
	local v keep=()
	# How this machine reaches the network.
	for v in {http,https,ftp,all,no}_proxy {HTTP,HTTPS,FTP,ALL,NO}_PROXY PIP_CERT PIP_INDEX_URL; do
		[ -z "${!v:-}" ] || keep+=("$v=${!v}")
	done
	unshare --mount --pid --fork --kill-child "$root/tests/fresh/enter.sh" "$new" \
		"${folders[@]}" -- \
		env -i HOME=/root USER=root TERM=dumb QCU_FRESH=1 "${keep[@]}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# Can this machine reach the Debian mirror?
online() (
	apt_private "$work/apt"
	in_apt "$work/apt" apt-get -q --error-on=any update
) >"$work/online.log" 2>&1

# fail LOG MESSAGE: a failure that comes from the network is none of this test.
fail() {
	tail -n 15 "$1"
	online || skip "the Debian mirror cannot be reached, and not all that is needed is in the cache yet"
	die "$2"
}

# Makes the bare Debian and keeps it in the cache as one file.
bootstrap() {
	local uri include
	uri=$(debian_uri 2>/dev/null) || uri=
	include=$(IFS=, && echo "${packages[*]}")
	step "making a bare Debian $release"
	# Without a mirror's address debootstrap takes its own default.
	debootstrap --variant=minbase --include="$include" "$dist" "$new" ${uri:+"$uri"} >"$work/log" 2>&1 ||
		fail "$work/log" "cannot make a Debian $release"
	connect
	enter apt-get -q --error-on=any update >"$work/log" 2>&1 || fail "$work/log" "cannot read the package lists"
	rm -f "$new"/var/cache/apt/archives/*.deb
	tar -C "$new" --one-file-system -c . | zstd -q -T0 -3 >"$work/bare" || die "cannot pack the bare Debian; is the disk full?"
	rm -f "$cache/fresh/debian-$release-"*.tar.zst
	mv "$work/bare" "$bare"
}

# Puts a bare Debian $release into the folder $new.
bare_debian() {
	bare=$cache/fresh/debian-$release-$(IFS=- && echo "${packages[*]}").tar.zst
	if [ -e "$bare" ]; then
		unpack "$bare"
	else
		bootstrap
	fi
	connect
}

unpack() {
	zstd -qdc "$1" | tar -C "$new" -x || die "cannot unpack $1; remove it, and run this again"
}

# The new machine reaches the network as this one does.
connect() {
	cp -L /etc/resolv.conf /etc/hosts "$new/etc/"
	apt_settings >"$new/etc/apt/apt.conf.d/90machine"
	mkdir -p "$new/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$new/usr/local/share/ca-certificates/" \; 2>/dev/null || true
}
