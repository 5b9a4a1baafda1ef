#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu doctor: wrong calls, and roots of machines on which one thing is wrong each. versions.sh has it in guests.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

doctor=("$qcu" doctor)
r=$tmp/root

# A host that has all: root_of_a_host makes it, and each test takes something away.
root_of_a_host() {
	rm -rf "$r"
	mkdir -p "$r"/proc "$r"/dev "$r"/sys/{kernel/security,kernel/mm/transparent_hugepage,module/nvidia} \
		"$r"/sys/bus/pci/devices/0000:01:00.0 "$r"/usr/local/cuda/bin
	echo 'flags : fpu vmx sse' >"$r/proc/cpuinfo"
	echo 'always within_size [advise] never' >"$r/sys/kernel/mm/transparent_hugepage/shmem_enabled"
	echo capability,landlock,yama >"$r/sys/kernel/security/lsm"
	echo 0x10de >"$r/sys/bus/pci/devices/0000:01:00.0/vendor"
	echo 0x030200 >"$r/sys/bus/pci/devices/0000:01:00.0/class"
	echo 580.65.06 >"$r/sys/module/nvidia/version"
	mkdir -p "$r/usr/local/cuda/lib64"
	touch "$r/usr/local/cuda/lib64"/{libcublas.so.13,libcublasLt.so.13.1.0.3,libcudnn.so.9.12.0,libcufft.so.12}
	touch "$r/usr/local/cuda/lib64"/{libcurand.so.10,libcusolver.so.12,libcusparse.so.12}
	ln -s libcublasLt.so.13.1.0.3 "$r/usr/local/cuda/lib64/libcublasLt.so.13"
	ln -s libcudnn.so.9.12.0 "$r/usr/local/cuda/lib64/libcudnn.so.9"
	mkdir -p "$r"/dev/dri "$r"/usr/lib/qemu "$r"/usr/libexec "$r"/usr/share/{vulkan/icd.d,glvnd/egl_vendor.d}
	touch "$r"/dev/{kvm,nvidiactl,nvidia-uvm,nvidia3,dri/renderD128} "$r"/usr/libexec/virgl_render_server \
		"$r"/usr/lib/{qemu/{hw-display-virtio-gpu-gl,ui-egl-headless}.so,lib{EGL,EGL_mesa,OpenGL}.so.{0,1},libgbm.so.1,libvulkan.so.1} \
		"$r"/usr/share/{vulkan/icd.d/virtio_icd,glvnd/egl_vendor.d/10_nvidia}.json
	toolkit 13.0
}

toolkit() {
	printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.48"\n' "$1" "$1" >"$r/nvcc"
	chmod +x "$r/nvcc"
}

# host NAME CODE PATTERN: what doctor says of this root.
host() {
	expect_host "$1" "$2" "$3" env NVCC="$r/nvcc" "${doctor[@]}" --host --root "$r"
}

# ---- wrong calls ----

expect_host unknown-option 2 'what is --cure' "${doctor[@]}" --cure
expect_host word 2 'what is now' "${doctor[@]}" now
expect_host root-without-folder 2 'needs a folder' "${doctor[@]}" --root
expect_host root-not-there 2 'no such folder' "${doctor[@]}" --root "$tmp/none"
expect_host help 0 'Exit codes: 0 nothing is bad' "${doctor[@]}" --help
expect_host full-disk 2 'the output cannot be written' bash -c "${doctor[*]} >/dev/full"
expect_host full-disk-json 2 'the output cannot be written' bash -c "${doctor[*]} --json >/dev/full"

# ---- hosts ----

root_of_a_host
host all-there 0 'ok +driver +NVIDIA.s driver 580.65.06'
if grep -E '^(note|BAD) ' "$tmp/out" | grep -v -E 'memlock|qemu|build'; then
	echo '@FAIL nothing-to-mend'
else
	echo '@ok nothing-to-mend 0.0'
