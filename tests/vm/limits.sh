#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The VM has a quota that is smaller than the GPU's memory. Programs see the quota, reach it, and go on.
# Tools that ask NVML see the quota, and what the programs of the VM use of it.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

expect_host smi-wrong-option 2 'what is --frobnicate' "$B/qcu-library/qcu-smi" --frobnicate
expect_host smi-help 0 'Exit codes: 0' "$B/qcu-library/qcu-smi" --help
expect_host smi-without-a-device 9 'no GPU that answers: The driver is not loaded' "$B/qcu-library/qcu-smi"

# A guest has it without being told so, in a folder that has none.
mkdir "$tmp/empty"
expect_host smi-is-found 0 '^0, qCUDA software GPU, 512 MiB$' \
	bash -c "cd $tmp/empty && exec $root/$qcu run --gpu soft --mem 512M --klog $root/$klogs/$script-smi --device-arg --limit \
		--device-arg vm-device-memory=512M qcu-smi --query-gpu=index,name,memory.total --format=csv"

with "$guest"/{sleeper,device_query,out_of_memory,memory_pools,streams_events}
boot --device-arg --limit --device-arg vm-device-memory=512M --device-arg --limit --device-arg streams=64 \
	"${with[@]}" <<'END'
for program in device_query out_of_memory memory_pools streams_events; do
	expect $program 0 $program
done
begin quota
device_query | grep -q '512 MiB' && pass || fail "$(device_query | grep MiB)"

# smi PATTERN...: qcu-smi's output, as another user sees it, has a line for each pattern. $ask: its options.
ask=
smi() {
	# shellcheck disable=SC2086
	su -s /bin/sh nobody -c "/qcu/bin/qcu-smi $ask" >$log 2>&1 || why="exit code $?"
	for _pattern; do
		grep -q -E -e "$_pattern" $log || why="$why no line like: $_pattern"
	done
}

# hold GATE NUMBER [KIND]: starts a sleeper, which ends when GATE is closed. Sets $pid.
hold() {
	mkfifo "/tmp/$1"
	sleeper $3 <"/tmp/$1" >"/tmp/$1.said" &
	eval "exec $2>/tmp/$1"
	until grep -q ready "/tmp/$1.said"; do usleep 50000; done
	read -r _ pid <"/tmp/$1.said"
}

begin smi-without-programs
why=
smi 'CUDA Version: 1[3-9]' '^[|] +0 +qCUDA software GPU ' ' 0MiB / +512MiB ' 'No running processes found'
[ -z "$why" ] && pass || fail "$why"

begin smi-programs
why=
hold one 5
one=$pid
hold two 6
smi ' 2MiB / +512MiB ' "^[|] +0 +N/A +N/A +$one +C +sleeper +1MiB [|]" "^[|] +0 +N/A +N/A +$pid +C +sleeper +1MiB [|]"
[ "$(grep '^[+|]' $log | awk '{ print length }' | sort -u)" = 91 ] || why="$why a line of the table has another length"
ask='--query-compute-apps=pid,name,used_memory --format=csv'
smi '^pid, process_name, used_gpu_memory .MiB.$' "^$one, sleeper, 1 MiB$" "^$pid, sleeper, 1 MiB$"
ask=--json
smi "\"pid\": $one, \"process_name\": \"sleeper\", \"used_gpu_memory\": 1[}]"
ask='-q -d PIDS'
smi "^        Process ID +: $one$" '^            Name +: sleeper$' '^            Used GPU Memory +: 1 MiB$'
ask=
kill -9 "$pid"
wait "$pid" 2>/dev/null
exec 6>&-
until [ "$(grep -c . /sys/kernel/debug/qcuda/sessions)" -eq 1 ]; do usleep 50000; done
smi ' 1MiB / +512MiB ' " $one +C +sleeper +1MiB [|]$"
! grep -q " $pid  *C" $log || why="$why a dead program is in the list"
exec 5>&-
wait
[ -z "$why" ] && pass || fail "$why"

# While a kernel of one program runs, this program alone keeps the GPU busy, all the time.
begin smi-busy
why=
hold idle 5
one=$pid
ask='--query-gpu=utilization.gpu,utilization.memory --format=csv,noheader'
smi '^0 %, 0 %$'
hold kernel 6 kernel
smi '^100 %, 0 %$'
ask='--query-compute-apps=pid,utilization.gpu,utilization.memory --format=csv,noheader'
smi "^$one, 0 %, 0 %$" "^$pid, 100 %, 0 %$"
exec 6>&-
ask='--query-gpu=utilization.gpu --format=csv,noheader'
smi '^0 %$'
exec 5>&-
wait
[ -z "$why" ] && pass || fail "$why"

# A program chooses its own name: it can neither add a column, nor say anything to a terminal, nor end a text of JSON.
begin smi-names
why=
odd=/tmp/names/$(printf %050d 0)
mkdir -p "$odd"
odd=$odd/$(printf 'a, 7 "b\\\033[31m|')
ln -s "$(command -v sleeper)" "$odd"
mkfifo /tmp/three
"$odd" </tmp/three >/tmp/three.said &
exec 5>/tmp/three
until grep -q ready /tmp/three.said; do usleep 50000; done
read -r _ pid </tmp/three.said
ask='--query-compute-apps=pid,name --format=csv,noheader'
smi "^$pid, \"/tmp/names/0+/a, 7 \"\"b.[?]\[31m[|]\"$"
ask=--json
smi 'names/0+/a, 7 ."b..[?]\[31m[|]", "used'
ask=
smi "$pid +C +[.]{3}0+/a, 7 .b.[?]\[31m[|] +1MiB [|]$"
[ "$(grep '^[+|]' $log | awk '{ print length }' | sort -u)" = 91 ] || why="$why a line of the table has another length"
! grep -q "$(printf '\033')" $log || why="$why an escape got through"
exec 5>&-
wait
[ -z "$why" ] && pass || fail "$why"
END
