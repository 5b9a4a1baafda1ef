# SPDX-License-Identifier: GPL-2.0-or-later
"""
For pytest, as a plugin: takes at most SAMPLED tests of each file, evenly spread over it, or with PART=K/N the Kth of N
parts of N times as many; or the tests that the file CHOSEN names, in its order. Prints one line for each test that
has ended: what it is, whether it passed, failed or was skipped, how many seconds it took, and its properties.
"""
import collections
import inspect
import os
import sys
import unittest

worst = {}
seconds = collections.Counter()
chosen = []
if os.environ.get("CHOSEN"):
    with open(os.environ["CHOSEN"]) as lines:
        chosen = lines.read().split()
# Pytest makes no items of other functions.
functions = {name.split("::")[-1].split("[")[0] for name in chosen}
methods_of = unittest.TestLoader.getTestCaseNames
if chosen:
    unittest.TestLoader.getTestCaseNames = lambda self, of: [name for name in methods_of(self, of) if name in functions]


def name_of(nodeid):
    """Some names contain spaces and line ends."""
    return "_".join(nodeid.split())


def pytest_pycollect_makeitem(name, obj):
    return [] if chosen and not inspect.isclass(obj) and name not in functions else None


def pytest_collection_modifyitems(items):
    if chosen:
        order = {name: n for n, name in enumerate(chosen)}
        items[:] = sorted((i for i in items if name_of(i.nodeid) in order), key=lambda i: order[name_of(i.nodeid)])
        return
    part, parts = map(int, os.environ.get("PART", "0/1").split("/"))
    most = int(os.environ["SAMPLED"]) * parts
    files = collections.defaultdict(list)
    for item in items:
        files[item.nodeid.split("::")[0]].append(item)
    items[:] = [of[i * len(of) // min(most, len(of))] for of in files.values()
                for i in range(part, min(most, len(of)), parts)]


def pytest_runtest_logreport(report):
    seconds[report.nodeid] += report.duration
    if report.outcome != "passed" or report.nodeid not in worst:
        worst[report.nodeid] = report.outcome
    if report.when == "teardown":
        print(f"\ntest {name_of(report.nodeid)} {worst[report.nodeid]} {seconds[report.nodeid]:.3f}",
              *(value for _, value in report.user_properties), file=sys.__stdout__, flush=True)
