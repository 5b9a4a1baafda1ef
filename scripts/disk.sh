# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# qcu vm --disk: boots a disk of the user's, with a qCUDA device, and with its console on the terminal.
# scripts/qcu sources this file.

# The options that belong to --disk, and those that do not go with it.
check_disk() {
	if [ -z "$disk" ]; then
		[ -z "$seed" ] || die "--seed belongs to --disk (try --help)"
		[ -z "$packages" ] || die "--packages belongs to --disk (try --help)"
		[ -z "$print" ] || die "--print belongs to --disk (try --help)"
		[ -z "$save" ] || die "--save belongs to --disk (try --help)"
		[ -z "$restore" ] || die "--restore belongs to --disk (try --help)"
		[ -z "$clone" ] || die "--clone belongs to --disk (try --help)"
		return 0
	fi
	[ "$mode" = vm ] || die "--disk belongs to the vm command (try --help)"
	[ -z "$script" ] || die "--script does not go with --disk: it is for the little guest, which has no disk"
	[ ${#with[@]} -eq 0 ] || die "--with does not go with --disk; share a folder with --share"
	[ ${#volumes[@]} -eq 0 ] || die "-v does not go with --disk; share a folder with --share"
	[ -z "$klog" ] || die "--klog does not go with --disk: what the kernel says is on the console"
	[ ${#module_args[@]} -eq 0 ] || die "--chunk and --module-arg do not go with --disk: the guest loads its own module"
	[ ${#args[@]} -eq 0 ] || die "--disk takes no program: ${args[0]} (try --help)"
	[[ -f $disk || -b $disk ]] || die "--disk $disk: no such file"
	[[ -r $disk && (-n $clone || -w $disk) ]] || die "--disk $disk: cannot be read${clone:- and written}"
	[[ -z $seed || -f $seed && -r $seed ]] || die "--seed $seed: no such file"
	[[ -z $packages || -d $packages ]] || die "--packages $packages: no such folder"
	[ -z "$packages" ] || compgen -G "$packages/*.deb" >/dev/null ||
		die "--packages $packages: there are no packages in it; make deb makes some in build/deb"
	check_saved
	disk=$(realpath "$disk")
	[ -z "$seed" ] || seed=$(realpath "$seed")
	[ -z "$packages" ] || packages=$(realpath "$packages")
	look_at_disk "$disk"
}

# A VM that was saved goes on only with the disk as it was then.
check_saved() {
	local from=${restore:-$clone} option=--restore
	[ -z "$restore" ] || [ -z "$clone" ] || die "--clone does not go with --restore: the clone's disk is one of its own"
	[ -z "$save" ] || [ -z "$from" ] || die "--save does not go with --restore and --clone: it saves a VM that runs"
	[ -z "$save$from" ] || [ -z "$print" ] || die "--print does not go with --save, --restore and --clone"
	if [ -n "$save" ]; then
		[ ! -e "$save" ] || die "--save $save: it is there already"
		[ -d "$(dirname "$save")" ] || die "--save $save: no such folder"
	fi
	[ -n "$from" ] || return 0
	[ -z "$clone" ] || option=--clone
	[[ -f $from && -r $from ]] || die "$option $from: no such file"
	[ "$(head -c 4 "$from")" = QEVM ] || die "$option $from: this is not a VM that was saved"
	[ ! "$disk" -nt "$from" ] ||
		die "$option $from: $disk was written after the VM was saved, so its memory and its disk do not fit each other"
}

# number FILE OFFSET BYTES: a number of an image's header.
number() {
	od -A n -t "u$3" --endian=big -j "$2" -N "$3" "$1" 2>/dev/null | tr -d ' '
}

# look_at_disk IMAGE: sets $format, and adds the files that an image stands on to $disk_files.
look_at_disk() {
	local file=$1 offset size next depth=0
	format=$(format_of "$file")
	disk_files=("$([ -n "$clone" ] && echo --read || echo --write)" "$file")
	while [ "$(format_of "$file")" = qcow2 ]; do
		offset=$(number "$file" 8 8) size=$(number "$file" 16 4)
		[ "${offset:-0}" -gt 0 ] && [ "${size:-0}" -gt 0 ] && [ "$size" -lt 1024 ] || break
		next=$(tail -c "+$((offset + 1))" "$file" | head -c "$size" | tr -d '\0')
		[[ $next == /* ]] || next=$(dirname "$file")/$next
		[ -r "$next" ] || die "--disk $disk: it stands on $next, which is not there"
		depth=$((depth + 1))
		[ $depth -lt 20 ] || die "--disk $disk: it stands on itself"
		file=$(realpath "$next")
		disk_files+=(--read "$file")
	done
}

# Only raw and qcow2 are taken. QEMU is told which one, because a guest could write the header of
# another one onto a raw disk, with the name of any file of the host.
format_of() {
	case $(head -c 4 "$1" | od -A n -t x1 | tr -d ' \n') in
	514649fb) echo qcow2 ;;
	4b444d56 | 3c3c3c20 | 636f6e65 | 76686478)
		die "--disk $1: this is neither raw nor qcow2; qemu-img convert -O qcow2 makes that of it"
		;;
	*) echo raw ;;
	esac
}

# disk_args SOCKET: sets $q to QEMU and its arguments, without those for the terminal.
disk_args() {
	q=("$qemu" -nodefaults -no-user-config
		-machine q35,memory-backend=ram
		-object "memory-backend-memfd,id=ram,size=${mem_mb}M,share=on" -m "${mem_mb}M" -smp "$cpus"
		-drive "file=$(comma "$disk"),format=$format,if=none,id=disk${clone:+,snapshot=on}" -device virtio-blk-pci,drive=disk,bootindex=1
		-device virtio-rng-pci -device vmgenid,guid=auto) # so that a guest that goes on makes its random numbers anew
	display_args
	vulkan_args
	if [ "$accel" = kvm ]; then
		q+=(-accel kvm -cpu host)
	else
		q+=(-accel tcg,thread=single -cpu max,-erms,-fsrm) # as in start_vm
	fi
	[ -z "$seed" ] || q+=(-drive "file=$(comma "$seed"),format=raw,if=none,id=seed,readonly=on"
		-device virtio-blk-pci,drive=seed)
	if grep -x user <<<"$("$qemu" -netdev help 2>&1)" >/dev/null; then
		q+=(-netdev user,id=net -device virtio-net-pci,netdev=net,romfile=)
	else
		note "$qemu has no user networking, so the VM has no network; another QEMU may have it (--qemu system)"
	fi
	[ -z "$packages" ] || q+=(
		-fsdev "local,id=packages,path=$(comma "$packages"),security_model=none,multidevs=remap,readonly=on"
		-device virtio-9p-pci,fsdev=packages,mount_tag=qcuda)
	[ -z "$share_given" ] || q+=(
		-fsdev "local,id=share,path=$(comma "$share"),security_model=none,multidevs=remap"
		-device virtio-9p-pci,fsdev=share,mount_tag=qcu)
	[ -z "$use_device" ] || device_args_of "$1"
	q+=("${qemu_args[@]}")
}

# device_args_of SOCKET: adds the device to $q.
device_args_of() {
	q+=(-chardev "socket,id=qcu,path=$(comma "$1")")
	if [ "$which" = system ]; then
		q+=(-device "vhost-user-test-device-pci,chardev=qcu,virtio-id=21,num_vqs=$((sessions + 1)),vq_size=512,config_size=64")
	else
		q+=(-device "virtio-qcuda-pci,chardev=qcu,sessions=$sessions")
	fi
}

# The arguments for people who start QEMU themselves: an option and its value in each line.
print_disk() {
	local socket=${XDG_RUNTIME_DIR:-/tmp}/qcu.sock a line=
	disk_args "$socket"
	[ -z "$use_device" ] || echo "# first: qcu-device --socket $socket --gpu $gpu --map $map --sessions $sessions"
	for a in "${q[@]}" -serial mon:stdio; do
		if [[ $a == -* && -n $line ]]; then
			echo "$line \\"
			line=' '
		fi
		line+="${line:+ }$(shell_word "$a")"
	done
	echo "$line"
}

run_disk() {
	local code=0 serial=stdio,id=console,signal=off in saved from=${restore:-$clone}
	hush
	at_exit stop_all
	at_exit cook
	if [ -n "$use_device" ]; then
		start_device
		await_device
	fi
	disk_args "$tmp/qcu.sock"
	if [ -t 0 ]; then
		# QEMU itself makes the terminal raw. Ctrl-A X ends the VM, Ctrl-A C is for the monitor.
		remember_terminal
		serial+=,mux=on
		note "the VM's console; Ctrl-A X switches it off"
	fi
	q+=(-chardev "$serial" -serial chardev:console)
	if [ -z "$clone" ]; then
		# For --save, which looks for the folder with the name of the disk.
		mkfifo "$tmp"/save.{in,out}
		q+=(-chardev "pipe,id=save,path=$(comma "$tmp/save")" -mon chardev=save,mode=control)
		printf '%s\n' "$disk" >"$tmp/disk"
	else
		# QEMU keeps there what the VM writes on its disk.
		mkdir "$tmp/clone"
		disk_files+=(--share "$tmp/clone")
		export TMPDIR=$tmp/clone
	fi
	if [ -n "$from" ]; then
		exec {saved}<"$from"
		q+=(-add-fd "fd=$saved,set=78" -incoming file:/dev/fdset/78)
	fi
	[ ! -t 0 ] || q+=(-mon chardev=console)
	sandbox_args
	log_pipe qemu.log
	launched=${EPOCHREALTIME/./}
	exec {in}<&0
	(confined "${q[@]}" <&"$in" 2>"$tmp/qemu.log.pipe") &
	qemu_pid=$!
	while alive "$qemu_pid"; do
		sleep 0.2
		check_disk_vm
	done
	wait "$qemu_pid" 2>/dev/null || code=$?
	qemu_pid=
	cook
	[ "$code" -eq 0 ] || fail 'QEMU has ended' "$tmp/qemu.log"
	end_logs
}

check_disk_vm() {
	local limit=$((timeout * slow))
	if [ $limit -gt 0 ] && [ $((${EPOCHREALTIME/./} - launched)) -ge $((limit * 1000000)) ]; then
		cook
		note "ended after $limit s"
		exit 124
	fi
	if [ -n "$use_device" ] && [ -n "$device_pid" ] && ! alive "$device_pid" && alive "$qemu_pid"; then
		# When the VM is switched off, it ends before QEMU does, and all is well.
		wait "$device_pid" 2>/dev/null ||
			note 'qcu-device has died: the VM goes on, and has no CUDA until it is started again'
		device_pid=
	fi
}
