#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
One qcu-device after the other takes a VM over, under programs that run, and is cut off in each step. Called by
moving.sh.

usage: take_over.py FOLDER QEMU QCU_DEVICE VMLINUX INITRD KLOG SLOW
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import moving
from moving import Failed, IN_THE_MIDDLE, VM, everything, expect, folder, klog, qcu_device, until

SESSIONS = 12
only = os.environ.get("TAKE_OVER_ONLY", "").split()
NIGHT = os.environ.get("QCU_NIGHTLY")
ROUNDS = 200 if NIGHT else 5
ROUNDS_AT_WORK = 50 if NIGHT else 5
GREETING, READY, THE_VM, HAVE, YOURS, NO = range(1, 7)
WORD = struct.Struct("<QIIIIQQIII12s192s")


class Device(moving.Device):
    """A qcu-device that hands its VM over."""

    def start(self, sessions=SESSIONS, more=()):
        self.path = self.socket + ".hand-over"
        self.process = self.run(sessions, *more)
        until("qcu-device's socket", lambda: os.path.exists(self.socket))

    def run(self, sessions, *more):
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [qcu_device, "--socket", self.socket, "--gpu", "soft", "--sessions", str(sessions), "--hand-over", self.path,
                 *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        everything.append(process)
        return process

    def take_over(self, *more, sessions=SESSIONS):
        return self.run(sessions, "--take-over", *more)

    def tries_to_succeed(self):
        """Another qcu-device takes over, or says why it does not. Its place is the old one's."""
        old, new = self.process, self.take_over()
        until(f"one of the two ends: {self.end_of_log()}", lambda: old.poll() is not None or new.poll() is not None)
        if new.poll() is not None:
            expect(f"both ended: {self.end_of_log()}", old.poll() is None)
            return False
        expect(f"the old one ended with {old.returncode}", old.returncode == 0)
        self.process = new
        return True

    def succeed(self):
        expect(f"no other one takes over: {self.end_of_log()}", self.tries_to_succeed())

    def end_of_log(self):
        with open(self.log, encoding="ascii", errors="replace") as log:
            return log.read()[-600:]

    def metrics(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.socket + ".metrics")
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: s.recv(65536), b""))

    def serves_metrics(self):
        try:
            return b"qcuda_" in self.metrics()
        except OSError:
            return False


class Peer:
    """Plays a new qcu-device."""

    def __init__(self, device):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(moving.LIMIT)
        self.sock.connect(device.path)

    def hear(self):
        data, files, _, _ = socket.recv_fds(self.sock, WORD.size, 3)
        for fd in files:
            os.close(fd)
        return WORD.unpack(data) if len(data) == WORD.size else None

    def say(self, *fields):
        self.sock.sendall(WORD.pack(*fields))

    def greeting(self):
        word = self.hear()
        expect(f"no greeting: {word}", word and word[2] == GREETING and word[7] == 1)
        return list(word)

    def ready(self):
        word = self.greeting()
        word[2], word[7] = READY, 0
        self.say(*word)
        word = self.hear()
        expect(f"no VM: {word}", word and word[2] == THE_VM)
        return list(word)

    def close(self):
        self.sock.close()


def hold(vm, n, how=""):
    """Program number n has a session until it is released. It checks its memory then."""
    vm.does(f"rm -f /tmp/in{n} && mkfifo /tmp/in{n} && : >/tmp/out{n}")
    vm.does(f"sleeper {how} <>/tmp/in{n} >/tmp/out{n} 2>&1 & eval held{n}=$!; until_true grep -q ready /tmp/out{n}")


def release(vm, *numbers):
    for n in numbers:
        vm.does(f"echo >/tmp/in{n}; wait $held{n} || {{ cat /tmp/out{n}; false; }}")


def ended_with(vm, n, code):
    vm.does(f"echo >/tmp/in{n}; wait $held{n}; [ $? = {code} ]")


# ---- the cases ----


def before_there_is_a_vm(device):
    """A qcu-device that still waits for QEMU gives its place away."""
    for _ in range(2):
        device.succeed()
        expect("the socket is gone", os.path.exists(device.socket))
        until("metrics", device.serves_metrics)


def without_programs(vm):
    for _ in range(50 if NIGHT else 1):
        for _ in range(3):
            vm.device.succeed()
        vm.does("vector_add")
        until("metrics", vm.device.serves_metrics)
    expect("old metrics are left", not [f for f in os.listdir(folder) if ".metrics." in f])


