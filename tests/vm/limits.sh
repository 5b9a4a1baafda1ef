#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The VM has a quota that is smaller than the GPU's memory. Programs see the quota, reach it, and go on.
# Tools that ask NVML see the quota, and what the programs of the VM use of it.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

expect_host smi-wrong-option 2 'usage: qcu-smi' "$B/qcu-library/qcu-smi" --query
expect_host smi-help 0 'Exit code: 0' "$B/qcu-library/qcu-smi" --help
expect_host smi-without-a-device 1 'no GPU that answers: The driver is not loaded' "$B/qcu-library/qcu-smi"

with "$guest"/{sleeper,device_query,out_of_memory,memory_pools,streams_events}
boot --device-arg --limit --device-arg vm-device-memory=512M --device-arg --limit --device-arg streams=64 \
	"${with[@]}" <<'END'
for program in device_query out_of_memory memory_pools streams_events; do
	expect $program 0 $program
done
begin quota
device_query | grep -q '512 MiB' && pass || fail "$(device_query | grep MiB)"

# smi PATTERN...: qcu-smi's output, as another user sees it, has a line for each pattern.
smi() {
	su -s /bin/sh nobody -c /qcu/bin/qcu-smi >$log 2>&1 || why="exit code $?"
	for _pattern; do
		grep -q -E -e "$_pattern" $log || why="$why no line like: $_pattern"
	done
}

# hold GATE: starts a sleeper, which ends when GATE is closed. Sets $pid.
hold() {
	mkfifo "/tmp/$1"
	sleeper <"/tmp/$1" >"/tmp/$1.said" &
	eval "exec $2>/tmp/$1"
	until grep -q ready "/tmp/$1.said"; do usleep 50000; done
	read -r _ pid <"/tmp/$1.said"
}

begin smi-without-programs
why=
smi '^qCUDA, CUDA 1[3-9]' '^0 .*software GPU +0 MiB +512 MiB +[0-9]+\.[0-9]' '^GPU +PID +MEMORY +PROGRAM$'
[ "$(tail -n 1 $log)" = "$(grep PROGRAM $log)" ] || why="$why a program is in the list"
[ -z "$why" ] && pass || fail "$why"

begin smi-programs
why=
hold one 5
one=$pid
hold two 6
smi '^0 .*software GPU +2 MiB +512 MiB' "^0 +$one +1 MiB +sleeper$" "^0 +$pid +1 MiB +sleeper$"
kill -9 "$pid"
wait "$pid" 2>/dev/null
exec 6>&-
until [ "$(grep -c . /sys/kernel/debug/qcuda/sessions)" -eq 1 ]; do usleep 50000; done
smi '^0 .*software GPU +1 MiB +512 MiB' "^0 +$one +1 MiB +sleeper$"
! grep -q "^0 *$pid " $log || why="$why a dead program is in the list"
exec 5>&-
wait
[ -z "$why" ] && pass || fail "$why"
END
