# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# Which of the host's files the guest sees: the shared folder, the folders of -v, and files outside of these that the
# command line names. scripts/qcu sources this file.

# guests_own FOLDER: has the guest a folder of its own there?
guests_own() {
	case $1 in
	/ | /dev | /dev/* | /proc | /proc/* | /qcu | /qcu/* | /sys | /sys/*) return 0 ;;
	/run) [ -n "$other_root" ] ;;
	/bin | /init | /lib | /lib/x86_64-linux-gnu | /lib64 | /sbin | /usr | /usr/bin | /usr/lib | /usr/lib/x86_64-linux-gnu)
		[ -z "$other_root" ]
		;;
	*) return 1 ;;
	esac
}

choose_share() {
	cwd=$PWD
	[ -n "$share" ] || share=$cwd
	[ -d "$share" ] || die "--share $share: no such folder"
	share=$(cd "$share" && pwd -P)
	guests_own "$share" || return 0
	[ -z "$share_given" ] || die "--share $share: the guest has its own; share another folder"
	[ -n "$other_root" ] || say "$share is not shared: the guest has its own"
	share=
}

# below PATH FOLDER: is PATH the folder, or does it lie in it?
below() {
	[ -n "$2" ] && [[ $1/ == "${2%/}"/* ]]
}

# choose_volumes: checks the folders of -v, and sets volume_host, volume_guest and volume_ro.
choose_volumes() {
	local v host guest ro i
	[ ${#volumes[@]} -le 16 ] || die "-v: at most 16 folders can be shared"
	for v in "${volumes[@]}"; do
		[[ $v =~ ^([^:]+):(/[^:]*)(:(ro|rw))?$ ]] ||
			die "-v $v: must be HOST:GUEST or HOST:GUEST:ro, and GUEST a path that begins with /"
		host=${BASH_REMATCH[1]} guest=$(realpath -m -s -- "${BASH_REMATCH[2]}") ro=${BASH_REMATCH[4]}
		[ -d "$host" ] || die "-v $v: $host is no folder"
		host=$(cd -- "$host" 2>/dev/null && pwd -P) || die "-v $v: $host cannot be entered"
		! guests_own "$guest" || die "-v $v: the guest has its own $guest; choose another place"
		[ "$guest" != "$share" ] || die "-v $v: the shared folder is there"
		for i in "${!volume_guest[@]}"; do
			[ "$guest" != "${volume_guest[i]}" ] || die "-v $v: another -v has that place"
		done
		volume_host+=("$host") volume_guest+=("$guest") volume_ro+=("${ro#rw}")
	done
	for i in "${!volume_host[@]}"; do
		[ -n "${volume_ro[i]}" ] || continue
		host=$(writable_above "${volume_host[i]}")
		[ -z "$host" ] || die "-v ${volumes[i]}: the guest may write to $host, which is shared and has this folder in it"
	done
}

# writable_above FOLDER: prints a folder that the guest may write to and that FOLDER lies in.
writable_above() {
	local i
	! below "$1" "$share" || echo "$share"
	for i in "${!volume_host[@]}"; do
		[ -n "${volume_ro[i]}" ] || ! below "$1" "${volume_host[i]}" || echo "${volume_host[i]}"
	done
}

# Adds the shared folders to QEMU's arguments in $q.
share_args() {
	local i folder='local,security_model=none,multidevs=remap'
	if [ -n "$share" ]; then
		q+=(-fsdev "$folder,id=share,path=$(comma "$share")" -device virtio-9p-pci,fsdev=share,mount_tag=qcu)
		[ -z "$sandbox" ] || q+=(-trace v9fs_mknod)
	fi
	if [ -n "$other_root" ]; then
		q+=(-fsdev "$folder,id=root,path=$(comma "$other_root"),readonly=on"
			-device virtio-9p-pci,fsdev=root,mount_tag=qcuroot)
	fi
	for i in "${!volume_host[@]}"; do
		q+=(-fsdev "$folder,id=volume$i,path=$(comma "${volume_host[i]}")${volume_ro[i]:+,readonly=on}"
			-device "virtio-9p-pci,fsdev=volume$i,mount_tag=qcuvolume$i")
	done
}

# Adds qcu-confine's options for the folders of -v to $files.
confine_volumes() {
	local i
	for i in "${!volume_host[@]}"; do
		files+=("--$([ -n "${volume_ro[i]}" ] && echo read || echo share)" "${volume_host[i]}")
	done
}

# Writes what the guest's first process mounts besides the shared folder.
write_mounts() {
	local i
	for i in "${!volume_host[@]}"; do
		echo "mount_folder qcuvolume$i $(quote "${volume_guest[i]}") ${volume_ro[i]:+ro,}"
	done
	for i in "${!named[@]}"; do
		echo "mount_read_only $(quote "${named[i]}")"
	done
}

# ---- files that the command line names ----

# As many bytes of them are taken along.
named_max=67108864

# take_named_files: files outside of the shared folders that are arguments of the program are copied for the guest, which
# sees the copies at the same place, read-only. Of all other arguments that lead out of the shared folders, the user hears.
take_named_files() {
	local a here
	[ "$mode" = run ] && [ -z "$other_root" ] || return 0
	here=$(pwd -P)
	mkdir "$tmp/named"
	for a in "${args[@]:1}"; do
		# --input=FILE
		[[ $a != *=* ]] || [ -e "$a" ] || a=${a#*=}
		[[ $a == */* || -e $a ]] || continue
		take_named_file "$a" || true
	done
}