fi
echo 'flags : fpu sse' >"$r/proc/cpuinfo"
host no-virtualisation 0 'note +cpu +the CPU shows neither vmx nor svm'
root_of_a_host
rm "$r/dev/kvm"
host no-kvm 0 'note +kvm +there is no /dev/kvm'
# KVM polls before it lets a virtual processor sleep, unless somebody has switched it off.
root_of_a_host
mkdir -p "$r/sys/module/kvm/parameters"
echo 200000 >"$r/sys/module/kvm/parameters/halt_poll_ns"
host halt-polling 0 'ok +kvm '
! grep -q '^note.*puts a virtual processor to sleep' "$tmp/out" && echo '@ok halt-polling-is-fine 0.0' || echo '@FAIL halt-polling-is-fine'
echo 0 >"$r/sys/module/kvm/parameters/halt_poll_ns"
host no-halt-polling 0 'note +kvm +KVM puts a virtual processor to sleep at once'

# numa CPUS NODE: a machine with two sockets, where what is started runs on CPUS, and the GPU is at NODE.
numa() {
	root_of_a_host
	mkdir -p "$r/proc/self" "$r"/sys/devices/system/node/node{0,1}
	printf 'Name:\tsh\nCpus_allowed_list:\t%s\n' "$1" >"$r/proc/self/status"
	echo 0-3,8-11 >"$r/sys/devices/system/node/node0/cpulist"
	echo 4-7,12-15 >"$r/sys/devices/system/node/node1/cpulist"
	echo "$2" >"$r/sys/bus/pci/devices/0000:01:00.0/numa_node"
}
numa 0-15 1
host other-node 0 'note +numa +the GPU 0000:01:00.0 is at NUMA node 1 \(processors 4-7,12-15\), and what is started here runs on 0-15'
grep -q 'mend: numactl --cpunodebind=1 --membind=1 ' "$tmp/out" && echo '@ok its-node 0.0' || echo '@FAIL its-node'
numa 3-4 1
host half-on-the-other-node 0 'note +numa '
numa 5,13-15 1
host same-node 0 'ok +numa +.*0000:01:00.0, node 1'
nr=0
for node in -1 '' 7 '$(id)'; do
	numa 0-15 "$node"
	host "no-such-node-$((++nr))" 0 'ok +kvm'
	grep '^[a-zA-Z]* *numa' "$tmp/out" >"$tmp/numa"
	[ ! -s "$tmp/numa" ] && echo "@ok nothing-said-$nr 0.0" || echo "@FAIL nothing-said-$nr"
