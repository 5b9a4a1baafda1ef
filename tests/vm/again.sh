# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by lib.sh
#
# A guest that runs programs again and again, and says on its console how each run has ended. It needs
# nothing of scripts/qcu, and so it boots in any VM. Sourced after lib.sh.

# The arguments of its kernel. A busy host may keep it waiting for long, which it does not report.
# shellcheck disable=SC2034 # for the scripts that source this file
again_kernel='console=ttyS0 quiet loglevel=5 panic=-1 tsc=reliable no_timer_check lpj=4000000 mitigations=off '
again_kernel+='rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=150 rdinit=/qcu/again'

# again_and_again_initrd GUEST FILE [PROGRAM...]: makes its initramfs, of what scripts/build-guest has made. The
# program is vector_add, or those named here. Those of build/vulkan use Vulkan, too. The kernel gets the arguments
# $again_kernel.
again_and_again_initrd() {
	local stage=$tmp/stage lib base=$1 out=$2 vulkan=()
	shift 2
	[[ "$*" != */vulkan/* ]] || vulkan=(/usr/lib/x86_64-linux-gnu/lib{vulkan_virtio.so,vulkan.so.1})
	[ $# -gt 0 ] || set -- "$guest/vector_add"
	mkdir -p "$stage/qcu/bin" "$stage/qcu/lib"
	cp "$@" "$stage/qcu/bin/"
	for lib in "${vulkan[@]}"; do
		mkdir -p "$stage${lib%/*}"
		cp -L "$lib" "$stage$lib"
	done
	[ ${#vulkan[@]} -eq 0 ] || cp /usr/share/vulkan/icd.d/virtio_icd*.json "$stage/qcu/virtio_icd.json"
	cp "$B/qcu-library/libcudart.so.13" "$stage/qcu/lib/"
	cp "$B/qcu-driver/qcuda.ko" "$stage/qcu/"
	while read -r lib; do
		mkdir -p "$stage${lib%/*}"
		cp -L "$lib" "$stage$lib"
	done < <(ldd "$@" "${vulkan[@]}" "$B/qcu-library/libcudart.so.13" | grep -v libcudart |
		sed -n -E 's/^[^/]*(\/[^ ]*) \(0x.*/\1/p' | sort -u)
	printf '%s\n' "${@##*/}" >"$stage/qcu/programs"
	cat >"$stage/qcu/again" <<'END'
#!/bin/sh
export PATH=/bin:/qcu/bin LD_LIBRARY_PATH=/qcu/lib:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
mount -t devtmpfs dev /dev
mount -a
exec </dev/null >/dev/ttyS0 2>&1
modprobe virtio_pci
if [ -e /qcu/virtio_icd.json ]; then
	modprobe virtio_gpu
	export VK_DRIVER_FILES=/qcu/virtio_icd.json VULKAN_DRIVER=22 # Venus
fi
insmod /qcu/qcuda.ko
while :; do
	rc=0
	while read -r p; do
		$p >/tmp/log 2>&1 || rc=$?
		[ $rc -eq 0 ] || cat /tmp/log
	done </qcu/programs
	echo "program: $rc"
	sleep 1
done
END
	chmod +x "$stage/qcu/again"
	(cat "$base/base.cpio" && { [ ${#vulkan[@]} -eq 0 ] || cat "$base/vulkan.cpio"; } && cd "$stage" && find . -mindepth 1 -print0 | sort -z |
		cpio -0 -o -H newc -R 0:0 --quiet) >"$out"
}
