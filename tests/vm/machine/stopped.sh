#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# QEMU's monitor stops the VM and lets it go on. The VM's sessions go on too, whether they wait, are
# at work, or are opened and closed in between.
#
# The guest asks for each action with a line "host: ACTION" and goes on when it reads an answer.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{sleeper,vector_add,queries}
guest_script "$tmp/script" <<'END'
share=$1
expect first 0 vector_add
mkfifo /tmp/in.idle /tmp/in.busy

begin sessions-go-on
sleeper </tmp/in.idle >/tmp/idle 2>&1 &
idle=$!
exec 3>/tmp/in.idle
sleeper busy </tmp/in.busy >/tmp/busy 2>&1 &
busy=$!
exec 4>/tmp/in.busy
until_true grep -q ready /tmp/idle
until_true grep -q ready /tmp/busy
why=
for round in 1 2 3; do
	# When the driver no longer counts a session, nothing of its program is left on the host.
	until_true is sessions 2
	ask stop-once
	[ "$answer" = 'mirrors: the same' ] || why="$why; round $round: $answer"
	vector_add >>$log 2>&1 || why="$why; round $round: a new session ended with $?"
done
exec 3>&- 4>&-
wait $idle || why="$why; the idle session ended with $?"
wait $busy || why="$why; the busy session ended with $?"
cat /tmp/idle /tmp/busy >>$log
[ -z "$why" ] && pass || fail "${why#; }"

# A trace has the GPU's times on the guest's clock, which stands still while the VM is stopped. The GPU's clock goes on.
for deed in go-on stop-long; do
	begin traced-$deed
	: >/tmp/idle
	QCU_TRACE_FILE=$share/$deed.json sleeper </tmp/in.idle >/tmp/idle 2>&1 &
	idle=$!
	exec 3>/tmp/in.idle
	until_true grep -q ready /tmp/idle
	ask $deed
	exec 3>&-
	wait $idle && pass || fail "exit code $?"
done

# The whole host stands still, as in a suspend, while a call and a new session wait for answers. The guest's clock jumps by more than
# the driver waits for an answer. Nothing is given up: the device has not had this time, either.
begin host-sleeps
why=
# For the kernel's own limits the clock jumps, too. An emulated kernel takes this for no lockup: the launcher says so to it.
read -r clocksource </sys/devices/system/clocksource/clocksource0/current_clocksource
if [ "$clocksource" = kvm-clock ]; then
	echo 60 >/proc/sys/kernel/watchdog_thresh
else
	limit=$(cat /proc/sys/kernel/watchdog_thresh)
	[ "$limit" = 150 ] || why="$why; it reports a lockup after twice $limit s"
fi
echo 1 >/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress
echo $((5 * slow)) >/sys/module/qcuda/parameters/timeout
echo $((5 * slow)) >/sys/module/qcuda/parameters/answer_timeout
: >/tmp/busy
sleeper busy </tmp/in.busy >/tmp/busy 2>&1 &
busy=$!
exec 4>/tmp/in.busy
until_true grep -q ready /tmp/busy
ask stop-device
vector_add >>$log 2>&1 &
new=$!
# Both wait for the device, with these limits; later calls have the usual ones.
until_true grep -q ') D ' /proc/$new/stat
until_true grep -q ') [DS] ' /proc/$busy/stat
echo 0 >/sys/module/qcuda/parameters/answer_timeout
echo 30 >/sys/module/qcuda/parameters/timeout
clock
before=$ticks
ask sleep
clock
exec 4>&-
wait $new || why="$why; the new session ended with $?"
wait $busy || why="$why; the busy session ended with $?"
cat /tmp/busy >>$log
[ $((ticks - before)) -gt $((500 * slow)) ] || why="$why; the clock has not jumped"
[ -z "$why" ] && pass || fail "${why#; }"

ask stop-often
expect stopped-at-any-time 0 queries
ask stopped-enough
END

mkfifo "$tmp/in" "$tmp/out" "$tmp/qmp.in" "$tmp/qmp.out"
exec {qmp_in}<>"$tmp/qmp.in" {qmp_out}<>"$tmp/qmp.out"
TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--timeout 150 --qemu-arg -chardev --qemu-arg "pipe,id=qmp,path=$tmp/qmp" \
	--qemu-arg -mon --qemu-arg chardev=qmp,mode=control \
	"${with[@]}" "$tmp/share" <"$tmp/in" >"$tmp/out" 2>&1 &
launcher=$!

# qmp COMMAND: sends COMMAND to the monitor and waits for the answer.
qmp() {
	local line
	printf '{"execute":"%s"}\n' "$1" >&"$qmp_in"
	while IFS= read -r -t $((30 * slow)) -u "$qmp_out" line; do
		[[ $line != '{"return"'* ]] || return 0
	done
	echo "the monitor does not answer: $1"
	return 1
}

# stop_and_go SECONDS: stops the VM for that time.
stop_and_go() {
	qmp stop && sleep "$1" && qmp cont
}

# qemu: prints the process of this VM.
qemu() {
	local p
	for p in $(pgrep -f -- "$tmp/qcu"); do
		[[ $(cat "/proc/$p/comm") != qemu-system* ]] || echo "$p"
	done
}

before=''
exec 3>"$tmp/in" 4<"$tmp/out"
while IFS= read -r -t $((120 * slow)) line <&4; do
	echo "$line"
	case $line in
	'host: stop-once')
		[ -n "$before" ] || qmp qmp_capabilities
		before=$(at_work | sort)
		stop_and_go 0.5
		[ "$(at_work | sort)" = "$before" ] && answer=same || answer=others
		echo "mirrors: the $answer" >&3
		;;
	'host: go-on') echo 'yes' >&3 ;;
	'host: stop-long')
		stop_and_go 3
		echo 'yes' >&3
		;;
	'host: stop-device')
		# shellcheck disable=SC2046
		kill -STOP $(device_processes)
		echo 'yes' >&3
		;;
	'host: sleep')
		kill -STOP "$(qemu)"
		sleep $((5 * slow + 2))
		kill -CONT "$(qemu)"
		sleep 1 # the guest sees the jump before the device answers
		# shellcheck disable=SC2046
		kill -CONT $(device_processes)
		echo 'yes' >&3
		;;
	'host: stop-often')
		for _ in {1..10}; do
			stop_and_go 0.1 || break
			sleep 0.2
		done &
		often=$!
		echo 'begun' >&3
		;;
	'host: stopped-enough')
		wait "$often"
		echo 'yes' >&3
		;;
	esac
done
wait "$launcher"
rc=$?
exec 3>&- 4<&-
[ $rc -eq 0 ] || echo "@FAIL boot the guest ended with $rc"
scan_klog

# times NAME WHAT: the events of this trace are in order, and the GPU's are certain, or uncertain as all that lay before the stop.
times() {
	expect_host "times-$1" 0 "^$2\$" bash -c "scripts/trace --read $tmp/share/$1.json && python3 -c '
import json
events = [e for e in json.load(open(\"$tmp/share/$1.json\"))[\"traceEvents\"] if e.get(\"cat\") == \"gpu\"]
assert events
print(*sorted({\"uncertain\" if e[\"args\"].get(\"uncertain\") else \"certain\" for e in events}))'"
}
rm "$tmp/out" # expect_host makes a file of this name
times go-on certain
times stop-long uncertain
