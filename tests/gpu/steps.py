# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs functions one after the other. What each returns goes to stdout, and must be the same natively and
in a VM; how long it took goes to stderr."""
import hashlib
import os
import sys
import time
import traceback

BEGAN = time.monotonic()
STEPS = []


def log(text):
    print(f"[{time.monotonic() - BEGAN:7.2f} s] {text}", file=sys.stderr, flush=True)


def step(function):
    STEPS.append(function)
    return function


def digest(tensor):
    """All bits of a tensor, in short."""
    data = tensor.detach().cpu().contiguous().numpy().tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def run():
    """Runs the steps named on the command line, or all of them; but none that is named after "but"."""
    before, _, after = " ".join(sys.argv[1:]).partition("but")
    wanted, unwanted = before.split(), after.split()
    failed = 0
    for function in STEPS:
        if (wanted and function.__name__ not in wanted) or function.__name__ in unwanted:
            continue
        began = time.monotonic()
        try:
            print(function.__name__, function(), flush=True)
        except Exception as error:
            failed += 1
            print(function.__name__, "FAILED", type(error).__name__, flush=True)
            traceback.print_exc()
        log(f"{function.__name__}: {time.monotonic() - began:.3f} s")
    if failed:
        # Without the destructors of a library whose context may be broken.
        sys.stdout.flush()
        os._exit(1)
