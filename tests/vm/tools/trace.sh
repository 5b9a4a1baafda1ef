#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu trace and the file that the library writes: wrong calls, files that are no traces, places that
# cannot be written, programs that fork or are killed, names that are none; advice, and none without a figure; then
# VMs, whose counters the trace must match.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export TMPDIR=$tmp
trace=("$root/scripts/qcu" trace)

# without_vm FILE PROGRAM...: runs a program traced, with the library that has its mirror in the process.
cat >"$tmp/without_vm" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$root/$B/loopback" QCU_TRACE_FILE="\$1"
export LD_AUDIT="$root/$B/loopback/libqcuda-loader.so" NVTX_INJECTION64_PATH="$root/$B/loopback/libcudart.so.13"
shift
exec "\$@"
END
chmod +x "$tmp/without_vm"
without_vm=$tmp/without_vm

# More than a hundred times a trace is read. So one process compiles the scripts that do, and forks for each call.
cat >"$tmp/starter.py" <<'END'
import bisect, collections, glob, itertools, json, os, shutil, signal, stat, subprocess, sys, tempfile
out, limit = sys.argv[1], int(sys.argv[2])
scripts = {}
while True:
    args = []
    while line := sys.stdin.readline().rstrip("\n"):
        args.append(line)
    if not args:
        break
    if args[0] not in scripts:
        with open(args[0], encoding="utf-8") as f:
            scripts[args[0]] = compile(f.read(), args[0], "exec")
    child = os.fork()
    if not child:
        signal.alarm(limit)
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.dup2(1, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = args
        exec(scripts[args[0]], {"__name__": "__main__", "__file__": args[0]})
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code if code >= 0 else 128 - code, flush=True)
END
coproc starter { exec python3 "$tmp/starter.py" "$tmp/read" $((300 * slow)); }
# python SCRIPT [ARG...]: runs it. What it says is in $tmp/read.
python() {
	local rc=1
	printf '%s\n' "$@" '' >&"${starter[1]}" && read -r -u "${starter[0]}" rc
	return "${rc:-1}"
}
# expect_python NAME CODE PATTERN SCRIPT [ARG...]: as expect_host with python3.
expect_python() {
	python "${@:4}"
	expect_host "$1" "$2" "$3" sh -c 'cat "$1"; exit "$2"' - "$tmp/read" $?
}

# ---- wrong calls ----

expect_host no-program 2 'no program given' "${trace[@]}"
expect_host no-program-after-options 2 'no program given' "${trace[@]}" --summary
expect_host out-without-file 2 '--out needs a file' "${trace[@]}" --out
expect_host out-empty 2 '--out needs a file' "${trace[@]}" --out= x
expect_python read-and-run 2 '--read runs nothing' "$root/scripts/trace" --read x y
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
	expect_python "$1" 2 "$2" "$root/scripts/trace" --read "$tmp/t.json" --summary
}
events() { printf '{"traceEvents":[%s]}' "$1"; }
expect_python read-not-there 2 'No such file' "$root/scripts/trace" --read "$tmp/none"
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
no_trace queue-without-begin 'has not begun' "$(events "$call,$end")"
no_trace queue-backwards 'ends before it begins' "$(events "$call,$begin,${end/'"ts":5'/'"ts":4'}")"
no_trace name-of-a-million 'another type' "$(events "${call/LAUNCH/$(printf '%01000d' 7)}")"
no_trace kernel-is-a-number 'has other args' "$(events "${call/'"error"'/'"kernel":5,"error"'}")"
no_trace number-without-end 'another type' "$(events "${call/'"pid":1'/'"pid":1'"$(printf '%0100d' 0)"}")"
no_trace other-data-is-a-list 'otherData' '{"traceEvents":[],"otherData":[]}'
no_trace lists-in-lists 'that is no JSON' "$(printf '%0100000d' 0 | tr 0 '[')"
esc=$(printf '\\\\u001b[2J')
no_trace control-characters 'other args than a .\[2J$' "$(events "${call/'"cat":"call"'/'"cat":"'"${esc#\\}"'"'}")"
events "$call,$begin,$end,$gpu" >"$tmp/t.json"
expect_host a-small-one 0 '1 +0 +0 +1  LAUNCH' "${trace[@]}" --read "$tmp/t.json"

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
	expect_python "$name-is-right" 0 "$pattern" "$root/scripts/trace" --read "$file" --summary
}
reads kernel "$tmp/kernel.json" 'COPY_H2D' "$guest/vector_add"
reads streams "$tmp/streams.json" 'LAUNCH' "$guest/async_copies"
reads captures "$tmp/captures.json" 'HOST_NEXT' "$guest/stream_capture"
reads forks "$tmp/forks.json" 'COPY' "$guest/fork_child"
reads per-thread-streams "$tmp/per.json" 'RECT_H2D' "$guest/per_thread_copies"
expect_host threads-run 0 '^fine$' bash -c "$without_vm $tmp/threads.json $B/tests/loopback/threads && echo fine"
expect_python threads-are-right 0 'calls' "$root/scripts/trace" --read "$tmp/threads.json" --summary
reads resets "$tmp/resets.json" 'DEVICE_RESET' "$guest/device_limits"