def under_programs(vm):
    """Eight programs, two of them with managed memory; a ninth begins and ends all the time."""
    for n in range(8):
        hold(vm, n, ("", "busy", "managed", "busy")[n % 4])
    vm.does("rm -f /tmp/end; (while [ ! -e /tmp/end ]; do vector_add >/tmp/log2 2>&1 || exit; done) & eval often=$!")
    for _ in range(ROUNDS):
        vm.device.succeed()
    vm.does("touch /tmp/end; wait $often || { cat /tmp/log2; false; }")
    release(vm, *range(8))


def under_work(vm):
    """Three programs with all that is saved: streams, graphs, host functions, textures, printed text."""
    vm.does("works")
    busy = done = 0
    while done < ROUNDS_AT_WORK:
        if vm.device.tries_to_succeed():
            done += 1
        else:
            expect(vm.device.end_of_log(), any(why in vm.device.end_of_log() for why in IN_THE_MIDDLE))
            busy += 1
            expect("a program is always in the middle of something", busy < 20 * ROUNDS_AT_WORK)
    vm.does("worked")


def dead_stays_dead(vm):
    """The mirror of one program was killed. The program gets its error from the new qcu-device, and no other does."""
    hold(vm, 1)
    hold(vm, 2)
    mirror = mirrors(vm.device.process.pid)[0]
    os.kill(mirror, signal.SIGKILL)
    until("it is reaped", lambda: mirror not in mirrors(vm.device.process.pid))
    vm.device.succeed()
    vm.does("echo >/tmp/in1; echo >/tmp/in2; wait $held1; a=$?; wait $held2; b=$?; [ $a$b = 460 ] || [ $a$b = 046 ]")
    vm.does("vector_add")


def mirrors(main):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                stat = f.read()
            if "(qcu-mirror" in stat and is_below(int(pid), main):
                found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


def is_below(pid, main):
    while pid > 1:
        if pid == main:
            return True
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            pid = int(f.read().rpartition(")")[2].split()[1])
    return False


def refused(vm):
    """Who is of another release, cannot have as many sessions, or says nonsense, gets a reason, and no VM."""
    hold(vm, 1)
    new = vm.device.take_over(sessions=SESSIONS - 1)
    expect("it went on", new.wait(moving.LIMIT) == 1)
    until("a reason", lambda: vm.device.said("use the same --sessions"))
    for change, reason in (((1, 2), b"another release"), ((3, 9999), b"another release"), ((2, HAVE), b"something else"),
                           ((0, 1), b"not a qcu-device"), ((4, SESSIONS + 1), b"use the same --sessions"),
                           ((5, 4096), b"lies elsewhere"), ((6, 4096), b"lies elsewhere"), ((8, 1), b"makes no sense"), ((9, 1), b"makes no sense"),
                           ((10, b"x"), b"makes no sense"), ((2, NO), b"no reason")):
        peer = Peer(vm.device)
        word = peer.greeting()
        word[2], word[7] = READY, 0
        word[change[0]] = change[1]
        peer.say(*word)
        answer = peer.hear()
        expect(f"{change}: {answer}", answer and answer[2] == NO and reason in answer[11])
        peer.close()
    # These say nothing, or not a whole word. Nobody waits for them.
    quiet, short = Peer(vm.device), Peer(vm.device)
    short.sock.sendall(b"hello")
    vm.does("vector_add")
    vm.device.succeed()
    quiet.close()
    short.close()
    release(vm, 1)


def refused_at_work(vm):
    """Work that does not end cannot be saved: the reason names the program, and all programs go on."""
    hold(vm, 1, "kernel")
    hold(vm, 2, "busy")
    new = vm.device.take_over()
    expect("it went on", new.wait(moving.LIMIT) == 1)
    until("a reason", lambda: vm.device.said("sleeper (pid "))
    release(vm, 1)
    vm.device.succeed()
    release(vm, 2)


def old_one_of_another_release(vm):
    """The new one sees by the first word that it cannot go on, and the VM does not notice."""
    path = f"{folder}/odd"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        peer = Peer(vm.device)
        greeting = peer.greeting()
        peer.close()
        for change, reason in (((1, 2), "hands over by version 2"), ((3, 77), "wire version is 77"), ((10, b"x"), "makes no sense")):
            new = vm.device.take_over("--hand-over", path)
            sock, _ = listener.accept()
            word = list(greeting)
            word[change[0]] = change[1]
            sock.sendall(WORD.pack(*word))
            expect("it went on", new.wait(moving.LIMIT) == 1)
            until("a reason", lambda r=reason: vm.device.said(r))
            sock.close()
    os.unlink(path)
    vm.does("vector_add")


