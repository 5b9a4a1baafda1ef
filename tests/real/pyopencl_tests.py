# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs PyOpenCL's own tests, unchanged, and writes each one's name and outcome to a file as soon as it is known.

usage: pyopencl_tests.py RESULTS SECONDS PART/PARTS FILE...

Runs every PARTSth test, beginning with the PARTth, but for those whose functions WITHOUT names. A test that ends the
process, or takes longer than SECONDS, has the outcome "ended"; the tests after it run in a new process. Exit code: 0 if
every test was reached, whatever its outcome."""

import os
import re
import signal
import subprocess
import sys

NO_TESTS = 5  # pytest's exit code when none is left
MOST_RUNS = 40


def read_results(path):
    """The outcomes so far by test. A test that was begun and has none has ended its process."""
    results = {}
    if os.path.exists(path):
        with open(path) as lines:
            for line in lines:
                outcome, test = line.rstrip("\n").split(" ", 1)
                results[test] = outcome
    return results


def name_of(nodeid):
    """A test's name, without its folder and the device's name."""
    return re.sub("<context factory for .*?>>", "device", nodeid[nodeid.find("test_") :])


def add(outcome, nodeid):
    with open(os.environ["RESULTS"], "a") as results:
        results.write(f"{outcome} {name_of(nodeid)}\n")


# The rest but main is what pytest calls: this file is its plugin, too.
def pytest_collection_modifyitems(items):
    done = read_results(os.environ["RESULTS"])
    without = os.environ.get("WITHOUT", "").split()
    part, parts = map(int, os.environ["PART"].split("/"))
    wanted = [item for item in items[part - 1 :: parts] if item.originalname not in without]
    items[:] = [item for item in wanted if name_of(item.nodeid) not in done]


def pytest_runtest_logstart(nodeid):
    add("ended", nodeid)
    signal.alarm(int(os.environ["SECONDS"]))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        add(report.outcome, report.nodeid)


def pytest_runtest_logfinish():
    signal.alarm(0)


def main():
    """Begins with no results, and runs pytest until every test was reached."""
    results, seconds, part, *files = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, RESULTS=os.path.abspath(results), SECONDS=seconds, PART=part, PYTHONPATH=path)
    command = [sys.executable, "-m", "pytest", "-p", "pyopencl_tests", "-p", "no:cacheprovider", "-v", "--tb=short"]
    code = 1
    if os.path.exists(results):
        os.remove(results)
    for _ in range(MOST_RUNS):
        code = subprocess.run(command + files, env=environment).returncode
        if 0 <= code < 128:
            break
        # The next run leaves out the test that ended this one.
        print(f"pytest ended with {code}", flush=True)
    return 0 if code in (0, 1, NO_TESTS) else code


if __name__ == "__main__":
    sys.exit(main())