# ---- names ----

# What viewers drop without a word, they must not find: this follows the description of the format. Prints each name.
cat >"$tmp/strict.py" <<'END'
import collections, json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    trace = json.load(f)
ns = lambda us: round(us * 1000)
spans, open_async, starts, arrows, names, counters = collections.defaultdict(list), {}, {}, 0, {}, collections.Counter()
for e in trace["traceEvents"]:
    kind = e["ph"]
    assert kind in "MXbeisfC", e
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["pid"] < 1 << 31 and e["tid"] < 1 << 31, e
    assert kind == "M" or (0 <= e["ts"] < 1 << 53), e
    assert e["name"].isprintable() or not e["name"], e
    if kind == "M":
        assert e["name"] in ("process_name", "thread_name") and isinstance(e["args"]["name"], str), e
        key = (e["pid"], e["tid"], e["name"])
        assert key not in names, e
        names[key] = e["args"]["name"]
    elif kind == "X":
        assert e["dur"] >= 0, e
        spans[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["ts"] + e["dur"]), e["name"]))
    elif kind == "b":
        assert (e["pid"], e["cat"], e["id"]) not in open_async, e
        open_async[e["pid"], e["cat"], e["id"]] = e
    elif kind == "e":
        assert open_async.pop((e["pid"], e["cat"], e["id"]))["ts"] <= e["ts"], e
    elif kind == "C":
        assert all(isinstance(v, (int, float)) and v >= 0 for v in e["args"].values()), e
        counters[e["name"]] += 1
    elif kind == "s":
        assert e["id"] not in starts, e
        starts[e["id"]] = e
for row in spans.values():
    row.sort(key=lambda s: (s[0], -s[1]))
    stack = []
    for begin, end, name in row:
        while stack and stack[-1] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1], f"{name} lies half in another: {begin} {end} {stack}"
        stack.append(end)
for e in trace["traceEvents"]:
    if e["ph"] not in "sf":
        continue
    row = spans[e["pid"], e["tid"]]
    assert any(a <= ns(e["ts"]) <= z for a, z, _ in row), f"an arrow to nothing: {e}"
    if e["ph"] == "f":
        assert e["bp"] == "e" and starts.pop(e["id"])["ts"] <= e["ts"], e
        arrows += 1
assert not starts, starts
for key in {(p, t) for p, t in spans}:
    assert (*key, "thread_name") in names and (key[0], 0, "process_name") in names, key
print("tracks:", *sorted(names.values()))
print("names:", *sorted({f"{e['cat']}/{e['name']}" for e in trace["traceEvents"] if e["ph"] in "Xbi"}), sep="\n")
print("arrows:", arrows, "counters:", *counters)
END
# strict NAME FILE PATTERN [--read FILE...]: a trace of these files is one for viewers, and has this in it.
strict() {
	local name=$1 out=$2 pattern=$3
	shift 3
	expect_python "$name-read" 0 "$out has [0-9]+ calls and [0-9]+ pieces of work" "$root/scripts/trace" --out "$out" "$@"
	expect_python "$name" 0 "$pattern" "$tmp/strict.py" "$out"
}
kernel='vector_add\(float const\*, float const\*, float\*, int\)'
strict kernel-by-name "$tmp/out.json" "^gpu/$kernel\$" --read "$tmp/kernel.json"
expect_host calls-by-name 0 '^api/cudaLaunchKernel api/cudaMalloc api/cudaMemcpy$' bash -c \
	"python3 $tmp/strict.py $tmp/out.json | grep -x -e api/cudaMalloc -e api/cudaMemcpy -e api/cudaLaunchKernel | xargs"
