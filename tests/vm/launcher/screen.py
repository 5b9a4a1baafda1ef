#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""screen.py COMMAND...: runs COMMAND on a terminal and prints, as JSON, its exit code, all that it wrote, and the lines
that its screen has in the end."""

import json
import os
import pty
import sys


def screen(text):
    """What a terminal shows that knows CR, LF and the erasing of a line's rest."""
    lines, row, column, i = [""], 0, 0, 0
    while i < len(text):
        if text.startswith("\x1b[K", i):
            lines[row] = lines[row][:column]
            i += 3
            continue
        c = text[i]
        if c == "\r":
            column = 0
        elif c == "\n":
            row += 1
            lines.append("")
        else:
            lines[row] = lines[row].ljust(column)[:column] + c + lines[row][column + 1:]
            column += 1
        i += 1
    return [line for line in lines if line]


pid, fd = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    said += part
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
said = said.decode(errors="replace")
print(json.dumps({"code": code, "said": said, "screen": screen(said)}))
