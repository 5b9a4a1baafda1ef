#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The VM that people have: a Debian with a disk, a boot loader and systemd, which qcu vm --disk boots. The guest
# package is installed in it with apt; after a reboot an ordinary user compiles a program with nvcc, whose toolkit
# lies on a 9p share, and runs it; then the package is upgraded and removed, and nothing of it is left
# (systemd_guest.sh). podman gives the device to containers (containers_guest.sh). With --short the program is compiled
# here, and the guest does not boot again, and nothing is upgraded. The cache keeps the Debian (systemd_lib.sh).
#
# Where the processor is emulated the guest would need many minutes to compile the driver. So DKMS compiles it in
# this Debian before, for the same kernel but without a VM, and the guest's DKMS gets what it made.
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2
# shellcheck source=tests/fresh/systemd_lib.sh
. "$root/tests/fresh/systemd_lib.sh" || exit 2
# shellcheck source=tests/vm/launcher/image_root.sh
. "$root/tests/vm/launcher/image_root.sh" || exit 2

usage() {
	cat <<-END
		usage: tests/fresh/systemd.sh [--short | --compile] [12 | 13]
		  12, 13      the release of Debian; without, this machine's, or 13
		  --short     without nvcc in the guest, another boot, and the upgrade
		  --compile   the guest compiles the driver itself
	END
}

compile='' short='' release=
while [ $# -gt 0 ]; do
	case $1 in
	--compile) compile=1 ;;
	--short) short=1 ;;
	--help | -h) usage; exit ;;
	12 | 13) release=$1 ;;
	*) die "unknown argument $1 (try --help)" ;;
	esac
	shift
done
choose_release "$release"
self=systemd-$release
slow=${QCU_SLOW:-1}

need_root_folder
nvcc=$(command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || command -v nvcc) || die "the CUDA Toolkit is missing"
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
"$root/scripts/deps" --no-cuda --deb >/dev/null || skip "the packages for making packages cannot be installed"

# make_packages: the guest package, and a newer one for the upgrade.
make_packages() {
	local v
	for v in 0.1~old $([ -n "$short" ] || echo 0.1~test); do
		make_deb "$work/packages" --version "$v" --only qcuda-guest || die "no package"
	done
}

# make_images: OCI folders for podman in the guest. One has musl, as far as anybody looks. One has Python, NumPy and CuPy:
# the guest would need minutes to unpack it, so podman does this in the Debian before it is a disk.
make_images() {
	local B=$build wheels
	image_root "$work/image"
	mkdir -p "$work"/musl/{bin,lib} "$work/share/images"
	ln -s busybox "$work/musl/bin/sh"
	cp /bin/busybox "$work/musl/bin/"
	: >"$work/musl/lib/ld-musl-x86_64.so.1"
	"$root/tests/vm/launcher/oci.py" "$work/share/images/image" good "$work/image"
	"$root/tests/vm/launcher/oci.py" "$work/share/images/musl" good "$work/musl"
	wheels=$("$root/scripts/python-wheels" 2>"$work/share/no_python") || return 0
	python_root "$work/image" "$wheels"
	cp "$root/tests/python/cupy_kernels.py" "$work/image/data/"
	"$root/tests/vm/launcher/oci.py" "$work/share/images/python" good "$work/image"
	enter /qcuda/tests/fresh/systemd_inside.sh image >"$work/log" 2>&1 || fail "$work/log" "podman does not take the image"
	rm -r "$work/share/images/python"
}

# run_guest: the VM runs in a mount namespace of its own, in which the toolkit lies among the packages.
run_guest() {
	# shellcheck disable=SC2016 # for the shell there
	unshare --mount bash -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' bash "$cuda" "$work/packages/cuda" \
		timeout -k 20 $((1500 * slow)) "$root/scripts/qcu" vm --disk "$work/disk/disk.img" --gpu soft --cpus 1 --mem 1G \
		--packages "$work/packages" --share "$work/share" </dev/null >"$work/console" 2>&1
}

main() {
	local bare new rc=0
	make_cache
	mkdir -p "$cache/fresh"
	lock "$self"
	need_space "$cache" 6000
	scratch
	new=$work/root
	mkdir -p "$new" "$work"/{packages/cuda,share,disk}
	folders=("$root:/qcuda:ro" "$work/disk:/disk" "$work/packages:/packages" "$work/share:/share")
	bare_debian
	step "Debian $release is ready; making packages"
	make_packages
	step "making images"
	make_images
	step "making a disk"
	enter /qcuda/tests/fresh/systemd_inside.sh disk >"$work/log" 2>&1 || fail "$work/log" "no disk"
	# Outside of it, because it is what is copied.
	sbin mke2fs -q -F -t ext4 -O '^has_journal' -E offset=$((65 << 20)) -d "$new" "$work/disk/disk.img" 2943M ||
		die "no file system"
	if [ -z "$compile" ]; then
		step "compiling the driver"
		enter /qcuda/tests/fresh/systemd_inside.sh driver >"$work/log" 2>&1 || fail "$work/log" "no driver"
	fi
	cp "$root/tests/fresh/systemd_guest.sh" "$work/share/test"
	cp "$build/tests/guest/vector_add" "$work/share/needs_library"
	cp "$build/tests/guest-static/vector_add" "$work/share/"
	cp "$root/tests/fresh/containers_guest.sh" "$work/share/containers"
	[ -n "$short" ] || : >"$work/share/more"
	[ -n "$short" ] || cp "$root/tests/guest/numeric/vector_add.cu" "$root/tests/guest/check.h" "$work/share/"
	step "booting"
	run_guest || rc=$?
	cat "$work/share/log" 2>/dev/null || true
	[ $rc -eq 0 ] || { tail -n 30 "$work/console" | tr -c '\t\n -~' '?' && die "the VM ended with $rc"; }
	grep -x 'guest: all is well' "$work/share/log" >/dev/null || {
		tail -n 30 "$work/console" | tr -c '\t\n -~' '?'
		die "not all went well"
	}
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
