#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# How calls wait for the host: how many notifications, interrupts and sleeps one call needs, with two
# processors and with one; signals; and a host that does not answer, because its mirror is stopped. The
# guest asks the host to stop mirrors with a line "host: stop-mirrors" and goes on when it reads an
# answer.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{sleeper,vector_add} "$tools/wait_counts"
guest_script "$tmp/script" <<'END'
for test in sleeping spinning asked posted threads totals signals copies; do
	expect "$test" 0 wait_counts "$test"
done

busy() {
	[ -p /tmp/never ] || mkfifo /tmp/never
	# Remove the output of the last program.
	: >/tmp/out
	sleeper busy <>/tmp/never >/tmp/out 2>&1 &
	pid=$!
	until_true grep -q ready /tmp/out
}

stop_mirrors() {
	echo 'host: stop-mirrors'
	read -r answer
}

# gone SECONDS: returns whether the program ends in that time. Sets $rc to its exit code, and $took to
# the time in hundredths of a second.
gone() {
	clock
	_began=$ticks
	while [ -d "/proc/$pid" ] && [ $((ticks - _began)) -lt $(($1 * 100)) ]; do
		case $(cat "/proc/$pid/stat" 2>/dev/null) in
		*') Z '*) break ;;
		esac
		usleep 20000
		clock
	done
	took=$((ticks - _began))
	[ $took -lt $(($1 * 100)) ] || return 1
	wait $pid
	rc=$?
	cat /tmp/out >>$log
}

begin kill-9-while-the-host-hangs
busy
stop_mirrors
usleep 200000
kill -9 $pid
if ! gone $((5 * slow)); then
	fail 'it does not die'
elif [ $rc -ne 137 ]; then
	fail "exit code $rc"
else
	pass
fi

# Without a limit for answers, the program does not end by itself.
begin no-answer-and-no-limit
busy
stop_mirrors
if gone 4; then
	fail "ended with $rc"
else
	kill -9 $pid
	wait $pid
	pass
fi

begin no-answer-in-time
echo 2 >/sys/module/qcuda/parameters/answer_timeout
busy
stop_mirrors
if ! gone $((15 * slow)); then
	kill -9 $pid
	fail 'it hangs'
elif [ $rc -ne 46 ]; then
	fail "exit code $rc, expected 46"
elif [ $took -lt 150 ]; then
	fail "after $took hundredths of a second"
else
	pass
fi
echo 0 >/sys/module/qcuda/parameters/answer_timeout
expect next-program-runs 0 vector_add
END

mkfifo "$tmp/in" "$tmp/out"
TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--timeout 150 "${with[@]}" <"$tmp/in" >"$tmp/out" 2>&1 &
launcher=$!
exec 3>"$tmp/in" 4<"$tmp/out"
while IFS= read -r -t $((120 * slow)) line <&4; do
	echo "$line"
	case $line in
	'host: stop-mirrors')
		# shellcheck disable=SC2046
		kill -STOP $(mirrors)
		echo 'done' >&3
		;;
	esac
done
wait $launcher
rc=$?
exec 3>&- 4<&-
[ $rc -eq 0 ] || echo "@FAIL boot the guest ended with $rc"
# The driver must report the missing answer. This report is expected, so it is removed from the log.
grep -q 'has had no answer for 2 s' "$klogs/$script" && echo '@ok says-so 0.0' || echo '@FAIL says-so'
sed -i '/has had no answer for 2 s/d' "$klogs/$script"
scan_klog

with "$tools/wait_counts"
boot --cpus 1 "${with[@]}" <<'END'
for test in sleeping spinning asked posted; do
	expect "one-processor-$test" 0 wait_counts "$test"
done
END

# The mirror polls for commands for a second. The next one comes sooner, also from an emulated guest on a busy host.
[ "$(nproc)" -gt 1 ] || {
	echo '@skip polled the host has one processor'
	exit
}
with "$tools/wait_counts"
boot --device-arg --poll --device-arg 1000000 "${with[@]}" <<'END'
expect polled 0 wait_counts polled
END
