#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""qcu-smi with GPUs in software in its own process: wrong options, and what each page prints. The programs of a VM
are in tests/vm/limits.sh."""

import csv
import json
import os
import re
import subprocess
import sys

SMI = f"{sys.argv[1]}/loopback/qcu-smi"

# What tools ask for most, and what each of the fields looks like here.
USUAL = {
    "index": "[01]", "count": "2", "name": "qCUDA software GPU", "gpu_name": "qCUDA software GPU",
    "uuid": "GPU-[0-9a-f-]{36}", "gpu_uuid": "GPU-.*", "serial": r"\[N/A\]", "driver_version": "580.65.06",
    "timestamp": r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", "compute_cap": "9.0", "compute_mode": "Default",
    "pci.bus_id": "00000000:0[12]:00.0", "gpu_bus_id": "00000000:0[12]:00.0", "pci.domain": "0x0000",
    "pci.bus": "0x0[12]", "pci.device": "0x00", "pci.device_id": "0x[0-9A-F]{8}", "pci.sub_device_id": "0x[0-9A-F]{8}",
    "memory.total": "4096 MiB", "memory.used": "0 MiB", "memory.free": "4096 MiB", "memory.reserved": r"\[N/A\]",
    "utilization.gpu": "0 %", "utilization.memory": "0 %", "temperature.gpu": "40", "temperature.memory": r"\[N/A\]",
    "power.draw": "100.00 W", "power.limit": r"\d+\.\d\d W", "enforced.power.limit": r"\d+\.\d\d W",
    "power.default_limit": r"\[N/A\]", "power.max_limit": r"\[N/A\]", "clocks.gr": "1000 MHz", "clocks.sm": "1000 MHz",
    "clocks.mem": "1600 MHz", "clocks.video": "1000 MHz", "clocks.max.sm": "1000 MHz", "clocks.max.memory": "1600 MHz",
    "clocks.applications.graphics": "1000 MHz", "clocks.current.sm": "1000 MHz", "pstate": r"\[N/A\]",
    "fan.speed": r"\[N/A\]", "persistence_mode": r"\[N/A\]", "display_mode": "Disabled", "display_active": "Disabled",
    "ecc.mode.current": "Disabled", "mig.mode.current": r"\[N/A\]", "pcie.link.gen.current": r"\[N/A\]",
    "pcie.link.width.max": r"\[N/A\]", "vbios_version": r"\[N/A\]", "clocks_throttle_reasons.active": r"\[N/A\]",
    "ecc.errors.uncorrected.volatile.total": r"\[N/A\]",
}


def run(*words, code=0, out=None, err="", nvml="full"):
    """Runs it, and returns what it printed. Both outputs must match what is expected."""
    done = subprocess.run([SMI, *words], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "QCU_LOOPBACK_GPUS": "2", "QCU_LOOPBACK_NVML": nvml})
    where = f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == code, f"exit code, not {code}: {where}"
    assert out is None or re.search(out, done.stdout, re.M), f"prints nothing like {out}: {where}"
    assert re.search(err, done.stderr, re.M) and bool(err) == bool(done.stderr), f"says nothing like {err}: {where}"
    return done.stdout


def wrong_options():
    for words, why in [
            (["--frobnicate"], "what is --frobnicate"), (["gpu"], "what is gpu"), (["-L", "-q"], "only one of"),
            (["-L=1"], "what is -L=1"), (["--query=1"], "--query has no value"), (["-i"], "-i needs a value"),
            (["--query-gpu=index"], "needs --format=csv"), (["--format=csv"], "belongs to --query-gpu"),
            (["--query-gpu=index", "--format=xml"], 'what is "xml"'),
            (["--query-gpu=index", "--format=noheader"], "must have csv"),
            (["--query-gpu=speed", "--format=csv"], 'Field "speed" is not a valid field to query.'),
            (["--query-gpu=", "--format=csv"], 'Field "" is not a valid field'),
            (["--query-gpu=name,,uuid", "--format=csv"], 'Field "" is not a valid field'),
            (["--query-gpu=memory.totals", "--format=csv"], 'Field "memory.totals" is not'),
            (["--query-gpu=clocks.gr clocks", "--format=csv"], "is not a valid field"),
            (["--query-gpu=" + "index," * 300 + "index", "--format=csv"], "more than 256 fields"),
            (["--query-compute-apps=index", "--format=csv"], 'Field "index" is not'),
            (["-q", "-d", "WEATHER"], 'no section "WEATHER"'), (["-q", "-d", ""], 'no section ""'),
            (["-d", "MEMORY"], "belongs to -q"), (["-l", "0"], "from 1 to"), (["-l", "nan"], "from 1 to"),
            (["-lms", "x"], "must be a number"), (["-lms"], "needs a value"), (["dmon", "-q"], "what is -q"),
            (["dmon", "-s", "z"], "some of the letters"), (["dmon", "-c", "0"], "from 1 to")]:
        run(*words, code=2, err=why)
    for gpu in "7", "-1", "x", "0x", "GPU-nothing", "99:00.0", "99999999999999999999", "0,7", "", "0,":
        run("-L", "-i", gpu, code=6, err="No devices were found")


def pages():
    run("--help", out="^  --query-gpu=LIST")
    table = run().splitlines()[1:]
    assert {len(line) for line in table if line} == {91}, "a line of the table is longer:\n" + "\n".join(table)
    run(out=r"^\| QCU-SMI 580.65.06 +Driver Version: 580.65.06 +CUDA Version: 13\.\d +\|$")
    run(out=r"^\|   1  qCUDA software GPU +N/A  \|   00000000:02:00.0 Off \| +N/A \|$")
    run(out=r"^\| N/A   40C +N/A +100W / +\d+W \| +0MiB / +4096MiB \| +0% +Default \|$")
    run(out="No running processes found")
    run(nvml="none", out=r"^\| N/A   N/A   N/A +N/A / +N/A \| +0MiB / +4096MiB \| +N/A +Default \|$")
    uuids = re.findall(r"^GPU [01]: qCUDA software GPU \(UUID: (GPU-[0-9a-f-]{36})\)$", run("-L"), re.M)
    assert len(set(uuids)) == 2
    for one in uuids[1], "1", "00000000:02:00.0":
        assert run("-L", f"--id={one}").startswith("GPU 1: "), one
    assert [line[:5] for line in run("-L", "-i", "1,0").splitlines()] == ["GPU 1", "GPU 0"]

    run("-q", out="^    FB Memory Usage\n        Total +: 4096 MiB\n")
    run("-q", out=r"^        GPU Current Temp +: 40 C$")
    assert run("-q").count("\nGPU 0000") == 2
    some = run("-q", "-d", "memory,PIDS", "-i", "0")
    assert "Processes  " in some and "FB Memory" in some and "Clocks" not in some, some


def rows():
    names = list(USUAL)
    assert len(names) >= 40
    for nvml in "full", "own", "none":
        text = run(f"--query-gpu={','.join(names)}", "--format=csv", nvml=nvml)
        head, *gpus = csv.reader(text.splitlines(), skipinitialspace=True)
        assert len(gpus) == 2 and {len(head), *map(len, gpus)} == {len(names)}, text
        for gpu in gpus:
            for name, value in zip(names, gpu):
                known = re.fullmatch(USUAL[name], value)
                assert known or (nvml != "full" and value == "[N/A]") or (name == "driver_version"), (nvml, name, value)
    # Shorter names stand for the long ones, as in nvidia-smi.
    wanted = "--query-gpu=clocks.sm, gpu_name,temperature.gpu,utilization.gpu"
    run(wanted, "--format=csv",
        out=r"^clocks\.current\.sm \[MHz\], name, temperature\.gpu, utilization\.gpu \[%\]\n1000 MHz, qCUDA software GPU, 40, 0 %$")
    run(wanted, "--format", "csv, noheader, nounits", out=r"\A1000, qCUDA software GPU, 40, 0\n1000")
    run("--query-compute-apps=pid,name,used_memory", "--format=csv",
        out=r"\Apid, process_name, used_gpu_memory \[MiB\]\n\Z")
    for asked, some in ("gpu", USUAL), ("compute-apps", ["pid", "process_name", "used_gpu_memory", "gpu_uuid"]):
        listed = re.findall(r"[\w.]+", run(f"--help-query-{asked}"))
        assert not set(some) - set(listed), set(some) - set(listed)

    object_ = json.loads(run("--json", nvml="own"))
    gpu = object_["gpus"][1]
    assert (gpu["index"], gpu["memory.total"], gpu["utilization.gpu"], gpu["power.draw"]) == (1, 4096, 0, None)
    assert gpu["processes"] == [] and gpu["pci.bus_id"] == "00000000:02:00.0"
    assert json.loads(run("--json", "-i", "0"))["gpus"][0]["power.draw"] == 100


def again():
    """One line of titles, and then rows until nobody reads."""
    with subprocess.Popen([SMI, "--query-gpu=index,name", "--format=csv", "-lms", "1", "-i", "0"],
                          stdout=subprocess.PIPE, text=True) as p:
        lines = [p.stdout.readline() for _ in range(4)]
        p.stdout.close()
        assert p.wait(60) == -13
    assert lines == ["index, name\n"] + 3 * ["0, qCUDA software GPU\n"], lines
    lines = run("dmon", "-c", "1").splitlines()
    assert lines[0].split()[:4] == ["#", "gpu", "pwr", "gtemp"] and len(lines) == 4, lines
    assert lines[3].split() == ["1", "100", "40", "-", "0", "0", "-", "-", "-", "-", "1600", "1000"], lines
    assert {len(line) for line in lines} == {len(lines[0])}, lines
    lines = run("dmon", "-c", "2", "-d", "1", "-s", "um", "-i", "1").splitlines()
    assert len(lines) == 4 and lines[2] == lines[3] and lines[0].split()[2:] == "sm mem enc dec jpg ofa fb".split(), lines


wrong_options()
pages()
rows()
again()
full = subprocess.run([SMI, "-L"], stdout=open("/dev/full", "w", encoding="ascii"), stderr=subprocess.PIPE, check=False)
assert full.returncode == 255 and b"No space left" in full.stderr, full
