#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The host's processes are killed while a guest program uses them: first the program's mirror, then
# qcu-device as a whole. The program gets an error and never hangs. After the mirror is killed, the next
# program runs. After qcu-device is killed, the VM still runs.
#
# The guest asks for each action with a line "host: ACTION" and goes on when it reads an answer.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{sleeper,first_call,vector_add,managed_random}
guest_script "$tmp/script" <<'END'
# ended PID: true if the process ends within 20 s. Otherwise it hangs.
ended() {
	_tries=0
	while [ -d "/proc/$1" ] && [ $_tries -lt $((400 * slow)) ]; do
		case $(cat "/proc/$1/stat" 2>/dev/null) in
		*') Z '*) break ;;
		esac
		_tries=$((_tries + 1))
		usleep 50000
	done
	[ $_tries -lt $((400 * slow)) ]
}

busy() {
	[ -p /tmp/never ] || mkfifo /tmp/never
	# Remove the output of the last program.
	: >/tmp/out
	sleeper busy <>/tmp/never >/tmp/out 2>&1 &
	pid=$!
	until_true grep -q ready /tmp/out
}

# result CODE...: the test passes if the program ends with one of the codes.
result() {
	if ! ended $pid; then
		kill -9 $pid
		cat /tmp/out >>$log
		fail 'it hangs'
		return
	fi
	wait $pid
	rc=$?
	cat /tmp/out >>$log
	for code in "$@"; do
		[ $rc -ne "$code" ] || {
			pass
			return
		}
	done
	fail "exit code $rc, expected one of: $*"
}

begin mirror-per-session
mkfifo /tmp/in.1 /tmp/in.2
sleeper </tmp/in.1 >/tmp/1 2>&1 &
exec 3>/tmp/in.1
sleeper </tmp/in.2 >/tmp/2 2>&1 &
exec 4>/tmp/in.2
until_true grep -q ready /tmp/1
until_true grep -q ready /tmp/2
ask mirrors-2
two=$answer
exec 3>&- 4>&-
wait
ask mirrors-0
[ "$two $answer" = '2 0' ] && pass || fail "mirrors: $two with two programs, $answer with none"

for round in 1 2; do
	begin mirror-killed-$round
	busy
	ask kill-mirrors
	result 46
	expect next-program-runs-$round 0 vector_add
done

# While managed memory moves. What the GPU has written is lost; the program is told, and ends.
moving() {
	stat moved_down_bytes
	[ "$value" -gt 0 ]
}
begin mirror-killed-moving
managed_random 1000000 3 s >/tmp/out 2>&1 &
pid=$!
until_true moving
ask kill-mirrors
result 1
expect next-program-runs-moving 0 vector_add

begin device-killed
busy
ask kill-device
result 46

begin device-gone
first_call 100 >>$log 2>&1
rc=$?
if ! grep -q 'qcu-device' $log; then
	fail 'the library does not say where to look'
elif [ $rc -ne 0 ]; then
	fail "exit code $rc"
else
	pass
fi

begin module-unloads-without-device
rmmod qcuda >>$log 2>&1 && pass || fail 'rmmod failed'
echo 'host: done'
sleep 100000 # the launcher ends the VM
END

mkfifo "$tmp/in" "$tmp/out"
TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--timeout 150 "${with[@]}" <"$tmp/in" >"$tmp/out" 2>&1 &
launcher=$!
exec 3>"$tmp/in" 4<"$tmp/out"
stopped=
while IFS= read -r -t $((120 * slow)) line <&4; do
	echo "$line"
	case $line in
	'host: mirrors-'*)
		# Waits for that many.
		for ((i = 0; i < 200 * slow; i++)); do
			[ "$(at_work | wc -l)" -ne "${line#*mirrors-}" ] || break
			sleep 0.1
		done
		at_work | wc -l >&3
		;;
	'host: kill-mirrors')
		# shellcheck disable=SC2046
		kill -9 $(mirrors)
		echo 'done' >&3
		;;
	'host: kill-device')
		# Stop the launcher, which would end the VM at once: this test is about what the guest sees.
		kill -STOP $launcher
		stopped=1
		# shellcheck disable=SC2046
		kill -9 $(device_main)
		echo 'done' >&3
		;;
	'host: done')
		kill -CONT $launcher
		stopped=
		;;
	esac
done
[ -z "$stopped" ] || kill -CONT $launcher
wait $launcher
rc=$?
exec 3>&- 4<&-
if [ $rc -eq 125 ]; then
	echo '@ok launcher-says-so'
else
	echo "@FAIL launcher-says-so exit code $rc, expected 125"
fi
scan_klog
