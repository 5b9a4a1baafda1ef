# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# Starts qcu-device and QEMU, carries the guest's input and output, waits for
# the program's exit code, and stops everything. scripts/qcu sources this file.

device_pid='' qemu_pid='' stdin_pid='' stdout_pid='' stderr_pid='' log_pids=()

# All time limits are multiplied by this number, because a debug kernel is slow.
slow=${QCU_SLOW:-1}

# guarded COMMAND...: runs qcu-device or QEMU. The process ends with this script, even
# if the script is killed. It does not receive the terminal's Ctrl-C: this script
# receives it and decides what to do.
guarded() {
	mortal setsid "$@"
}

# mortal COMMAND...: the process ends with this script, but receives the terminal's signals as this
# script does.
mortal() {
	# shellcheck disable=SC2016
	exec setpriv --pdeathsig KILL sh -c '[ "$PPID" -eq "$0" ] && exec "$@"' $$ "$@"
}

# confined COMMAND...: runs QEMU with only the rights that it needs. QEMU serves the
# user's folder to a guest that may be hostile: docs/launcher.md.
confined() {
	local rights=(--no-new-privs) files=() f
	# Root may still use files that others own, as without a guest, but cannot change a file's owner.
	[ $EUID -ne 0 ] || rights+=("--bounding-set=-all,+dac_override,+fowner" --inh-caps=-all)
	# The user's own QEMU arguments may name any file, so with them there is no list of files.
	[ ${#qemu_args[@]} -gt 0 ] || files=(
		--read /usr --read /bin --read /lib --read /lib64 --read /etc/ld.so.cache
		--read /etc/localtime --read /dev/urandom --write /dev/null --write /dev/kvm
		--read "$qemu_files" ${guest_dir:+--read "$guest_dir"} --write "$tmp" ${share:+--share "$share"}
		"${disk_files[@]}" ${seed:+--read "$seed"} ${packages:+--read "$packages"}
	)
	if [ ${#files[@]} -gt 0 ]; then
		confine_volumes
		mapfile -t -O ${#files[@]} files < <(vulkan_files && vulkan_starts)
	fi
	vulkan_environment
	# With the root /, the guest would see /sys through QEMU, which does without, too.
	[ ${#files[@]} -eq 0 ] || [ "$other_root" = / ] || files+=(--read /sys)
	# Of the program's root, QEMU may read what is stored there, not what stands for the running host.
	if [ ${#files[@]} -gt 0 ] && [ -n "$other_root" ]; then
		files+=(--list "$other_root")
		while IFS= read -r -d '' f; do
			files+=(--read "$f")
		done < <(find "${other_root%/}/" -mindepth 1 -maxdepth 1 \( -type d -o -type f \) \
			! -name dev ! -name proc ! -name run ! -name sys -print0)
	fi
	umask "$user_umask"
	[ -n "$sandbox" ] || guarded "${to_network[@]}" "$@"
	if [ -n "$verbose" ] && [ "$("$confine" --version-of-landlock)" -lt 2 ]; then
		note "this kernel has no Landlock: QEMU is kept from no file that $(id -un) may open"
	fi
	guarded "${to_network[@]}" setpriv "${rights[@]}" "$confine" "${files[@]}" "$@"
}

alive() {
	[ -n "$1" ] && kill -0 "$1" 2>/dev/null
}

# A guest can make its host processes write logs without end. So a log keeps at most
# this many bytes of the beginning and, once the writer has ended, of the end.
log_max=1048576

# keep FILE: reads everything to the end, so that the writer never waits. The
# beginning is in FILE at once, for a reader that follows the log.
keep() {
	stdbuf -o0 head -c $log_max >"$1" || true
	tail -c $log_max >"$1.end"
}

# leave_out_sockets: passes on what QEMU says. Lines about special files that the guest wants to make in the shared
# folder (-trace v9fs_mknod) are left out. The user hears of the first socket, because a program may wait for ever
# for what it expects from it.
leave_out_sockets() {
	tee >(
		grep -a -q -m 1 -E '^v9fs_mknod .* mode (49[0-9]{3}|5[0-2][0-9]{3}|53[0-2][0-9]{2}) ' &&
			note 'no socket can be made in the shared folder: a program that needs one must run in another, such as /tmp'
		cat >/dev/null
	) | grep -a --line-buffered -v '^v9fs_mknod '
}

# log_pipe NAME [FILTER]: makes the pipe NAME.pipe in the temporary folder. keep writes what
# comes out of it, through the filter, to the log NAME. Only keep writes files, and it is what gets killed.
log_pipe() {
	mkfifo "$tmp/$1.pipe"
	if [ -n "${2:-}" ]; then
		keep "$tmp/$1" < <("$2" <"$tmp/$1.pipe") >/dev/null 2>&1 &
	else
		keep "$tmp/$1" <"$tmp/$1.pipe" >/dev/null 2>&1 &
	fi
	log_pids+=($!)
}

# whole LOG: prints all that was kept of LOG.
whole() {
	cat "$1" 2>/dev/null || true
	[ -s "$1.end" ] || return 0
	[ "$(stat -c %s "$1.end")" -lt $log_max ] || printf '\n[... left out ...]\n'
	cat "$1.end"
}

# tell MESSAGE [FILE]: prints MESSAGE and the last lines of FILE, without control characters, which
# a terminal would obey.
tell() {
	note "$1"
	[ -z "${2:-}" ] || tail -n 20 "$2" | tr -d '\r' | tr -c '\t\n -~' '?' | cut -c 1-300 |
		sed "s/^/$self:   /" >&"$notes" || true
}

# The terminal hands over each key as it is typed while a shell of the guest has it. cook gives it back.
terminal_was=''
remember_terminal() {
	terminal_was=$(stty -g 2>/dev/null) || true
}

raw() {
	[ -n "$interactive" ] || return 0
	remember_terminal
	at_exit cook
	stty raw -echo
}

cook() {
	[ -z "$terminal_was" ] || stty "$terminal_was"
	terminal_was=
}

# fail MESSAGE [LOG]: the VM or qcu-device failed. Prints the end of its LOG, saves the kernel log
# and ends with exit code 125.
fail() {
	cook
	end_logs
	[ -z "${2:-}" ] || whole "$2" >"$tmp/why"
	tell "$1" ${2:+"$tmp/why"}
	save_klog
	exit 125
}

# QEMU has ended before the program: because of QEMU's own error, or because the guest's kernel crashed.
crashed() {
	end_logs
	[ ! -s "$tmp/qemu.log" ] || fail 'QEMU has ended' "$tmp/qemu.log"
	whole "$tmp/console" >"$tmp/said"
	grep -a -E 'Kernel panic|BUG: |Oops|RIP: 0010' "$tmp/said" >"$tmp/panic" || mv "$tmp/said" "$tmp/panic"
	fail 'the guest has crashed (--klog FILE saves all that its kernel said)' "$tmp/panic"
}

save_klog() {
	[ -n "$klog" ] || return 0
	if [ -s "$tmp/klog" ]; then
		whole "$tmp/klog" >"$klog"
	else
		whole "$tmp/console" | tr -d '\r' >"$klog"
	fi
}

# Ends all processes that write logs, so that the logs are complete.
end_logs() {
	local pid log x
	[ -z "$qemu_pid" ] || kill -KILL "$qemu_pid" 2>/dev/null || true
	stop "$device_pid"
	for log in "$tmp"/*.pipe; do
		exec {x}<>"$log" {x}>&- # ends a reader whose writer never opened the pipe; else no effect
	done
	for _ in {1..150}; do
		for pid in "${log_pids[@]}"; do
			! alive "$pid" || {
				sleep 0.02
				continue 2
			}
		done
		break
	done
	log_pids=()
}

# stop PID: sends SIGTERM, waits up to three seconds, then sends SIGKILL to the process group.
stop() {
	local pid=$1
	[ -n "$pid" ] || return 0
	kill -TERM "$pid" 2>/dev/null || true
	for _ in {1..150}; do
		alive "$pid" || break
		sleep 0.02
	done
	kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true
}

stop_all() {
	[ -z "$qemu_pid" ] || kill -KILL "$qemu_pid" 2>/dev/null || true
	[ -z "$stdin_pid" ] || kill "$stdin_pid" 2>/dev/null || true
	stop "$device_pid"
	# QEMU has ended, so these have reached the end of their pipes, unless QEMU never opened the pipes.
	[ -z "$stdout_pid" ] || kill "$stdout_pid" 2>/dev/null || true
	[ -z "$stderr_pid" ] || kill "$stderr_pid" 2>/dev/null || true
	[ ${#log_pids[@]} -eq 0 ] || kill "${log_pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
}

# From here on children are killed, and bash would print a message about each one. Send the shell's
# messages to a file, and keep the notes on the user's standard error.
hush() {
	[ "$notes" = 2 ] || return 0
	exec {notes}>&2 2>>"$tmp/shell.log"
}

# name_of PATH: prints a name for the VM that qcu-device accepts.
name_of() {
	local n=${1##*/}
	n=${n//[^A-Za-z0-9._+-]/-}
	printf '%s' "${n:0:63}"
}

start_device() {
	if [ -n "$job_folder" ]; then
		connect_job
		return
	fi
	local cmd=("$device" --socket "$tmp/qcu.sock" --gpu "$gpu" --map "$map" --sessions "$sessions")
	[ -z "$verbose" ] || cmd+=(--verbose)
	cmd+=(--name "$(name_of "${name:-${disk:-${script:-${args[0]}}}}")")
	hush
	at_exit stop_all
	log_pipe device.log
	(guarded "${cmd[@]}" "${device_args[@]}" </dev/null >"$tmp/device.log.pipe" 2>&1) &
	device_pid=$!
}

await_device() {
	for _ in {1..1500}; do
		[ ! -S "$tmp/qcu.sock" ] || return 0
		[ -z "$job_folder" ] || die "the job's devices are gone from $job_folder"
		alive "$device_pid" || break
		sleep 0.02
	done
	if alive "$device_pid"; then
		fail 'qcu-device does not open its socket' "$tmp/device.log"
	fi
	end_logs
	tell 'qcu-device does not start' "$tmp/device.log"
	exit 2
}

# Carries the guest's output from the pipe $0, also to $2 if that is given. If it cannot be written, for example on a
# full disk, the reason is written to $1, the rest is thrown away, and the program goes on. The exception: when nobody
# reads any more, SIGPIPE or EPIPE ends this process.
# shellcheck disable=SC2016
carry_output='
	trap "" XFSZ
	exec 3<"$0" 4>&1
	[ -z "$3" ] || : <"$3"
	why=$(setpriv --pdeathsig KILL ${2:+tee} ${2:-cat} <&3 2>&1 >&4) && exit
	code=$?
	[ $code -lt 128 ] || exit $code
	case $why in
	*"Broken pipe") exit 141 ;;
	esac
	echo "${why##*: }" >"$1"
	exec cat <&3 >/dev/null 4>&-'

# comma VALUE: quotes VALUE for use inside a QEMU option.
comma() {
	printf '%s' "${1//,/,,}"
}

# These arguments skip what the kernel need not look for, and keep messages below a
# warning off the console. The kernel's memory is at random addresses. Its text is
# not: the code that unpacks a kernel chooses that address, and this one is not packed.
kernel_args=(
	console=ttyS0 quiet loglevel=5 log_buf_len=1M panic=-1
	tsc=reliable no_timer_check cryptomgr.notests random.trust_cpu=on audit=0
	rcupdate.rcu_expedited=1 8250.nr_uarts=1
)

# measure_tsc: sets $khz to the speed of the time-stamp counter, if it can be told.
khz=
measure_tsc() {
	[ -n "$khz" ] || khz=$("${confine%confine}tsc") || true
}

# vm_args: sets $q to QEMU and its arguments. Those of a guest that is saved are those of the guests that go on from it,
# but for the names of files.
vm_args() {
	local t kernel=("${kernel_args[@]}") initrd=$tmp/initrd memory=memfd,share=on
	[ -z "$warm$warming" ] || initrd=$guest_dir/base.cpio
	# QEMU reads all memory to save it. Shared memory that nobody has used is made by that, private memory is not.
	[ -z "$warming" ] || memory=ram
	# An emulated CPU has no steady speed, so the kernel cannot calibrate against it. An
	# emulated CPU also does not speculate. The kernel's mitigations against speculation
	# are useless there, and make each system call slower. On a busy host it may stand still for
	# longer than the 20 seconds after which the kernel reports a lockup or a stall; it then reports them
	# after 300.
	if [ "$accel" != kvm ]; then
		kernel+=(lpj=4000000 mitigations=off rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=150)
		# Its time-stamp counter is the host's. On a busy host the kernel may measure a tenth of its speed, and then
		# the guest's clock runs ten times too fast.
		measure_tsc
		[ -z "$khz" ] || kernel+=("tsc_early_khz=$khz")
	fi
	t=$(comma "$tmp")
	q=("$qemu"
		-nodefaults -no-user-config -no-reboot
		-machine "q35,memory-backend=ram,sata=off,smbus=off,usb=off,vmport=off,hpet=off"
		-object "memory-backend-$memory,id=ram,size=${mem_mb}M" -m "${mem_mb}M"
		-smp "$cpus"
		-kernel "$guest_dir/vmlinux" -initrd "$initrd" -append "${kernel[*]}"
		-serial "file:$t/console.pipe"
		-chardev stdio,id=mon,signal=off -mon chardev=mon,mode=control
		-device virtio-serial-pci,max_ports=8
		-chardev "file,id=in,path=/dev/null,input-path=$t/in"
		-chardev "file,id=out,path=$t/out" -chardev "file,id=err,path=$t/err"
		-chardev file,id=status,path=/dev/fdset/1,append=on
		-chardev "file,id=klog,path=$t/klog.pipe"
	)
	display_args
	sandbox_args
	vulkan_args
	local nr=0 port
	for port in in out err status klog; do
		nr=$((nr + 1))
		q+=(-device "virtserialport,chardev=$port,nr=$nr,name=qcu.$port")
	done
	if [ "$accel" = kvm ]; then
		q+=(-accel kvm -cpu host)
	else
		# One thread for all CPUs: with one thread per CPU, QEMU 10.0 sometimes fails its
		# own assertion (iotlb_to_section) while Linux moves the BARs of PCI devices.
		# Without erms and fsrm: with them Linux clears and copies pages with string
		# instructions on bytes. Emulation runs these byte by byte, three times slower.
		q+=(-accel tcg,thread=single -cpu max,-erms,-fsrm)
	fi
	share_args
	warm_args
	network_args
	if [ -n "$use_device" ]; then
		q+=(-chardev "socket,id=qcu,path=$t/qcu.sock")
		# The general device gets the numbers that ours has by itself: docs/vm/qemu.md.
		if [ "$which" = system ]; then
			q+=(-device "vhost-user-test-device-pci,chardev=qcu,virtio-id=21,num_vqs=$((sessions + 1)),vq_size=512,config_size=64")
		else
			q+=(-device "virtio-qcuda-pci,chardev=qcu,sessions=$sessions")
		fi
	fi
}

# start_input: carries the user's input to the guest, as soon as QEMU opens the other end of the pipe.
start_input() {
	{ exec {user_in}<&0; } 2>/dev/null || exec {user_in}</dev/null
	# shellcheck disable=SC2016
	(mortal sh -c 'exec cat >"$0"' "$tmp/in" <&"$user_in") 2>/dev/null &
	stdin_pid=$!
	exec {user_in}<&-
}

start_vm() {
	local q log go='' both write saved=''
	hush
	at_exit stop_all
	[ -z "$use_device" ] || await_device
	vm_args
	start_hub
	mkfifo "$tmp"/{in,out,err,status,mon.in,mon.out}
	for log in console klog; do
		log_pipe "$log"
	done
	log_pipe qemu.log leave_out_sockets
	# Each of these processes waits in open() until QEMU opens the other end of its pipe.
	[ -z "$progress_pid" ] || { go=$tmp/go && mkfifo "$go"; }
	(mortal sh -c "$carry_output" "$tmp/out" "$tmp/out.lost" '' "$go") &
	stdout_pid=$!
	[ -z "$typed" ] || log_pipe said
	(mortal sh -c "$carry_output" "$tmp/err" "$tmp/err.lost" "${typed:+"$tmp/said.pipe"}" "$go") >&"$notes" &
	stderr_pid=$!
	[ -n "$warm$warming" ] || start_input
	# Only QEMU holds the writing end of the status pipe, so the end of QEMU is the end of file.
	exec {both}<>"$tmp/status"
	exec {status}<"$tmp/status" {write}>"$tmp/status" {both}>&-
	exec {monitor_in}<>"$tmp/mon.in" {monitor_out}<>"$tmp/mon.out"
	launched=${EPOCHREALTIME/./}
	open_saved
	([ -z "$input" ] || exec {input}>&-
	confined "${q[@]}" -add-fd "fd=$write,set=1" "${qemu_args[@]}" \
		<"$tmp/mon.in" >"$tmp/mon.out" 2>"$tmp/qemu.log.pipe") &
	qemu_pid=$!
	exec {write}>&-
	[ -z "$saved" ] || exec {saved}>&-
}

# The progress of the boot leaves the terminal, and the program's output may come.
show_output() {
	progress_end
	[ ! -p "$tmp/go" ] || exec {output_may_come}<>"$tmp/go"
}

# monitor COMMAND: sends COMMAND to QEMU's monitor and sets $answer to the answer.
monitor() {
	printf '%s\n' "$1" >&"$monitor_in"
	while IFS= read -r -t 5 -u "$monitor_out" answer; do
		[[ $answer == '{"return"'* || $answer == '{"error"'* ]] && return
	done
	return 1
}

# The guest has given all its output to QEMU, but QEMU may still wait for a slow
# reader. A port is idle when it is not throttled in two rounds of QEMU's main loop.
drain() {
	local idle=0
	monitor '{"execute":"qmp_capabilities"}' || return 0
	while [ $idle -lt 2 ]; do
		monitor '{"execute":"human-monitor-command","arguments":{"command-line":"info qtree"}}' || return 0
		if [[ $answer == *'throttle on'* ]]; then
			idle=0
			alive "$stdout_pid" && alive "$stderr_pid" || return 0
			check_time
			sleep 0.05
		else
			idle=$((idle + 1))
		fi
	done
}

check_time() {
	local limit=$((timeout * slow))
	if [ $limit -gt 0 ] && [ $((${EPOCHREALTIME/./} - launched)) -ge $((limit * 1000000)) ]; then
		cook
		note "ended after $limit s"
		end_logs
		save_klog
		exit 124
	fi
}

check_health() {
	checked=${EPOCHREALTIME/./}
	# If a saved guest does not go on, neither does the device, and run_vm boots another.
	if [ -n "$use_device" ] && [ -z "$job_folder" ] && { [ -z "$warm" ] || [ -n "$here" ]; } && ! alive "$device_pid"; then
		fail 'qcu-device has died' "$tmp/device.log"
	fi
	# The exit code of the output process says why it has ended. 0: QEMU has closed the pipe,
	# because it is ending. Anything else: nobody reads the output. Without a VM the program
	# would get SIGPIPE then.
	if [ -z "$stdout_code" ] && ! alive "$stdout_pid"; then
		stdout_code=0
		wait "$stdout_pid" || stdout_code=$?
	fi
	if [ "${stdout_code:-0}" -ne 0 ]; then
		say 'nobody reads the output any more'
		exit 141
	fi
	say_lost
	check_time
	if [ -z "$running" ] && [ $((${EPOCHREALTIME/./} - launched)) -ge $((slow * 120000000)) ]; then
		[ -z "$warm" ] || rm -f "$warm/state"
		fail "the guest does not start within $((slow * 120)) s" "$tmp/console"
	fi
}

# Says once that output could not be written.
say_lost() {
	[ -z "$said_lost" ] && [ -s "$tmp/out.lost" ] || return 0
	said_lost=1
	note "the output cannot be written: $(cat "$tmp/out.lost"); what the program says from here on is lost"
}

# The VM's normal end: first QEMU ends, then the output that is left in the pipes is
# read, then qcu-device ends. It ends by itself when QEMU does. Its exit code counts.
finish_vm() {
	local code=0
	drain
	cook
	monitor '{"execute":"quit"}' || true
	for _ in {1..250}; do
		alive "$qemu_pid" || break
		sleep 0.01
	done
	kill -KILL "$qemu_pid" 2>/dev/null || true
	wait "$qemu_pid" 2>/dev/null || true
	qemu_pid=
	wait "$stdout_pid" "$stderr_pid" 2>/dev/null || true
	stdout_pid='' stderr_pid=''
	say_lost
	await_hub
	if [ -n "$device_pid" ]; then
		for _ in {1..500}; do
			alive "$device_pid" || break
			sleep 0.02
		done
		! alive "$device_pid" || fail 'qcu-device does not end with its VM' "$tmp/device.log"
		wait "$device_pid" 2>/dev/null || code=$?
		kill -KILL -- "-$device_pid" 2>/dev/null || true
		device_pid=
		[ "$code" -eq 0 ] || fail "qcu-device ended with code $code" "$tmp/device.log"
	fi
	end_logs
	save_klog
}

run_vm() {
	local line part='' code rc
	running='' here='' stdout_code='' said_lost='' checked=$launched
	while :; do
		rc=0
		IFS= read -r -t 0.2 -n 1000 -u "$status" line || rc=$?
		[ $((${EPOCHREALTIME/./} - checked)) -lt 200000 ] || check_health
		if [ ${#part} -ge 1000 ] || [ ${#line} -ge 1000 ]; then
			fail 'the guest reports nonsense'
		fi
		if [ $rc -eq 0 ]; then
			line=$part$line
			part=
			case $line in
			here)
				[ -n "$warm" ] && [ -z "$here" ] || fail 'the guest reports nonsense'
				here=1
				start_held_input
				;;
			run)
				running=1
				show_output
				raw
				say "the program starts after $(((${EPOCHREALTIME/./} - launched) / 1000)) ms"
				;;
			exit\ *)
				code=${line#exit }
				[[ $code =~ ^(1?[0-9]{1,2}|2[0-4][0-9]|25[0-5])$ ]] || fail 'the guest reports nonsense'
				break
				;;
			fail\ *)
				line=${line#fail }
				fail "the guest: ${line//[^ -~]/?}" "$tmp/klog"
				;;
			esac
		else
			# More than 128 is only a timeout of read, perhaps in the middle of a line.
			if [ $rc -le 128 ]; then
				[ -n "$warm" ] && [ -z "$here" ] || crashed
				boot_after_all
				part='' checked=$launched
				continue
			fi
			part+=$line
		fi
	done
	show_output
	finish_vm
	if [ "$code" -gt 128 ]; then
		say "the program was ended by signal $((code - 128))"
	fi
	if [ "$code" -eq 137 ] && grep -a -q 'Out of memory: Killed process' < <(whole "$tmp/klog"); then
		note "the guest had too little memory for the program; --mem gives it more"
	fi
	[ "$code" -eq 0 ] || say_what_is_missing
	if [ "$code" -eq 0 ] && [[ -s $tmp/out.lost || -s $tmp/err.lost ]]; then
		code=125
	fi
	exit "$code"
}
