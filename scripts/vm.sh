# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by scripts/qcu
#
# Starts qcu-device and QEMU, carries the guest's input and output, waits for
# the program's exit code, and takes all down. Sourced by scripts/qcu.

device_pid='' qemu_pid='' stdin_pid='' stdout_pid='' stderr_pid=''

# Neither outlives this script, even if it is killed, nor hears the terminal's
# Ctrl-C before it has decided what to do.
guarded() {
	exec setpriv --pdeathsig KILL setsid "$@"
}

alive() {
	[ -n "$1" ] && kill -0 "$1" 2>/dev/null
}

# fail MESSAGE [LOG]: the VM or qcu-device broke; its last words help.
fail() {
	note "$1"
	if [ -n "${2:-}" ] && [ -s "$2" ]; then
		tail -n 20 "$2" | sed "s/\r$//; s/^/$self:   /" >&"$notes"
	fi
	save_klog
	exit 125
}

# QEMU is gone before the program's end: its own fault, or the guest's kernel.
crashed() {
	[ ! -s "$tmp/qemu.log" ] || fail 'QEMU has ended' "$tmp/qemu.log"
	grep -a -E 'Kernel panic|BUG: |Oops|RIP: 0010' "$tmp/console" >"$tmp/why" || cp "$tmp/console" "$tmp/why"
	fail 'the guest has crashed (--klog FILE saves all that its kernel said)' "$tmp/why"
}

save_klog() {
	[ -n "$klog" ] || return 0
	if [ -s "$tmp/klog" ]; then
		cat "$tmp/klog" >"$klog"
	else
		tr -d '\r' <"$tmp/console" >"$klog" 2>/dev/null || true
	fi
}

# stop PID: asks, waits three seconds, then insists; the group goes with it.
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
	# With QEMU gone these have come to their end, unless it never opened them.
	[ -z "$stdout_pid" ] || kill "$stdout_pid" 2>/dev/null || true
	[ -z "$stderr_pid" ] || kill "$stderr_pid" 2>/dev/null || true
	wait 2>/dev/null || true
}

# From here on children are killed, and bash would tell the user about each.
hush() {
	[ "$notes" = 2 ] || return 0
	exec {notes}>&2 2>>"$tmp/shell.log"
}

start_device() {
	local cmd=("$device" --socket "$tmp/qcu.sock" --gpu "$gpu" --map "$map" --sessions "$sessions")
	[ -z "$verbose" ] || cmd+=(--verbose)
	hush
	at_exit stop_all
	(guarded "${cmd[@]}" "${device_args[@]}" </dev/null >"$tmp/device.log" 2>&1) &
	device_pid=$!
}

await_device() {
	for _ in {1..1500}; do
		[ ! -S "$tmp/qcu.sock" ] || return 0
		alive "$device_pid" || break
		sleep 0.02
	done
	if alive "$device_pid"; then
		fail 'qcu-device does not open its socket' "$tmp/device.log"
	fi
	note 'qcu-device does not start'
	tail -n 20 "$tmp/device.log" >&"$notes"
	exit 2
}

# A value inside a QEMU option.
comma() {
	printf '%s' "${1//,/,,}"
}

# What the kernel need not look for, and nothing on the console below a warning.
kernel_args=(
	console=ttyS0 quiet loglevel=5 log_buf_len=1M panic=-1 mitigations=off nokaslr
	tsc=reliable no_timer_check cryptomgr.notests random.trust_cpu=on audit=0
	rcupdate.rcu_expedited=1 8250.nr_uarts=1
)