expect_python threads-by-name 0 '^tracks: .*vector_add \([0-9]+\)' "$tmp/strict.py" "$tmp/out.json"
expect_python arrows-and-memory 0 '^arrows: 4 counters: memory of GPU 0$' "$tmp/strict.py" "$tmp/out.json"
expect_python summary-by-kernel 0 " 1 .*  $kernel\$" "$root/scripts/trace" --read "$tmp/out.json"
expect_python summary-by-call 0 ' 3 .*  cudaMemcpy$' "$root/scripts/trace" --read "$tmp/out.json"
expect_python summary-by-size 0 ' 8000024 .*  to the GPU, pinned, up to 16 MiB$' "$root/scripts/trace" --read "$tmp/out.json"
# A trace that was read and written is the same trace.
strict written-again "$tmp/again.json" '^arrows: 4 ' --read "$tmp/out.json"
expect_host nothing-changes 0 '^same$' bash -c "cmp $tmp/out.json $tmp/again.json && echo same"
reads library "$tmp/library.json" ' cublasSgemm_v2$' "$guest/cublas_layers"
strict work-of-a-library "$tmp/out.json" '^gpu/cublasSgemm_v2$' --read "$tmp/library.json"
reads driver "$tmp/driver.json" ' cuLaunchKernel$' "$guest/driver_launch"
# cuGetProcAddress, and functions that are asked for by name.
reads driver-by-name "$tmp/entries.json" ' cuGetProcAddress_v2$' "$guest/driver_proc_address"

# A library that is loaded, and with it that of C++, as modules of Python's are, after ours (qcu run --preload).
cat >"$tmp/loads.py" <<'END'
import ctypes, sys
cuda, plugin = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(sys.argv[1])
at, got = ctypes.c_void_p(), ctypes.c_int()
assert cuda.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(4)) == 0 and plugin.plugin_run(at, 5) == 0
assert cuda.cudaMemcpy(ctypes.byref(got), at, ctypes.c_size_t(4), 2) == 0
print("plugin:", got.value)
END
expect_host loaded-runs 0 '^plugin: 105$' env LD_PRELOAD="$root/$B/loopback/libcudart.so.13" "$without_vm" "$tmp/loaded.json" python3 "$tmp/loads.py" "$B/tests/loopback/plugin.so"
strict loaded-by-name "$tmp/out.json" '^gpu/store\(int\*, int\)$' --read "$tmp/loaded.json"

reads runtime-linked-in "$tmp/static.json" ' cudaLaunchKernel$' "$B/tests/guest-static/vector_add"

# NVTX: ranges of two domains, of threads and of none, and names that are none.
reads ranges "$tmp/nvtx.json" '1024 .*  deep$' "$guest/nvtx_ranges"
strict ranges-by-name "$tmp/out.json" '^range/inner ä$' --read "$tmp/nvtx.json"
ranges=0
for name in outer 'whole work' registered crossing launched 'quoted "name" \\ \?\?\?\[2J \?' '\?+ \?+ \?+ \?+'; do
	expect_python "range-$((++ranges))" 0 "^range/$name\$" "$tmp/strict.py" "$tmp/out.json"
done
expect_python thread-named-by-nvtx 0 '^tracks: .*helper \([0-9]+\)' "$tmp/strict.py" "$tmp/out.json"
expect_python long-names-are-cut 0 '^range/x{255}\.\.\.$' "$tmp/strict.py" "$tmp/out.json"
expect_host ranges-without-a-trace 0 verified env LD_LIBRARY_PATH="$root/$B/loopback" \
	NVTX_INJECTION64_PATH="$root/$B/loopback/libcudart.so.13" "$guest/nvtx_ranges"
