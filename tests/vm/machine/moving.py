#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Saves VMs, moves them to other QEMUs of this machine, and cuts moves off. Called by moving.sh.

usage: moving.py FOLDER QEMU QCU_DEVICE VMLINUX INITRD KLOG SLOW

The guest reads commands from its console, one in a line, and says "done: CODE" after each.
"""
import collections
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

folder, qemu, qcu_device, vmlinux, initrd, klog, slow = sys.argv[1:]
LIMIT = 30 * int(slow)  # for what only a hang reaches
SESSIONS = 6
MEMORY = "256M"
GPU = ("--gpu", "soft")
APPEND = (
    "console=ttyS0 quiet loglevel=5 panic=-1 tsc=reliable no_timer_check lpj=4000000 mitigations=off "
    "rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=150 rdinit=/qcu/obey"
)
everything = []
only = os.environ.get("MOVING_ONLY", "").split()
MOVES = 50 if os.environ.get("QCU_NIGHTLY") else 3
ROUNDS = 50 if os.environ.get("QCU_NIGHTLY") else 4
tally = collections.Counter()
seed = int(os.environ.get("MOVING_SEED") or random.randrange(1000000))
random.seed(seed)


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def make_qcow2(path, size=1 << 30):
    """An empty disk, for savevm: a header, a table of counts, the counts, a table of nothing."""
    cluster = 1 << 16
    header = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, 16, size, 0, size // (cluster * cluster // 8) + 1,
                         3 * cluster, cluster, 1, 0, 0)
    with open(path, "wb") as f:
        for at, what in enumerate((header, struct.pack(">Q", 2 * cluster), struct.pack(">4H", 1, 1, 1, 1), b"")):
            f.seek(at * cluster)
            f.write(what)
        f.truncate(4 * cluster)


def until(what, test):
    """what: a text, or a function that returns it in the end."""
    end = time.monotonic() + LIMIT
    while not test():
        if time.monotonic() > end:
            raise Failed("waited in vain: " + (what if isinstance(what, str) else what()))
        time.sleep(0.02)


class Device:
    """A qcu-device for one VM."""

    def __init__(self, name, sessions=SESSIONS, more=()):
        self.socket, self.log = f"{folder}/{name}.sock", f"{folder}/{name}.device.log"
        self.start(sessions, more)
        until("qcu-device's socket", lambda: os.path.exists(self.socket))

    def start(self, sessions=SESSIONS, more=()):
        """Its socket goes when a QEMU connects. One that waits for it may do so before anybody sees the socket."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [qcu_device, "--socket", self.socket, *GPU, "--sessions", str(sessions), "--metrics", "none", *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        everything.append(self.process)

    def said(self, text):
        with open(self.log, encoding="ascii") as log:
            return text in log.read()


