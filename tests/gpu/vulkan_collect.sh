#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: vulkan_collect.sh [lavapipe]
#
# vulkan_bundle.sh runs this in the Debian 13 of tests/fresh/vulkan_lib.sh, which is thrown away afterwards: /qcuda is the
# repository, /build is what was built of it, /cuda is the toolkit. Compiles the programs and the driver, and collects in
# /collected
#
#   root/           a small Debian with QEMU, virglrenderer 1.3, Mesa in software, and the commands that the launcher uses
#   root/qcu/       the launcher, qcu-device, the guest, the programs
#   root/virgl-1.1/ the virglrenderer of Debian 13
#
# LLVM is half of what all this would take. QEMU's own OpenGL does without (GALLIUM_DRIVER=softpipe), so an empty library
# with the same symbols stands for it. Softpipe cannot export and import images, which QEMU asks for and does not use here, so
# in QEMU's module another extension's name stands in their place.
set -uo pipefail
export LC_ALL=C B=/tmp/build DEBIAN_FRONTEND=noninteractive
export QCU_BUILD=$B
cd /qcuda || exit 2
# shellcheck source=tests/fresh/vulkan_build.sh
. tests/fresh/vulkan_build.sh
libs=/usr/lib/x86_64-linux-gnu
root=/collected/root
to=$root/qcu

# The packages whose commands the launcher and the steps use, beside what take() is told.
commands=(bash coreutils cpio dash diffutils findutils grep gzip kmod libc-bin mawk mount procps sed strace tar util-linux)
# What NVIDIA's driver may load.
clients=(libX11.so.6 libX11-xcb.so.1 libXext.so.6 libGL.so.1 libGLX.so.0 libGLESv2.so.2 libGLdispatch.so.0 libdrm.so.2
	libgbm.so.1 libwayland-client.so.0 libwayland-server.so.0 libwayland-egl.so.1 libxcb-present.so.0 libxcb-dri3.so.0
	libxcb-sync.so.1 libxcb-xfixes.so.0 libxcb-randr.so.0 libxcb-shm.so.0 libxcb-glx.so.0 libdl.so.2 libpthread.so.0
	librt.so.1 libresolv.so.2 libutil.so.1 libstdc++.so.6 libgcc_s.so.1)

# fetch: newer parts than that Debian has.
fetch() {
	local uri store=/root/.cache/qcuda/virgl-1.3
	uri=$(sed -n 's/^deb \([^ ]*\) trixie main.*/\1/p' /etc/apt/sources.list)
	must "cannot read the package lists" apt-get -q --error-on=any update
	must "cannot install the packages" apt-get -q -y --no-install-recommends install strace libgles2 libx11-xcb1 \
		libxext6 libwayland-client0 libwayland-server0 libwayland-egl1 libxcb-glx0 libxcb-shm0 libxcb-dri3-0 libxcb-present0 \
		libxcb-sync1 libxcb-xfixes0 libxcb-randr0
	# As packages they would bring more of Mesa.
	(cd /tmp && must "cannot fetch libgl1" apt-get -q -o APT::Sandbox::User= download libgl1 libglx0)
	mkdir -p $root/virgl-1.1
	cp -L $libs/libvirglrenderer.so.1 /usr/libexec/virgl_render_server $root/virgl-1.1/ || bad "no virglrenderer"
	if ! compgen -G "$store/*.deb" >/dev/null; then
		mkdir -p $store
		echo "deb $uri sid main" >/etc/apt/sources.list.d/sid.list
		must "cannot read the package lists" apt-get -q --error-on=any update
		(cd $store && must "cannot fetch virglrenderer" apt-get -q -o APT::Sandbox::User= download -t sid virgl-server libvirglrenderer1)
	fi
	for f in /tmp/*.deb $store/*.deb; do
		must "cannot unpack $f" dpkg-deb -x "$f" /
	done
	ldconfig
}

# hollow LIBRARY USER: puts in the place of LIBRARY, which becomes libLLVX.so.VERSION, one with the symbols that USER wants of
# it. Whoever calls one of them ends, but for the one that USER calls when it is loaded.
hollow() {
	local lib=$1 user=$2 version
	version=$(nm -D --undefined-only "$user" | sed -n 's/.*@\(LLVM_[0-9.]*\)$/\1/p' | sort -u)
	mv "$lib" "${lib/libLLVM/libLLVX}" || bad "there is no $lib"
	nm -D --defined-only "${lib/libLLVM/libLLVX}" | sed 's/@.*//' | awk '{ print $NF, $(NF - 1) }' | sort -u >/tmp/there
	nm -D --undefined-only "$user" | sed -n "s/^ *[Uw] \(.*\)@$version$/\1/p" | sort >/tmp/wanted
	join /tmp/wanted /tmp/there | awk '{
		is_function = $2 ~ /[TtWi]/
		print is_function ? ".text" : ".data"
		print ".globl " $1 "\n.type " $1 (is_function ? ", @function" : ", @object")
		code = $1 == "LLVMIsMultithreaded" ? "mov $1, %eax\nret" : "ud2"
		print $1 ":\n" (is_function ? code : ".zero 256\n.size " $1 ", 256")
	} END { print ".section .note.GNU-stack, \"\", @progbits" }' >/tmp/hollow.s
	echo "$version { global: *; };" >/tmp/hollow.map
	must "no hollow LLVM" gcc -shared -nostdlib -Wl,-soname,"${lib##*/}" -Wl,--version-script=/tmp/hollow.map -o "$lib" /tmp/hollow.s
}

