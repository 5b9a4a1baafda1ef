#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Moves and clones VMs with programs of the GPU. Called by moved.sh.

usage: moved.py FOLDER QEMU QCU_DEVICE VMLINUX INITRD KLOG SLOW CASE...

FILES is a folder with an archive, files, that becomes the root of PyTorch's programs in the guest.
"""
import collections
import contextlib
import glob
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

cases = sys.argv[8:]
del sys.argv[8:]
import moving
from moving import VM, Failed, IN_THE_MIDDLE, expect, folder, until

MOVES, CLONES = 5, 10
ARGUMENTS = {"first_call": "0", "illegal_access": "0"}
moving.LIMIT = int(os.environ["LIMIT"])
gpu = os.environ.get("GPU", "cuda")
room = "64G" if {"memory", "written"} & set(cases) else "16G" if gpu == "cuda" else "128M"
moving.GPU = ("--gpu", gpu, "--swap", room, "--vram", room)
FILLER = os.environ.get("FILLER") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "fill_gpu.py")
moving.MEMORY = "6G" if set(cases) - {"programs", "every", "memory", "written", "full"} else "512M"
files, steps, out = os.environ["FILES"], os.environ["STEPS"], os.environ["OUT"]
FILES = ("-fsdev", f"local,id=files,path={files},security_model=none,readonly=on",
         "-device", "virtio-9p-pci,fsdev=files,mount_tag=files")
PYTHON = (f"PYTHONPYCACHEPREFIX={os.environ['PYTHONPYCACHEPREFIX']} LD_LIBRARY_PATH=/qcu/lib LD_PRELOAD=/qcu/lib/libcudart.so.13 "
          f"LD_AUDIT=/qcu/lib/libqcuda-loader.so chroot /new {os.environ['PYTHON']} {steps}")
# A guest that hangs can be asked what it waits for.
moving.APPEND += " sysrq_always_enabled"
vms = []
rows = []


def say(text):
    print(text, flush=True)


def native(way):
    with open(f"{out}/moved.native.{way}", encoding="ascii") as f:
        return f.read().split("\n")[:-1]


def boot(name):
    vm = note(VM(name, *FILES))
    vm.boot()
    vm.does("vector_add")
    return vm


def note(vm):
    vms.append(vm)
    return vm


def hear(vm, pattern):
    """Returns what the program says. It must not end."""
    found = vm.wait_for(pattern + rb"|ended with [1-9]").group(0)
    if re.fullmatch(rb"ended with [1-9]", found):
        vm.wait_for(b"that is all")
        raise Failed(f"the program {found.decode()}: {vm.before[-1500:].decode('ascii', 'replace')}")
    return found


def new_root(vm):
    """A VM that has mounted a folder of the host cannot be moved."""
    vm.does("modprobe -a 9pnet_virtio 9p && mkdir /files /new && mount -t tmpfs -o size=5G root /new")
    vm.does("mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose files /files && busybox tar -x -C /new -f /files/files && umount /files")
    vm.does("cp -a /qcu /new/ && for d in dev proc sys; do mount --bind /$d /new/$d; done")


def begin(vm, way):
    """What goes wrong stands on the console, too."""
    vm.does(f"mkfifo /tmp/in; {{ {PYTHON} {way} <>/tmp/in 2>/tmp/err; echo ended with $?; tail -n 9 /tmp/err; echo that is all; }} >/dev/ttyS0 &")


def begin_move(vm, name):
    """Returns the target."""
    target = note(VM(name, *FILES, incoming=True))
    target.listen()
    vm.capabilities()
    vm.late()
    vm.migrate_to(target)
    return target


def move(vm, name):
    """To another QEMU. A program that is in the middle of something means another try."""
    for _ in range(20):
        began = time.monotonic()
        target = begin_move(vm, name)
        state = vm.becomes("completed", "failed")
        if state["status"] == "completed":
            until("the target runs", target.runs)
            vm.look()
            say(f"moved in {time.monotonic() - began:.2f} s, stood still for {state['downtime'] / 1000:.2f} s, "
                f"{state['ram']['transferred'] / 1e9:.2f} GB of memory")
            target.console = vm.console + target.console
            target.stood_still = state["downtime"] / 1000
            vm.end()
            return target
        expect(vm.said() + target.device_said(), any(why in vm.said() for why in IN_THE_MIDDLE))
        until("it runs", vm.runs)
        target.end()
    raise Failed("a program is always in the middle of something")


def programs():
    vm = boot("first")
    for how in ("busy", "", "calls"):
        vm.does(f"hold {how}")
        for n in range(MOVES):
            vm = move(vm, f"hold{how}{n}")
            vm.does("holds && vector_add")
        vm.does("release && vector_add")
    vm.does("works")
    for n in range(MOVES):
        vm = move(vm, f"work{n}")
    vm.does("worked")
    vm.end()


def same(text):
    """Without addresses, numbers, and how wide they are."""
    text = re.sub(r"0x[0-9a-f]+", "P", text.replace("\r", ""))
    return re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?(e[-+]\d+)?", "N", text))


def ends_as_natively(vm, name):
    """The program has ended. Returns how it differs."""
    code = vm.code()
    vm.does("cat /tmp/o >/dev/ttyS0")
    said = re.sub(r"^.*?\n", "", vm.before.decode("ascii", "replace"), count=1)
    with open(f"{out}/natively/{name}", encoding="ascii", errors="replace") as f:
        was, want = f.read().split("\n", 1)
    if int(was) != code:
        return f"ended with {code}, not {was}: {said[-300:]}"
    return "" if same(said) == same(want) else f"differs: {said[-300:]}"


class Every:
    """Runs programs in a VM, each without a move and then with one in the middle."""

    def __init__(self, number, names, results, end):
        self.number, self.names, self.results, self.end = number, names, results, end
        self.moves, self.vm = 0, None

    def start(self, name):
        self.vm.start(f"{name} {ARGUMENTS.get(name, '')} >/tmp/o 2>/tmp/e </dev/null")

    def moves_it(self):
        """Returns what was in the way of the move; empty: it was moved, or has ended before."""
        self.moves += 1
        target = note(VM(f"every{self.number}.{self.moves}", *FILES, incoming=True))
        target.listen()
        self.vm.capabilities()
        self.vm.fast()
        answer = self.vm.try_qmp("migrate", uri=f"unix:{folder}/{target.name}.incoming")
        if "error" in answer or self.vm.becomes("completed", "failed")["status"] != "completed":
            said = f"{answer}\n".replace("'}", "\n") + self.vm.said() + target.device_said()
            until("it runs", self.vm.runs)
            target.end()
            return (re.findall(r"cannot be (?:saved|restored): (.*)", said) or [said[-300:]])[-1]
        until("the target runs", target.runs)
        self.vm.look()
        target.console = self.vm.console + target.console
        self.vm.end()
        self.vm = target
        return ""

    def run(self, name):
        began = time.monotonic()
        self.start(name)
        wrong = ends_as_natively(self.vm, name)
        if wrong:
            return f"without a move: {wrong}"
        took, why = time.monotonic() - began, ""
        for n in range(6):
            self.start(name)
            time.sleep(took * random.random() * (0.9 if n < 3 else 0.3))
            why = self.moves_it()
            self.vm.look()
            in_time = not re.search(rb"done: \d+", self.vm.console)
            wrong = ends_as_natively(self.vm, name)
            if wrong:
                return f"moved: {wrong}"
            if in_time and not why:
                return "as natively"
            if why and not any(reason in why for reason in IN_THE_MIDDLE):
                return f"as natively, not moved: {why}"
        return f"as natively, {'not moved: ' + why if why else 'ended before each move'}"

    def run_all(self):
        while self.names and time.monotonic() < self.end:
            name = self.names.pop()
            try:
                self.vm = self.vm or boot(f"every{self.number}.{self.moves}")
                self.results[name] = self.run(name)
            except Failed as e:
                self.results[name] = f"FAILED {e}"
                self.moves += 1
                if self.vm:
                    self.vm.end()
                self.vm = None
            if self.results[name] != "as natively":
                say(f"{name}: {self.results[name]}")
        if self.vm:
            self.vm.end()


def every():
    """All programs, in as many VMs as the machine has room for."""
    names, results = os.listdir(f"{out}/natively"), {}
    end = time.monotonic() + int(os.environ.get("EVERY", "3600"))
    random.shuffle(names)
    threads = [threading.Thread(target=Every(n, names, results, end).run_all) for n in range(max(2, os.cpu_count() or 1) // 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for how, n in collections.Counter(re.sub("(without a move|moved):.*", r"\1", how, flags=re.S) for how in results.values()).most_common():
        say(f"{n:5} {how}")
    say(f"{len(names):5} no time left")
    expect("programs were lost", not any(how.startswith(("FAILED", "moved:")) for how in results.values()))


def stands_still(sizes, how, row):
    for gib in (size for size in sizes if size <= int(os.environ.get("GIB", "40"))):
        vm = boot(f"{row}{gib}")
        vm.does(f"hold {how(gib)}")
        vm = move(vm, f"moved{row}{gib}")
        add_row(f"{gib} GiB", [vm.stood_still], row, "move")
        vm.does("holds && release")
        vm.end()


def memory():
    """How long a VM stands still, by how much a sleeping program has on the GPU."""
    stands_still((1, 8, 40), lambda gib: f"memory {gib}", "standstill")


def written():
    """The same for a program that writes to all of it again and again."""
    stands_still((1, 8), lambda gib: f"changing {4 * gib}", "written")


@contextlib.contextmanager
def filled():
    """Another process has all memory of the GPU."""
    filler = subprocess.Popen([sys.executable, FILLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    moving.everything.append(filler)
    try:
        said = filler.stdout.readline().decode().strip()
        say(said)
        expect("the GPU cannot be filled", said)
        yield
    finally:
        filler.kill()
        filler.wait()


def ends(vm, line):
    """It may fail, but it must end. Returns its exit code."""
    began = time.monotonic()
    vm.start(line)
    code = vm.code()
    errors = re.findall(r"cudaError\w+", vm.before.decode("ascii", "replace"))
    say(f"{line} ended with {code} after {time.monotonic() - began:.2f} s {' '.join(errors[:1])}")
    return code


def cannot_move(vm, name):
    """The target cannot make the sessions, so the program goes on here."""
    target = begin_move(vm, name)
    expect("the migration succeeded", vm.becomes("completed", "failed")["status"] == "failed")
    expect(target.device_said(), "cannot be restored" in target.device_said())
    until("it runs", vm.runs)
    target.end()


def full():
    if gpu != "cuda":
        say("skipped: the software GPU has no memory of its own that another process could take")
        return
    vm = boot("full")
    for n in range(2):
        vm.does("hold")
        # What leaves for others cannot be moved: so this is tried before anything is asked for.
        with filled():
            if n:
                cannot_move(vm, "fullmoved")
            expect("vector_add found memory", ends(vm, "vector_add"))
        vm.does("release && until_true vector_add")
    vm.end()


def training():
    vm = boot("train")
    began = time.monotonic()
    new_root(vm)
    say(f"the files are there after {time.monotonic() - began:.1f} s")
    begin(vm, "train 100")
    got = b""
    for n in range(MOVES):
        hear(vm, f"step {10 + 20 * n}: ".encode())
        say(f"step {10 + 20 * n} after {time.monotonic() - began:.1f} s")
        got += vm.before + f"step {10 + 20 * n}: ".encode()
        vm = move(vm, f"train{n}")
    hear(vm, rb"ended with 0")
    got += vm.before
    got = re.findall(r"(?:step \d+:|weights) \w+", got.decode("ascii", "replace"))
    say(f"the training ended after {time.monotonic() - began:.1f} s")
    expect(f"{got}, natively {native('train')}", got == native("train"))
    say(f"{len(got)} lines are native's")
    vm.end()


def answer(vm, way="serve"):
    """Returns the time of the first word."""
    vm.start("echo go >/tmp/in")
    word = hear(vm, rb"first \d+")
    came = time.monotonic()
    said = hear(vm, rb"said \w+")
    expect(f"it says {word} {said}, natively {native(way)}", [x.decode() for x in (word, said)] == native(way)[1:])
    return came


def graphs():
    vm = boot("graphs")
    new_root(vm)
    begin(vm, "graph")
    hear(vm, rb"warm\r")
    answer(vm, "graph")
    for n in range(MOVES):
        vm = move(vm, f"graphs{n}")
        answer(vm, "graph")
    say("it says the same words after each move")
    vm.end()


def add_row(case, times, what="clones", of="clone"):
    rows.append(f"{of},{what},{case},0,{statistics.median(times):.3f},s,{min(times):.3f},{max(times):.3f},,{len(times)},,,,,")


def clones():
    path = f"{folder}/warm"
    began = time.monotonic()
    vm = boot("warm")
    new_root(vm)
    begin(vm, "serve")
    hear(vm, rb"warm\r")
    first = answer(vm) - began
    say(f"the first VM says its first word after {first:.1f} s")
    add_row("1: cold VM", [first])
    began = time.monotonic()
    vm.save(path)
    vm.end()
    say(f"saved in {time.monotonic() - began:.1f} s, {os.path.getsize(path) / 1e9:.2f} GB")
    times = []
    for n in range(CLONES):
        began = time.monotonic()
        vm = note(VM(f"clone{n}", *FILES, incoming=True))
        vm.qmp("migrate-incoming", uri=f"file:{path}")
        until("it runs", vm.runs)
        ran = time.monotonic()
        times.append(answer(vm) - began)
        say(f"clone {n}: runs after {ran - began:.2f} s, first word after {times[-1]:.2f} s")
        vm.end()
    add_row("2: clone", times)


def tell_who_waits():
    """What threads of the device wait for, and what blocks in the guests."""
    found = subprocess.run(["ps", "-eLo", "pid,tid,stat,etimes,wchan:32,comm"], capture_output=True, text=True, check=False).stdout
    say("\n".join(line for line in found.split("\n") if "qcu-" in line))
    for vm in vms:
        if vm.process.poll() is None:
            say(f"-- tasks of {vm.name}\n{vm.tasks()[-6000:]}")


failed = 0
try:
    for name in cases:
        say(f"== {name}")
        try:
            {f.__name__: f for f in (programs, every, memory, written, full, training, clones, graphs)}[name]()
        except Failed as e:
            failed = 1
            say(f"FAILED {e}")
            for log in sorted(glob.glob(f"{folder}/*.log"), key=os.path.getmtime)[-4:]:
                with open(log, encoding="ascii", errors="replace") as f:
                    say(f"-- {os.path.basename(log)}\n{f.read()[-1500:]}")
            tell_who_waits()
finally:
    moving.end_everything()
with open(os.environ["ROWS"], "w", encoding="ascii") as f:
    f.write("".join(row + "\n" for row in rows))
sys.exit(failed)