QCU_LOOPBACK_EVICT=2 reads memory-that-left "$tmp/left.json" '^memory that left the GPU: [1-9].* came back: [1-9]' "$guest/async_copies"
expect_host events-are-bounded 0 '"left_out":[1-9]' bash -c "$without_vm $tmp/much.json $guest/nvtx_ranges 1000000 >&2; tail -c 300 $tmp/much.json"
rm -f "$tmp/much.json"

# What a guest may put where its trace is expected.
cat >"$tmp/modules.py" <<'END'
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
def load(name):
    loader = importlib.machinery.SourceFileLoader(name, "scripts/" + name)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
END
cat >"$tmp/parts.py" <<'END'
import os, sys
from modules import load
trace = load("trace")
folder = sys.argv[1]
os.mkfifo(folder + "/pipe")
os.symlink("/etc/passwd", folder + "/link")
os.mkdir(folder + "/dir")
for name in ("pipe", "link", "dir"):
    try:
        trace.read_part(f"{folder}/{name}")
        print("read", name)
    except trace.Refused as e:
        print(name, e)
with open(folder + "/large", "w") as f:
    f.truncate(trace.FILE_MAX + 1)
trace.FILE_MAX = 1000
for name, text in (("large", " " * 1001), ("cut", "{\n{\"ph\":\"e\"},\n"), ("text", "{\n5,\n")):
    with open(f"{folder}/{name}", "w") as f:
        f.write(text)
    try:
        trace.read_part(f"{folder}/{name}")
        print("read", name)
    except trace.Refused as e:
        print(name, e)
END
mkdir "$tmp/parts"
# expected NAME LINE: what parts.py said.
python3_parts=$(PYTHONPATH="$tmp" timeout 60 python3 "$tmp/parts.py" "$tmp/parts" 2>&1)
for line in 'pipe it is no file' 'link Too many levels of symbolic links' 'dir Is a directory' 'large it is larger than 0 MiB' \
	'cut it is cut off, and its events are not right' 'text event 0 is of no kind that is known'; do
	expect_host "part-${line%% *}" 0 "^$line\$" echo "$python3_parts"
done

# Traces with mistakes in them, always the same ones: each is refused, or read, checked and printed.
expect_host mistakes 0 '^500 rounds, [0-9]+ of them' tests/fuzz/trace.py --rounds 500 "$tmp/kernel.json" "$tmp/nvtx.json" "$tmp/again.json"

# ---- advice ----

# A trace in which the figures are known, in microseconds: calls and work one after the other.
cat >"$tmp/made.py" <<'END'
import json, sys
events, at = [], 0.0
def call(name, dur, gpu=None, api=None, bytes=0, gap=0.0, wait=False, **args):
    global at
    seq = len(events)
    args = {"seq": seq, "stream": 0, "bytes": bytes, "posted": not wait, "error": 0, **args}
    if api:
        args["call"] = api
        events.append({"ph": "X", "cat": "api", "name": api, "pid": 1, "tid": 2, "ts": at, "dur": dur, "args": {}})
    events.append({"ph": "X", "cat": "call", "name": name, "pid": 1, "tid": 2, "ts": at, "dur": dur, "args": args})
    if gpu is not None:
        events.append({"ph": "X", "cat": "gpu", "name": name, "pid": 1, "tid": 1 << 30, "ts": at, "dur": gpu,
                       "args": {"seq": seq, "tid": 2, "bytes": bytes}})
    at += max(dur, gpu or 0) + gap
def launch(gpu, **more):
    call("LAUNCH", 1.0, gpu, "cudaLaunchKernel", kernel="k\x1b(int*)", **more)
what, part = sys.argv[1], float(sys.argv[2])  # part: percent of the time
n = 200
if what == "pageable":
    for _ in range(n):
        launch(100 - part)
        call("COPY_H2D", part, part, "cudaMemcpy", 4096, wait=True, pageable=True)
elif what == "kernels-in-front": # what the copy waits for is the kernel
    for _ in range(n):
        launch(0.001)
        events[-1]["dur"] = 95.0
        call("COPY_D2H", 100.0, 1.0, "cudaMemcpy", 4096, wait=True, pageable=True)
        events[-1]["ts"] += 99.0