class VM:
    def __init__(self, name, *more, incoming=False, sessions=SESSIONS, device=()):
        self.name, self.console = name, b""
        self.device = Device(name, sessions, device)
        self.log = f"{folder}/{name}.qemu.log"
        args = [
            qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "q35,memory-backend=ram,usb=off,hpet=off",
            "-object", f"memory-backend-memfd,id=ram,size={MEMORY},share=on", "-m", MEMORY, "-smp", "2",
            "-accel", "tcg,thread=single", "-cpu", "max,-erms,-fsrm",
            "-kernel", vmlinux, "-initrd", initrd, "-append", APPEND,
            "-chardev", f"socket,id=console,path={folder}/{name}.console,server=on,wait=off", "-serial", "chardev:console",
            "-qmp", f"unix:{folder}/{name}.qmp,server=on,wait=off",
            "-chardev", f"socket,id=qcu,path={self.device.socket},reconnect-ms=200",
            "-device", f"virtio-qcuda-pci,chardev=qcu,sessions={sessions}", *more,
        ]
        if incoming:
            args += ["-incoming", "defer"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        everything.append(self.process)
        self.terminal = self.connect(f"{folder}/{name}.console")
        self.terminal.setblocking(False)
        self.monitor = self.connect(f"{folder}/{name}.qmp")
        self.monitor.settimeout(LIMIT)
        self.lines = self.monitor.makefile("r")
        self.lines.readline()
        self.qmp("qmp_capabilities")

    def connect(self, path):
        s = socket.socket(socket.AF_UNIX)

        def try_it():
            if self.process.poll() is not None:
                raise Failed(f"QEMU {self.name} has ended: " + self.said())
            try:
                s.connect(path)
                return True
            except OSError:
                return False

        until("QEMU's socket", try_it)
        return s

    def said(self):
        with open(self.log, encoding="ascii", errors="replace") as log:
            return log.read()

    # ---- QEMU's monitor ----

    def try_qmp(self, command, **arguments):
        self.events = []
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            try:
                line = self.lines.readline()
            except TimeoutError:
                raise Failed(f"QEMU {self.name} does not answer {command} {arguments}: {self.device_said()}") from None
            if not line:
                raise Failed(f"QEMU {self.name} has ended: " + self.said())
            answer = json.loads(line)
            if "event" not in answer:
                return answer
            self.events.append(answer["event"])

    def event(self, name):
        """Waits until the monitor has said this since the last command began. It may answer nothing then."""
        while name not in self.events:
            answer = json.loads(self.lines.readline() or "{}")
            if not answer:
                raise Failed(f"QEMU {self.name} has ended: " + self.said())
            self.events.append(answer.get("event"))

    def qmp(self, command, **arguments):
        answer = self.try_qmp(command, **arguments)
        if "error" in answer:
            raise Failed(f"{command}: {answer['error']['desc']}")
        return answer["return"]

    def hmp(self, line):
        return self.qmp("human-monitor-command", **{"command-line": line})

    def refusal(self, command, **arguments):
        answer = self.try_qmp(command, **arguments)
        return answer["error"]["desc"] if "error" in answer else f"no error but {answer}"

    def runs(self):
        return self.qmp("query-status")["status"] == "running"

    def becomes(self, *states):
        def there():
            self.state = self.qmp("query-migrate")
            return self.state.get("status") in states

        try:
            until(f"{self.name}: {states}", there)
        except Failed as e:
            raise Failed(f"{e}, it is {self.state}") from None
        return self.state

    def slowly(self):
        """A migration stays at its beginning."""
        self.qmp("migrate-set-parameters", **{"max-bandwidth": 1 << 16, "downtime-limit": 1})

    def second_pass(self):
        """All memory has been copied once. From here on the migration goes slowly."""
        until("the second pass", lambda: self.becomes("active")["ram"]["dirty-sync-count"] > 1)
        self.slowly()

    def fast(self):
        """The VM stops as soon as possible. Most of its memory is copied then."""
        self.qmp("migrate-set-parameters", **{"max-bandwidth": 0, "downtime-limit": 2000000})

    def late(self):
        """The VM stops when only what it writes all the time is left to copy."""
        self.qmp("migrate-set-parameters", **{"max-bandwidth": 0, "downtime-limit": 300})

    def migrate_to(self, other):
        self.qmp("migrate", uri=f"unix:{folder}/{other.name}.incoming")

    def listen(self):
        self.capabilities()
        self.qmp("migrate-incoming", uri=f"unix:{folder}/{self.name}.incoming")

    def capabilities(self, back=True):
        """The source hears of an error at the target, as with libvirt. A file says nothing."""
        self.qmp("migrate-set-capabilities", capabilities=[{"capability": "return-path", "state": back}])

    def save_fails(self, why):
        self.capabilities(False)
        self.fast()
        self.qmp("migrate", uri=f"file:{folder}/none")
        self.becomes("failed")
        self.capabilities()
        until("it runs", self.runs)
        expect(self.said(), why in self.said())

    def save(self, path):
        self.capabilities(False)
        self.fast()
        self.qmp("migrate", uri=f"file:{path}")
        self.becomes("completed")

    # ---- the guest ----

    def look(self):
        try:
            while True:
                some = self.terminal.recv(65536)
                if not some:
                    return
                self.console += some
        except BlockingIOError:
            pass

    def wait_for(self, pattern):
        found = None

        def there():
            nonlocal found
            self.look()
            found = re.search(pattern, self.console)
            return found

        until(lambda: f"{self.name} says {pattern}: {self.console[-400:]!r}", there)
        self.before = self.console[: found.start()]
        self.console = self.console[found.end():]
        return found

    def start(self, line):
        self.terminal.sendall(line.encode() + b"\n")

    def code(self):
        return int(self.wait_for(rb"done: (\d+)\r?\n").group(1))

    def does(self, line):
        """Fails unless the guest carries this out."""
        self.start(line)
        try:
            code = self.code()
        except Failed as e:
            raise Failed(f"{line}: {e}") from None
        if code:
            raise Failed(f"{self.name}: {line}: exit code {code}: {self.before[-300:]!r} {self.console[-300:]!r}, {self.device_said()}")

    def device_said(self):
        with open(self.device.log, encoding="ascii", errors="replace") as log:
            return log.read()[-300:]

    def tasks(self):
        """What blocks in the guest, and what its processors do, as its kernel says. It obeys only with sysrq_always_enabled."""
        self.look()
        at = len(self.console)
        for key in "9wl":
            self.qmp("chardev-send-break", id="console")
            self.terminal.sendall(key.encode())
            time.sleep(1)
        self.look()
        return self.console[at:].decode("ascii", "replace")

    def boot(self):
        self.wait_for(rb"obeys\r?\n")

    def end(self):
        for p in (self.process, self.device.process):
            p.kill()
            p.wait()


def end_everything():
    for p in everything:
        if p.poll() is None:
            p.kill()
        p.wait()


class Relay:
    """A connection to a target that can be cut, as a network can."""

    name = "relay"

    def __init__(self, target):
        self.ends = []
        path = f"{folder}/{self.name}.incoming"
        if os.path.exists(path):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        threading.Thread(target=self.carry, args=(listener, f"{folder}/{target.name}.incoming"), daemon=True).start()

    def carry(self, listener, path):
        there = socket.socket(socket.AF_UNIX)
        there.connect(path)
        self.ends = [listener.accept()[0], there]
        try:
            while True:
                for end in select.select(self.ends, [], [])[0]:
                    some = end.recv(65536)
                    if not some:
                        return
                    self.ends[end is self.ends[0]].sendall(some)
        except OSError:
            pass  # it was cut

    def cut(self):
        for end in self.ends:
            end.shutdown(socket.SHUT_RDWR)


# ---- the cases ----

def expect(what, condition):
    if not condition:
        raise Failed(what)


# Of a program that is in the middle of something, such as a host function, when the VM stands still.
LATER = "work of the GPU does not end"
# Of a program that is in the middle of something when it is held.
IN_THE_MIDDLE = (LATER, "a command does not end")


def snapshot_now(vm, name):
    """As soon as no program is in the middle of something."""
    for _ in range(100):
        said = vm.hmp(f"savevm {name}")
        expect("it stands still", vm.runs())
        if not said:
            return
        expect(f"savevm says {said}", any(why in said for why in IN_THE_MIDDLE))
        tally["in the middle"] += 1
    raise Failed("a program is always in the middle of something")


def load(vm, name):
    said = vm.hmp(f"loadvm {name}")
    expect(f"loadvm says {said}", not said)
    expect("it stands still", vm.runs())


def migrate_now(vm, target, when=VM.fast):
    """The same for a migration, which begins again."""
    for _ in range(100):
        when(vm)
        vm.migrate_to(target)
        if vm.becomes("completed", "failed")["status"] == "completed":
            return target
        expect(vm.said(), any(why in vm.said() for why in IN_THE_MIDDLE))
        tally["in the middle"] += 1
        until("it runs", vm.runs)
        target.end()
        target = VM(target.name, incoming=True)
        target.listen()
    raise Failed("a program is always in the middle of something")


def saved_under_a_program(vm):
    """A program that does nothing at the moment, and one with managed memory, go on where the VM does."""
    for how in ("", "managed"):
        vm.does(f"hold {how}")
        snapshot_now(vm, "x")
        load(vm, "x")
        vm.does("release && vector_add")
        # What it has was saved, too.
        load(vm, "x")
        vm.does("release && vector_add")


def saved_between_host_functions(vm):
    """A program that is in a host function nearly always. A try soon after a refused one finds it in none."""
    vm.does("hold calls")
    for _ in range(ROUNDS):
        snapshot_now(vm, "x")
        load(vm, "x")
    vm.does("release && vector_add")


def saved_with_a_dead_session(vm):
    """A program whose mirror has died gets its error where the VM goes on."""
    vm.does("hold")
    kill_mirrors(vm)
    snapshot_now(vm, "x")
    load(vm, "x")
    vm.does("! release && vector_add")


def refused_under_a_kernel(vm):
    """A kernel that does not end is a reason against saving, and goes on."""
    vm.does("hold kernel")
    said = vm.hmp("savevm x")
    expect(f"savevm says {said}", "what sleeper (pid " in said and LATER in said)
    expect("it stands still", vm.runs())
    # Memory that goes ahead waits for the kernel, and the program does not.
    for _ in range(2):
        vm.save_fails(LATER)
    vm.does("release && vector_add")


def processes(vm, called):
    """Of qcu-device's children, and theirs, those whose names begin so."""
    parents, found = {vm.device.process.pid}, set()
    for _ in range(3):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                    name, rest = f.read().rsplit(")", 1)
            except OSError:
                continue
            if int(rest.split()[1]) in parents:
                parents.add(int(pid))
                if "(" + called in name:
                    found.add(int(pid))
    return found


def kill_mirrors(vm):
    for pid in processes(vm, "qcu-mirror "):
        os.kill(pid, signal.SIGKILL)


def saved_while_programs_work(vm):
    vm.does("works")
    for _ in range(ROUNDS):
        time.sleep(random.random() / 2)
        snapshot_now(vm, "x")
        time.sleep(random.choice((0, random.random() / 2)))
        load(vm, "x")
    vm.does("worked")


def moved_while_programs_work(vm):
    vm.does("works")
    for n in range(MOVES):
        target = VM(f"work{n % 2}", incoming=True, device=("--prewarm", str(n % 2)))
        target.listen()
        vm.capabilities()
        time.sleep(random.random() / 2)
        # What the GPU writes after it has been copied must be copied again.
        target = migrate_now(vm, target, (VM.late, VM.fast)[n % 2])
        expect("the source runs, too", not vm.runs())
        until("the target runs", target.runs)
        vm.end()
        vm = target
    vm.does("worked")
    return vm


def little_at_the_stop(vm):
    """Of the memory that was copied while the VM ran, only what programs use with CUDA is copied again."""
    vm.does("hold")
    vm.does("for i in 1 2 3 4 5 6 7 8; do cat /qcu/lib/* /qcu/bin/*; done >/tmp/filling")
    target = VM("little", incoming=True)
    target.listen()
    # The program sleeps, so there is a moment at which nearly nothing is left to copy.
    vm.qmp("migrate-set-parameters", **{"max-bandwidth": 0, "downtime-limit": 1})
    vm.migrate_to(target)
    ram = vm.becomes("completed")["ram"]
    tally["MB while it stood still"] = ram["downtime-bytes"] >> 20
    expect(f"{ram}", ram["downtime-bytes"] < ram["precopy-bytes"] // 3 and ram["precopy-bytes"] > 64 << 20)
    # Its device memory has gone ahead. It was not written again, so none of it is in the state.
    went, rest = map(int, re.search(r"(\d+) KiB of the programs' GPU memory went ahead, and (\d+) KiB", vm.device_said()).groups())
    expect(f"{went}, {rest}", went == 1024 and rest < 512)
    until("the target runs", target.runs)
    vm.end()
    target.does("release && rm /tmp/filling && vector_add")
    return target


def refused_without_a_device(vm):
    vm.device.process.kill()
    vm.device.process.wait()
    until("QEMU notices", lambda: "no qcu-device serves" in vm.refusal("migrate", uri=f"file:{folder}/none"))
    vm.device.start()
    vm.does("until_true vector_add")


def another_device(vm):
    """A qcu-device makes room for another one, but not under a program."""
    vm.does("hold")
    vm.device.process.send_signal(signal.SIGUSR2)
    until("it says why", lambda: vm.device.said("SIGUSR2: sleeper (pid "))
    vm.does("release && vector_add")
    for _ in range(3):
        vm.device.process.send_signal(signal.SIGUSR2)
        code = vm.device.process.wait(LIMIT)
        expect(f"the old qcu-device ends with {code}", code == 0)
        vm.device.start()
        vm.does("until_true vector_add")


def begins_meanwhile(vm):
    """A program that begins during the migration goes along."""
    target = VM("late", incoming=True)
    target.listen()
    vm.slowly()
    vm.migrate_to(target)
    vm.becomes("active")
    vm.does("hold")
    vm.fast()
    vm.becomes("completed")
    until("the target runs", target.runs)
    vm.end()
    target.does("release && vector_add")
    return target


def cut_off(vm, how, way=lambda target: target):
    target = VM("cut", incoming=True)
    target.listen()
    way = way(target)
    vm.does("hold")
    vm.slowly()
    vm.migrate_to(way)
    vm.becomes("active")
    vm.does("vector_add")
    how(way)
    vm.becomes("failed", "cancelled")
    until("it runs", vm.runs)
    vm.fast()
    vm.does("release && vector_add")
    expect("the target runs, too", target.process.poll() is not None or not target.runs())
    target.end()


def cut_target_killed(vm):
    cut_off(vm, lambda target: target.process.kill())


def cut_network(vm):
    cut_off(vm, lambda relay: relay.cut(), Relay)


def cut_cancelled(vm):
    cut_off(vm, lambda target: vm.qmp("migrate_cancel"))


def cut_at_the_end(vm, target, how):
    """At the stop of the source, before the target has loaded the device's state."""
    target.listen()
    vm.does("hold")
    vm.fast()
    how(target)
    vm.migrate_to(target)
    state = vm.becomes("failed", "completed")
    expect(f"{state}, {target.device_said()}", state["status"] == "failed")
    until("it runs", vm.runs)
    vm.does("release && vector_add")
    target.end()


def cut_no_device_there(vm):
    cut_at_the_end(vm, VM("alone", incoming=True), lambda target: target.device.process.kill())


def cut_device_silent(vm, program, stops):
    target = VM("mute", incoming=True)
    target.listen()
    vm.does(program)
    vm.fast()
    target.device.process.send_signal(signal.SIGSTOP)
    vm.migrate_to(target)
    if stops:
        vm.event("STOP")
    else:
        vm.becomes("active")
        vm.does("vector_add")
        expect("the source does not run", vm.runs())
    target.process.kill()
    target.device.process.kill()
    vm.becomes("failed")
    until("it runs", vm.runs)
    vm.does("release && vector_add")
    target.end()


def cut_device_silent_then_killed(vm):
    """Nothing of this program goes ahead, so the device is silent when the source has stopped."""
    cut_device_silent(vm, "hold managed", True)


def cut_device_silent_ahead(vm):
    """Its memory goes ahead, and nobody takes it. So the VM is not stopped."""
    cut_device_silent(vm, "hold", False)


def cut_no_room(vm):
    """What programs have does not fit there."""
    target = VM("small", incoming=True, device=("--limit", "vm-device-memory=256K"))
    cut_at_the_end(vm, target, lambda target: None)
    expect(target.device_said(), target.device.said("needs more memory of GPU 0 than there is"))


NO_ROOM = ("--limit", "mapped=64K")  # for what the program has mapped: only its mirror finds it out


def cut_not_made(vm):
    """A session cannot be made there, which nobody knows before it has been tried."""
    target = VM("unable", incoming=True, device=NO_ROOM)
    target.listen()
    vm.does("hold")
    vm.fast()
    vm.migrate_to(target)
    state = vm.becomes("failed", "completed")
    expect(f"{state}, {target.device_said()}", state["status"] == "failed")
    until("it runs", vm.runs)
    until("the target ends", lambda: target.process.poll() is not None)
    expect(target.said(), "the device's state cannot be loaded: sleeper (pid " in target.said())
    expect(target.said(), "cannot be restored" in target.said())
    vm.does("release && vector_add")
    target.end()


def makes_sessions(vm):
    """Its qcu-device has read a session, for which it has no mirror yet."""
    files = f"/proc/{vm.device.process.pid}/fd"
    try:
        return any("qcu-session" in os.readlink(f"{files}/{fd}") for fd in os.listdir(files))
    except FileNotFoundError:
        return False  # it has just closed one


def cut_while_made(vm, how, way=lambda target: target):
    """While the target makes sessions. Mirrors come when the nursery goes on."""
    if os.geteuid():
        raise Skipped("only root sees which files qcu-device has open")
    target = VM("making", incoming=True)
    target.listen()
    way = way(target)
    vm.does("hold")
    vm.fast()
    nursery, = processes(target, "qcu-nursery")
    os.kill(nursery, signal.SIGSTOP)
    vm.migrate_to(way)
    until("the target makes sessions", lambda: makes_sessions(target))
    expect("the source has not stopped", not vm.runs())
    how(way)
    vm.becomes("failed", "cancelled")
    until("it runs", vm.runs)
    try:
        os.kill(nursery, signal.SIGCONT)
    except ProcessLookupError:
        pass  # it has ended with its qcu-device
    until("the target ends", lambda: target.process.poll() is not None)
    vm.does("release && vector_add")
    target.end()


def cut_making_killed(vm):
    cut_while_made(vm, lambda target: target.process.kill())


def cut_making_device_killed(vm):
    cut_while_made(vm, lambda target: target.device.process.kill())


def cut_making_cancelled(vm):
    cut_while_made(vm, lambda target: vm.qmp("migrate_cancel"))


def cut_making_network(vm):
    cut_while_made(vm, lambda relay: relay.cut(), Relay)


def cut_other_sessions(vm):
    cut_at_the_end(vm, VM("other", incoming=True, sessions=SESSIONS + 1), lambda target: None)


def snapshot(vm):
    vm.does("echo before >/tmp/when && to_file zero /tmp/f && to_file put /tmp/f 1")
    expect("savevm says " + vm.hmp("savevm one"), True)
    expect("no snapshot: " + vm.hmp("info snapshots"), "one" in vm.hmp("info snapshots"))
    expect("it stands still", vm.runs())
    vm.does("vector_add && to_file put /tmp/f 2 && echo after >/tmp/when")
    # A program that runs when an older state is loaded ends with what it was part of.
    vm.does("hold")
    said = vm.hmp("loadvm one")
    expect(f"loadvm says {said}", not said)
    expect("it stands still", vm.runs())
    vm.does("grep -q before /tmp/when && to_file check /tmp/f 1 && vector_add")


def move(vm):
    """The VM goes to another QEMU, and back. Both times the device has written while it was on its way."""
    vm.does("to_file zero /tmp/f && to_file put /tmp/f 3 && to_file check /tmp/f 3")
    for n, name in ((4, "there"), (5, "back")):
        target = VM(name, incoming=True)
        target.listen()
        vm.capabilities()
        vm.qmp("migrate-set-parameters", **{"max-bandwidth": 20 << 20, "downtime-limit": 1})
        # What the GPU writes, nobody looks at before the end.
        vm.does("hold written")
        vm.does("stir")
        vm.migrate_to(target)
        vm.second_pass()
        vm.does("stop_stirring && written")
        vm.does(f"to_file put /tmp/f {n} && vector_add")
        vm.becomes("active")
        vm.fast()
        vm.becomes("completed")
        expect("the source runs, too", not vm.runs())
        until("the target runs", target.runs)
        vm.end()
        vm = target
        vm.does(f"release && to_file check /tmp/f {n}")
        vm.does("vector_add")
    return vm


def move_stopped(vm):
    """A VM that was stopped before it moves is stopped there, too. Managed memory moves with it."""
    target = VM("still", incoming=True)
    target.listen()
    vm.does("hold managed")
    vm.fast()
    vm.qmp("stop")
    vm.migrate_to(target)
    vm.becomes("completed")
    until("it is there", lambda: target.qmp("query-status")["status"] == "paused")
    vm.end()
    # The session waits there. The VM can go on once more, before it has begun.
    expect(target.device_said(), len(processes(target, "qcu-mirror ")) == 1)
    further = VM("further", incoming=True)
    further.listen()
    target.capabilities()
    target.fast()
    target.migrate_to(further)
    target.becomes("completed")
    until("it is there", lambda: further.qmp("query-status")["status"] == "paused")
    target.end()
    further.qmp("cont")
    further.does("release && vector_add")
    return further


def to_a_file(vm):
    """With a program. A file that got damaged or cut off is refused."""
    path = f"{folder}/saved"
    vm.does("to_file put /tmp/f 6 && hold")
    vm.save(path)
    vm.end()
    with open(path, "rb") as f:
        good = f.read()
    for n, (mark, where, what) in enumerate(DAMAGE):
        at = good.index(mark, good.index(b"qu-state")) + where
        expect("nothing is damaged", good[at] != what[0])
        with open(f"{folder}/bad", "wb") as f:
            f.write(good[:at] + what + good[at + len(what):])
        bad = VM(f"bad{n}", incoming=True)
        bad.qmp("migrate-incoming", uri=f"file:{folder}/bad")
        until("it gives up", lambda: bad.process.poll() is not None)
        expect(bad.device_said(), bad.device.said("the saved state of the device cannot be used"))
        bad.end()
    # What cannot be made is lost only if that was asked for.
    unable = VM("unable-file", incoming=True, device=NO_ROOM)
    unable.qmp("migrate-incoming", uri=f"file:{path}")
    until("it gives up", lambda: unable.process.poll() is not None)
    expect(unable.said(), "the device's state cannot be loaded: sleeper (pid " in unable.said())
    unable.end()
    unable = VM("without", incoming=True, device=(*NO_ROOM, "--lose-sessions"))
    unable.qmp("migrate-incoming", uri=f"file:{path}")
    until("it runs", unable.runs)
    unable.does("! release && to_file check /tmp/f 6")
    unable.end()
    new = VM("restored", incoming=True)
    new.qmp("migrate-incoming", uri=f"file:{path}")
    until("it runs", new.runs)
    new.does("release && to_file check /tmp/f 6 && vector_add")
    return new


# In the head, in a session's record, and in its archive. QEMU puts lengths of its own in between.
DAMAGE = ((b"qu-state", 8, b"\x09"), (b"qu-state", 40, b"\x02"), (b"sleeper\0", -8, b"\x00"), (b"sleeper\0", 24, b"\xff"),
          (b"uQCUSave", 100, b"!"))


def after_it_all(vm):
    """The device goes away, comes back, and the VM can still be saved."""
    vm.device.process.kill()
    vm.device.process.wait()
    vm.device.start()
    vm.does("until_true vector_add")
    vm.save(f"{folder}/again")
    vm.qmp("cont")
    vm.does("vector_add")
    vm.does("dmesg >/dev/ttyS0")
    with open(klog, "wb") as f:
        f.write(vm.before.replace(b"\r", b""))


def main():
    make_qcow2(f"{folder}/disk")
    vm = VM("first", "-blockdev", f"driver=file,node-name=file,filename={folder}/disk",
            "-blockdev", "driver=qcow2,node-name=disk,file=file")
    cases = [saved_under_a_program, saved_between_host_functions, saved_with_a_dead_session, refused_under_a_kernel,
             saved_while_programs_work, refused_without_a_device, another_device, cut_target_killed, cut_network, cut_cancelled, cut_no_device_there,
             cut_device_silent_then_killed, cut_device_silent_ahead, cut_other_sessions, cut_no_room, cut_not_made, cut_making_killed,
             cut_making_device_killed, cut_making_cancelled, cut_making_network, snapshot, begins_meanwhile, move,
             moved_while_programs_work, little_at_the_stop, move_stopped, to_a_file, after_it_all]
    failed = False
    try:
        vm.boot()
        vm.does("vector_add")
        vm.capabilities()
        for case in (c for c in cases if not only or c.__name__ in only):
            began = time.monotonic()
            try:
                vm = case(vm) or vm
                print(f"@ok {case.__name__.replace('_', '-')} {time.monotonic() - began:.1f}", flush=True)
            except Skipped as e:
                print(f"@skip {case.__name__.replace('_', '-')} {e}", flush=True)
        print(f"seed {seed}: {dict(tally)}")
    except (Failed, OSError) as e:
        failed = True
        print(f"qemu: {vm.said()[-1000:]}\ndevice: {vm.device_said()}\nconsole: {vm.console[-1000:]!r}")
        print(f"seed {seed}: {dict(tally)}")
        print(f"@FAIL {case.__name__.replace('_', '-')} {e}" if "case" in locals() else f"@FAIL boot {e}")
    finally:
        end_everything()
    sys.exit(failed)


if __name__ == "__main__":
    main()
