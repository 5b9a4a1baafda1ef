#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests what the launcher does in a job of Slurm, without Slurm: a folder that stands for the job's, with one device, and
# Slurm's variables. tests/fresh/slurm/ has the whole.
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
B=${B:-build}
[[ $B == /* ]] || B=$here/$B
dir=$(cd "$(mktemp -d)" && pwd -P)
device=
trap '[ -z "$device" ] || kill "$device"; rm -rf "$dir"' EXIT
cd "$dir" || exit 2

job=$dir/n1-7
mkdir -p "$job/files"
export QCU_JOBS=$dir SLURMD_NODENAME=n1 SLURM_JOB_ID=7

# ---- requests that cannot be met ----

echo $'why \e[31mnot' >"$job/refused"
refused 2 'this job has no device: why ?[31mnot' run /bin/true
rm "$job/refused"
refused 2 "the job's devices are gone from $job" run /bin/true
: >"$job/slot0.lock"
refused 2 '--vram: in a job the request chooses it' run --vram 1G /bin/true
for o in --gpu=soft --map=ncvm --sessions=3 --prewarm=1 --nvml=none --device-arg=--trace --check; do
	refused 2 'in a job the site has started qcu-device' run "$o" /bin/true
done
export SLURM_CPUS_ON_NODE=2
SLURM_MEM_PER_NODE=300 refused 2 'the job has 300 MB of memory on this node, too little for 1 VM(s)' run /bin/true
SLURM_MEM_PER_CPU=150 refused 2 'the job has 300 MB of memory on this node' run /bin/true
echo 300 >"$job/memory"
refused 2 'the job has 300 MB of memory on this node' run /bin/true
export SLURM_MEM_PER_NODE=800
refused 2 '--mem 623M: each VM of this job can have 622M, for the job has 800M' run --mem 623M /bin/true
refused 2 '--mem much: must be a size' run --mem much /bin/true
refused 2 '--cpus 3: each VM of this job can have 2' run --cpus 3 /bin/true
refused 2 '--cpus x: must be a number' run --cpus x /bin/true
refused 2 '--net is for a step of a job' run --net /bin/true
SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0 SLURM_STEP_NODELIST='$(touch here)' refused 2 '--net is for a step' run --net /bin/true
SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n1 refused 2 '--net needs a port' run --net /bin/true
refused 2 "the job's devices are gone from $job" run /bin/true
flock -n "$job/slot0.lock" true || expect '' 'the lock' taken free
exec 8<"$job/slot0.lock"
flock 8
refused 2 'all 1 VM(s) that this job may have on this node are running' run /bin/true
exec 8<&-
[ -z "$(ls "$job/files")" ] || expect '' 'left in the job'"'"'s folder' "$(ls "$job/files")" nothing
case_done bad-jobs

# ---- a VM ----

"$B/qcu-device/qcu-device" --gpu soft --vram 192M --socket "$job/slot0.sock" 2>log &
device=$!
echo 'a note of the site' >"$job/note"
cp "$B/tests/guest/device_query" .
timeout -k 5 $((120 * slow)) "$qcu" run sh -c './device_query && nproc && cat /proc/meminfo' >out 2>err
expect '' 'exit code' $? 0
grep -q -F 'a note of the site' err || expect '' 'standard error' "$(cat err)" 'the note'
grep -q -E '(^|[^0-9])(192 MiB|201326592)' out || expect '' 'memory of the GPU' "$(cat out)" '192 MiB'
grep -q -x 2 out || expect '' 'processors' "$(cat out)" 2
kb=$(awk '/^MemTotal:/ { print $2 }' out)
[ "${kb:-0}" -gt 500000 ] && [ "$kb" -lt $((622 * 1024)) ] || expect '' 'memory of the guest' "$kb" 'less than 622M'
[ -z "$(ls "$job/files")" ] || expect '' 'left in the job'"'"'s folder' "$(ls "$job/files")" nothing
wait "$device"
expect '' "the device's exit code" $? 0
device=
case_done job