take_named_file() {
	local name=$1 path dir target
	[[ $name == /* ]] && path=$name || path=$here/$name
	# Without a process for what is plainly in the shared folder.
	[[ $path/ != *//* && $path/ != */./* && $path/ != */../* ]] || path=$(realpath -m -s -- "$path")
	# The guest has the link through which the user has entered the folder, too.
	! below "$path" "$PWD" || path=$here${path#"$PWD"}
	if guest_sees "$path"; then
		[ -L "$path" ] || return 0
		target=$(realpath -m -- "$path")
		dir=${target%/*}
		guest_sees "$target" ||
			note "$name is a link that leads out of the shared folder; -v $(shell_word "$dir:$dir:ro") shares the folder that it leads to"
		return
	fi
	dir=${path%/*}
	if [ -d "$path" ]; then
		[ "$path" = /tmp ] ||
			note "$name is not in the guest, because only $(shared_names) is shared; -v $(shell_word "$path:$path:ro") shares it, too"
	elif [ -f "$path" ] && [ -r "$path" ]; then
		copy_named_file "$name" "$path" ||
			note "$name is not in the guest, because $why; -v $(shell_word "$dir:$dir:ro") shares its folder"
	elif [ ! -e "$path" ] && [ -d "$dir" ]; then
		note "$name does not exist, and the guest has not its folder; -v $(shell_word "$dir:$dir") shares it"
	fi
}

shared_names() {
	local i names=${share:-"no folder"}
	for i in "${!volume_guest[@]}"; do
		names+=", ${volume_guest[i]}"
	done
	printf '%s' "$names"
}

# guest_sees PATH: is PATH in a shared folder, or where the guest has its own files?
guest_sees() {
	local i
	for i in "$share" "${volume_guest[@]}" /etc/{fstab,group,mtab,passwd} /bin /dev /lib /lib64 /proc /qcu /sbin /sys /usr/bin /usr/lib /usr/sbin; do
		! below "$1" "$i" || return 0
	done
	guests_own "$1"
}

# copy_named_file NAME PATH: fails, and sets $why, if PATH leads through a link: one in a shared folder may be a guest's,
# and lead to any file. What is compared is the path of the file that was opened, so no guest can change it meanwhile.
copy_named_file() {
	local from to=$tmp/named/${#named[@]}
	why='it cannot be read'
	{ exec {from}<"$2"; } 2>/dev/null || return
	if [ "$(readlink "/proc/$$/fd/$from")" != "$2" ]; then
		why='a link leads there'
	elif head -c $((named_max + 1)) <&"$from" >"$to" && [ "$(stat -c %s "$to")" -gt $named_max ]; then
		why="it is too large to be taken along by itself"
		rm -f "$to"
	else
		why=
		named_max=$((named_max - $(stat -c %s "$to")))
		[ -x "$2" ] && chmod 555 "$to" || chmod 444 "$to"
		named+=("$2")
		say "$2 is in the guest, read-only, because the command names it"
	fi
	exec {from}<&-
	[ -z "$why" ]
}

pack_named_files() {
	local i
	for i in "${!named[@]}"; do
		pack_file "$tmp/named/$i" "${named[i]}"
	done
}

# ---- after a failure ----

# say_what_is_missing: the program has failed. If it said that files are missing which it has not named, the user hears
# how to have them.
say_what_is_missing() {
	[ -e "$tmp/said" ] || return 0
	grep -a -q -E -e "can't execute '" -e "No module named '?encodings" -e '(line [0-9]+|^sh): [^ ]+: not found$' \
		-e 'error while loading shared libraries: ' -e "Can't locate .* in @INC" -e '\(LoadError\)' < <(whole "$tmp/said") ||
		return 0
	note "the guest has only what $typed names itself; with --root / it has all that is installed here:" \
		"$0 run --root / $(typed_command)"
}

# typed_command: prints the program and its arguments for a shell.
typed_command() {
	local a words=()
	for a in "$typed" "${args[@]:1}"; do
		words+=("$(shell_word "$a")")
	done
	printf '%s' "${words[*]}"
}
