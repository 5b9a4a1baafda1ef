# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# --vulkan: gives the guest a GPU for Vulkan beside the one for CUDA. Nothing of it is ours: QEMU's
# virtio-gpu, virglrenderer on the host and Mesa in the guest carry the calls (Venus). This file looks
# whether all of them are there, adds QEMU's arguments, and packs what the guest needs. docs/vm/vulkan.md
# describes it. scripts/qcu sources this file.

# What Debian's packages are called; from trixie-backports, because of QEMU's version.
vulkan_debian="in Debian 13 with trixie-backports: apt-get install -t trixie-backports"

# vulkan_lacks PACKAGE WHAT: this machine cannot do it.
vulkan_lacks() {
	die "--vulkan: $2 ($vulkan_debian $1)"
}

# check_vulkan: the options, before anything is looked at. QEMU maps the window as a BAR, whose size must be
# a power of two.
check_vulkan() {
	local kb
	if [ -z "$vulkan" ]; then
		[ -z "$render_node" ] || die "--render-node belongs to --vulkan (try --help)"
		return 0
	fi
	kb=$(size_to_kb "$vulkan") || die "--vulkan=$vulkan: must be a size such as 1G or 256M"
	if [ "$kb" -lt 65536 ] || [ "$kb" -gt $((64 << 20)) ] || [ $((kb & (kb - 1))) -ne 0 ]; then
		die "--vulkan=$vulkan: must be a power of two from 64M to 64G"
	fi
	vulkan_mb=$((kb / 1024))
	[ "$which" != own ] || die "--vulkan does not go with --qemu own: our QEMU has no OpenGL, which virtio-gpu needs"
	which=system
	choose_render_node
	[ -n "$hardware" ] || [ "$kb" -le "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)" ] ||
		die "--vulkan=$vulkan: that is more memory than this machine has"
}

# A render node is a GPU that a program may compute and draw on. Without one all is done in software, and
# QEMU still wants a name.
choose_render_node() {
	local node
	hardware=''
	case $render_node in
	none) ;;
	'')
		for node in /dev/dri/renderD*; do
			{ : <>"$node"; } 2>/dev/null || continue
			hardware=$node
			break
		done
		;;
	*)
		[[ -c $render_node && $render_node == /dev/dri/renderD* ]] ||
			die "--render-node $render_node: must be none or one of /dev/dri/renderD*"
		{ : <>"$render_node"; } 2>/dev/null || die "--render-node $render_node: $(id -un) may not open it"
		hardware=$render_node
		;;
	esac
}

# first_file PATH...: prints the first that is there.
first_file() {
	local f
	for f in "$@"; do
		[ ! -r "$f" ] || { echo "$f" && return; }
	done
	return 1
}

# look_for_vulkan: has this machine all that it takes? Each sentence names one thing that is missing.
look_for_vulkan() {
	local d
	"$qemu" -device virtio-gpu-gl-pci,help 2>/dev/null | grep '^  venus=' >/dev/null ||
		vulkan_lacks 'qemu-system-x86 qemu-system-modules-opengl' "$qemu has no virtio-gpu-gl-pci with venus"
	"$qemu" -display help 2>/dev/null | grep -x egl-headless >/dev/null ||
		vulkan_lacks qemu-system-modules-opengl "$qemu has no display egl-headless"
	render_server=$(first_file {/usr/libexec,/usr/lib}/virgl_render_server) ||
		vulkan_lacks virgl-server "virglrenderer's render server is not here"
	for d in libEGL.so.1:libegl1 libEGL_mesa.so.0:libegl-mesa0 libOpenGL.so.0:libopengl0 libgbm.so.1:libgbm1 \
		libvulkan.so.1:libvulkan1; do
		[ -r "$(find_library "${d%:*}")" ] || vulkan_lacks "${d#*:}" "there is no ${d%:*}"
	done
	choose_icd
	find_guest_driver
}

# The host's own driver of Vulkan, which the render server loads: what the caller names, else for software
# Mesa's, else what the loader finds. A driver that the caller names computes on a GPU, unless it is that one of
# Mesa's; it may do so where QEMU has no render node.
choose_icd() {
	local f files=()
	gpu_driver=$hardware
	IFS=: read -r -a files <<<"${VK_DRIVER_FILES:-${VK_ICD_FILENAMES:-}}"
	for f in "${files[@]}"; do
		[[ -f $f && -r $f ]] || die "--vulkan: VK_DRIVER_FILES names $f, which is not there"
		check_icd "$f"
		[[ $(icd_path "$f") == */libvulkan_lvp.so ]] || gpu_driver=1
	done
	[ ${#files[@]} -eq 0 ] || return 0
	if [ -z "$hardware" ]; then
		f=$(first_file /usr/share/vulkan/icd.d/lvp_icd*.json) ||
			vulkan_lacks mesa-vulkan-drivers "there is no GPU and no driver of Vulkan in software (lvp_icd.json)"
		check_icd "$f"
		host_icd=$f
		say "Vulkan in software: $f"
	else
		compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null ||
			vulkan_lacks mesa-vulkan-drivers "there is no driver of Vulkan (/usr/share/vulkan/icd.d)"
		say "Vulkan on $hardware"
	fi
}

# icd_path FILE: prints where the library is that the file of a driver names; as it names it, if it is nowhere.
icd_path() {
	local lib found
	lib=$(sed -n 's/.*"library_path" *: *"\([^"]*\)".*/\1/p' "$1" | head -n 1)
	case $lib in
	'' | /*) found=$lib ;;
	*/*) found=$(dirname "$1")/$lib ;;
	*) found=$(find_library "$lib") ;;
	esac
	printf '%s\n' "${found:-$lib}"
}

