# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints one row of tests/census/run: what `qcu check --all --json` says of a wheel.

	row.py NAME VERSION MB <JSON"""

import collections
import json
import re
import sys

SHOWN = 4


def some(names):
    names = sorted(set(names))
    return ", ".join(f"`{n}`" for n in names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def runtimes(files):
    count = collections.Counter()
    for f in files:
        if f["runtime"]:
            version, _, code = f["runtime"].partition(" ")
            count[f"{'stripped' if code else 'static'} {code or version}"] += 1
        for name in f["shared"]:
            count["shared " + re.sub(r"\.so\.", " ", name).removeprefix("libcudart ").removeprefix("libcudart")] += 1
    return ", ".join(f"{k} x{n}" if n > 1 else k for k, n in sorted(count.items()))


def main():
    try:
        result = json.load(sys.stdin)
    except json.JSONDecodeError:
        sys.exit("no answer")
    files = result["files"]
    why = [w for f in files for w in f["why"]]
    missing = [m.group(1) for w in why if (m := re.match(r"needs (\S+), which is missing", w))]
    other = sorted({re.split(r"[:(]", w)[0].strip() for w in why if not w.startswith(("needs ", "this is "))})
    run = sum(f["verdict"] == "runs" for f in files)
    verdict = {"not known": "runs, if what is not here does", "no CUDA": "no program with CUDA in it"}.get(result["verdict"], result["verdict"])
    if result["verdict"] == "does not run" and any(f["verdict"] != "does not run" for f in files):
        verdict = "runs in part"
    by_name = [n for f in files for n, where in f["by_name"].items() if where == "missing"]
    if verdict == "runs" and by_name:
        verdict = "runs; may lack what it loads by name"
    if other:
        verdict += ": " + "; ".join(other[:2])
    refused = [n for f in files for n in f["unserved"] + f["lacking"]]
    absent = [n for f in files for n in f["not_here"]]
    print(f"| {' | '.join(sys.argv[1:])} | {runtimes(files)} | {run} of {len(files)} | {verdict} | {some(missing)} | "
          f"{some(absent)} | {some(refused)} | {some(by_name)} |")


main()
