#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu trace and the file that the library writes: wrong calls, files that are no traces, places that
# cannot be written, programs that fork or are killed; then a VM, whose counters the trace must match.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export TMPDIR=$tmp
trace=("$root/scripts/qcu" trace)

# without_vm FILE PROGRAM...: runs a program traced, with the library that has its mirror in the process.
cat >"$tmp/without_vm" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$root/$B/loopback" QCU_TRACE_FILE="\$1"
shift
exec "\$@"
END
chmod +x "$tmp/without_vm"
without_vm=$tmp/without_vm

# ---- wrong calls ----

expect_host no-program 2 'no program given' "${trace[@]}"
expect_host no-program-after-options 2 'no program given' "${trace[@]}" --summary
expect_host out-without-file 2 '--out needs a file' "${trace[@]}" --out
expect_host out-empty 2 '--out needs a file' "${trace[@]}" --out= x
expect_host read-and-run 2 '--read runs nothing' "${trace[@]}" --read x y
expect_host help 0 'usage: qcu trace' "${trace[@]}" --help
expect_host out-nowhere 2 'No such file' "${trace[@]}" --out "$tmp/none/t.json" /bin/true
expect_host out-is-a-folder 2 'Is a directory' "${trace[@]}" --out "$tmp" /bin/true
expect_host read-only-folder 2 'no folder can be made here' \
	bash -c "cd /proc && ${trace[*]} --out $tmp/t.json /bin/true"
expect_host option-of-run 2 'unknown option --speed' bash -c "cd $tmp/share && ${trace[*]} --speed 9 x"
expect_host program-not-there 127 'no-such-program: command not found' \
	bash -c "cd $tmp/share && ${trace[*]} no-such-program"

# ---- files that are no traces ----

call='{"ph":"X","cat":"call","name":"LAUNCH","pid":1,"tid":2,"ts":5,"dur":1,"args":{"seq":7,"stream":0,"bytes":0,"posted":true,"error":0}}'
gpu='{"ph":"X","cat":"gpu","name":"LAUNCH","pid":1,"tid":9,"ts":6,"dur":1,"args":{"seq":7,"tid":2,"bytes":0}}'
begin='{"ph":"b","cat":"queue","name":"LAUNCH","pid":1,"tid":2,"ts":5,"id":"2.7"}'
end=${begin/'"b"'/'"e"'}

# no_trace NAME PATTERN TEXT: --read refuses a file with this text.
no_trace() {
	printf '%s' "$3" >"$tmp/t.json"
	expect_host "$1" 2 "$2" "${trace[@]}" --read "$tmp/t.json" --summary
}
events() { printf '{"traceEvents":[%s]}' "$1"; }
expect_host read-not-there 2 'No such file' "${trace[@]}" --read "$tmp/none"
no_trace empty 'that is no JSON' ''
no_trace cut-off 'that is no JSON' "$(events "$call" | head -c 60)"
no_trace a-list 'no list of traceEvents' '[]'
no_trace no-events 'no list of traceEvents' '{"traceEvents":5}'
no_trace event-is-text 'event 0 is of no kind' "$(events '"x"')"
no_trace other-phase 'event 0 is of no kind' "$(events "${call/'"X"'/'"Q"'}")"
no_trace no-time 'event 0 lacks a field' "$(events "${call/'"ts":5,'/}")"
no_trace time-is-text 'another type' "$(events "${call/'"ts":5'/'"ts":"5"'}")"
no_trace negative 'another type' "$(events "${call/'"dur":1'/'"dur":-1'}")"
no_trace not-a-number 'another type' "$(events "${call/'"dur":1'/'"dur":NaN'}")"
no_trace true-is-no-number 'another type' "$(events "${call/'"tid":2'/'"tid":true'}")"
no_trace other-args 'has other args' "$(events "${call/'"seq":7,'/}")"
no_trace work-without-call 'no call has asked for' "$(events "$gpu")"
no_trace work-of-another-call 'no call has asked for' "$(events "$call,${gpu/LAUNCH/MEMSET}")"
no_trace work-before-its-call 'before it was called' "$(events "$call,${gpu/'"ts":6'/'"ts":4'}")"
no_trace uncertain-is-a-number 'has other args' "$(events "$call,${gpu/'"bytes":0'/'"bytes":0,"uncertain":1'}")"
no_trace queue-without-end 'a queue does not end' "$(events "$call,$begin")"
no_trace queue-without-begin 'does not begin' "$(events "$call,$end")"
no_trace queue-backwards 'ends before it begins' "$(events "$call,$begin,${end/'"ts":5'/'"ts":4'}")"
events "$call,$begin,$end,$gpu" >"$tmp/t.json"
expect_host a-small-one 0 '1 +0 +0 +1  LAUNCH' "${trace[@]}" --read "$tmp/t.json" --summary

