#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Sessions are opened and closed: several at once, more than there are queues, and some that end by a
# kill or a crash. The module cannot be unloaded while a session is open, and can be unloaded and
# loaded again when none is.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{sleeper,crash,first_call,vector_add,matmul,async_copies,big_copies,illegal_access,out_of_memory,ipc_killed}
boot --sessions 3 "${with[@]}" <<'END'
# hold N [busy]: starts a program whose session stays open until release N. release sets $rc to the
# program's exit code.
hold() {
	mkfifo "/tmp/in.$1"
	sleeper $2 <"/tmp/in.$1" >"/tmp/out.$1" 2>&1 &
	eval "pid_$1=$!"
	case $1 in
	1) exec 3>"/tmp/in.1" ;;
	2) exec 4>"/tmp/in.2" ;;
	3) exec 5>"/tmp/in.3" ;;
	esac
	until_true grep -q ready "/tmp/out.$1"
}

release() {
	# Send a line. Closing the pipe gives no end of file, because later sleepers have inherited the pipe.
	case $1 in
	1)
		echo >&3
		exec 3>&-
		;;
	2)
		echo >&4
		exec 4>&-
		;;
	3)
		echo >&5
		exec 5>&-
		;;
	esac
	eval "wait \$pid_$1"
	rc=$?
	cat "/tmp/out.$1" >>$log
	rm "/tmp/in.$1" "/tmp/out.$1"
}

expect first 0 vector_add

begin two-at-once
hold 1 busy
hold 2 busy
is sessions 2
two=$?
usleep 500000
release 1
first=$rc
release 2
if [ $two$first$rc = 000 ]; then
	pass
else
	fail "sessions $value, exit codes $first and $rc"
fi

begin three-programs-at-once
matmul >/tmp/1 2>&1 &
one=$!
async_copies >/tmp/2 2>&1 &
two=$!
big_copies >/tmp/3 2>&1
three=$?
wait $one
one=$?
wait $two
two=$?
cat /tmp/[123] >>$log
[ $one$two$three = 000 ] && pass || fail "exit codes $one, $two, $three"

begin more-sessions-than-queues
hold 1
hold 2 busy
hold 3
is sessions 3 || echo "sessions: $value" >>$log
first_call 46 >>$log 2>&1
refused=$?
release 2
second=$rc
vector_add >>$log 2>&1
again=$?
release 1
first=$rc
release 3
if ! grep -q 'sessions of /dev/qcuda are in use' $log; then
	fail 'no clear sentence'
elif [ $refused$second$again$first$rc != 00000 ]; then
	fail "refused: $refused, others: $second $first $rc, next one: $again"
else
	pass
fi

begin fault-of-one-is-not-the-others
hold 1 busy
illegal_access >>$log 2>&1
bad=$?
usleep 200000
release 1
[ $bad$rc = 00 ] && pass || fail "the one with the fault: $bad, the other: $rc"

begin unload-refused-with-a-session
hold 1
rmmod qcuda >>$log 2>&1
refused=$?
release 1
[ $refused -ne 0 ] && [ $rc -eq 0 ] && [ -d /sys/module/qcuda ] && pass ||
	fail "rmmod ended with $refused, the session with $rc"

begin module-missing
rmmod qcuda >>$log 2>&1 || echo 'rmmod failed' >>$log
first_call 100 >>$log 2>&1
rc=$?
insmod /qcu/run/qcuda.ko >>$log 2>&1
if ! grep -q '/dev/qcuda is missing.*modprobe qcuda' $log; then
	fail 'the library does not say which module to load'
elif [ $rc -ne 0 ]; then
	fail "exit code $rc"
else
	pass
fi
expect after-load 0 vector_add

for round in 1 2; do
	begin unload-and-load-$round
	rmmod qcuda >>$log 2>&1 && insmod /qcu/run/qcuda.ko >>$log 2>&1 && vector_add >>$log 2>&1 &&
		pass || fail 'see above'
done

begin no-permission
chmod 600 /dev/qcuda
su -s /bin/sh nobody -c '/qcu/bin/first_call 100' >>$log 2>&1
rc=$?
chmod 666 /dev/qcuda
if ! grep -q 'no permission to open /dev/qcuda' $log; then
	fail 'no clear sentence'
elif [ $rc -ne 0 ]; then
	fail "exit code $rc"
else
	pass
fi

begin as-an-ordinary-user
su -s /bin/sh nobody -c /qcu/bin/vector_add >>$log 2>&1 && pass || fail "exit code $?"

# The program is killed while it copies and computes, each round after a longer time.
mkfifo /tmp/never
for round in 1 2 3 4 5 6; do
	begin kill-9-$round
	sleeper busy <>/tmp/never >/tmp/out 2>&1 &
	pid=$!
	until_true grep -q ready /tmp/out
	usleep $((round * 30000))
	kill -9 $pid
	wait $pid
	rc=$?
	[ $rc -eq 137 ] && pass || fail "exit code $rc"
done

begin kill-9-of-three-at-once
hold 1 busy
hold 2 busy
hold 3
kill -9 $pid_1 $pid_2 $pid_3
wait $pid_1 $pid_2 $pid_3
exec 3>&- 4>&- 5>&-
pass

expect killed-while-others-use-its-memory 0 ipc_killed event
expect crash 139 crash
expect crash-again 139 crash
# The guest has 2 GiB of memory. The program gets an error, and the OOM killer does not run.
expect more-pinned-memory-than-there-is 0 out_of_memory 3
expect last 0 big_copies
END
