# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# Puts a program, its libraries and a script that runs it into a cpio archive, which
# is appended to the guest's initramfs. scripts/qcu sources this file.
#
# Files keep their host paths. The loader searches only some folders by itself. A
# library from another folder also gets a link in one of these folders, so that the
# guest needs no loader cache. Those of `ours` are always ours, never the host's.

# NVIDIA's libraries that we have our own of.
ours=(libcudart.so.1{3,2} libcuda.so.1 libnvidia-ml.so.1 "${cudnn_libraries[@]}" "${nvidia_libraries[@]}")

# The folder on this distribution that the loader searches by itself: libc is there.
lib_dir=/usr/lib/x86_64-linux-gnu

# quote STRING: quotes STRING for a POSIX shell. STRING may contain any character.
quote() {
	printf "'%s'" "${1//\'/\'\\\'\'}"
}

# shell_word STRING: the same, only where a shell needs it, for commands that people read.
shell_word() {
	[[ $1 =~ ^[A-Za-z0-9_@%+=:,./-]+$ ]] && printf '%s' "$1" || quote "$1"
}

absolute() {
	case $1 in
	/*) printf '%s\n' "$1" ;;
	*) printf '%s\n' "$PWD/$1" ;;
	esac
}

# is_shared PATH: the guest sees PATH through the share, which would hide a packed
# file. The user may have entered the folder through a link, $alias. The link leads
# to the folder in the guest as well.
is_shared() {
	[ -n "$share" ] && [[ $1/ == "$share"/* ]] || [ -n "$alias" ] && [[ $1/ == "$alias"/* ]]
}

# make_folder PATH: mkdir -p, but it starts no process for a folder that is there. A run would start dozens.
make_folder() {
	[ -d "$1" ] || mkdir -p "$1"
}

# pack_file HOST_FILE GUEST_PATH: packs a file, unless the share or the package already has it.
pack_file() {
	local to=$2
	[[ $to == /* && ! $to =~ //|/\.\.?(/|$)|/$ ]] || to=$(realpath -m -s -- "$2")
	# The guest has only one folder for programs.
	case $to in
	/usr/bin/* | /usr/sbin/* | /sbin/*) to=/bin/${to##*/} ;;
	esac
	! is_shared "$to" || return 0
	[ ! -e "$tmp/stage$to" ] || return 0
	make_folder "$tmp/stage${to%/*}"
	ln -s "$(absolute "$1")" "$tmp/stage$to"
}

# pack_link TARGET GUEST_PATH: packs a symbolic link.
pack_link() {
	[ ! -L "$tmp/links$2" ] || return 0
	make_folder "$tmp/links${2%/*}"
	ln -s "$1" "$tmp/links$2"
}

# pack_libraries FILE...: packs all libraries that the files load at start.
pack_libraries() {
	local name path
	while read -r name path; do
		# Of any version.
		if [[ " ${ours[*]%.so*} " == *" ${name%%.so*} "* ]]; then
			# A program's own search path may lead to NVIDIA's library in the share.
			! is_shared "$path" || library_path=/qcu/lib
			continue
		fi
		case $name in
		libOpenCL.so*) opencl=1 ;;
		libvulkan.so*)
			[ -n "$vulkan" ] || note "the program uses Vulkan, for which the guest has a GPU with --vulkan only"
			;;
		esac
		pack_file "$path" "$path"
		case ${path%/*} in
		/lib | /lib64 | /usr/lib | /lib/x86_64-linux-gnu | "$lib_dir") ;;
		*) pack_link "$path" "$lib_dir/$name" ;;
		esac
	done < <(ldd "$@" 2>/dev/null | sed -n -E \
		-e 's|^\t(/[^ ]*/)?([^ ]+) => (/.*) \(0x[0-9a-f]+\)$|\2 \3|p' \
		-e 's|^\t(/[^ ]*/([^ /]+)) \(0x[0-9a-f]+\)$|\2 \1|p')
}

# find_library NAME: prints the path of a library that a program would load by its name here.
find_library() {
	local dir dirs=()
	IFS=: read -r -a dirs <<<"${LD_LIBRARY_PATH:-}"
	for dir in "${dirs[@]}" "${CUDA_HOME:-/usr/local/cuda}/lib64"; do
		[ ! -e "$dir/$1" ] || {
			absolute "$dir/$1"
			return
		}
	done
	sbin ldconfig -p 2>/dev/null | sed -n "s|^\t$1 .* => ||p" | sed -n 1p || true
}

