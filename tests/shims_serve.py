# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs scripts/shims/generate for tests/check/shims.sh, many times without a new start: shims_serve.py OUT ERR. Each
line of its input has the words of a command line. It goes on in a process of its own, with output to OUT and ERR; its
exit code comes back as a line. Most of the time of a start goes to Python and the parser's tables."""
import importlib.machinery
import importlib.util
import os
import sys

sys.dont_write_bytecode = True
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts/shims")
sys.path.insert(0, folder)
loader = importlib.machinery.SourceFileLoader("generate", os.path.join(folder, "generate"))
generate = importlib.util.module_from_spec(importlib.util.spec_from_loader("generate", loader))
loader.exec_module(generate)


def run_apart(words):
    """As the program does, whatever it leaves behind in its variables."""
    child = os.fork()
    if not child:
        for number, path in (1, sys.argv[1]), (2, sys.argv[2]):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.exit(generate.main(words))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for line in sys.stdin:
    print(run_apart(line.split()), flush=True)
