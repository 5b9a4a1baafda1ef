# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a program in a VM with `qcu trace`, and compares the trace with what the VM's device has counted:
traced.py OUT.json ARGUMENTS OF QCU TRACE...
It ends with 1 if they differ by more than a hundredth. PARTS names the folder with scripts/."""
import glob
import importlib.machinery
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
SCRIPTS = os.environ.get("PARTS", ROOT + "/scripts")


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, f"{ROOT}/scripts/{name}")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def last_numbers(folder, vm):
    """What the device in this folder says when it ends."""
    while vm.poll() is None:
        for path in glob.glob(f"{folder}/*/*.metrics"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as device:
                try:
                    device.connect(path)
                except OSError:
                    continue
                device.sendall(b"GET /end HTTP/1.0\r\n\r\n")
                return b"".join(iter(lambda: device.recv(65536), b""))
        time.sleep(0.01)
    return b""


def main():
    out, arguments = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([f"{SCRIPTS}/qcu", "trace", "--out", out, "--summary", *arguments],
                              env=dict(os.environ, TMPDIR=folder)) as vm:
            said = last_numbers(folder, vm)
            code = vm.wait()
    print("exit code", code)
    if code != 0 or not said:
        sys.exit("the device has said nothing" if code == 0 else code)
    top, trace = load("top"), load("trace")
    counted, copied, launches = {}, {"h2d": 0, "d2h": 0, "d2d": 0}, 0
    for name, labels, value in top.parse(said):
        # The trace has neither the driver's commands nor those with which threads end.
        if name == "calls_total" and labels["command"] not in ("MAP", "UNMAP", "THREAD_EXIT"):
            counted[labels["command"]] = value
        elif name == "copied_bytes_total":
            copied[labels["direction"]] += value
        elif name == "launches_total":
            launches = value
    t = trace.load(out)
    seen, sums, own = trace.Seen(t), trace.sums(t), t["otherData"]["own_commands"]
    traced = {n: sums.get(n, {"calls": 0})["calls"] + own.get(n, 0) for n in set(sums) | set(own)}
    rows = [("commands", sum(traced.values()), sum(counted.values())),
            ("launches", sums.get("LAUNCH", {"calls": 0})["calls"], launches)]
    for way, title in (("h2d", "to the GPU"), ("d2h", "from the GPU")):
        rows.append((f"bytes {title}", sum(r.bytes for (n, _), r in seen.copies.items() if n.startswith(title)), copied[way]))
    for name, of_trace, of_device in rows:
        print(f"{name}: trace {of_trace}, metrics {of_device}")
    for name in sorted(set(traced) | set(counted)):
        if traced.get(name, 0) != counted.get(name, 0):
            print(f"not alike: {name}: trace {traced.get(name, 0)}, metrics {counted.get(name, 0)}")
    print("calls that NVIDIA's libraries on the host made:", sum(v for n, v in counted.items() if n.startswith("LIB_")))
    work = [e for e in t["traceEvents"] if e.get("cat") == "gpu"]
    print(f"work on the GPU: {len(work)} pieces, {sum(e['dur'] for e in work) / 1000:.3f} ms;",
          *(f"{k} {t['otherData'].get(k)}" for k in ("unmeasured", "uncertain", "left_out", "cut_off")))
    wrong = [name for name, a, b in rows if abs(a - b) > 0.01 * max(a, b)]
    print("within 1%:", "no: " + ", ".join(wrong) if wrong else "yes")
    sys.exit(bool(wrong))


main()