# pack_compiler FILE: if the program names NVRTC, which compiles while the program runs, packs it with
# its second part. Both are loaded by their names, so ldd does not see them.
pack_compiler() {
	local name path f
	while read -r name; do
		path=$(find_library "$name")
		[ -n "$path" ] || {
			note "$1 asks for $name, which this machine does not have: it cannot compile in the guest"
			continue
		}
		for f in "$path" "${path%/*}"/libnvrtc-builtins.so.*; do
			[[ $f =~ libnvrtc(-builtins\.so\.[0-9]+\.[0-9]+|\.so\.[0-9]+)$ ]] || continue
			pack_file "$f" "$f"
			pack_link "$f" "$lib_dir/${f##*/}"
			to_link+=("$f")
		done
	done < <(grep -a -o 'libnvrtc\.so\.[0-9][0-9]*' "$1" | sort -u)
}

# pack_program FILE GUEST_PATH: packs a program. If it is a script, packs its interpreter too.
pack_program() {
	local line interpreter
	pack_file "$1" "$2"
	IFS= read -r -n 200 line <"$1" 2>/dev/null || true
	if [[ $line == '#!'* ]]; then
		read -r interpreter _ <<<"${line#'#!'}" || true
		case $interpreter in
		'' | */sh | */env) ;;
		*)
			[ ! -x "$interpreter" ] || {
				pack_file "$interpreter" "$interpreter"
				to_link+=("$interpreter")
			}
			;;
		esac
	else
		to_link+=("$1")
		pack_compiler "$1"
	fi
}

# With --gpu auto, qcu-device uses them if there are any.
uses_host_gpus() {
	[ "$gpu" != soft ] && { [ "$gpu" != auto ] || [ -e /dev/nvidiactl ]; }
}

# Passes the environment on, without the variables that would be wrong in the guest. With --image it is the image's.
write_environment() {
	local entry name path=${PATH:-/usr/bin} libraries=${LD_LIBRARY_PATH:-} from=/proc/$$/environ
	if [ -n "$image" ]; then
		image_environment >"$tmp/environment"
		from=$tmp/environment path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin libraries=
	fi
	echo 'unset HOME TERM PWD OLDPWD'
	while IFS= read -r -d '' entry; do
		name=${entry%%=*}
		[[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
		case $name in
		PATH) [ -z "$image" ] || path=${entry#*=} ;;
		LD_LIBRARY_PATH) [ -z "$image" ] || libraries=${entry#*=} ;;
		_ | PWD | OLDPWD | SHLVL | TMPDIR | LD_PRELOAD | LD_AUDIT | MAKEFLAGS | MAKELEVEL | MFLAGS) ;;
		# What it has chosen of the host's GPUs has other numbers in the guest.
		CUDA_VISIBLE_DEVICES) uses_host_gpus || echo "export $name=$(quote "${entry#*=}")" ;;
		# The host's drivers are not the guest's.
		VK_DRIVER_FILES | VK_ICD_FILENAMES | VK_ADD_DRIVER_FILES) ;;
		*) echo "export $name=$(quote "${entry#*=}")" ;;
		esac
	done <"$from"
	[ -z "$interactive" ] || [ -n "$other_root" ] || echo "export PS1='qcu:\w\\$ '"
	echo "umask $user_umask"
	echo "export PATH=$(quote "/qcu/bin:$path:/bin")"
	if [ "$opencl" = packed ]; then
		echo 'export OCL_ICD_VENDORS=/qcu/opencl/vendors POCL_CUDA_TOOLKIT_PATH=/qcu/opencl'
	fi
	[ -z "$check_memory" ] || echo "export QCU_CHECK=1 QCU_CHECK_EXITCODE=$((10#$error_exitcode))"
	[ -z "$guest_icd" ] || echo "export VK_DRIVER_FILES=$guest_icd VK_ICD_FILENAMES=$guest_icd"
	write_preloads
	if [ -n "$libraries$library_path" ]; then
		echo "export LD_LIBRARY_PATH=$(quote "$library_path${library_path:+${libraries:+:}}$libraries")"
	fi
}

