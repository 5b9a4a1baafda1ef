# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the metrics sockets of devices, asks all of them at once, and reads what they say. What a device says is not
trusted: it may be garbage, have no end, or never come. `qcu top` uses this. docs/vm/tools.md describes it."""

import os
import re
import selectors
import socket
import stat
import struct
import time

SUFFIX = ".metrics"
LISTENS = 0x10000  # in the flags of /proc/net/unix
ANSWER_SECONDS = 10
ANSWER_MAX = 4 << 20  # bytes of one device; 63 sessions that use every command say 2 MiB
ANSWERS_MAX = 64 << 20  # of all devices together
DEVICES_MAX = 500
NAME_MAX = 64

LINE = re.compile(r'qcuda_(\w+)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\d{1,20}(?:\.\d{1,6})?)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Refused(Exception):
    """A sentence for the user."""


def clean(text):
    """Names come from guests: nothing in them reaches the terminal as a command."""
    return "".join(c if " " <= c <= "~" else "?" for c in text)


def whole(text):
    """A number in a label; 0 if it is none."""
    return int(text) if text and re.fullmatch("[0-9]{1,20}", text) else 0


# ---- finding devices ----

def sockets_of_this_user(uid):
    """All metrics sockets that are served here and belong to this user."""
    found = []
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as lines:
        for line in list(lines)[1:]:
            field = line.rstrip("\n").split(" ", 7)
            path = field[7].lstrip() if len(field) == 8 else ""
            # The number of the file stands before the path.
            path = re.sub(r"^\d+ ", "", path)
            if not path.startswith("/") or not path.endswith(SUFFIX):
                continue
            # A path can have any bytes, even such that begin a new line here.
            try:
                if int(field[3], 16) & LISTENS and path not in found and os.stat(path).st_uid == uid:
                    found.append(path)
            except (OSError, ValueError):
                pass
    return sorted(found)


def sockets_of_folder(folder):
    """All metrics sockets in this folder, served or not. Links are not followed."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for e in entries:
                if e.name.endswith(SUFFIX) and stat.S_ISSOCK(e.stat(follow_symlinks=False).st_mode):
                    found.append(e.path)
    except OSError:
        pass  # The first device makes the folder.
    return sorted(found)


def metrics_path(path):
    """--device takes the metrics socket or the device's socket for QEMU."""
    for p in (path, path + SUFFIX):
        try:
            if stat.S_ISSOCK(os.stat(p).st_mode) and (p.endswith(SUFFIX) or p != path
                                                      or not os.path.exists(path + SUFFIX)):
                return p
        except OSError:
            pass
    if os.path.exists(path):
        raise Refused(f"--device {path}: that is no socket of a qcu-device")
    raise Refused(f"--device {path}: no such socket; is the device running?")


def name_of(path):
    """The VM's name, as the operator has named its socket."""
    return clean(os.path.basename(path).removesuffix(SUFFIX).removesuffix(".sock"))[:NAME_MAX] or "?"


# ---- asking them ----

class Answer:
    """What one device has said so far, and the process that the kernel says it is."""

    def __init__(self, path):
        self.text, self.error, self.pid = b"", None, 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.setblocking(False)
            self.socket.connect(path)
            # The main process has made the socket, so this is its pid, whoever answers.
            self.pid = struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            self.socket.shutdown(socket.SHUT_WR)
        except OSError as e:
            self.end(e)

    def end(self, error=None):
        self.error = error
        self.socket.close()

    def read_some(self):
        """Returns how many bytes more there are. 0: it has ended."""
        try:
            part = self.socket.recv(1 << 16)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as e:
            self.end(e)
            return 0
        self.text += part
        if not part:
            self.end()
        elif len(self.text) > ANSWER_MAX:
            self.end(OSError("it does not come to an end"))
            return 0
        return len(part)


def ask_all(paths, seconds=ANSWER_SECONDS):
    """Returns an Answer for each path. None of them can take longer than that, or keep the others waiting."""
    end, total = time.monotonic() + seconds, 0
    answers = {p: Answer(p) for p in paths[:DEVICES_MAX]}
    with selectors.DefaultSelector() as waiting:
        for a in answers.values():
            if not a.error:
                waiting.register(a.socket, selectors.EVENT_READ, a)
        while waiting.get_map() and time.monotonic() < end and total <= ANSWERS_MAX:
            for key, _ in waiting.select(max(end - time.monotonic(), 0)):
                waiting.unregister(key.fileobj)
                more = key.data.read_some()
                total += more or 0
                if more != 0:
                    waiting.register(key.fileobj, selectors.EVENT_READ, key.data)
        for key in list(waiting.get_map().values()):
            key.data.end(OSError("it does not come to an end" if key.data.text else "it does not answer"))
    return answers


def parse(text):
    """Yields (name, labels, value) for each line with a number."""
    for line in text.decode("ascii", "replace").split("\n"):
        m = LINE.match(line)
        if m:
            labels = {k: clean(re.sub(r"\\(.)", r"\1", v))[:NAME_MAX] for k, v in LABEL.findall(m[2] or "")}
            yield m[1], labels, float(m[3]) if "." in m[3] else int(m[3])