done
root_of_a_host
echo 'always [never]' >"$r/sys/kernel/mm/transparent_hugepage/shmem_enabled"
host no-huge-pages 0 'note +huge pages'
root_of_a_host
echo capability,yama >"$r/sys/kernel/security/lsm"
host no-landlock 1 'BAD +landlock .*capability,yama'
root_of_a_host
mkdir -p "$r/proc/sys/user"
echo 0 >"$r/proc/sys/user/max_user_namespaces"
host no-namespaces 1 'BAD +namespaces .*no user namespaces'
rm -r "$r/proc/sys/user"
rm "$r/sys/module/nvidia/version"
host no-driver 1 'BAD +driver .*not loaded'
echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build' >"$r/version"
mkdir -p "$r/proc/driver/nvidia" && mv "$r/version" "$r/proc/driver/nvidia/version"
sed -i 's/Open Kernel Module for x86_64/x86_64 Kernel Module/' "$r/proc/driver/nvidia/version"
host driver-in-proc 0 'ok +driver .*580.95.05'
root_of_a_host
echo 550.54 >"$r/sys/module/nvidia/version"
host old-driver 1 'driver 550.54 is too old for CUDA Toolkit 13.0, which needs 580; update the driver'
toolkit 12.9
host old-driver-older-toolkit 0 'ok +driver .*550.54'
root_of_a_host
toolkit 11.8
host old-toolkit 1 'BAD +toolkit +CUDA Toolkit 11.8 is too old'
root_of_a_host
host library-version 0 'ok +libraries +cuDNN 9.12.0 '
host library-short-version 0 'ok +libraries +cuBLAS, of version 13 and no closer one'
rm "$r"/usr/local/cuda/lib64/libcudnn*
host no-cudnn 0 'note +libraries +there is no libcudnn.so.9'
grep -q 'mend: apt-get install libcudnn9-cuda-13' "$tmp/out" && echo '@ok library-package 0.0' || echo '@FAIL library-package'
root_of_a_host
rm "$r/usr/local/cuda/lib64/libcublas.so.13"
host no-cublas 0 'there is no libcublas.so.13: programs that use cuBLAS \(also as libcublas.so.12\) get an error'
rm "$r/dev/nvidia-uvm"
host no-uvm 1 'BAD +gpu +there is no /dev/nvidia-uvm'
root_of_a_host
part=$r/proc/driver/nvidia/capabilities/gpu0/mig/gi3
mkdir -p "$part/ci0" "$r/dev/nvidia-caps"
printf 'DeviceFileMinor: 30\nDeviceFileMode: 292\nDeviceFileModify: 1\n' >"$part/access"
printf 'DeviceFileMinor: 31\nDeviceFileMode: 292\nDeviceFileModify: 1\n' >"$part/ci0/access"
touch "$r/dev/nvidia-caps/nvidia-cap30"
host no-file-of-a-part 1 'BAD +parts +a part .* no file for /proc/driver/nvidia/capabilities/gpu0/mig/gi3/ci0/access'
touch "$r/dev/nvidia-caps/nvidia-cap31"
host parts 0 'ok +parts +parts of GPUs \(MIG\): 1; --gpu MIG-'
rm -r "$r"/dev/nvidia* "$r/sys/bus/pci"
host no-gpu 0 'note +gpu +there is no NVIDIA GPU'
host no-gpu-library 0 'note +libraries +there is no libopenblas.so.0: programs that use cuBLAS on the software GPU'

# What --vulkan needs. package NAME VERSION: it is installed on that host.
package() {
	mkdir -p "$r/var/lib/dpkg"
	printf 'Package: %s\nStatus: install ok installed\nMaintainer: me\nArchitecture: amd64\nVersion: %s\nDescription: x\n\n' \
		"$1" "$2" >>"$r/var/lib/dpkg/status"
}
root_of_a_host
host vulkan 0 'ok +vulkan +all is here'
rm "$r/usr/libexec/virgl_render_server" "$r/usr/lib/qemu/ui-egl-headless.so"
host vulkan-lacks 0 'note +vulkan +not all is here'
grep -q 'mend: apt-get install qemu-system-modules-opengl virgl-server$' "$tmp/out" &&
	echo '@ok vulkan-packages 0.0' || echo '@FAIL vulkan-packages'
root_of_a_host
rm "$r/dev/dri/renderD128"
host vulkan-in-software 0 'note +vulkan +there is no render node'
root_of_a_host
package qemu-system-x86 1:10.0.13+ds-0
host vulkan-old-qemu 0 'note +vulkan .*QEMU 10.2 or later; this machine has 10.0.13'
root_of_a_host
rm "$r/usr/share/glvnd/egl_vendor.d/10_nvidia.json"
host vulkan-without-egl 0 'note +vulkan +NVIDIA.s Vulkan needs its EGL'
root_of_a_host
package qemu-system-x86 1:11.1.3+ds-1
package libvirglrenderer1 1.1.0-2
mkdir -p "$r/proc/sys/kernel"
echo 6.12.5-amd64 >"$r/proc/sys/kernel/osrelease"
echo 565.57 >"$r/sys/module/nvidia/version"
host vulkan-old-virglrenderer 1 'note +vulkan .*virglrenderer 1.2 or later; this machine has 1.1.0-2'
grep -q 'driver 570 or later; this one is 565.57' "$tmp/out" && grep -q 'Linux 6.16 under KVM; this is 6.12.5' "$tmp/out" &&
	echo '@ok vulkan-conditions 0.0' || echo '@FAIL vulkan-conditions'