def cut_new_one(vm):
    """The new one dies in each step: the old one goes on."""
    hold(vm, 1)
    hold(vm, 2, "busy")
    files = open_files(vm)
    peer = Peer(vm.device)
    peer.close()
    peer = Peer(vm.device)
    peer.greeting()
    peer.close()
    peer = Peer(vm.device)
    peer.ready()
    peer.close()
    vm.does("vector_add")
    # It has read half of what it is told.
    peer = Peer(vm.device)
    peer.ready()
    peer.sock.recv(100)
    peer.close()
    # It refuses, or says nonsense.
    for what in (NO, READY, 77):
        peer = Peer(vm.device)
        word = peer.ready()
        word[2], word[8], word[9] = what, 0, 0
        peer.say(*word)
        peer.close()
        vm.does("vector_add")
    until(f"it has {open_files(vm)} open files, not {files}", lambda: open_files(vm) == files)
    release(vm, 1, 2)


def open_files(vm):
    return len(os.listdir(f"/proc/{vm.device.process.pid}/fd"))


def cut_hanging_one(vm):
    """The new one says nothing for longer than the old one waits. Then the old one goes on, and it is too late to go on."""
    hold(vm, 1, "busy")
    peer = Peer(vm.device)
    word = peer.ready()
    rest = b"".join(iter(lambda: peer.sock.recv(65536), b""))
    last = WORD.unpack(rest[-WORD.size:])
    expect(f"it says {last}", last[2] == NO and b"does not answer" in last[11])
    word[2], word[8], word[9] = HAVE, 0, 0
    try:
        peer.say(*word)
        raise Failed("it hears that everything is there")
    except BrokenPipeError:
        pass
    peer.close()
    vm.does("vector_add")
    release(vm, 1)


def cut_old_one(vm):
    """The old one dies when the new one has all, but has not heard that it may go on: the new one goes on."""
    hold(vm, 1)
    hold(vm, 2, "busy")
    path = f"{folder}/between"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        new = vm.device.take_over("--hand-over", path)
        side, _ = listener.accept()
        old = Peer(vm.device)
        carry_until_it_has_all(old.sock, side)
        vm.device.process.kill()
        vm.device.process.wait()
        old.close()
        side.close()
    os.unlink(path)
    vm.device.process = new
    vm.does("vector_add")
    release(vm, 1, 2)
    vm.device.succeed()


def carry(a, b, size):
    """Carries so many bytes, and the files that come with the first one."""
    data, files, _, _ = socket.recv_fds(a, size, 8)
    while len(data) < size:
        more = a.recv(size - len(data))
        expect("the connection is cut off", more)
        data += more
    socket.send_fds(b, [data], files)
    for fd in files:
        os.close(fd)
    return data


def carry_until_it_has_all(old, new):
    """Carries all words and messages between the two, until the new one says that it has all."""
    new.settimeout(moving.LIMIT)
    carry(old, new, WORD.size)
    carry(new, old, WORD.size)
    for _ in range(WORD.unpack(carry(old, new, WORD.size))[8]):
        head = carry(old, new, 12)
        carry(old, new, struct.unpack("<III", head)[2])
    word = WORD.unpack(new.recv(WORD.size))
    expect(f"it has not all: {word}", word[2] == HAVE)


def guest_saw_nothing(vm):
    vm.does("dmesg >/dev/ttyS0")
    with open(klog, "wb") as f:
        f.write(vm.before.replace(b"\r", b""))
    for word in (b"needs a reset", b"reset the device", b"gave"):
        expect(f"the guest's log has {word}: {vm.before[-500:]}", word not in vm.before)


def main():
    failed, vm, name = False, None, "boot"
    moving.Device = Device
    try:
        vm = object.__new__(VM)
        early = []

        class Early(Device):
            def __init__(self, *args):
                super().__init__(*args)
                before_there_is_a_vm(self)
                early.append(self)

        moving.Device = Early
        name = "take-over-idle"
        vm.__init__("over", sessions=SESSIONS)
        print("@ok take-over-idle", flush=True)
        name = "take-over-boot"
        vm.boot()
        vm.does("vector_add")
        cases = [without_programs, under_programs, under_work, dead_stays_dead, refused, refused_at_work, old_one_of_another_release,
                 cut_new_one, cut_old_one, *([cut_hanging_one] if NIGHT else []), guest_saw_nothing]
        for case in cases:
            if case.__name__ not in (only or [case.__name__]):
                continue
            name = "take-over-" + case.__name__.replace("_", "-")
            began = time.monotonic()
            case(vm)
            print(f"@ok {name} {time.monotonic() - began:.1f}", flush=True)
    except (Failed, OSError) as e:
        failed = True
        if vm and hasattr(vm, "log"):
            print(f"qemu: {vm.said()[-1000:]}\ndevice: {vm.device.end_of_log()}\nconsole: {vm.console[-1000:]!r}")
        print(f"@FAIL {name} {e}")
    finally:
        moving.end_everything()
    sys.exit(failed)


main()
