# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set and used by the scripts that source this file
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

# The README asks for these. A script may set other packages, and then $kind, which names what they make, and
# the function finish, which completes that Debian before it goes into the cache.
packages=(git make)
kind=debian

need_root_folder() {
	[ -z "${QCU_FRESH:-}" ] || skip "this is the fresh machine"
	[ "$(id -u)" -eq 0 ] || skip "only root can make a Debian in a folder"
	command -v debootstrap >/dev/null || skip "debootstrap is not installed"
	unshare --mount --pid --fork true 2>/dev/null || skip "there are no mount and process namespaces here"
}

# make_deb FOLDER ARGUMENT...: makes packages (make-deb) and copies them into FOLDER. A build has one folder for packages,
# and tests may run side by side.
make_deb() (
	to=$1
	shift
	exec {guard}>"$build/deb.lock"
	flock "$guard"
	QCU_BUILD=$build DEBFULLNAME='The qCUDA authors' DEBEMAIL=qcuda@packages.debian.org \
		"$root/scripts/deb/make-deb" "$@" >"$work/made" && xargs -a "$work/made" cp -t "$to"
)

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

# with_systemd SECONDS SCRIPT: the fresh machine's systemd is its first process and runs SCRIPT as a unit; then it
# switches the machine off. Prints what SCRIPT has printed.
with_systemd() {
	cat >"$new/etc/systemd/system/inside.service" <<-END
		[Service]
		Type=oneshot
		ExecStart=$2
		ExecStopPost=bash -c 'kill -RTMIN+4 1'
		Environment=HOME=/root QCU_SLOW=${QCU_SLOW:-1}
		StandardOutput=append:/root/said
		StandardError=append:/root/said
	END
	: >"$new/root/said"
	timeout -s KILL "$1" unshare --mount --pid --cgroup --uts --ipc --fork --kill-child "$root/tests/fresh/enter.sh" --systemd \
		"$new" "${folders[@]}" -- env -i container=qcuda PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/lib/systemd/systemd --unit=inside.service </dev/null >"$work/systemd.log" 2>&1 || true
	rm "$new/etc/systemd/system/inside.service"
	cat "$new/root/said"
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
	! declare -F finish >/dev/null || finish
	rm -f "$new"/var/cache/apt/archives/*.deb
	tar -C "$new" --one-file-system -c . | zstd -q -T0 -3 >"$work/bare" || die "cannot pack the bare Debian; is the disk full?"
	rm -f "$cache/fresh/$kind-$release-"*.tar.zst
	mv "$work/bare" "$bare"
}

# Puts a bare Debian $release into the folder $new.
bare_debian() {
	bare=$cache/fresh/$kind-$release-${contents:-$(IFS=- && echo "${packages[*]}")}.tar.zst
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

# keep_debian FILE: keeps what is in $new as FILE, in the place of its older versions (FILE ends with -VERSION.tar.zst).
keep_debian() {
	rm -f "$new"/var/cache/apt/archives/*.deb
	tar -C "$new" --one-file-system -c . | zstd -q -T0 -3 >"$work/packed" || die "cannot pack the Debian; is the disk full?"
	rm -f "${1%-*}"-[0-9]*.tar.zst
	mv "$work/packed" "$1"
}

# kept_debian NAME-VERSION INSTALL: puts the Debian 13 of this name into the folder $new, from the cache. If it is not there,
# the function INSTALL makes it out of a bare one.
kept_debian() {
	lock fresh-13
	lock "${1%-*}"
	need_space "$cache" 4000
	scratch
	new=$work/root
	machine=$cache/fresh/$1.tar.zst
	mkdir "$new"
	if [ -e "$machine" ]; then
		unpack "$machine"
	else
		bare_debian
		"$2"
		keep_debian "$machine"
	fi
}

# The new machine reaches the network as this one does.
connect() {
	cp -L /etc/resolv.conf /etc/hosts "$new/etc/"
	apt_settings >"$new/etc/apt/apt.conf.d/90machine"
	mkdir -p "$new/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$new/usr/local/share/ca-certificates/" \; 2>/dev/null || true
}

# newer_folders: sets what newer_debian needs, and what is shown there: the repository, and $build.
newer_folders() {
	release=13 dist=trixie self=newer
	make_cache
	store=$cache/fresh/newer
	mkdir -p "$store"
	folders=("$root:/qcuda:ro" "$build:/build:ro" "$store:/root/.cache/qcuda")
}

# The Debian with newer parts has backports' QEMU, and the headers of two kernels. The compiler comes with the
# headers.
install_newer() {
	local uri old get=(apt-get -q -y --no-install-recommends -t trixie-backports install)
	uri=$(debian_uri 2>/dev/null) || skip "this machine's apt does not say where Debian is to be had"
	echo "deb $uri trixie-backports main" >"$new/etc/apt/sources.list.d/backports.list"
	step "installing backports' QEMU and kernel headers"
	enter apt-get -q --error-on=any update >"$work/log" 2>&1 || fail "$work/log" "cannot read the package lists"
	# shellcheck disable=SC2016 # for the shell there
	old=$(enter sh -c 'apt-cache depends "linux-headers-amd64=$(apt-cache policy linux-headers-amd64 |
		sed -n "s/^  *\([^ ]*\) 500$/\1/p" | head -n 1)" | sed -n "s/.*Depends: \(linux-headers-6[^ ]*\)/\1/p"')
	enter env DEBIAN_FRONTEND=noninteractive "${get[@]}" qemu-system-x86 seabios linux-headers-amd64 "$old" make gcc \
		busybox-static cpio kmod procps xz-utils zstd file binutils libseccomp2 liblz4-1 libzstd1 libcap2 \
		>"$work/log" 2>&1 || fail "$work/log" "cannot install the packages"
	# Guests' kernels of a version that the mirror no longer has can only come from the cache.
	enter /qcuda/tests/fresh/newer_inside.sh --fetch >"$work/log" 2>&1 || fail "$work/log" "cannot fetch the kernels"
}

# Puts the Debian with newer parts into the folder $new.
newer_debian() {
	kept_debian newer-1 install_newer
}
