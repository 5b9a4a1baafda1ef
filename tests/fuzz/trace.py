#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzzes what reads traces (scripts/trace). A guest writes these files, so they may hold anything.

Each round takes good traces, makes mistakes in them, and reads them in both ways: as the files of a guest, and with
--read. Either the reader refuses them with a sentence, or it makes a trace of them that it accepts itself, before and
after it was saved, and whose summary has only characters that can be printed.

    tests/fuzz/trace.py [--rounds N | --seconds N] [--seed N] [--round N] [TRACE...]

TRACE: more good traces to begin with. --round N: only this one. A finding ends it with the files of the round, its
seed and its number."""

import argparse
import collections
import importlib.machinery
import importlib.util
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
HANGS = 120  # seconds
TEXTS = ("", "x", "e", "b", "X", "M", "call", "gpu", "api", "range", "queue", "process_name", "thread_name", "LAUNCH", "LIB_CALL",
         "COPY_H2D", "FREE", "DEVICE_SYNC", "MODULE_LOAD", "x0", "\x1b[2J", "\ud800", "\u202e", "a" * 301, "d0.1", "d", "d.")
NUMBERS = (0, 1, -1, 0.5, 1e-320, 1e17, 9.9e17, 1e18, 1e19, 1e308, 1 << 30, 0x60000000, 1 << 31, (1 << 53) + 1, 1 << 62, 1 << 63,
           1 << 64, 10 ** 40, float("inf"), float("nan"))
OTHERS = (True, False, None, [], {}, [[]], {"name": 5}, {"name": "x"})


def load_trace_module():
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../scripts/trace")
    loader = importlib.machinery.SourceFileLoader("trace", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("trace", loader))
    loader.exec_module(module)
    return module


def small_trace():
    """One event of each kind, as the library writes them."""
    at = {"pid": 7, "tid": 8}
    call = {"ph": "X", "cat": "call", "name": "LAUNCH", **at, "ts": 10.5, "dur": 2.0,
            "args": {"seq": 1, "stream": 0, "bytes": 0, "posted": True, "error": 0, "call": "cudaLaunchKernel", "kernel": "k(int*)"}}
    give = {**call, "name": "MALLOC", "ts": 3.0, "args": {**call["args"], "seq": 2, "bytes": 4096, "posted": False,
                                                          "call": "cudaMalloc", "memory": "d0.1000"}}
    copy = {**call, "name": "COPY_H2D", "ts": 13.0, "args": {**call["args"], "seq": 3, "bytes": 64, "pageable": True}}
    work = {"ph": "X", "cat": "gpu", "name": "LAUNCH", "pid": 7, "tid": 0x40000000, "ts": 12.0, "dur": 4.0,
            "args": {"seq": 1, "tid": 8, "bytes": 0}}
    queue = {"ph": "b", "cat": "queue", "name": "LAUNCH", **at, "ts": 11.0, "id": "8.1"}
    part = {"ph": "b", "cat": "range", "name": "part", **at, "ts": 1.0, "id": "r1", "args": {"domain": "mine"}}
    return {"displayTimeUnit": "ns", "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "program"}},
        {"ph": "M", "cat": "system", "name": "thread_name", **at, "args": {"name": "worker"}},
        part,
        {"ph": "X", "cat": "api", "name": "cudaMalloc", **at, "ts": 2.5, "dur": 4.0, "args": {}},
        give, {**give, "name": "FREE", "ts": 4.0, "args": {**give["args"], "seq": 4}},
        {"ph": "X", "cat": "range", "name": "outer", **at, "ts": 9.0, "dur": 3.0, "args": {}},
        {"ph": "X", "cat": "range", "name": "crosses", **at, "ts": 10.0, "dur": 5.0, "args": {}},
        call, work, queue, {**queue, "ph": "e", "ts": 12.0}, copy,
        {**work, "name": "COPY_H2D", "ts": 14.0, "args": {"seq": 3, "tid": 8, "bytes": 64, "uncertain": True}},
        {"ph": "i", "cat": "range", "name": "mark", **at, "ts": 5.0, "args": {}, "s": "t"},
        {**part, "ph": "e", "ts": 20.0}],
        "otherData": {"ended": 123456789, "unmeasured": 0, "uncertain": 1, "left_out": 0, "own_commands": {"EVENT_RECORD": 4},
                      "away": 5, "left": 1 << 30, "came_back": 7, "room_us": 900, "filed": 1 << 20,
                      "cut_off": ["part.7.json"]}}


# ---- mistakes ----

def any_value(rnd, others):
    kind = rnd.randrange(4)
    if kind == 0:
        return rnd.choice(TEXTS)
    if kind == 1:
        return rnd.choice(NUMBERS)
    return rnd.choice(OTHERS) if kind == 2 else rnd.choice(others)


def places(value):
    """Each (container, key) below this value."""
    found, todo = [], [value]
    while todo:
        at = todo.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at))
        for key in keys:
            found.append((at, key))
            if isinstance(at[key], (dict, list)):
                todo.append(at[key])
    return found


def spoil_tree(rnd, trace):
    events = trace.get("traceEvents")
    what = rnd.randrange(8)
    if what < 3 and isinstance(events, list) and events:
        at = rnd.randrange(len(events))
        if what == 0:
            events.insert(rnd.randrange(len(events) + 1), json.loads(json.dumps(events[at])))
        elif what == 1:
            del events[at]
        else:
            events.insert(rnd.randrange(len(events)), events.pop(at))
        return
    found = places(trace)
    kind = {4: (int, float), 5: str}.get(what, object)
    fitting = [(c, k) for c, k in found if isinstance(c[k], kind)]
    if not fitting:
        return
    container, key = rnd.choice(fitting)
    old = container[key]
    if what == 3:
        del container[key]
    elif what == 4:
        container[key] = old + rnd.choice((-1, 1, -0.0004, 0.0004, 1000, old))
    elif what == 5:
        container[key] = old + rnd.choice(("\x1b[2J", "\u202e", "\ud800", "\n", "x", "a" * 300))
    else:
        # What stands elsewhere under the same name fits best, so it comes farthest.
        same = [c[k] for c, k in found if k == key] or [old]
        container[key] = json.loads(json.dumps(any_value(rnd, same)))


def spoil_text(rnd, text):
    if not text:
        return b"{"
    at, what = rnd.randrange(len(text)), rnd.randrange(5)
    if what == 0:
        return text[:at]
    if what == 1:
        return text[:at] + bytes([rnd.randrange(256)]) + text[at + 1:]
    lines = text.split(b"\n")
    i = rnd.randrange(len(lines))
    if what == 2:
        del lines[i]
    elif what == 3:
        lines.insert(rnd.randrange(len(lines) + 1), lines[i])
    else:
        lines[i] = rnd.choice((b"[" * 3000, b"{}", b",", b'{"ph":"e"}', b"\0", b"5,", b"\xff\xfe"))
    return b"\n".join(lines)


def text_of(trace):
    """One event in a line, as the library writes it."""
    rest = dict(trace)
    events = rest.pop("traceEvents", None)
    if not isinstance(events, list):
        return json.dumps(trace).encode()
    head = json.dumps(rest)[1:-1]
    lines = ",\n".join(json.dumps(e) for e in events)
    return ('{"traceEvents":[\n' + lines + "\n]" + (", " + head if head else "") + "}\n").encode()


def spoiled(rnd, good):
    trace = json.loads(rnd.choice(good))
    for _ in range(rnd.randrange(5)):
        spoil_tree(rnd, trace)
    text = text_of(trace)
    for _ in range(rnd.choice((0, 0, 0, 1, 2))):
        text = spoil_text(rnd, text)
    return text


# ---- reading them ----

class Finding(Exception):
    pass


def look_at_summary(trace, made):
    said = io.StringIO()
    trace.summary(made, said)
    bad = [c for c in said.getvalue() if not c.isprintable() and c != "\n"]
    if bad:
        raise Finding(f"the summary has {bad[0]!r}")


def must_nest(trace, made):
    """Viewers drop a span that lies half in another of its track."""
    tracks = collections.defaultdict(list)
    for e in made["traceEvents"]:
        # Beyond that microseconds have no room for nanoseconds.
        if e["ph"] == "X" and e["ts"] + e["dur"] < 1 << 42:
            tracks[e["pid"], e["tid"]].append((trace.ns(e["ts"]), trace.ns(e["ts"] + e["dur"])))
    for row in tracks.values():
        stack = []
        for begin, end in sorted(row, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1] <= begin:
                stack.pop()
            if stack and end > stack[-1]:
                raise Finding(f"a span from {begin} to {end} ns lies half in one that ends at {stack[-1]}")
            stack.append(end)


def must_be_right(trace, made, folder):
    """What the reader has made of files that it accepts, it accepts, too."""
    again = os.path.join(folder, "made.json")
    try:
        trace.check(made)
        trace.save(made, again)
        trace.check(trace.merge([("made", trace.load(again), True)]))
    except trace.Refused as e:
        raise Finding(f"it does not accept what it has made: {e}") from e
    must_nest(trace, made)
    look_at_summary(trace, made)


def read_both_ways(trace, paths, folder):
    """Returns in how many of the two ways the files were read."""
    count = 0
    try:
        made = trace.merge_parts(paths, "program")
        count += 1
    except trace.Refused:
        made = None
    if made:
        must_be_right(trace, made, folder)
    try:
        made = trace.merge([(f"vm{i}", trace.load(path), True) for i, path in enumerate(paths)])
        count += 1
    except trace.Refused:
        return count
    must_be_right(trace, made, folder)
    return count


def main():
    parser = argparse.ArgumentParser(description="Fuzzes what reads traces.")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int)
    parser.add_argument("traces", nargs="*")
    args = parser.parse_args()
    trace = load_trace_module()
    good = [json.dumps(small_trace()), json.dumps(trace.merge([("vm", small_trace(), True)]) | {"otherData": {"host_ns": 5000}})]
    for path in args.traces:
        with open(path, encoding="utf-8") as f:
            events = json.load(f)
        del events["traceEvents"][60:-30]
        good.append(json.dumps(events))
    end = time.monotonic() + args.seconds if args.seconds else None
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("a round takes more than two minutes"))
    n, read, ways = args.round or 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="fuzz-trace.") as folder:
        while time.monotonic() < end if end else args.round is not None and n == args.round or args.round is None and n < args.rounds:
            rnd = random.Random(f"{args.seed}.{n}")
            paths = []
            for i in range(rnd.choice((1, 1, 2, 3))):
                paths.append(os.path.join(folder, f"part.{i}.json"))
                with open(paths[-1], "wb") as f:
                    f.write(spoiled(rnd, good))
            signal.alarm(HANGS)
            try:
                count = read_both_ways(trace, paths, folder)
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc(file=sys.stdout)
                for path in paths:
                    with open(path, "rb") as f:
                        print(f.read())
                print(f"FINDING: --seed {args.seed} --round {n}", *args.traces)
                return 1
            signal.alarm(0)
            read, ways, n = read + (count > 0), ways + count, n + 1
    print(f"{n} rounds, {read} of them with traces that are read ({ways} times)")
    # With hardly any, or hardly none, the mistakes would be too many or too few to say anything.
    return 0 if args.round is not None or n / 20 < read < n * 19 / 20 else 1


if __name__ == "__main__":
    sys.exit(main())
