#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""terminal.py ROWSxCOLUMNS KEYS COMMAND...: runs COMMAND on a terminal of this size and sends it the next key whenever it has
drawn its screen anew four times. Prints the screen before each key and at the end, without escape sequences, and fails if
a line was wider than the terminal, or if the terminal is left in another mode than it was."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios

ANEW = "\033[H\033[J"

rows, columns = map(int, sys.argv[1].split("x"))
keys, command = list(sys.argv[2]), sys.argv[3:]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
before = termios.tcgetattr(slave)
bad = []


def screen(text):
    """The last whole screen, or all if nothing was drawn anew."""
    parts = text.split(ANEW)
    plain = re.sub(r"\033\[[\d;]*[A-Za-z]", "", parts[-1] if len(parts) < 3 else parts[-2]).replace("\r", "")
    lines = plain.split("\n")
    bad.extend(f"too wide: {line}" for line in lines if len(line) > columns)
    if len(lines) > rows:
        bad.append(f"{len(lines)} lines on a screen of {rows}")
    print(plain, end="")
    print("-" * 8)


with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as child:
    said, seen = "", 0
    while child.poll() is None or select.select([master], [], [], 0)[0]:
        if select.select([master], [], [], 0.1)[0]:
            said += os.read(master, 1 << 16).decode("utf-8", "replace")
        if keys and said.count(ANEW) >= seen + 4:
            screen(said)
            seen = said.count(ANEW)
            os.write(master, keys.pop(0).encode())
screen(said)
if termios.tcgetattr(slave) != before:
    bad.append("the terminal is in another mode")
print("\n".join(bad))
sys.exit(child.returncode or (99 if bad or keys else 0))
