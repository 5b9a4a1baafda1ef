#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: vulkan.sh OUT [--software] [--limit SECONDS] [--slow N] [--skip STEP]...
#
# On a machine with NVIDIA's GPU and driver: qcu run --vulkan on it. This lies in the archive that vulkan_bundle.sh makes,
# beside a small Debian 13 (root/), into which it puts the machine's driver, and in which it runs vulkan_steps.sh. Needs
# root and mount namespaces; no network, no packages. It says what it finds, whatever fails.
#
# OUT gets machine.txt (what there is of the driver), steps.txt (all that is printed), vulkan.csv and table.txt (the
# benchmark), and logs.tar.gz. --software uses Mesa's lavapipe of an archive made with --lavapipe, and the software GPU. --slow
# multiplies the steps' own limits, for a busy machine.
set -uo pipefail
export LC_ALL=C PATH=$PATH:/usr/local/nvidia/bin:/usr/sbin:/sbin
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
new=$here/root
software='' limit=380 slow=1 skip=
[ $# -gt 0 ] && [[ $1 != -* ]] || {
	sed -n 's/^# usage: /usage: /p' "$0"
	exit 2
}
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
shift
while [ $# -gt 0 ]; do
	case $1 in
	--software) software=1 ;;
	--limit) limit=${2:?a number of seconds} && shift ;;
	--slow) slow=${2:?a number} && shift ;;
	--skip) skip+=" ${2:?the name of a step}" && shift ;;
	*) echo "vulkan: unknown argument $1" >&2 && exit 2 ;;
	esac
	shift
done

# show COMMAND...: what COMMAND prints, and how it ends.
show() {
	printf '\n$ %s\n' "$*"
	timeout 20 "$@" 2>&1 || echo "(exit code $?)"
}

# all_libraries: NVIDIA's libraries of this machine, for programs of 64 bits.
all_libraries() {
	{
		/sbin/ldconfig -p 2>/dev/null | sed -n 's/^\t.*x86-64.* => //p'
		find /usr/local/nvidia /usr/lib/nvidia* -name '*.so*' 2>/dev/null
	} | grep -E '/(libcuda|libcudadebugger|libnvidia-[^/]*|lib[A-Za-z0-9]+_nvidia|libnvcuvid|libnvoptix|nvidia-drm_gbm)\.so[^/]*$' |
		sort -u
}

machine() {
	show uname -a
	show cat "$new/VERSIONS"
	show sed -n 's/^PRETTY_NAME=//p' /etc/os-release
	show sh -c 'nproc; free -m; df -h /tmp .; id; grep -E "Cap|Seccomp|NoNewPrivs" /proc/self/status; ulimit -a'
	show sh -c 'sed -n "s/^model name[^:]*: //p" /proc/cpuinfo | head -n 1; cat /sys/kernel/security/lsm; ls -l /dev/kvm /dev/udmabuf'
	show sh -c 'ls -la /dev/nvidia* /dev/dri /dev/dri/by-path /dev/nvidia-caps /dev/shm'
	show nvidia-smi
	show nvidia-smi -q -d COMPUTE
	show sh -c 'cat /proc/driver/nvidia/version /proc/driver/nvidia/params; grep -i -e nvidia -e drm /proc/modules /proc/devices'
	show sh -c 'for f in /sys/module/nvidia*/parameters/* /sys/class/drm/*/dev; do echo "$f: $(cat "$f")"; done'
	show sh -c 'mount | grep -i -e nvidia -e " / "; cat /etc/ld.so.conf.d/* | grep -i nvidia'
	show find /usr/local/nvidia /usr/share/nvidia /etc/nvidia -maxdepth 6 -ls
	show sh -c 'for f in $(find /usr/local/nvidia/share /usr/share/vulkan /etc/vulkan /usr/share/glvnd /etc/glvnd /usr/share/egl \
		/etc/egl -name "*.json" 2>/dev/null); do echo "-- $f"; cat "$f"; done'
	show sh -c 'ls -la /usr/lib/x86_64-linux-gnu/gbm /usr/local/cuda /usr/local/cuda/lib64/libcudart*'
	show sh -c 'env | grep -i -e nvidia -e cuda -e vk_ -e vulkan -e egl -e LD_LIBRARY'
	show unshare --mount --pid --fork --user sh -c 'cat /proc/self/uid_map'
	printf '\nlibraries:\n'
	all_libraries | xargs -r ls -laL
}