# ---- pictures of what is on a terminal, and of a trace ----

# xml NAME OPTION FILE: what is drawn can be read as XML, and has the text "a<b" of a terminal.
xml() {
	docs/pictures/draw "$2" "$3" >"$tmp/picture.svg" &&
		expect_host "$1" 0 "^$4\$" python3 -c 'import sys, xml.etree.ElementTree as e
root = e.parse(sys.argv[1]).getroot()
print(*(t.text for t in root.iter("{http://www.w3.org/2000/svg}text")))' "$tmp/picture.svg"
}
expect_host picture-of-nothing 2 'none: No such file' docs/pictures/draw --trace "$tmp/none"
expect_host picture-of-no-trace 2 'this is no trace of qcu trace' docs/pictures/draw --trace docs/pictures/draw
expect_host picture-nowhere 2 'unrecognized arguments' docs/pictures/draw nowhere
printf '\e[1mbold\e[0m a<b\r\n\e[2mdim\e[0m' >"$tmp/said.txt"
xml picture-of-a-terminal --text "$tmp/said.txt" 'bold a<b dim'
xml picture-of-a-trace --trace "$tmp/t.json" '0 ms .* 2 in queues 9 LAUNCH'

# ---- what the library writes, without a VM ----

expect_host place-not-there 0 'verified' \
	"$without_vm" "$tmp/none/t.json" "$guest/vector_add"
grep -q 'QCU_TRACE_FILE cannot be written' "$tmp/out" && echo '@ok and-it-says-so 0.0' || echo '@FAIL and-it-says-so'
expect_host full-disk 0 'verified' "$without_vm" /dev/full "$guest/vector_add"
grep -q 'cannot be written (No space left' "$tmp/out" && echo '@ok full-disk-is-said 0.0' || echo '@FAIL full-disk-is-said'
# reads NAME FILE PATTERN PROGRAM...: the program is right when it is traced, and so is its trace.
reads() {
	local name=$1 file=$2 pattern=$3
	shift 3
	expect_host "$name-runs" 0 'verified' "$without_vm" "$file" "$@"
	expect_host "$name-is-right" 0 "$pattern" "${trace[@]}" --read "$file" --summary
}
reads kernel "$tmp/kernel.json" 'COPY_H2D' "$guest/vector_add"
reads streams "$tmp/streams.json" 'LAUNCH' "$guest/async_copies"
reads captures "$tmp/captures.json" 'HOST_NEXT' "$guest/stream_capture"
reads forks "$tmp/forks.json" 'COPY' "$guest/fork_child"
reads per-thread-streams "$tmp/per.json" 'RECT_H2D' "$guest/per_thread_copies"
expect_host threads-run 0 '^fine$' bash -c "$without_vm $tmp/threads.json $B/tests/loopback/threads && echo fine"
expect_host threads-are-right 0 'calls' "${trace[@]}" --read "$tmp/threads.json" --summary
reads resets "$tmp/resets.json" 'DEVICE_RESET' "$guest/device_limits"
expect_host number-of-process 0 verified "$without_vm" "$tmp/of-%p-x.json" "$guest/vector_add"
compgen -G "$tmp/of-[0-9]*-x.json" >/dev/null && echo '@ok its-own-file 0.0' || echo '@FAIL its-own-file'
expect_host nothing-traced 0 verified env -u QCU_TRACE_FILE LD_LIBRARY_PATH="$root/$B/loopback" "$guest/vector_add"

# ---- in a VM ----

if (cd "$tmp/share" && "${trace[@]}" --summary --out "$tmp/vm.json" --gpu soft --timeout 200 \
	"$root/$guest/vector_add") >"$tmp/said" 2>"$tmp/summary" </dev/null && grep -q verified "$tmp/said" &&
	grep -q '  LAUNCH$' "$tmp/summary"; then
	echo '@ok program-in-a-vm'
else
	cat "$tmp/said" "$tmp/summary"
	echo '@FAIL program-in-a-vm'
fi
expect_host trace-of-a-vm 0 '  COPY_D2H$' "${trace[@]}" --read "$tmp/vm.json" --summary
# A limit that the trace meets is no error of the program's.
host_limit=120 expect_host limit-in-the-way 0 'verified' bash -c \
	"cd $tmp/share && ${trace[*]} --out $tmp/limit.json --gpu soft --timeout 200 --device-arg --limit \
	--device-arg events=20 $root/$guest/vector_add"
