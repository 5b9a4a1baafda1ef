#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The VM shares the GPU by agreement with a program that keeps it busy. The VM's programs have the right results, in
# turns and when they are killed in the middle. qcu-device starts the broker, and a new one when that was killed.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

shares=$tmp/shares
broker() {
	pgrep -f -- "^qcu-share --folder $shares "
}
cleanup() {
	kill "$hog"
	pkill -f -- "^qcu-share --folder $shares "
	rm -rf "$tmp"
}

expect_host weight-without-a-broker 2 'need --share DIR' "$B/qcu-device/qcu-device" --socket "$tmp/s" --gpu soft --share none --weight 2
expect_host no-weight 2 'from 1 to 10000' "$B/qcu-device/qcu-device" --socket "$tmp/s" --weight 0
expect_host no-maximum 2 'from 1 to 100' "$B/qcu-device/qcu-device" --socket "$tmp/s" --max 101
expect_host no-class 2 'try batch or interactive' "$B/qcu-device/qcu-device" --socket "$tmp/s" --class slow
expect_host broker-without-a-gpu 2 'gpu NAME is wanted' "$B/qcu-device/qcu-share"
expect_host broker-of-a-path 2 'letters, digits' "$B/qcu-device/qcu-share" --gpu ../x
expect_host broker-that-is-not-there 1 'No such file' "$B/qcu-device/qcu-share" --folder "$shares" --gpu soft --status
expect_host folder-that-cannot-be 1 'share .*No such file' "$B/qcu-device/qcu-device" --socket "$tmp/s" --gpu soft --share "$tmp/none/shares"
# The folder of root's brokers is made when it is not there.
if [ "$(id -u)" -eq 0 ]; then
	expect_host memory-may-leave 0 'verified' "$qcu" run --gpu soft --device-arg --swap --device-arg 64M \
		--device-arg --swap-gpu --device-arg soft1:64M --device-arg --swap-file --device-arg "$tmp:64M" "$guest/vector_add"
fi

LD_LIBRARY_PATH=$B/loopback QCU_LOOPBACK_SHARE=$shares "$B/tests/loopback/hog" "$tmp/hog" 500000 1000000000 &
hog=$!
trap cleanup EXIT

# What the guest asks the host for, by files in the shared folder.
helper() {
	until [ -e "$tmp/share/kill" ]; do sleep 0.1; done
	kill -9 "$(broker)"
	until broker >/dev/null; do sleep 0.1; done
	touch "$tmp/share/killed"
	until [ -e "$tmp/share/ask" ]; do sleep 0.1; done
	"$B/qcu-device/qcu-share" --folder "$shares" --gpu soft --status >"$tmp/status"
	touch "$tmp/share/asked"
}
helper &

with "$guest"/{vector_add,streams_events,graphs,memory_pools,sleeper,illegal_access}
boot --device-arg --share --device-arg "$shares" --device-arg --weight --device-arg 300 --device-arg --class \
	--device-arg interactive "${with[@]}" <<END
share=$tmp/share
$(
	cat <<'GUEST'
for program in vector_add streams_events graphs memory_pools; do
	expect $program 0 $program
done
begin together
why=
for program in vector_add streams_events graphs memory_pools; do
	$program >$log.$program 2>&1 &
	eval "pid_$program=$!"
done
for program in vector_add streams_events graphs memory_pools; do
	eval "wait \$pid_$program" || why="$why $program: $?"
done
[ -z "$why" ] && pass || fail "$why"
expect gpu-fault 0 illegal_access 0
begin broker-killed
echo >$share/kill
until [ -e $share/killed ]; do usleep 50000; done
graphs >$log 2>&1 && pass || fail "exit code $?"
begin killed
why=
for n in 1 2 3; do
	streams_events >/dev/null 2>&1 &
	usleep 100000
	kill -9 $!
done
wait
vector_add >$log 2>&1 && pass || fail "exit code $?"
echo >$share/ask
until [ -e $share/asked ]; do usleep 50000; done
GUEST
)
END

expect_host vm-is-known 0 '^[^ ]+ weight 300 max 0 interactive .* gpu_ms [1-9]' cat "$tmp/status"
expect_host vm-is-gone 0 '^[0-9]+ weight 100 max 0 batch free ' bash -c "
	until [ \$($B/qcu-device/qcu-share --folder $shares --gpu soft --status | wc -l) = 1 ]; do sleep 0.1; done
	sleep 1
	$B/qcu-device/qcu-share --folder $shares --gpu soft --status"