root_of_a_host
if [ "$(id -u)" -eq 0 ]; then
	chmod 711 "$tmp"
	chmod 600 "$r"/dev/{kvm,nvidiactl}
	install -m 755 scripts/doctor "$tmp/doctor"
	nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env "NVCC=$r/nvcc" "QCU_CACHE=$r/none")
	expect_host no-permission-kvm 1 'note +kvm +[a-z]+ may not open /dev/kvm' "${nobody[@]}" "$tmp/doctor" --host --root "$r"
	expect_host no-permission-gpu 1 'BAD +gpu +[a-z]+ may not open /dev/nvidiactl' "${nobody[@]}" "$tmp/doctor" --host --root "$r"
	expect_host read-only-folder 1 'BAD +cache +no file can be made in' "${nobody[@]}" "$tmp/doctor" --host --root "$r"
	expect_host no-temporary-folder 1 'BAD +temporary +no file can be made in' \
		"${nobody[@]}" "TMPDIR=$r" "$tmp/doctor" --host --root "$r"
	chmod 700 "$tmp"
	mkdir "$tmp/small"
	expect_host full-cache 1 'BAD +cache .*has [0-9] MB free, but 500 MB are needed' unshare -m sh -c \
		"mount -t tmpfs -o size=4m none $tmp/small && QCU_CACHE=$tmp/small/x ${doctor[*]} --host --root $r"
else
	echo '@skip no-permission needs root'
fi
: >"$tmp/file"
expect_host cache-is-a-file 1 'BAD +cache .*/file is no folder' \
	env NVCC="$r/nvcc" QCU_CACHE="$tmp/file/x" "${doctor[@]}" --host --root "$r"
expect_host as-json 0 '^{"where":"host","findings":' env NVCC="$r/nvcc" "${doctor[@]}" --json --host --root "$r"
cp "$tmp/out" "$tmp/json"
expect_host json-is-json 0 '^580$' python3 -c "
import json
t = json.load(open('$tmp/json'))
assert t['bad'] == 0 and all(f['level'] in ('ok', 'note') for f in t['findings'])
assert all(f['mend'] for f in t['findings'] if f['level'] != 'ok')
print([f['text'] for f in t['findings'] if f['check'] == 'driver'][0].split()[-1][:3])"
expect_host colour-on-a-terminal 0 $'\e\\[33mnote' \
	env -u NO_COLOR TERM=linux script -qec "${doctor[*]} --host --root $tmp" /dev/null
for without in NO_COLOR=1 TERM=dumb; do
	expect_host "no-colour-$without" 0 '^note ' \
		env -u NO_COLOR TERM=linux "$without" script -qec "${doctor[*]} --host --root $tmp" /dev/null
done

# The parts of a build that do not match: the newer library is one of the tests'.
mkdir -p "$tmp/build"/{qcu-device,qcu-driver,qcu-library}
ln -s "$root/$B/qcu-device/qcu-device" "$tmp/build/qcu-device/"
ln -s "$root/$B/qcu-driver/qcuda.ko" "$tmp/build/qcu-driver/"
ln -s "$root/$B/tests/wire/libcudart.so.13" "$tmp/build/qcu-library/"
version=$(sed -n 's/^#define QCU_WIRE_VERSION \([0-9]*\).*/\1/p' include/qcucmd.h)
expect_host build-skew 1 "libcudart.so.13: wire version 9999; qcu-device: wire version $version; update qcu-device" \
	env QCU_BUILD="$tmp/build" "${doctor[@]}" --host
expect_host build-matches 0 "qcuda.ko and qcu-device speak wire version $version" "${doctor[@]}" --host

# ---- guests ----

root_of_a_guest() {
	rm -rf "$r"
	mkdir -p "$r"/dev "$r"/sys/bus/virtio/devices/virtio3 "$r"/sys/module/qcuda/parameters "$r"/usr/lib
	echo 0x003f >"$r/sys/bus/virtio/devices/virtio3/device"
	echo 4 >"$r/sys/module/qcuda/parameters/wire_version"
	echo "${1:-4}" >"$r/sys/module/qcuda/parameters/device_wire_version"
	printf '\0\1qcuda wire version 4u\0' >"$r/usr/lib/libcudart.so.13"
	touch "$r/dev/qcuda"
}
guest_says() {
	expect_host "$1" "$2" "$3" env -u LD_LIBRARY_PATH "${doctor[@]}" --root "$r"
}