expect_host limit-in-the-trace 0 '  COPY_D2H$' "${trace[@]}" --read "$tmp/limit.json" --summary
expect_host nothing-left-in-the-folder 0 '^0$' bash -c "find $tmp/share -mindepth 1 | wc -l"
expect_host full-disk-in-the-end 2 'No space left' bash -c \
	"cd $tmp/share && ${trace[*]} --out /dev/full --gpu soft --timeout 200 $root/$guest/vector_add"
expect_host no-cuda-program 0 'nothing to see' bash -c \
	"cd $tmp/share && ${trace[*]} --no-device --no-module --timeout 200 /bin/true"
expect_host no-trace-of-nothing 0 '^0$' bash -c "find $tmp/share -mindepth 1 | wc -l"

# A process that was killed leaves a file without an end.
head -c 1500 "$tmp/kernel.json" >"$tmp/cut.json"
cat >"$tmp/modules.py" <<'END'
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
def load(name):
    loader = importlib.machinery.SourceFileLoader(name, "scripts/" + name)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
END
expect_host killed-process 0 'cut.json [1-9]' env PYTHONPATH="$tmp" python3 -c "
from modules import load
trace = load('trace')
t = trace.merge(['$tmp/cut.json'], 'p')
trace.check(t)
print(*t['otherData']['cut_off'], len(trace.sums(t)))"

# The guest holds still when the programs have ended, so that the counters can be read.
with "$guest"/{async_copies,sleeper}
vm_name=trace-$$
guest_script "$tmp/script" <<'END'
share=$1
export QCU_TRACE_FILE=$share/part.%p.json
async_copies || exit 1
sleeper </dev/null || exit 1
until grep -q '^sessions 0' /sys/kernel/debug/qcuda/stats; do usleep 50000; done
: >"$share/done"
until [ -e "$share/go" ]; do usleep 100000; done
END
"$qcu" vm --name "$vm_name" --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--gpu soft --timeout 200 "${with[@]}" "$tmp/share" </dev/null &
vm=$!
until [ -e "$tmp/share/done" ] || ! kill -0 "$vm" 2>/dev/null; do sleep 0.1; done

# Each command that the trace has was counted by the mirror, and no other. The trace does not have the
# driver's commands and those with which threads end; it counts its own.
cat >"$tmp/compare.py" <<'END'
import glob, sys
from modules import load
trace, top = load("trace"), load("top")
name, share = sys.argv[1:]
sockets = [s for s in top.sockets_of_this_user(top.os.getuid()) if top.read_vm(s)["name"] == name]
counted, copied, launches = {}, {"h2d": 0, "d2h": 0}, None
for metric, labels, value in top.parse(top.ask(*sockets)):
    if metric == "calls_total" and labels["command"] not in ("MAP", "UNMAP", "THREAD_EXIT"):
        counted[labels["command"]] = value
    elif metric == "copied_bytes_total" and labels["direction"] in copied:
        copied[labels["direction"]] += value
    elif metric == "launches_total":
        launches = value
t = trace.merge(sorted(glob.glob(share + "/part.*.json")), "test")
trace.check(t)
sums, own = trace.sums(t), t["otherData"]["own_commands"]
traced = {n: sums.get(n, {"calls": 0})["calls"] + own.get(n, 0) for n in set(sums) | set(own)}
assert traced == counted, f"{traced}\n{counted}"
assert sums["LAUNCH"]["calls"] == launches, launches
for way, names in (("h2d", ("COPY_H2D", "COPY_SMALL")), ("d2h", ("COPY_D2H",))):
    assert sum(sums[n]["bytes"] for n in names if n in sums) == copied[way], copied
print("uncertain:", t["otherData"]["uncertain"])
assert t["otherData"]["cut_off"] == [] and t["otherData"]["unmeasured"] == 0, t["otherData"]
measured = sum(e.get("cat") == "gpu" for e in t["traceEvents"])
assert measured == sum(sums[n]["calls"] for n in ("LAUNCH", "COPY_H2D", "COPY_D2H", "COPY_SMALL") if n in sums)
print("the same:", sum(counted.values()), "commands,", launches, "launches,", measured, "on the GPU")
END
expect_host sums-agree-with-counters 0 '^the same: [1-9][0-9]+ commands, [1-9]' \
	env PYTHONPATH="$tmp" python3 "$tmp/compare.py" "$vm_name" "$tmp/share"
: >"$tmp/share/go"
if wait "$vm"; then
	echo '@ok vm 0.0'
else
	echo "@FAIL vm the launcher ended with $?"
fi
scan_klog
