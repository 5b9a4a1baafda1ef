#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu-device is killed while its VM runs, and is started again at the same socket. Running programs get
# an error, whatever they are doing. Programs that start later work, without a restart of the VM.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/machine/machine.sh
. tests/vm/machine/machine.sh

with "$guest"/{sleeper,first_call,vector_add}
guest_script "$tmp/script" <<'END'
# hold NAME COMMAND...: starts a program that opens a session. Its process is in $pid_NAME.
hold() {
	_name=$1
	shift
	rm -f "/tmp/in.$_name"
	mkfifo "/tmp/in.$_name"
	: >"/tmp/out.$_name"
	"$@" <>"/tmp/in.$_name" >"/tmp/out.$_name" 2>&1 &
	eval "pid_$_name=$!"
	until_true grep -q ready "/tmp/out.$_name"
}

# result NAME: waits for the program and sets $rc to its exit code. A program that has not ended after
# 30 seconds (times $slow) hangs, and is killed.
result() {
	eval "_pid=\$pid_$1"
	_tries=0
	until [ ! -d "/proc/$_pid" ] || grep -q ') Z ' "/proc/$_pid/stat" || [ $_tries -ge $((600 * slow)) ]; do
		_tries=$((_tries + 1))
		usleep 50000
	done 2>/dev/null
	[ $_tries -lt $((600 * slow)) ] || kill -9 "$_pid"
	wait "$_pid"
	rc=$?
	cat "/tmp/out.$1" >>$log
}

expect first 0 vector_add

for round in 1 2; do
	begin killed-and-back-$round
	hold busy sleeper busy
	hold idle sleeper
	hold wait sleeper wait
	hold poll sleeper poll
	ask kill
	codes=
	for which in busy wait poll; do
		result $which
		codes="$codes$which $rc, "
	done
	# When the device is back, a session of the old device is still not valid.
	until_true first_call 0 >>$log 2>&1
	echo >/tmp/in.idle
	result idle
	codes="${codes}idle $rc"
	[ "$codes" = 'busy 46, wait 46, poll 46, idle 46' ] && pass || fail "exit codes: $codes"
	expect works-again-$round 0 vector_add
done

# The monitor's stop and cont must not start a device that the guest has not set up again.
ask kill-while-stopped
begin killed-while-the-vm-is-stopped
until_true first_call 0 >>$log 2>&1
vector_add >>$log 2>&1 && pass || fail "exit code $?"

# While there is no device, nothing waits for it.
begin none-for-a-while
ask kill-and-keep
until_true first_call 100 >>$log 2>&1 || fail 'it is not said that there is no device'
rmmod qcuda >>$log 2>&1 && insmod /qcu/run/qcuda.ko >>$log 2>&1
loaded=$?
timeout $((20 * slow)) first_call 100 >>$log 2>&1
without=$?
ask let-it-come
until_true first_call 0 >>$log 2>&1
[ $loaded$without$? = 000 ] && pass || fail "loading without a device: $loaded, then $without"
expect works-after-a-while 0 vector_add

# The device is killed often, at any point of the driver's work.
begin killed-often
for round in 1 2 3 4 5 6; do
	ask kill
	timeout $((20 * slow)) vector_add >>$log 2>&1
	[ $? -ne 124 ] || echo 'it hangs' >>$log
done
until_true first_call 0 >>$log 2>&1
[ $? -eq 0 ] && ! grep -q 'it hangs' $log && pass || fail 'see above'
expect works-after-all 0 vector_add

# The device does not answer for a while, and the driver gives it up.
begin silent-for-a-while
echo 2 >/sys/module/qcuda/parameters/timeout
ask silence
until_true first_call 46 >>$log 2>&1
silent=$?
ask speak
echo 30 >/sys/module/qcuda/parameters/timeout
until_true first_call 0 >>$log 2>&1
[ $silent$? = 00 ] && pass || fail 'see above'
expect works-after-silence 0 vector_add
END

host_silence() {
	kill -STOP "$(device_main)"
	echo silent
}

host_speak() {
	kill -CONT "$(device_main)"
	echo yes
}

machine_start "${with[@]}"
machine_serve
machine_end