# check_icd FILE: does it name a library that is there?
check_icd() {
	local lib
	lib=$(icd_path "$1")
	[ -n "$lib" ] || die "--vulkan: $1 names no library: that is no driver of Vulkan"
	[ -r "$lib" ] || die "--vulkan: the driver of Vulkan in $1 is $lib, which is not there"
	icd_files+=("$1" "$lib")
}

# vulkan_args: adds the GPU to $q. It replaces QEMU's display, and the render server is a child of QEMU's. QEMU draws the
# guest's console whenever it changes, and nobody sees it: where the guest is ours, it is small.
vulkan_args() {
	local screen=
	[ -n "$vulkan" ] || return 0
	[ -n "$disk" ] || screen=,edid=off,xres=64,yres=64
	q+=(-display "egl-headless,rendernode=${hardware:-/dev/null}"
		-device "virtio-gpu-gl-pci,blob=on,venus=on,hostmem=${vulkan_mb}M$screen")
}

# The display of a QEMU that shows nothing; with --vulkan vulkan_args names another one.
display_args() {
	[ -n "$vulkan" ] || q+=(-display none)
}

# sandbox_args: what QEMU may not do. With --vulkan it starts the render server, which calls setsid(). QEMU
# counts that among the calls that elevate privileges, and would end the server for it. There is no privilege
# that QEMU could gain: confined() leaves it none.
sandbox_args() {
	local some=deny
	[ -n "$sandbox" ] || return 0
	[ -z "$vulkan" ] || some=allow
	q+=(-sandbox "on,obsolete=deny,elevateprivileges=$some,spawn=$some,resourcecontrol=deny")
}

# vulkan_files: the files that drivers of Vulkan and OpenGL need, as arguments of qcu-confine.
vulkan_files() {
	local f
	[ -n "$vulkan" ] || return 0
	for f in /etc/vulkan /etc/glvnd /etc/drirc "${icd_files[@]}"; do
		printf '%s\n' --read "$f"
	done
	[ -n "$gpu_driver" ] || return 0
	[ -z "$hardware" ] || printf '%s\n' --write "$hardware"
	printf '%s\n' --read /proc/driver/nvidia
	for f in /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-modeset /dev/nvidia[0-9]*; do
		[ ! -e "$f" ] || printf '%s\n' --write "$f"
	done
}

# vulkan_starts: what QEMU must be able to execute, as arguments of qcu-confine.
vulkan_starts() {
	[ -z "$vulkan" ] || printf '%s\n' --read "$root/scripts/vulkan/render-server" --read "$confine"
}

# vulkan_environment: what QEMU and the render server get. The server sees neither the shared folder nor the
# VM's own one. A process of it may have twice the window and 4 GiB, which the compiler of Mesa's shaders and the
# programs' memory share; a GPU's driver needs more addresses than it uses, so it has no such limit.
vulkan_environment() {
	local f how
	[ -n "$vulkan" ] || return 0
	# A cache in the caller's home is of no use behind the sandbox.
	export MESA_SHADER_CACHE_DISABLE=true
	[ -z "$host_icd" ] || export VK_DRIVER_FILES=$host_icd
	[ -n "$sandbox" ] || return 0
	export RENDER_SERVER_EXEC_PATH=$root/scripts/vulkan/render-server QCU_SERVER=$render_server QCU_CONFINE=$confine
	QCU_SERVER_MEMORY=$(((vulkan_mb * 2 + 4096) * 1024))
	[ -z "$gpu_driver" ] || QCU_SERVER_MEMORY=
	QCU_SERVER_READ=/usr:/bin:/lib:/lib64:/etc/ld.so.cache:/dev/urandom:/sys QCU_SERVER_WRITE=/dev/null
	while read -r how && read -r f; do
		case $how in
		--read) QCU_SERVER_READ+=:$f ;;
		--write) QCU_SERVER_WRITE+=:$f ;;
		esac
	done < <(vulkan_files)
	export QCU_SERVER_MEMORY QCU_SERVER_READ QCU_SERVER_WRITE
}

# find_guest_driver: Mesa's driver for the guest. A root has its own, and so has a disk, which nobody looks into.
find_guest_driver() {
	local json
	[ -z "$disk" ] || return 0
	if [ -n "$other_root" ]; then
		json=$(first_file "${other_root%/}"/usr/share/vulkan/icd.d/virtio_icd*.json) ||
			die "--vulkan: there is no driver for the guest in $other_root: install mesa-vulkan-drivers there"
		guest_icd=${json#"${other_root%/}"}
		return
	fi
	guest_json=$(first_file /usr/share/vulkan/icd.d/virtio_icd*.json) ||
		vulkan_lacks mesa-vulkan-drivers "there is no driver for the guest (virtio_icd.json)"
	check_icd "$guest_json"
	guest_icd=/qcu/vulkan/virtio_icd.json
}

# pack_vulkan: Mesa's driver, and the loader, for programs that load it by its name. The guest gets no other
# driver, so a program cannot be served by one in software without notice.
pack_vulkan() {
	local loader driver
	[ -s "$guest_dir/vulkan.cpio" ] || die "--vulkan: the guest's kernel, $kver, has no virtio-gpu"
	[ -z "$other_root" ] || return 0
	driver=$(icd_path "$guest_json")
	loader=$(find_library libvulkan.so.1)
	pack_file "$guest_json" "$guest_icd"
	pack_file "$driver" "$driver"
	[[ ${driver%/*} == /lib/x86_64-linux-gnu ]] || pack_file "$driver" "$lib_dir/${driver##*/}"
	pack_file "$loader" "$lib_dir/libvulkan.so.1"
	pack_libraries "$driver" "$loader"
}