root_of_a_guest
guest_says guest-all-there 0 'the module in this guest and the device on the host speak wire version 4'
root_of_a_guest 5
guest_says newer-host 1 \
	'the module in this guest: wire version 4; the device on the host: wire version 5; update the module in this guest'
root_of_a_guest 3
guest_says older-host 1 \
	'the module in this guest: wire version 4; the device on the host: wire version 3; update the device on the host'
grep -q 'mend: .*start its qcu-device; the driver here finds it by itself$' "$tmp/out" &&
	echo '@ok older-host-needs-no-restart 0.0' || echo '@FAIL older-host-needs-no-restart'
root_of_a_guest 0
guest_says host-serves-nothing 0 'note +wire +no host process serves the device'
root_of_a_guest
rm "$r/dev/qcuda"
guest_says no-node 1 'BAD +/dev/qcuda +there is no /dev/qcuda'
root_of_a_guest
rm -r "$r/sys/module"
guest_says no-module 1 'BAD +module +there is no module qcuda for the kernel'
mkdir -p "$r/lib/modules/$(uname -r)/updates"
touch "$r/lib/modules/$(uname -r)/updates/qcuda.ko.xz"
guest_says module-not-loaded 1 'BAD +module +the module qcuda is not loaded'
grep -q 'mend: modprobe qcuda' "$tmp/out" && echo '@ok its-command 0.0' || echo '@FAIL its-command'
root_of_a_guest
rm -r "$r/sys/bus"
guest_says no-device 1 'BAD +device +this VM has no qCUDA device'
root_of_a_guest
echo NVIDIA >"$r/usr/lib/libcudart.so.13"
guest_says other-library 1 'BAD +library .*not ours: /usr/lib'
printf 'qcuda wire version 2u\n' >"$r/usr/lib/libcudart.so.13"
guest_says older-library 1 'libcudart.so.13: wire version 2; the module: wire version 4; update /usr/lib/libcudart'
rm "$r/usr/lib/libcudart.so.13"
guest_says no-library 0 'note +library'

# The GPU for Vulkan. vulkaninfo DRIVER: what it would say of the driver.
vulkaninfo() {
	printf '#!/bin/sh\nprintf "GPU0:\\\\n\\tdriverName         = %%s\\\\n" %s\n' "$1" >"$r/vulkaninfo"
	chmod +x "$r/vulkaninfo"
}
root_of_a_venus_guest() {
	root_of_a_guest
	mkdir -p "$r"/sys/bus/virtio/devices/virtio9 "$r"/dev/dri "$r"/usr/share/vulkan/icd.d
	echo 0x0010 >"$r/sys/bus/virtio/devices/virtio9/device"
	touch "$r/dev/dri/renderD128" "$r/usr/share/vulkan/icd.d/virtio_icd.json"
	vulkaninfo venus
	export VULKANINFO=$r/vulkaninfo
}
root_of_a_venus_guest
guest_says venus 0 'ok +vulkan +programs get the driver venus'
vulkaninfo llvmpipe
guest_says venus-falls-back 1 'BAD +vulkan .*llvmpipe, which computes on this VM.s own processor'
vulkaninfo ''
guest_says venus-finds-nothing 1 'BAD +vulkan +Vulkan finds no GPU'
root_of_a_venus_guest
rm -r "$r/usr/share/vulkan"
guest_says venus-without-mesa 1 'BAD +vulkan +there is no Mesa.*'
root_of_a_venus_guest
rm "$r/dev/dri/renderD128"
guest_says venus-without-node 1 'BAD +vulkan .*no render node'
root_of_a_venus_guest
export VULKANINFO=$r/none
guest_says venus-cannot-be-seen 0 'note +vulkan .*without vulkaninfo'
unset VULKANINFO