# library_of JSON: the library that the file of a driver names.
library_of() {
	sed -n 's/.*"library_path" *: *"\([^"]*\)".*/\1/p' "$1" | head -n 1
}

# take_json FOLDER NAME FILE: puts the file of a driver into FOLDER of the new root, with a path that is right there, too.
take_json() {
	local lib
	lib=$(library_of "$3")
	mkdir -p "$new$1"
	cp "$3" "$new$1/$2"
	case $lib in
	/*) ;;
	*/*) sed -i "s|\"$lib\"|\"$(realpath -m "$(dirname "$3")/$lib")\"|" "$new$1/$2" ;;
	esac
}

# take_driver: the machine's driver, in the new root. /usr/local/nvidia is shown there as it is; libraries elsewhere are
# copied. The files that name NVIDIA's driver lie where the loaders look.
take_driver() {
	local f icd=
	mkdir -p "$new/usr/lib/nvidia" "$new/etc/ld.so.conf.d"
	while read -r f; do
		case $f in
		/usr/local/nvidia/*) echo "${f%/*}" ;;
		*/nvidia-drm_gbm.so) ;;
		*) [ -e "$new/usr/lib/nvidia/${f##*/}" ] || cp -L "$f" "$new/usr/lib/nvidia/" ;;
		esac
	done < <(all_libraries) | grep -v -e 32 -e i386 | sort -u >"$new/etc/ld.so.conf.d/zz-nvidia.conf"
	echo /usr/lib/nvidia >>"$new/etc/ld.so.conf.d/zz-nvidia.conf"
	for f in /usr/local/nvidia/share/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/nvidia*.json /etc/vulkan/icd.d/nvidia*.json; do
		[ -f "$f" ] && [ -z "$icd" ] || continue
		icd=/etc/vulkan/icd.d/nvidia_icd.json
		take_json /etc/vulkan/icd.d nvidia_icd.json "$f"
	done
	# The driver of Vulkan asks EGL for NVIDIA's, where there is no X server.
	for f in {/usr/local/nvidia,/usr,}/share/glvnd/egl_vendor.d/*nvidia*.json; do
		[ ! -f "$f" ] || take_json /usr/share/glvnd/egl_vendor.d "${f##*/}" "$f"
	done
	# QEMU draws with this driver only on a render node.
	if compgen -G '/dev/dri/renderD*' >/dev/null; then
		for f in {/usr/local/nvidia,/usr}/share/egl/egl_external_platform.d/*.json; do
			[ ! -f "$f" ] || take_json /usr/share/egl/egl_external_platform.d "${f##*/}" "$f"
		done
		f=$(find /usr/local/nvidia /usr/lib -name nvidia-drm_gbm.so 2>/dev/null | head -n 1)
		# Most often a link to this library.
		[ -n "$f" ] || f=$(all_libraries | grep -m 1 libnvidia-allocator.so)
		[ -z "$f" ] || cp -L "$f" "$new/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so"
	fi
	[ -n "$icd" ] || echo "there is no file of NVIDIA's Vulkan driver"
}

main() {
	local folders=("$out:/out") cuda
	machine >"$out/machine.txt" 2>&1
	for f in "$here/enter.sh" "$new/qcu/scripts"/* "$new/qcu/tests/gpu"/* "$new/qcu/perf/vulkan/run"; do
		chmod u+x "$f"
	done
	if [ -z "$software" ]; then
		take_driver
		[ ! -d /usr/local/nvidia ] || folders+=(/usr/local/nvidia:/usr/local/nvidia:ro)
		[ ! -d /usr/share/nvidia ] || folders+=(/usr/share/nvidia:/usr/share/nvidia)
		cuda=$(readlink -f /usr/local/cuda)
		[ ! -d "$cuda" ] || folders+=("$cuda:/usr/local/cuda")
	fi
	timeout -k 10 $((limit + 30)) unshare --mount --pid --fork --kill-child "$here/enter.sh" "$new" "${folders[@]}" -- \
		env -i HOME=/root USER=root TERM=dumb PATH=/usr/sbin:/usr/bin LIMIT="$limit" SLOW="$slow" SKIP="$skip" SOFTWARE="$software" \
		/qcu/tests/gpu/vulkan_steps.sh
	echo "exit code $?"
}

# In one piece, because the shell reads a script while it runs.
main 2>&1 | tee "$out/steps.txt"
exit
