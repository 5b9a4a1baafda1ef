# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set and used by scripts/qcu
#
# An emulated guest needs seconds to boot. So the launcher saves a guest before it has seen any program, and later runs
# go on from what was saved: docs/vm/warm.md. scripts/qcu sources this file.

warm=''       # the folder of the saved guest that this run goes on from
warming=''    # the file that this process saves a guest to
saved_most=24 # saved guests are kept, but no more than the disk has GB left

# can_be_warm: is this a guest that can be saved? What is missing in this list has not been tried.
can_be_warm() {
	[ "$accel" = tcg ] && [ "$which" = own ] && [ -n "$sandbox" ] && [ -z "$cold$disk$vulkan$net$job_folder" ] &&
		[ ${#qemu_args[@]} -eq 0 ] && [[ " ${device_args[*]}" != *" --sessions"* ]]
}

# only_ours PATH MODE: is it the user's own, and can nobody else write there?
only_ours() {
	[ ! -L "$1" ] && [ "$(stat -c '%u %a' "$1" 2>/dev/null)" = "$EUID $2" ]
}

# saved_folder: sets $folder to the folder for guests like this one, and makes it. $again: it was there. Its name is a hash of all that such a guest
# depends on: the files, and QEMU's arguments without the names of this run's own files.
saved_folder() {
	local a q key warming=1
	vm_args
	key=$({
		stat -L -c '%n %d %i %s %y %z' "$qemu" "$guest_dir"/{vmlinux,base.cpio} ${use_device:+"$device"} || exit
		for a in "${q[@]}"; do
			case $a in
			local,*path=*) a=${a%%path=*} ;;
			*\ tsc_early_khz=*) a=${a% tsc_early_khz=*} ;;
			esac
			printf '%s\n' "${a//"$(comma "$tmp")"/}"
		done
	} | sha256sum) || return
	folder=$cache/warm/${key:0:32} again=
	[ ! -d "$folder" ] || again=1
	mkdir -p -m 700 "$cache/warm" "$folder" 2>/dev/null && only_ours "$cache/warm" 700 && only_ours "$folder" 700
}

# same_clock: has the time-stamp counter the speed that the saved guest knows?
same_clock() {
	local was
	measure_tsc
	read -r was 2>/dev/null <"$folder/khz" && [[ $was =~ ^[1-9][0-9]{1,8}$ ]] && [ -n "$khz" ] &&
		[ $(((was > khz ? was - khz : khz - was) * 1000)) -le "$was" ]
}

# can_go_on: is there a saved guest in $folder that this run can use?
can_go_on() {
	only_ours "$folder/state" 600 && only_ours "$folder/khz" 600 && same_clock
}

# choose_warm: sets $warm. The first run with a folder boots a guest, and leaves the folder. The second lets a guest be saved. Where
# that fails, it boots a guest, too.
choose_warm() {
	local folder again i options
	can_be_warm && saved_folder || return 0
	if ! can_go_on; then
		[ -n "$again" ] || return 0
		[ -z "$(find "$folder" -maxdepth 1 -name failed -mmin -1440)" ] || return 0
		options=(--mem "${mem_mb}M" --cpus "$cpus" --sessions "$sessions" --accel tcg --qemu own --gpu soft --no-module)
		[ -n "$use_device" ] || options+=(--no-device)
		[ -z "$other_root" ] || options+=(--root "$other_root")
		for i in "${!volume_host[@]}"; do
			options+=(-v "${volume_host[i]}:/volume/$i${volume_ro[i]:+:ro}")
		done
		say 'saving a guest, from which later runs go on'
		(cd "${share:-/}" && exec "$root/scripts/qcu" warm "${options[@]}") </dev/null >"$tmp/warm.log" 2>&1 ||
			[ $? -ge 128 ] || { : >"$folder/failed"; } 2>/dev/null || true
		can_go_on || return 0
	fi
	touch -c "$folder/state" 2>/dev/null || true
	warm=$folder
	say "going on from the guest that is saved in $warm"
}

# warm_args: adds to QEMU's arguments in $q what a guest has that is saved, and the folder with what there is to do.
warm_args() {
	[ -n "$warm$warming" ] || return 0
	q+=(-device vmgenid,guid=auto -global migration.mapped-ram=on
		-fsdev "local,security_model=none,id=job,path=$(comma "$tmp/job"),readonly=on"
		-device virtio-9p-pci,fsdev=job,mount_tag=qcujob)
}