elif what == "threads": # the same time is not counted twice
    for tid in (2, 3):
        at = 0.0
        for _ in range(n):
            call("MALLOC", part, None, None, 4096, memory="m0.1000", wait=True, gap=100 - part)
            events[-1]["tid"] = tid
elif what == "idle":
    for _ in range(n):
        launch(5.0, gap=5 * part / (100 - part))
elif what == "waits":
    for _ in range(n):
        launch(100 - part)
        call("DEVICE_SYNC", part, None, "cudaDeviceSynchronize", wait=True)
elif what == "memory":
    for i in range(n):
        launch(100 - part)
        call("MALLOC", part / 2, None, "cudaMalloc", 4096, memory="m0.1000", wait=True)
        call("FREE", part / 2, None, "cudaFree", memory="m0.1000")
elif what == "code":
    call("MODULE_LOAD", part * 1000, wait=True)
    launch((100 - part) * 1000)
elif what == "overlap":
    for _ in range(n):
        launch(100 - part)
        call("COPY_H2D", 1.0, part, "cudaMemcpyAsync", 4 << 20)
elif what == "kernel":
    launch(part * 1000)
    call("COPY_D2H", 1.0, (100 - part) * 1000, "cudaMemcpyAsync", 4 << 20)
json.dump({"traceEvents": events}, sys.stdout)
END
# advises NAME SCENARIO PERCENT PATTERN
advises() {
	python "$tmp/made.py" "$2" "$3" && mv "$tmp/read" "$tmp/made.json"
	python "$root/scripts/trace" --read "$tmp/made.json"
	expect_host "advice-$1" 0 "$4" sh -c 'grep -e ^advice: "$1" || echo none' - "$tmp/read"
}
advises pageable pageable 31 '^advice: 31% of the time .* waits for 200 copies of pageable memory, of 4 KiB .*: use pinned memory .* or copy more at once$'
advises pageable-few pageable 5 '^advice: 95% of the time the kernel'
advises after-kernels kernels-in-front 1 'only faster kernels'
expect_host advice-after-kernels-only 0 '^1$' grep -c ^advice: "$tmp/read"
advises threads threads 60 '^advice: 60% of the time .* in 400 allocations'
advises idle idle 60 '^advice: 60% of the time .* the 200 launches take 5.0 us each'
advises idle-little idle 8 'only faster kernels'
advises waits waits 40 '^advice: 40% of the time .* in 200 waits .* for 200 launches'
advises waits-short waits 8 'only faster kernels'
advises memory memory 50 '^advice: 50% of the time .* in 400 allocations and frees'
advises code code 70 '^advice: 70% of the time \(70.0 ms\) code is loaded \(1 modules\)'
advises overlap overlap 40 '^advice: 40% of the GPU.s work could lie beside the rest'
advises nothing kernel 5 '^none$'
advises copies-too kernel 60 '^none$'
advises kernel kernel 95 '^advice: 95% of the time the kernel k\?\(int\*\) runs'
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
expect_python trace-of-a-vm 0 '  COPY_D2H$' "$root/scripts/trace" --read "$tmp/vm.json" --summary
expect_host and-says-where 0 "^qcu: trace: $tmp/vm.json has 11 calls and 4 pieces of work on the GPU" cat "$tmp/summary"
expect_python kernel-in-a-vm 0 "^gpu/$kernel\$" "$tmp/strict.py" "$tmp/vm.json"
# Two VMs at once, side by side in one trace. Their own clocks began at another time.
mkdir "$tmp/share/a" "$tmp/share/b"
(cd "$tmp/share/a" && "${trace[@]}" --out "$tmp/left.json" --gpu soft --timeout 200 "$root/$guest/vector_add") >"$tmp/said" 2>&1 </dev/null &
left=$!
began=${EPOCHREALTIME/./}
(cd "$tmp/share/b" && "${trace[@]}" --out "$tmp/right.json" --gpu soft --timeout 200 "$root/$guest/nvtx_ranges") >"$tmp/said2" 2>&1 </dev/null ||
	cat "$tmp/said2"