# What is loaded into the program besides its own libraries.
write_preloads() {
	local before=()
	# On a terminal a program prints each line at once. In the guest its output is a pipe, so
	# libstdbuf sets line buffering.
	if [ -e "$tmp/stage/qcu/lib/libstdbuf.so" ]; then
		echo 'export _STDBUF_O=L'
		before+=(/qcu/lib/libstdbuf.so)
	fi
	# The module serves programs and libraries with the runtime linked in. A script of the vm command
	# calls qcu-run for those that need it. A program that has the runtime gets our library from the
	# start, so that its malloc is ours, too.
	# Another root's C library may be too old for the module, and would say so for each program. That of an image has been looked at.
	if [ "$mode" != vm ] && [ -e "$tmp/stage/qcu/lib/libqcuda-loader.so" ] &&
		[[ ${other_root:-/} == / || -n $image || $linked == static* ]]; then
		echo 'export LD_AUDIT=/qcu/lib/libqcuda-loader.so'
		[[ $linked != static* ]] || before+=("/qcu/lib/libcudart.so.${linked#static }")
	fi
	# NVTX in a program loads this, so that its ranges are in the trace.
	[ -z "${QCU_TRACE_FILE:-}" ] || echo 'export NVTX_INJECTION64_PATH=/qcu/lib/libcudart.so.13'
	# An OpenCL program loads PoCL, and our library with it, when its malloc has long been another one.
	[ "$mode" = vm ] || [ "$opencl" != packed ] || preload=1
	# A checked program calls our _exit(), also if it loads our library late, as Python does.
	[ "$mode" = vm ] || [ "${other_root:-/}" != / ] || [ -z "$check_memory" ] || preload=1
	[ -z "$preload" ] || before+=(/qcu/lib/libcudart.so.13)
	[ ${#before[@]} -eq 0 ] || echo "export LD_PRELOAD=$(IFS=: && echo "${before[*]}")"
}

# Writes the guest's users: root, the caller (with the same numbers as on the host), and nobody.
write_users() {
	local g
	uid=$EUID gid=$(id -g) user=root
	mkdir -p "$tmp/stage/etc"
	{
		if [ "$uid" -ne 0 ]; then
			user=$(id -un 2>/dev/null) || user=
			# A user named root here, but with another number, must not get that name in the guest.
			[[ $user =~ ^[A-Za-z_][A-Za-z0-9_.-]*$ && $user != root ]] || user=user
			echo "$user:x:$uid:$gid:$user:${HOME:-/}:/bin/sh"
		fi
		echo root:x:0:0:root:/root:/bin/sh
		echo nobody:x:65534:65534:nobody:/:/bin/sh
	} >"$tmp/stage/etc/passwd"
	{
		if [ "$uid" -ne 0 ]; then
			for g in $(id -G); do
				echo "g$g:x:$g:$user"
			done
		fi
		echo root:x:0:
		echo nogroup:x:65534:
	} >"$tmp/stage/etc/group"
}

# What the caller has closed is closed for the program, too. The guest's own /dev/null and /dev/full stand for ours.
write_streams() {
	local fd
	for fd in 0 1 2; do
		case ${streams[fd]} in
		closed) echo "exec $fd>&-" ;;
		1:3) echo "exec $fd<>/dev/null" ;;
		1:7) echo "exec $fd<>/dev/full" ;;
		esac
	done
}

# terminal: prints what starts a program on a terminal of the guest, of the size of ours.
terminal() {
	local rows cols
	read -r rows cols < <(stty size 2>/dev/null) || true
	printf ' /qcu/run/pty %s %s' "${rows:-24}" "${cols:-80}"
}

# With another root, qcu-enter goes there, becomes the user, and starts the program.
write_enter() {
	local a groups=
	write_environment
	write_streams
	[ "$uid" -eq 0 ] || groups=$(id -G | tr ' ' ,)
	printf 'exec /qcu/run/enter /root/new %s %s %s %s' "$uid" "$([ "$uid" -eq 0 ] && echo 0 || echo "$gid")" \
		"$(quote "$groups")" "$(quote "${image_folder:-$cwd}")"
	[ -z "$interactive" ] || terminal
	for a in "${args[@]}"; do
		printf ' %s' "$(quote "$a")"
	done
	echo
}

write_program() {
	local a
	if [ -n "$other_root" ]; then
		write_enter
		return
	fi
	write_environment
	write_streams
	echo "cd $(quote "$cwd") || exit 127"
	if [ "$mode" = vm ]; then
		printf 'exec sh /qcu/run/script'
	else
		printf 'exec'
	fi
	[ -z "$interactive" ] || terminal
	for a in "${args[@]}"; do
		printf ' %s' "$(quote "$a")"
	done
	echo
}

