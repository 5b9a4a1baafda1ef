#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Speaks to the device of a job in the place of QEMU, as the job's user can.

usage: front.py SOCKET          sends messages that the device must refuse; prints how often it has ended
       front.py SOCKET --wait   sends half a message, says so, and waits until the device has gone
"""

import array
import os
import socket
import struct
import sys


def begin():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.settimeout(300)  # only a device that serves what it must not reaches it
    return s


def ended(s):
    try:
        return not s.recv(4096)
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


if sys.argv[2:] == ["--wait"]:
    with begin() as s:
        s.sendall(struct.pack("<III", 1, 1, 0))
        # Which features the device has: it is there. The answer may come in two parts, and with a limit of time recv() takes
        # what there is, also if it shall wait for all.
        with s.makefile("rb") as answer:
            answer.read(20)
        s.sendall(struct.pack("<I", 1))
        print("waits", flush=True)
        print("ended" if ended(s) else "answered", flush=True)
    sys.exit()
memory = os.memfd_create("memory")
os.ftruncate(memory, 4096)
region = struct.pack("<QQQQ", 0, 1 << 40, 0, 0)
count = 0
# userfaultfd, a table of queues in flight, memory that is longer than its file, more regions than files.
for request, payload in ((28, b""), (32, bytes(24)), (5, struct.pack("<II", 1, 0) + region), (5, struct.pack("<II", 99, 0) + region)):
    with begin() as s:
        header = struct.pack("<III", request, 1, len(payload))
        s.sendmsg([header + payload], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
        count += ended(s)
print("refused:", count)