start_vm() {
	local q=("$qemu_dir/bin/qemu-system-x86_64") t
	# An emulated CPU has no steady speed to calibrate against.
	[ "$accel" = kvm ] || kernel_args+=(lpj=4000000)
	t=$(comma "$tmp")
	hush
	at_exit stop_all
	[ -z "$use_device" ] || await_device
	q+=(
		-nodefaults -no-user-config -display none -no-reboot
		-machine "q35,memory-backend=ram,sata=off,smbus=off,usb=off,vmport=off,hpet=off"
		-object "memory-backend-memfd,id=ram,size=${mem_mb}M,share=on" -m "${mem_mb}M"
		-smp "$cpus"
		-kernel "$guest_dir/vmlinux" -initrd "$tmp/initrd" -append "${kernel_args[*]}"
		-serial "file:$t/console"
		-chardev stdio,id=mon,signal=off -mon chardev=mon,mode=control
		-device virtio-serial-pci,max_ports=8
		-chardev "file,id=in,path=/dev/null,input-path=$t/in"
		-chardev "file,id=out,path=$t/out" -chardev "file,id=err,path=$t/err"
		-chardev file,id=status,path=/dev/fdset/1,append=on
		-chardev "file,id=klog,path=$t/klog"
	)
	local nr=0 port
	for port in in out err status klog; do
		nr=$((nr + 1))
		q+=(-device "virtserialport,chardev=$port,nr=$nr,name=qcu.$port")
	done
	if [ "$accel" = kvm ]; then
		q+=(-accel kvm -cpu host)
	else
		# One thread for all CPUs: with one for each, QEMU 10.0 now and then dies of its
		# own assertion (iotlb_to_section) while Linux moves the BARs of PCI devices.
		# Without erms and fsrm: with them Linux clears and copies pages by string
		# instructions on bytes, which emulation does one by one, three times slower.
		q+=(-accel tcg,thread=single -cpu max,-erms,-fsrm)
	fi
	if [ -n "$share" ]; then
		q+=(-fsdev "local,id=share,path=$(comma "$share"),security_model=none,multidevs=remap"
			-device virtio-9p-pci,fsdev=share,mount_tag=qcu)
	fi
	if [ -n "$use_device" ]; then
		q+=(-chardev "socket,id=qcu,path=$t/qcu.sock"
			-device "virtio-qcuda-pci,chardev=qcu,sessions=$sessions")
	fi

	mkfifo "$tmp"/{in,out,err,status,mon.in,mon.out}
	: >"$tmp/klog"
	# The data pipes meet their other end when QEMU opens it.
	cat "$tmp/out" &
	stdout_pid=$!
	cat "$tmp/err" >&"$notes" &
	stderr_pid=$!
	{ exec {user_in}<&0; } 2>/dev/null || exec {user_in}</dev/null
	(exec cat <&"$user_in" >"$tmp/in") 2>/dev/null &
	stdin_pid=$!
	exec {user_in}<&-
	# Only QEMU holds the writing end of the status pipe: its death is the end of file.
	local both write
	exec {both}<>"$tmp/status"
	exec {status}<"$tmp/status" {write}>"$tmp/status" {both}>&-
	exec {monitor_in}<>"$tmp/mon.in" {monitor_out}<>"$tmp/mon.out"
	launched=${EPOCHREALTIME/./}
	(guarded "${q[@]}" -add-fd "fd=$write,set=1" "${qemu_args[@]}" \
		<"$tmp/mon.in" >"$tmp/mon.out" 2>"$tmp/qemu.log") &
	qemu_pid=$!
	exec {write}>&-
}

# monitor COMMAND: sends it, leaves its answer in $answer.
monitor() {
	printf '%s\n' "$1" >&"$monitor_in"
	while IFS= read -r -t 5 -u "$monitor_out" answer; do
		[[ $answer == '{"return"'* || $answer == '{"error"'* ]] && return
	done
	return 1
}

# The guest has handed all its output to QEMU, but a slow reader may still hold
# QEMU up. A port is idle when it is not throttled in two rounds of its main loop.
drain() {
	local idle=0
	monitor '{"execute":"qmp_capabilities"}' || return 0
	while [ $idle -lt 2 ]; do
		monitor '{"execute":"human-monitor-command","arguments":{"command-line":"info qtree"}}' || return 0
		if [[ $answer == *'throttle on'* ]]; then
			idle=0
			alive "$stdout_pid" && alive "$stderr_pid" || return 0
			sleep 0.05
		else
			idle=$((idle + 1))
		fi
	done
}

check_health() {
	if [ -n "$use_device" ] && ! alive "$device_pid"; then
		fail 'qcu-device has died' "$tmp/device.log"
	fi
	# As the program would have got SIGPIPE here. When both are at their end, it
	# is QEMU that is ending; give it time to.
	if ! alive "$stdout_pid"; then
		ending=$((ending + 1))
		alive "$stderr_pid" || [ $ending -gt 25 ] || return 0
		say 'nobody reads the output any more'
		exit 141
	fi
	if [ "$timeout" -gt 0 ] && [ $((${EPOCHREALTIME/./} - launched)) -ge $((timeout * 1000000)) ]; then
		note "ended after $timeout s"
		save_klog
		exit 124
	fi
	if [ -z "$running" ] && [ $((${EPOCHREALTIME/./} - launched)) -ge 120000000 ]; then
		fail 'the guest does not start within 120 s' "$tmp/console"
	fi
}

# The VM's normal end: QEMU first, then the output that it left in the pipes,
# then qcu-device, which ends by itself when QEMU does, and whose exit code counts.
finish_vm() {
	local code=0
	drain
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
	save_klog
	if [ -n "$use_device" ]; then
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
}

run_vm() {
	local line part='' code
	running='' ending=0
	while :; do
		if IFS= read -r -t 0.2 -u "$status" line; then
			line=$part$line
			part=
			case $line in
			run)
				running=1
				say "the program starts after $(((${EPOCHREALTIME/./} - launched) / 1000)) ms"
				;;
			exit\ *)
				code=${line#exit }
				break
				;;
			fail\ *)
				sleep 0.1
				fail "the guest: ${line#fail }" "$tmp/klog"
				;;
			esac
		else
			# More than 128: only the time was up, perhaps in the midst of a line.
			[ $? -gt 128 ] || crashed
			part+=$line
			check_health
		fi
	done
	finish_vm
	if [ "$code" -gt 128 ]; then
		say "the program was ended by signal $((code - 128))"
	fi
	exit "$code"
}
