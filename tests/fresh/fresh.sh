#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a fresh machine does: a bare Debian in a folder, with nothing in it but git and make, runs the
# commands of the README as far as the first programs in the VM (inside.sh). The folder is new each time.
# The cache keeps what would need the network or much time:
#
#   $QCU_CACHE/fresh/debian-13-git-make.tar.zst   the bare Debian
#                   /debian-13/archives           the packages that scripts/deps installs in it
#                             /cache              its own QCU_CACHE, with QEMU and the guest
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
here=$root/tests/fresh
PATH=$PATH:/usr/sbin:/sbin # debootstrap

usage() {
	cat <<-END
		usage: tests/fresh/fresh.sh [--test] [12 | 13]
		  12, 13   the release of Debian; without, one that differs from this machine's
		  --test   run all of 'make test' there too, not only 'make demo'
	END
}

skip() {
	echo "$*"
	exit 77
}

step() {
	note "$SECONDS s: $*"
}

# The README asks for these.
packages=(git make)

options() {
	test=
	release=
	while [ $# -gt 0 ]; do
		case $1 in
		--test) test=--test ;;
		--help | -h) usage && exit ;;
		12 | 13) release=$1 ;;
		*) die "unknown argument $1 (try --help)" ;;
		esac
		shift
	done
	# shellcheck source=/dev/null
	[ -n "$release" ] || release=$(. /etc/os-release && [ "${VERSION_CODENAME:-}" = trixie ] && echo 12 || echo 13)
	case $release in
	12) dist=bookworm ;;
	13) dist=trixie ;;
	esac
	self=fresh-$release
}

# What this machine must have. The toolkit is handed in: README.md names it as what must be there.
look_around() {
	local nvcc
	[ -z "${QCU_FRESH:-}" ] || skip "this is the fresh machine"
	[ "$(id -u)" -eq 0 ] || skip "only root can make a Debian in a folder"
	command -v debootstrap >/dev/null || skip "debootstrap is not installed"
	unshare --mount --pid --fork true 2>/dev/null || skip "there are no mount and process namespaces here"
	git -C "$root" rev-parse --git-dir >/dev/null 2>&1 || skip "this is not a git repository, so it cannot be cloned"
	nvcc=$(command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || command -v nvcc) || die "the CUDA Toolkit is missing"
	cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	[ "$cuda" != /usr ] || skip "the CUDA Toolkit lies in /usr, so it cannot be handed to another Debian"
}

# enter COMMAND...: runs COMMAND in the fresh machine, with an environment of its own.
enter() {
	local v keep=()
	# How this machine reaches the network.
	for v in {http,https,ftp,all,no}_proxy {HTTP,HTTPS,FTP,ALL,NO}_PROXY PIP_CERT PIP_INDEX_URL; do
		[ -z "${!v:-}" ] || keep+=("$v=${!v}")
	done
	unshare --mount --pid --fork --kill-child "$here/enter.sh" "$new" \
		"$store/archives:/var/cache/apt/archives" "$store/cache:/root/.cache/qcuda" "$cuda:$cuda:ro" -- \
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

# The new machine reaches the network as this one does.
connect() {
	cp -L /etc/resolv.conf /etc/hosts "$new/etc/"
	apt_settings >"$new/etc/apt/apt.conf.d/90machine"
	mkdir -p "$new/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$new/usr/local/share/ca-certificates/" \; 2>/dev/null || true
}

# A clone of this repository, with the changes that are not committed.
clone() {
	git clone -q --no-checkout "$root" "$new/root/qcuda" || die "cannot clone $root"
	git -C "$root" ls-files -z -co --exclude-standard | (cd "$root" && tar --null -T - --ignore-failed-read -c) |
		tar -C "$new/root/qcuda" --no-same-owner -x
	git -C "$new/root/qcuda" reset -q
}

main() {
	local bare new store
	options "$@"
	look_around
	make_cache
	store=$cache/fresh/debian-$release
	mkdir -p "$store/archives" "$store/cache"
	lock "$self"
	need_space "$cache" 5000
	scratch
	new=$work/root
	mkdir "$new"
	bare=$cache/fresh/debian-$release-$(IFS=- && echo "${packages[*]}").tar.zst
	if [ -e "$bare" ]; then
		zstd -qdc "$bare" | tar -C "$new" -x || die "cannot unpack $bare; remove it, and run this again"
	else
		bootstrap
	fi
	connect
	ln -s "$cuda" "$new/usr/local/cuda"
	clone
	step "Debian $release, with $(du -sh --one-file-system "$new" | cut -f1), is ready"
	enter /root/qcuda/tests/fresh/inside.sh $test 2>&1 | tee "$work/log" || {
		! grep -q 'is the network up' "$work/log" || fail "$work/log" "the network works, but not from the fresh machine"
		die "Debian $release: not all went well"
	}
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
