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

bad() {
	echo "vulkan: $*"
	exit 1
}

step() {
	echo "vulkan: $SECONDS s: $*"
}

# must WHAT COMMAND...: COMMAND must succeed.
must() {
	local what=$1
	shift
	"$@" >/tmp/log 2>&1 || {
		tail -n 20 /tmp/log
		bad "$what"
	}
}

# The build folder is the one from outside.
prepare_build() {
	local f
	mkdir -p "$B/qcu-driver" "$B/tests/logs" "$B/vulkan"
	for f in /build/*; do
		[ -e "$B/${f##*/}" ] || ln -s "$f" "$B/"
	done
	for f in /build/tests/*; do
		[ -e "$B/tests/${f##*/}" ] || ln -s "$f" "$B/tests/"
	done
}

compile_driver() {
	local k
	k=$(cd /usr/src && printf '%s\n' linux-headers-*-amd64 | sed 's/^linux-headers-//' | sort -V | tail -n 1)
	cp -r qcu-driver/{*.[ch],probes,Kbuild} include/qcucmd*.h "$B/qcu-driver/"
	must "the driver does not compile for $k" make -C "/usr/src/linux-headers-$k" M="$B/qcu-driver" modules
}

compile() {
	local flags=(-O2 -I"$B/vulkan" -Itests/vulkan)
	local f
	for f in scale image; do
		must $f.comp glslangValidator -V --vn ${f}_spv -o "$B/vulkan/${f}_spv.h" tests/vulkan/$f.comp
	done
	must vk.c gcc -Wall -Wextra -Werror "${flags[@]}" -c -o "$B/vulkan/vk.o" tests/vulkan/vk.c
	must compute.c gcc -Wall -Wextra -Werror "${flags[@]}" -o "$B/vulkan/compute" tests/vulkan/{compute,image}.c \
		"$B/vulkan/vk.o" -lvulkan -lpthread
	must load.c gcc -Wall -Wextra -Werror "${flags[@]}" -o "$B/vulkan/load" perf/vulkan/load.c "$B/vulkan/vk.o" \
		-lvulkan -lpthread
	must both.cu /cuda/bin/nvcc -cudart shared "${flags[@]}" -Itests/guest -o "$B/vulkan/both" tests/vulkan/both.cu \
		"$B/vulkan/vk.o" -lvulkan
}

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