# open_saved: hands the file with the saved guest to QEMU, which may open none itself. The saved guest may turn out to be of
# no use, and no input may be lost then. So the pipe for the input is held open until the guest is there.
open_saved() {
	local both
	input=
	[ -z "$warm$warming" ] || { exec {both}<>"$tmp/in" && exec {input}>"$tmp/in" {both}>&-; }
	if [ -n "$warm" ]; then
		# Another run may have removed it. QEMU refuses what is empty.
		{ exec {saved}<"$warm/state"; } 2>/dev/null || exec {saved}</dev/null
		q+=(-incoming file:/dev/fdset/79)
	elif [ -n "$warming" ]; then
		exec {saved}>"$warming"
	else
		return 0
	fi
	q+=(-add-fd "fd=$saved,set=79")
}

# start_held_input: the guest is there, and the pipe for its input has been opened by QEMU.
start_held_input() {
	{ exec {user_in}<&0; } 2>/dev/null || exec {user_in}</dev/null
	(mortal cat <&"$user_in" >&"$input") 2>/dev/null &
	stdin_pid=$!
	exec {user_in}<&- {input}>&-
}

# boot_after_all: the saved guest did not come to life. This run boots a guest, and the next one saves another.
boot_after_all() {
	say 'the saved guest does not go on; booting one'
	rm -f "$warm/state"
	warm=
	progress_end
	exec {input}>&- {status}<&- {monitor_in}>&- {monitor_out}>&-
	stop_all
	device_pid='' qemu_pid='' stdout_pid='' stderr_pid='' log_pids=()
	find "$tmp" -maxdepth 1 ! -type d ! -name shell.log -delete
	cat "$guest_dir/base.cpio" "$tmp/job"/{files,links} >"$tmp/initrd" ||
		die "cannot write the guest's initramfs in $tmp; is the disk full?"
	progress 'starting the guest'
	[ -z "$use_device" ] || start_device
	start_vm
}

# ---- saving ----

# save_guest: the command warm. It saves a guest unless there is one, or another process is about it.
save_guest() {
	local folder again lock line
	can_be_warm && saved_folder || die 'such a guest cannot be saved'
	! can_go_on || return 0
	exec {lock}<"$folder"
	flock -n "$lock" || return 0
	rm -f "$folder"/{state,khz,new,failed}
	[ "$(space_left)" -gt 1000 ] || die "there is little space in $folder"
	umask 077
	warming=$folder/new name=warm
	at_exit "rm -f '$folder/new'"
	mkdir "$tmp/job"
	measure_tsc
	echo "$khz" >"$folder/khz"
	[ -z "$use_device" ] || start_device
	start_vm
	IFS= read -r -t $((100 * slow)) -u "$status" line || crashed
	[ "$line" = ready ] || die "the guest: ${line//[^ -~]/?}"
	write_state || die "QEMU cannot save the guest: ${answer//[^ -~]/?}"
	monitor '{"execute":"quit"}' || true
	wait "$qemu_pid" || true
	qemu_pid=
	sync "$folder/new"
	mv "$folder/new" "$folder/state"
	forget_saved
}

# write_state: waits until QEMU has saved all.
write_state() {
	local i
	monitor '{"execute":"qmp_capabilities"}' &&
		monitor '{"execute":"migrate","arguments":{"uri":"file:/dev/fdset/79"}}' && [[ $answer == '{"return"'* ]] || return
	for ((i = 0; i < 1000 * slow; i++)); do
		monitor '{"execute":"query-migrate"}' || true
		case $answer in
		*'"status": "completed"'*) return ;;
		*'"status": "failed"'*) return 1 ;;
		esac
		sleep 0.1
	done
	return 1
}

# space_left: prints how many MB the disk has for saved guests.
space_left() {
	df -Pm "$folder" | awk 'NR == 2 { print $4 }'
}

# forget_saved: removes the saved guests that were used longest ago, until few are left, and what has not been used for a month. A
# run that has opened one goes on.
forget_saved() {
	local old most
	most=$(($(space_left) / 1000))
	[ $most -le $saved_most ] || most=$saved_most
	[ $most -gt 0 ] || most=1
	find "$cache/warm" -mindepth 1 -maxdepth 1 -type d -empty -mtime +30 -delete
	find "$cache/warm" -mindepth 2 -maxdepth 2 -name state -mtime +30 -printf '%h\0' | xargs -0 -r rm -rf
	find "$cache/warm" -mindepth 2 -maxdepth 2 -name state -printf '%T@ %h\n' | sort -r -n | tail -n +$((most + 1)) |
		while read -r _ old; do
			rm -rf "$old"
		done
}
