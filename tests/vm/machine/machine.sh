# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by lib.sh
#
# Functions for tests that act as the VM's host: they run the VM's qcu-device, start it again after it
# has ended, and control QEMU with its monitor. Sourced after lib.sh.
#
# The guest asks for each action with a line "host: ACTION" and goes on when it reads an answer.

device_log=$tmp/device.log
device_socket=$tmp/qcu.sock # where qcu-device listens; QEMU connects to qcu.sock
device_args=() machine_share=(--share "$tmp/share")

# Runs qcu-device, and starts it again whenever it ends, at the same socket, as a service manager would.
supervise() {
	local rc
	while :; do
		"$B/qcu-device/qcu-device" --socket "$device_socket" --sessions 8 "${device_args[@]}" \
			</dev/null >>"$device_log" 2>&1
		rc=$?
		echo $rc >>"$tmp/device.codes"
		while [ -e "$tmp/no-device" ]; do
			sleep 0.1
		done
		# Wait, so that a qcu-device that cannot start does not use a whole processor.
		[ $rc -eq 0 ] || [ $rc -gt 128 ] || sleep 1
	done
} 2>>"$tmp/supervise.log"

# machine_start OPTIONS...: starts scripts/qcu with OPTIONS, and with $tmp/script as the guest's script.
# The array $device_args has the options for qcu-device.
machine_start() {
	: >"$device_log"
	mkfifo "$tmp/in" "$tmp/out" "$tmp/qmp.in" "$tmp/qmp.out"
	exec {qmp_in}<>"$tmp/qmp.in" {qmp_out}<>"$tmp/qmp.out"
	supervise &
	supervisor=$!
	until [ -S "$tmp/qcu.sock" ] && [ -S "$device_socket" ]; do
		sleep 0.05
		kill -0 "$supervisor" || return
	done
	TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --timeout 400 --verbose \
		--no-device "${machine_share[@]}" \
		--qemu-arg -chardev --qemu-arg "pipe,id=qmp,path=$tmp/qmp" \
		--qemu-arg -mon --qemu-arg chardev=qmp,mode=control \
		--qemu-arg -chardev --qemu-arg "socket,id=qcu,path=$tmp/qcu.sock,reconnect-ms=200" \
		--qemu-arg -device --qemu-arg virtio-qcuda-pci,id=gpu,chardev=qcu,sessions=8 \
		"$@" <"$tmp/in" >"$tmp/out" 2>&1 &
	launcher=$!
	exec {to_guest}>"$tmp/in" {from_guest}<"$tmp/out"
}

# Calls host_ACTION for each line "host: ACTION ..." of the guest, and sends its output as the answer.
machine_serve() {
	local line deed
	while IFS= read -r -t $((200 * slow)) -u "$from_guest" line; do
		echo "$line"
		[[ $line == 'host: '* ]] || continue
		read -r _ deed line <<<"$line"
		# Before this command the monitor accepts no others, and reports no events.
		[ -n "$qmp_greeted" ] || qmp qmp_capabilities
		qmp_greeted=1
		"host_$deed" "$line" >"$tmp/answer"
		cat "$tmp/answer" >&"$to_guest"
	done
}

# Waits for the end of the VM, then ends qcu-device and checks its exit code.
machine_end() {
	local rc
	wait "$launcher"
	rc=$?
	[ $rc -eq 0 ] || echo "@FAIL boot the guest ended with $rc"
	until [ -S "$device_socket" ]; do
		sleep 0.1
	done
	kill "$supervisor"
	wait "$supervisor" 2>/dev/null
	# shellcheck disable=SC2046
	kill $(device_main)
	cat "$device_log"
	rc=$(tail -n 1 "$tmp/device.codes")
	if [ "$rc" = 0 ]; then
		echo '@ok device-ends-with-its-vm 0.0'
	else
		echo "@FAIL device-ends-with-its-vm exit code $rc"
	fi
	# Add the warnings of all boots, not only of the last one.
	cat "$tmp"/qcu.*/console >>"$klogs/$script"
	scan_klog
}

qmp_events=()
qmp_answer=''
qmp_greeted=''

# qmp_read [SECONDS]: reads one line from the monitor into $qmp_line, and keeps events.
qmp_read() {
	IFS= read -r -t $((${1:-30} * slow)) -u "$qmp_out" qmp_line || {
		echo 'the monitor is silent' >&2
		return 1
	}
	qmp_line=${qmp_line%$'\r'}
	[[ $qmp_line != '{"timestamp"'* ]] || qmp_events+=("$qmp_line")
}

# qmp COMMAND [ARGUMENTS]: sends a command and sets $qmp_answer. Returns false for an error.
qmp() {
	if [ $# -gt 1 ]; then
		printf '{"execute":"%s","arguments":%s}\n' "$1" "$2" >&"$qmp_in"
	else
		printf '{"execute":"%s"}\n' "$1" >&"$qmp_in"
	fi
	while qmp_read; do
		# shellcheck disable=SC2034 # for the scripts
		qmp_answer=$qmp_line
		[[ $qmp_line != '{"return"'* ]] || return 0
		[[ $qmp_line != '{"error"'* ]] || return 1
	done
	return 1
}

# qmp_event NAME: waits for an event. An event since the last qmp_forget counts too.
qmp_event() {
	local e
	for e in "${qmp_events[@]}"; do
		[[ $e != *"\"event\": \"$1\""* ]] || return 0
	done
	while qmp_read 60; do
		[[ $qmp_line != *"\"event\": \"$1\""* ]] || return 0
	done
	return 1
}

qmp_forget() {
	qmp_events=()
}

# until_host COMMAND...: waits up to 20 seconds for COMMAND to succeed.
until_host() {
	local i
	for ((i = 0; i < 200 * slow; i++)); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

no_mirrors() {
	[ -z "$(mirrors)" ]
}

no_process() {
	[ ! -e "/proc/$1" ]
}

# Actions of the host that more than one test uses. host_kill kills qcu-device, which starts again at
# once.
host_kill() {
	local main
	main=$(device_main)
	kill -9 "$main"
	until_host no_process "$main"
	echo killed
}

# host_kill-and-keep kills qcu-device, which starts again only after host_let-it-come.
host_kill-and-keep() {
	: >"$tmp/no-device"
	host_kill
}

host_let-it-come() {
	rm "$tmp/no-device"
	echo yes
}

# True when qcu-device is running and QEMU has connected to it: then the socket's file is gone.
is_connected() {
	[ -n "$(device_main)" ] && [ ! -S "$tmp/qcu.sock" ]
}

# host_kill-while-stopped: the monitor's stop and cont, too.
host_kill-while-stopped() {
	qmp stop
	host_kill >/dev/null
	until_host is_connected
	qmp cont
	qmp stop
	qmp cont
	echo yes
}