wait "$left" || cat "$tmp/said"
over=${EPOCHREALTIME/./}
rmdir "$tmp/share/a" "$tmp/share/b"
strict two-vms "$tmp/both.json" '^tracks: .*left: vector_add \([0-9]+\) .*right: nvtx_ranges \([0-9]+\)' --read "$tmp/left.json" --read "$tmp/right.json"
expect_python ranges-in-a-vm 0 '^range/outer$' "$tmp/strict.py" "$tmp/both.json"
expect_host both-on-the-host.s-clock 0 '^both: 7 11$' python3 -c '
import json, sys
t = json.load(open(sys.argv[1]))
began, over = map(int, sys.argv[2:])
vms = [[e for e in t["traceEvents"] if e["ph"] == "X" and e["cat"] == "api" and e["pid"] == p] for p in sorted({e["pid"] for e in t["traceEvents"]})]
for vm in vms:
    for e in vm:
        at = t["otherData"]["host_ns"] / 1000 + e["ts"]
        assert began <= at <= over, (began, at, over)
print("both:", *sorted(map(len, vms)))' "$tmp/both.json" "$began" "$over"
# A limit that the trace meets is no error of the program's.
host_limit=120 expect_host limit-in-the-way 0 'verified' bash -c \
	"cd $tmp/share && ${trace[*]} --out $tmp/limit.json --gpu soft --timeout 200 --device-arg --limit \
	--device-arg events=20 $root/$guest/vector_add"
expect_python limit-in-the-trace 0 '  COPY_D2H$' "$root/scripts/trace" --read "$tmp/limit.json" --summary
expect_host nothing-left-in-the-folder 0 '^0$' bash -c "find $tmp/share -mindepth 1 | wc -l"
expect_host full-disk-in-the-end 2 'No space left' bash -c \
	"cd $tmp/share && ${trace[*]} --out /dev/full --gpu soft --timeout 200 $root/$guest/vector_add"
expect_host no-cuda-program 0 'nothing to see' bash -c \
	"cd $tmp/share && ${trace[*]} --no-device --no-module --timeout 200 /bin/true"
expect_host no-trace-of-nothing 0 '^0$' bash -c "find $tmp/share -mindepth 1 | wc -l"

# A process that was killed leaves a file without an end.
head -c 4000 "$tmp/kernel.json" >"$tmp/cut.json"
expect_host killed-process 0 'cut.json [1-9]' env PYTHONPATH="$tmp" python3 -c "
from modules import load
trace = load('trace')
t = trace.merge_parts(['$tmp/cut.json'], 'p')
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
answers = top.ask_all(top.sockets_of_this_user(top.os.getuid()))
vms = []
for path, answer in answers.items():
    try: # another test may play a device that answers something else
        vms += [] if answer.error else [top.read_vm(path, answer)]
    except OSError:
        pass
(said,) = [numbers for vm, numbers in vms if vm["name"] == name]
counted, copied, launches = {}, {"h2d": 0, "d2h": 0}, None
for metric, labels, value in said:
    if metric == "calls_total" and labels["command"] not in ("MAP", "UNMAP", "THREAD_EXIT"):
        counted[labels["command"]] = value
    elif metric == "copied_bytes_total" and labels["direction"] in copied:
        copied[labels["direction"]] += value
    elif metric == "launches_total":
        launches = value
t = trace.merge_parts(sorted(glob.glob(share + "/part.*.json")), "test")
trace.check(t)
sums, own = trace.sums(t), t["otherData"]["own_commands"]
traced = {n: sums.get(n, {"calls": 0})["calls"] + own.get(n, 0) for n in set(sums) | set(own)}
assert traced == counted, f"{traced}\n{counted}"
assert sums["LAUNCH"]["calls"] == launches, launches
# So do the tables of the summary.
seen = trace.Seen(t)
assert sum(r.count for n, r in seen.kernels.items() if "(" in n) == launches, seen.kernels
for way, name in (("h2d", "to the GPU"), ("d2h", "from the GPU")):
    assert sum(r.bytes for (n, _), r in seen.copies.items() if n.startswith(name)) == copied[way], copied
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
