#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# vulkan.sh runs this in a Debian 13 with a QEMU that has OpenGL: /qcuda is the repository, /build is what was
# built of it, /cuda is the toolkit. The programs of tests/vulkan/ are compiled, run natively, and then in VMs
# (vulkan_vm.sh), and in a domain of libvirt (vulkan_libvirt.sh).
set -uo pipefail
export LC_ALL=C QCU_SLOW=${QCU_SLOW:-3} B=/tmp/build
export QCU_BUILD=$B
cd /qcuda || exit 2

# shellcheck source=tests/fresh/vulkan_build.sh
. tests/fresh/vulkan_build.sh

# With the argument disk, a guest with a disk runs the programs (vulkan_guest.sh).
run_disk() {
	cp "$B"/vulkan/{compute,both,native} /share/
	cp tests/fresh/vulkan_guest.sh /share/test
	step "booting"
	timeout -k 20 $((600 * QCU_SLOW)) scripts/qcu vm --disk /disk/disk.img --vulkan=256M --gpu soft --cpus 1 --mem 1G \
		--packages /packages --share /share </dev/null >/share/console 2>&1
	rc=$?
	cat /share/log
	if [ $rc -ne 0 ] || ! grep -x 'guest: all is well' /share/log >/dev/null; then
		tail -n 30 /share/console | tr -c '\t\n -~' '?'
		bad "not all went well; the VM ended with $rc"
	fi
}

qemu-system-x86_64 --version | head -n 1
dpkg-query -W -f '${Package} ${Version}\n' libvirglrenderer1 mesa-vulkan-drivers
step "compiling"
prepare_build
compile
step "natively"
icd=/usr/share/vulkan/icd.d/lvp_icd.json
# 13: Mesa's llvmpipe.
must "compute, natively" env VULKAN_DRIVER=13 VK_DRIVER_FILES=$icd sh -c "$B/vulkan/compute >$B/vulkan/native"
if [ "${1:-}" = disk ]; then
	run_disk
	step "all is well"
	exit
fi
must "load, natively" env VULKAN_DRIVER=13 VK_DRIVER_FILES=$icd "$B/vulkan/load" native 5
must "both, natively" env VULKAN_DRIVER=13 VK_DRIVER_FILES=$icd LD_LIBRARY_PATH=/build/loopback "$B/vulkan/both"
compile_driver
step "in VMs"
tests/fresh/vulkan_vm.sh || bad "exit code $?"
step "in a domain of libvirt"
tests/fresh/vulkan_libvirt.sh || bad "exit code $?"
step "all is well"
