#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A machine with newer parts than this one's: a Debian 13 in a folder with QEMU and a kernel from its
# backports. There, the driver is compiled for each kernel, and its tests and some programs run in a VM
# that the machine's own QEMU runs (newer_inside.sh). The device, the library and the programs are those
# that were built here. The cache keeps what would need the network or much time:
#
#   $QCU_CACHE/fresh/newer-VERSION.tar.zst   the Debian with its packages
#                   /newer                   its QCU_CACHE, with the guests' kernels
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/newer.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

release=13 dist=trixie self=newer
build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
need_root_folder
make_cache
store=$cache/fresh/newer
mkdir -p "$store"
folders=("$root:/qcuda:ro" "$build:/build:ro" "$store:/root/.cache/qcuda")

# Which packages the Debian has: backports' QEMU, and the headers of both kernels. The compiler comes with
# the headers.
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
}

# Guests' kernels of a version that the mirror no longer has can only come from the cache, so they are
# fetched with the headers.
prepare() {
	bare_debian
	install_newer
	enter /qcuda/tests/fresh/newer_inside.sh --fetch >"$work/log" 2>&1 || fail "$work/log" "cannot fetch the kernels"
	rm -f "$new"/var/cache/apt/archives/*.deb
	tar -C "$new" --one-file-system -c . | zstd -q -T0 -3 >"$work/newer" || die "cannot pack the Debian; is the disk full?"
	rm -f "$cache"/fresh/newer-*.tar.zst
	mv "$work/newer" "$machine"
}

main() {
	local bare new
	lock fresh-13
	lock newer
	need_space "$cache" 4000
	scratch
	new=$work/root
	machine=$cache/fresh/newer-1.tar.zst
	mkdir "$new"
	if [ -e "$machine" ]; then
		unpack "$machine"
	else
		prepare
	fi
	step "ready"
	enter /qcuda/tests/fresh/newer_inside.sh 2>&1 | tee "$work/log" || die "not all went well"
	! grep '^@FAIL' "$work/log" || die "not all went well"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