# pack_for_root: another root has the program and its libraries. Only ours is added, in /qcu/lib, where the
# loader looks first.
pack_for_root() {
	cp "$enter" "$tmp/stage/qcu/run/enter"
	pack_ours /qcu/lib
	[ -z "$image" ] || pack_link qcu-smi /qcu/bin/nvidia-smi
	library_path=/qcu/lib
	[ -z "$opencl" ] || pack_opencl
}

# pack_stripped HOST_FILE GUEST_PATH: packs a file of ours without its debug data, which nothing in the guest reads and
# which is most of the file. What is there already stays: it may be a link to a file of the user's.
pack_stripped() {
	[ ! -e "$tmp/stage$2" ] || return 0
	make_folder "$tmp/stage${2%/*}"
	strip --strip-debug -o "$tmp/stage$2" "$1" 2>/dev/null || cp "$1" "$tmp/stage$2"
}

# pack_ours FOLDER...: packs our libraries into the first of these folders of the guest, with links in the others, and
# qcu-smi. Some programs look for libcuda.so, which NVIDIA's driver installs, too.
pack_ours() {
	local dir name from=${library%/*} to=$1 new=() links
	[ -e "$library" ] || return 0
	for name in "${ours[@]}"; do
		[ ! -e "$from/$name" ] || [ -e "$tmp/stage$to/$name" ] || new+=("$name")
	done
	make_folder "$tmp/stage$to"
	# As pack_stripped, but with one process for all.
	if [ ${#new[@]} -gt 0 ]; then
		(cd "$from" && cp "${new[@]}" "$tmp/stage$to")
		(cd "$tmp/stage$to" && strip --strip-debug "${new[@]}" 2>/dev/null) || true
	fi
	for dir in "${@:2}"; do
		links=()
		for name in "${ours[@]}"; do
			[ ! -e "$from/$name" ] || [ -L "$tmp/links$dir/$name" ] || links+=("$to/$name")
		done
		make_folder "$tmp/links$dir"
		[ ${#links[@]} -eq 0 ] || ln -s -t "$tmp/links$dir" "${links[@]}"
	done
	for dir in "$@"; do
		[ ! -e "$from/libcuda.so.1" ] || pack_link libcuda.so.1 "$dir/libcuda.so"
	done
	[ ! -e "$from/qcu-smi" ] || pack_stripped "$from/qcu-smi" /qcu/bin/qcu-smi
}

# pack_opencl: PoCL, whose CUDA device makes OpenCL programs programs of the driver API. The loader of OpenCL
# finds it through OCL_ICD_VENDORS, and it finds its other files beside itself.
pack_opencl() {
	local dir f
	dir=$("$root/scripts/opencl/build-pocl" --print-dir) || {
		note "the program uses OpenCL, but there is no PoCL: scripts/opencl/build-pocl builds it"
		return
	}
	while IFS= read -r f; do
		pack_file "$dir/$f" "/qcu/opencl/$f"
	done < <(cd "$dir" && find lib share nvvm -type f)
	mkdir -p "$tmp/stage/qcu/opencl/vendors"
	echo /qcu/opencl/lib/pocl/libpocl.so.2 >"$tmp/stage/qcu/opencl/vendors/pocl.icd"
	# Another root's loader has its own libraries.
	[ -n "$other_root" ] || pack_libraries "$dir/lib/pocl/libpocl.so.2"
	opencl=packed
}

# What programs need that somebody starts in a shell. What else one needs comes with --with.
pack_usual_libraries() {
	local name
	for name in libc.so.6 libm.so.6 libstdc++.so.6 libgcc_s.so.1 libdl.so.2 libpthread.so.0 librt.so.1; do
		[ ! -e "$lib_dir/$name" ] || pack_file "$lib_dir/$name" "$lib_dir/$name"
	done
	pack_file /lib64/ld-linux-x86-64.so.2 /lib64/ld-linux-x86-64.so.2
}

# pack_programs: the program, or the script, and all files that they need.
pack_programs() {
	local f
	if [ "$mode" = vm ]; then
		cp "$script" "$tmp/stage/qcu/run/script"
	elif [ "$mode" = shell ]; then
		pack_usual_libraries
	else
		pack_program "$program" "$(absolute "$program")"
	fi
	for f in "${with[@]}"; do
		pack_program "$f" "/qcu/bin/${f##*/}"
	done
	pack_ours "$lib_dir" /qcu/lib
	[ ! -e "$library" ] || to_link+=("$library")
	[ ${#to_link[@]} -eq 0 ] || pack_libraries "${to_link[@]}"
	[ -z "$opencl" ] || pack_opencl
	pack_named_files
}

pack_guest() {
	local home
	library_path='' to_link=() alias=
	if ! is_shared "$cwd" && is_shared "$(pwd -P)"; then
		alias=$cwd
	fi
	mkdir -p "$tmp/stage/qcu/run" "$tmp/links"
	if [ -n "$use_device" ] && [ -e "$loader" ] && [ -e "$check" ]; then
		pack_file "$loader" /qcu/lib/libqcuda-loader.so
		pack_file "$check" /qcu/lib/qcu-check
		pack_file "$root/scripts/qcu-run" /qcu/bin/qcu-run
	fi
	if [ -z "$other_root" ] && [ -e "$tmp/stage/qcu/lib/libqcuda-loader.so" ]; then
		to_link+=("$loader" "$check")
		# The module's C library is a second one, whose search for the dynamic linker starts anew.
		pack_link /lib64/ld-linux-x86-64.so.2 "$lib_dir/ld-linux-x86-64.so.2"
	fi
	[ -z "$interactive" ] || cp "$pty" "$tmp/stage/qcu/run/pty"
	# Another root's C library may be older than the one that this machine's libstdbuf needs.
	if [ -t 1 ] && [ -z "$interactive" ] && [ "${other_root:-/}" = / ] && [ -e /usr/libexec/coreutils/libstdbuf.so ]; then
		pack_file /usr/libexec/coreutils/libstdbuf.so /qcu/lib/libstdbuf.so
	fi
	if [ -n "$other_root" ]; then
		pack_for_root
	else
		pack_programs
	fi
	[ -z "$vulkan" ] || pack_vulkan
	[ -z "$use_module" ] || pack_stripped "$module" /qcu/run/qcuda.ko
	if [ -n "$other_root" ]; then
		:
	elif [ -n "$alias" ]; then
		pack_link "$(pwd -P)" "$alias"
	elif ! is_shared "$cwd"; then
		mkdir -p "$tmp/stage$cwd"
	fi
	write_users
	{
		# The script of the vm command runs as root in the guest.
		[ "$mode" != vm ] || user=root
		home=${HOME:-}
		! is_shared "$home" || home=
		echo "user=$user uid=$uid gid=$gid home=$(quote "${home%/}")"
		echo "share=$(quote "$share") volumes=${volume_host:+1}"
		echo "other_root=${other_root:+1}"
		echo "vulkan=${vulkan:+1}"
		echo "address=$(guest_address)"
		echo "module=$use_module"
		echo "module_args=$(quote "${module_args[*]}")"
	} >"$tmp/stage/qcu/run/conf"
	write_mounts >"$tmp/stage/qcu/run/mounts"
	write_program >"$tmp/stage/qcu/run/program"
	{
		if [ -n "$warm" ]; then
			mkdir "$tmp/job"
			archive "$tmp/stage" -L >"$tmp/job/files"
			archive "$tmp/links" >"$tmp/job/links"
		else
			cat "$guest_dir/base.cpio" ${vulkan:+"$guest_dir/vulkan.cpio"}
			archive "$tmp/stage" -L
			archive "$tmp/links"
		fi
	} >"$tmp/initrd" || die "cannot write the guest's files in $tmp; is the disk full?"
	rm -rf "$tmp/stage" "$tmp/links"
	# While the guest unpacks this, its memory holds it twice.
	local packed=$tmp/initrd
	[ -z "$warm" ] || packed=$tmp/job/files
	packed=$(($(stat -c %s "$packed") >> 20))
	[ $((packed * 2 + mem_mb / 8 + 64)) -lt "$mem_mb" ] ||
		die "the program and its libraries take $packed MB, too much for a guest of --mem $mem"
}

archive() {
	local dir=$1
	shift
	(cd "$dir" && find . -mindepth 1 -print0 | sort -z | cpio -0 -o -H newc -R 0:0 --quiet "$@")
}
