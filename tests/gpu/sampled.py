# SPDX-License-Identifier: GPL-2.0-or-later
"""
For pytest, as a plugin: takes at most SAMPLED tests of each file, evenly spread over it, and prints one line for each
test that has ended: what it is, and passed, failed or skipped.
"""
import collections
import os
import sys

worst = {}


def pytest_collection_modifyitems(items):
    most = int(os.environ["SAMPLED"])
    files = collections.defaultdict(list)
    for item in items:
        files[item.nodeid.split("::")[0]].append(item)
    items[:] = [of[i * len(of) // min(most, len(of))] for of in files.values() for i in range(min(most, len(of)))]


def pytest_runtest_logreport(report):
    if report.outcome != "passed" or report.nodeid not in worst:
        worst[report.nodeid] = report.outcome
    if report.when == "teardown":
        # Some names contain spaces and line ends.
        name = "_".join(report.nodeid.split())
        print(f"\ntest {name} {worst[report.nodeid]}", file=sys.__stdout__, flush=True)
