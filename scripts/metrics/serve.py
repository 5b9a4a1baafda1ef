# SPDX-License-Identifier: GPL-2.0-or-later
"""Serves the numbers of all VMs at one place, for Prometheus: `qcu top --serve`. Neither a device nor a client can make
it stand still: an answer of the devices has a limit of time and size, and is kept for a second; a client has a limit
of time, and one more than CLIENTS_MAX ends the one that has stood still for longest."""

import os
import selectors
import socket
import stat
import time

from devices import Refused, clean

DEVICES_SECONDS = 2  # Prometheus waits for ten
KEPT_SECONDS = 1
CLIENTS_MAX = 32
CLIENT_SECONDS = 5
REQUEST_MAX = 4096
KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def is_served(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(1)
        try:
            s.connect(path)
        except ConnectionRefusedError:
            return False
        except OSError:
            pass
    return True


def listen_at_path(path):
    """Only this user may connect. A socket that nobody serves is replaced."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode) and not is_served(path):
            os.unlink(path)
    except FileNotFoundError:
        pass
    mask = os.umask(0o177)
    try:
        s.bind(path)
    finally:
        os.umask(mask)
    return s


def listen_at(where):
    """A path, or PORT, ADDRESS:PORT or [ADDRESS]:PORT. An address is a number: no name is looked up."""
    try:
        if "/" in where:
            s = listen_at_path(where)
        else:
            host, _, port = where.rpartition(":")
            if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
                raise Refused(f"--serve {clean(where)}: PORT, ADDRESS:PORT or the path of a socket is wanted")
            (family, _, _, _, at), *_ = socket.getaddrinfo(
                host.strip("[]") or "127.0.0.1", int(port), type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            s = socket.socket(family, socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(at)
        s.listen(64)
    except OSError as e:
        raise Refused(f"--serve {clean(where)}: {e.strerror or e}") from e
    s.setblocking(False)
    return s


class Client:
    def __init__(self, s):
        self.socket, self.request, self.answer = s, b"", b""
        self.since = time.monotonic()  # of its last progress

    def read_request(self):
        """Returns whether the request is complete, or never can be."""
        part = self.socket.recv(REQUEST_MAX - len(self.request))
        self.request += part
        self.since = time.monotonic()
        if not part and not self.request:
            raise OSError("it has gone")
        return not part or len(self.request) == REQUEST_MAX or b"\r\n\r\n" in self.request or b"\n\n" in self.request

    def prepare_answer(self, numbers):
        method, path = (self.request.split(b"\n")[0].split(b" ") + [b"", b""])[:2]
        status, body = "200 OK", b""
        if method not in (b"GET", b"HEAD"):
            status = "405 Method Not Allowed"
        elif b"\n\n" not in self.request.replace(b"\r", b""):
            status = "400 Bad Request"
        elif path.split(b"?")[0] not in (b"/metrics", b"/"):
            status = "404 Not Found"
        else:
            body = numbers()
        head = f"HTTP/1.0 {status}\r\nContent-Type: {KIND}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.answer = head.encode() + (b"" if method == b"HEAD" else body)

    def write_some(self):
        """Returns whether all has been written."""
        self.answer = self.answer[self.socket.send(self.answer):]
        self.since = time.monotonic()
        return not self.answer


class Server:
    """collect() returns the numbers as text."""

    def __init__(self, where, collect):
        self.collect, self.numbers, self.asked = collect, b"", None
        self.listener = listen_at(where)
        self.path = where if "/" in where else None
        self.made = os.lstat(where) if self.path else None
        self.clients = {}
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(self.listener, selectors.EVENT_READ)

    def fresh_numbers(self):
        if self.asked is None or time.monotonic() - self.asked >= KEPT_SECONDS:
            self.numbers = self.collect().encode("ascii", "replace")
            self.asked = time.monotonic()
        return self.numbers

    def accept_client(self):
        s, _ = self.listener.accept()
        if len(self.clients) == CLIENTS_MAX:
            self.drop(min(self.clients.values(), key=lambda c: c.since))
        s.setblocking(False)
        self.clients[s] = Client(s)
        self.waiting.register(s, selectors.EVENT_READ)

    def drop(self, client):
        self.waiting.unregister(client.socket)
        del self.clients[client.socket]
        client.socket.close()

    def go_on_with(self, client):
        try:
            if client.answer:
                if client.write_some():
                    self.drop(client)
            elif client.read_request():
                client.prepare_answer(self.fresh_numbers)
                self.waiting.modify(client.socket, selectors.EVENT_WRITE)
        except BlockingIOError:
            pass
        except OSError:
            self.drop(client)

    def run(self):
        while True:
            for key, _ in self.waiting.select(1 if self.clients else None):
                if key.fileobj in self.clients:
                    self.go_on_with(self.clients[key.fileobj])
                elif key.fileobj is self.listener:
                    try:
                        self.accept_client()
                    except OSError:
                        pass
            late = time.monotonic() - CLIENT_SECONDS
            for client in [c for c in self.clients.values() if c.since < late]:
                self.drop(client)

    def close(self):
        """Removes its socket, if it is still its own."""
        self.listener.close()
        try:
            now = os.lstat(self.path) if self.path else None
            if now and (now.st_dev, now.st_ino) == (self.made.st_dev, self.made.st_ino):
                os.unlink(self.path)
        except OSError:
            pass
