#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""fake_devices.py FOLDER PID: metrics sockets whose devices say garbage, say nothing, never end, or tell lies about the
VM web, whose device has this pid. Makes the file FOLDER/ready when all are there. Ends with its standard input."""

import os
import socket
import sys
import threading

folder, pid = sys.argv[1], int(sys.argv[2])
held = []


def listen(name, backlog=8):
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{folder}/{name}.sock.metrics")
    s.listen(backlog)
    held.append(s)
    return s


def answer_all(s, text, again, hold):
    while True:
        c, _ = s.accept()
        try:
            c.sendall(text)
            while again:
                c.sendall(text)
        except OSError:
            pass
        if hold:
            held.append(c)
        else:
            c.close()


def start(name, text, again=False, hold=False):
    threading.Thread(target=answer_all, args=(listen(name), text, again, hold), daemon=True).start()


HEAD = b'qcuda_device{vm="web",pid="%d",gpu="soft",wire="1"} 1\n' % pid
start("garbage", bytes(range(256)) * 1000)
start("nothing", b"")
start("endless", (HEAD + b"qcuda_launches_total 5\n") * 1000, again=True)
start("one-line", b"qcuda_calls_total{", again=True)
start("hangs", HEAD, hold=True)
listen("deaf")
# Its queue is full: a connection would wait.
listen("full", 0)
for _ in range(2):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].setblocking(False)
    try:
        held[-1].connect(f"{folder}/full.sock.metrics")
    except BlockingIOError:
        pass
# Another VM's name and pid, a series twice, labels of ours, labels that would begin lines, and what are no numbers.
start("liar", HEAD + b"""qcuda_connected 1
qcuda_connected 0
qcuda_up{socket="x"} 7
qcuda_sessions{vm="web",device="1",socket="web"} 9
qcuda_session_launches_total{session="1",pid="2",program="a\\nqcuda_up 1\\"} 1\\n# EOF"} 5
# EOF
qcuda_calls_total{command="\xff\x00\x1b"} 5
qcuda_errors_total 3.25
qcuda_copies_total NaN
qcuda_waits_total 1e9
qcuda_chunks 5 1700000000
qcuda_mapped_bytes -5
qcuda_refused 5
""")
start('odd"\n{}\\', HEAD)
# Nobody serves this one.
dead = socket.socket(socket.AF_UNIX)
dead.bind(f"{folder}/dead.sock.metrics")
dead.close()
os.symlink("web.sock.metrics", f"{folder}/link.sock.metrics")
for made in ("file.sock.metrics", "ready"):
    with open(f"{folder}/{made}", "w", encoding="ascii"):
        pass
sys.stdin.read()