# take FILE...: takes files to where they are here.
take() {
	local f dir
	for f in "$@"; do
		dir=$(readlink -f "$(dirname "$f")") || bad "there is no $f"
		mkdir -p "$root$dir"
		[ -e "$root$dir/${f##*/}" ] || cp -L --preserve=mode "$f" "$root$dir/" || bad "there is no $f"
	done
}

take_debian() {
	local d f
	for d in bin lib lib64 sbin; do
		mkdir -p "$root/usr/$d"
		ln -s "usr/$d" "$root/$d"
	done
	mkdir -p $root/{dev,proc,sys,run,tmp,root,etc,out,var/tmp,usr/local}
	chmod 1777 $root/tmp $root/var/tmp
	while read -r f; do
		[ ! -f "$f" ] || take "$f"
	done < <(dpkg -L "${commands[@]}" | grep -E '^/(usr/)?(s?bin|libexec)/|/libstdbuf.so$')
	take /usr/bin/{awk,busybox,vulkaninfo,qemu-system-x86_64} /usr/sbin/modinfo /usr/libexec/virgl_render_server \
		$libs/qemu/{hw-display-virtio-gpu*,ui-egl-headless,ui-opengl}.so $libs/gbm/dri_gbm.so \
		$libs/lib{EGL,EGL_mesa,OpenGL,vulkan,gbm}.so.? $libs/libvulkan_virtio.so "${clients[@]/#/$libs/}" \
		/usr/share/vulkan/icd.d/virtio_icd*.json /usr/share/glvnd/egl_vendor.d/*.json /usr/share/seabios/bios-256k.bin \
		/usr/share/qemu/{pvh,linuxboot_dma,multiboot_dma,kvmvapic}.bin /etc/{passwd,group,nsswitch.conf} \
		/etc/ld.so.conf /etc/ld.so.conf.d/*
	if [ "${1:-}" = lavapipe ]; then
		sed -i 's/libLLVM\.so/libLLVX.so/g' $libs/libvulkan_lvp.so
		take $libs/libLLVX.so.* $libs/libvulkan_lvp.so /usr/share/vulkan/icd.d/lvp_icd*.json
	fi
}

# take_qcu: a small checkout, in which everything is built.
take_qcu() {
	local f d guest
	mkdir -p $to/{scripts/vulkan,scripts/launcher,perf,guest} $to/tests/gpu
	cp -p scripts/launcher/*.sh $to/scripts/launcher/
	for f in qcu qcu-run trace doctor lib.sh vm.sh pack.sh disk.sh scan-klog vulkan/{vulkan.sh,render-server,for-domain}; do
		cp -p scripts/$f $to/scripts/$f || bad "there is no scripts/$f"
	done
	mkdir -p $to/perf/vulkan
	cp -p perf/vulkan/run $to/perf/vulkan/
	cp -p tests/gpu/vulkan_steps.sh $to/tests/gpu/
	guest=$(scripts/build-guest | tail -n 1)
	cp "$guest"/{vmlinux,base.cpio,vulkan.cpio,kver} $to/guest/ || bad "there is no guest"
	printf '#!/bin/sh\nexit 1 # the system has a QEMU\n' >$to/scripts/build-qemu
	printf '#!/bin/sh\necho /qcu/guest\n' >$to/scripts/build-guest
	chmod 755 $to/scripts/build-*
	for f in $B/qcu-device/{qcu-device,be_cuda.so} $B/qcu-library/{lib*.so.*,libqcuda-loader.so,qcu-check,qcu-smi} \
		$B/scripts/qcu-{confine,enter,pty,tsc} $B/qcu-driver/qcuda.ko $B/vulkan/{compute,both,load} \
		$B/loopback/libcudart.so.13; do
		d=$to/build${f#"$B"}
		mkdir -p "${d%/*}"
		cp -L "$f" "$d" || bad "there is no $f"
		strip --strip-debug "$d" || bad "$f cannot be stripped"
	done
}

# Of the shared libraries all are taken that something here loads at its start.
take_libraries() {
	find $root -type f -size +4k -print0 | xargs -0 ldd 2>/dev/null | sed -n -E \
		-e 's|^\t[^ ]+ => (/[^ ]*) \(0x[0-9a-f]+\)$|\1|p' -e 's|^\t(/[^ ]*) \(0x[0-9a-f]+\)$|\1|p' | sort -u >/tmp/libraries
	while read -r f; do
		[[ $f == /collected/* || $f == /build/* || $f == "$B"/* ]] || take "$f"
	done </tmp/libraries
}

step "compiling"
prepare_build
compile
compile_driver
step "fetching"
fetch
llvm=$(echo $libs/libLLVM.so.*)
hollow "$llvm" $libs/libgallium-*.so
perl -pi -e 's/EGL_MESA_image_dma_buf_export|EGL_EXT_image_dma_buf_import_modifiers/pack("a" . length($&), "EGL_KHR_create_context")/ge' \
	$libs/qemu/ui-opengl.so
step "collecting"
take_debian "${1:-}"
take_qcu
take_libraries
ldconfig -r $root || bad "ldconfig does not run there"
{
	qemu-system-x86_64 --version | head -n 1
	dpkg-query -W -f '${Package} ${Version}\n' mesa-vulkan-drivers libvulkan1
	dpkg-deb -f /root/.cache/qcuda/virgl-1.3/libvirglrenderer1_*.deb Package Version | paste -s -d ' '
	cat $to/guest/kver
} >$root/VERSIONS
cat $root/VERSIONS
du -sm $root
step "collected"
