#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Stands between QEMU and qcu-device, and changes what the guest reads in the config space.

usage: between.py SOCKET DEVICE PLAN

QEMU connects to SOCKET, qcu-device listens at DEVICE. When one of them goes, the other loses its connection, too, and
the next QEMU is awaited. A file PLAN says what to change: SKIP COUNT OFFSET BYTES. After SKIP answers, COUNT of them
(0: all, until the next plan) have these BYTES (hexadecimal) at OFFSET. A plan is taken once, and the file removed.
"""
import os
import select
import socket
import sys
import time

GET_CONFIG = 24
REPLY = 4  # a flag
HEADER = 12
REGION = HEADER + 12  # offset, size and flags of the region stand before it

here, device, plan_file = sys.argv[1:]


class Plan:
    def __init__(self):
        self.skip, self.count, self.change = 0, -1, b""

    def take(self):
        if not os.path.exists(plan_file):
            return
        with open(plan_file, encoding="ascii") as f:
            skip, count, offset, change = f.read().split()
        os.unlink(plan_file)
        self.skip, self.count = int(skip), int(count) or sys.maxsize
        self.offset, self.change = int(offset), bytes.fromhex(change)

    def apply(self, message):
        self.take()
        if self.skip > 0:
            self.skip -= 1
        elif self.count > 0:
            self.count -= 1
            at = REGION + self.offset
            message[at : at + len(self.change)] = self.change


def receive(sock):
    """Returns one message and its file descriptors, which come with its first byte."""
    message, fds, _, _ = socket.recv_fds(sock, HEADER, 64)
    size = HEADER
    while message:
        if len(message) == HEADER:
            size = HEADER + int.from_bytes(message[8:], "little")
        if len(message) == size:
            break
        more = sock.recv(size - len(message))
        message = message + more if more else b""
    return bytearray(message), fds


def carry(source, target, plan):
    """Carries one message. Returns False when the source has closed its socket."""
    message, fds = receive(source)
    if message and plan and message[0] == GET_CONFIG and message[4] & REPLY:
        plan.apply(message)
    if message:
        socket.send_fds(target, [message], fds)
    for fd in fds:
        os.close(fd)
    return bool(message)


def connect():
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(device)
            return sock
        except OSError:
            sock.close()
            time.sleep(0.05)


def serve(plan):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(here)
    listener.listen(1)
    vm, _ = listener.accept()
    listener.close()
    os.unlink(here)
    host = connect()
    with vm, host:
        try:
            while True:
                ready, _, _ = select.select([vm, host], [], [])
                if vm in ready and not carry(vm, host, None):
                    return
                if host in ready and not carry(host, vm, plan):
                    return
        except OSError:
            return


plan = Plan()
while True:
    serve(plan)
