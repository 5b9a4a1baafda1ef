#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Random sequences of what happens to a driver: claims are prepared and unprepared, the driver ends between any two steps,
systemd, the disk and the API fail, units die, the node boots again. The kubelet, systemd and the API are played. After
each of them: every claim that the kubelet has been told of is there with its own limits. At the end nothing is left.

usage: sequences.py FOLDER FROM TO [--broken]"""

import errno
import io
import os
import random
import shutil
import sys
import types
import urllib.error

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.realpath(__file__))
scripts = os.path.join(here, "../../../scripts/kubernetes")
sys.path[:0] = [here, scripts]
# pylint: disable=wrong-import-position
import cluster  # noqa: E402
import node  # noqa: E402
import wire  # noqa: E402
from played import Api, dra, new_claim  # noqa: E402

driver = types.ModuleType("driver")
driver.__file__ = os.path.join(scripts, "driver")
with open(driver.__file__, encoding="utf-8") as source:
    exec(compile(source.read(), driver.__file__, "exec"), driver.__dict__)  # pylint: disable=exec-used
driver.say = lambda _: None


class Crash(BaseException):
    """The driver ends here."""


class World:
    """The node: its folders, systemd, and what goes wrong next."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.folder = folder
        self.units, self.crash_in, self.disk_in = {}, 0, 0
        self.fail = {}  # command of systemctl: how often it fails
        self.dumb = 0   # units that start and do not listen
        self.api = Api()
        self.boot()

    def boot(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(f"{self.folder}/state")
        os.makedirs(f"{self.folder}/cdi")
        self.units = {}

    def left(self, uid=""):
        """What is there, of this claim or of all."""
        return [n for n in os.listdir(f"{self.folder}/state") + os.listdir(f"{self.folder}/cdi") +
                [n for n, s in self.units.items() if s != "inactive"] if uid in n]

    def step(self):
        """Between any two things that the driver changes."""
        if self.crash_in:
            self.crash_in -= 1
            if not self.crash_in:
                raise Crash()
        if self.disk_in:
            self.disk_in -= 1
            if not self.disk_in:
                raise OSError(errno.ENOSPC, "No space left on device")

    # -- systemd --

    def run(self, *command):
        self.step()
        assert command[0] == "systemctl", command
        verb = command[1]
        if self.fail.get(verb, 0):
            self.fail[verb] -= 1
            return 1, "Failed to connect to bus"
        if verb == "list-units":
            return 0, "".join(f"qcu-device@{n}.service loaded {s} any qCUDA device\n" for n, s in self.units.items())
        name = command[2][len("qcu-device@"):-len(".service")]
        if verb == "start":
            with open(f"{self.folder}/state/{name}.conf", encoding="ascii") as f:
                words = f.read().split("OPTIONS=")[1].split()
            self.units[name] = "active"
            if self.dumb:
                self.dumb -= 1
                self.units[name] = "failed"
            else:
                with open(words[words.index("--socket") + 1], "w", encoding="ascii"):
                    pass
        elif verb == "stop":
            self.units[name] = "failed" if self.random.random() < 0.2 else "inactive"
        elif self.units.get(name) == "failed":
            self.units[name] = "inactive"
        self.step()
        return 0, ""

    # -- the API --

    def open(self, request, timeout):  # pylint: disable=unused-argument
        path = request.full_url.partition("//")[2].partition("/")[2]
        status, body = self.api.answer(request.get_method(), "/" + path, request.data)
        if status != 200:
            raise urllib.error.HTTPError(request.full_url, status, "no", {}, io.BytesIO(body))
        return io.BytesIO(body)


WORLD = None


def stepping(function):
    def wrapper(*args, **named):
        WORLD.step()
        result = function(*args, **named)
        WORLD.step()
        return result
    return wrapper


class Os:
    """What node.py sees as os."""
    mkdir, chown, chmod = (staticmethod(stepping(f)) for f in (os.mkdir, os.chown, os.chmod))
    replace, unlink, makedirs = (staticmethod(stepping(f)) for f in (os.replace, os.unlink, os.makedirs))

    def __getattr__(self, name):
        return getattr(os, name)


node.os = Os()
node.shutil = types.SimpleNamespace(rmtree=stepping(shutil.rmtree))


class Sequence:
    def __init__(self, folder, seed):
        global WORLD  # pylint: disable=global-statement
        self.world = WORLD = World(folder, seed)
        self.random = self.world.random
        self.asked = {}     # claims that the kubelet has asked for: uid -> claim
        self.prepared = {}  # those of which it knows that they are there
        self.count, self.fault = 0, "none"
        self.calls = None
        self.history = []
        self.start_driver()

    def start_driver(self):
        f = self.world.folder
        settings = types.SimpleNamespace(
            state=f"{f}/state", cdi=f"{f}/cdi", group=os.getegid(), qemu_user="107", devices=6, vms=16,
            node="node-1", socket="/none")
        api = cluster.Cluster("http://127.0.0.1:1", f"{f}/../token", None)
        api.opener = self.world
        devices = {"soft-0": {"name": "soft-0", "kind": "soft", "memory": 8 << 30}}
        there = node.Node(settings, self.world, pause=lambda _: None)
        self.calls = driver.Claims(settings, there, api, devices, {"--vram", "--sessions", "--max", "--qemu-user"})
        self.calls.look_after()

    def call(self, method, request, response, claims):
        """As the kubelet does it: its bytes go in, and ours come out."""
        message = dra(f"Node{method}ResourcesRequest")(claims=[dra("Claim")(
            namespace="default", uid=c["metadata"]["uid"], name=c["metadata"]["name"]) for c in claims])
        function = self.calls.prepare if method == "Prepare" else self.calls.unprepare
        data = wire.encode(response, function(wire.decode(request, message.SerializeToString())))
        answer = dra(f"Node{method}ResourcesResponse").FromString(data)
        assert set(answer.claims) == {c["metadata"]["uid"] for c in claims}, "each claim has an answer"
        return answer.claims

    # -- what the kubelet does --

    def prepare(self, claims):
        whole = set()
        for c in claims:
            self.asked[c["metadata"]["uid"]] = c
            if self.calls.node.is_whole("claim-" + c["metadata"]["uid"]):
                whole.add(c["metadata"]["uid"])
        answers = self.call("Prepare", "PrepareRequest", "PrepareResponse", claims)
        for c in claims:
            uid = c["metadata"]["uid"]
            if not answers[uid].error:
                device, = answers[uid].devices
                assert list(device.cdi_device_ids) == [f"qcuda.example/vm=claim-{uid}"], device
                assert (device.pool_name, device.device_name) == ("node-1", "soft-0"), device
                self.prepared[uid] = c
            elif self.fault in ("dumb", "start") and uid not in whole:
                assert not self.world.left(uid), f"left of a claim that cannot be prepared: {self.world.left(uid)}"

    def unprepare(self, uids):
        claims = [self.asked[u] for u in uids]
        for uid in uids:  # no pod uses it any more
            self.prepared.pop(uid, None)
        answers = self.call("Unprepare", "UnprepareRequest", "UnprepareResponse", claims)
        for uid in uids:
            if not answers[uid].error:
                self.world.api.claims.pop(self.asked.pop(uid)["metadata"]["name"], None)

    def new(self):
        self.count += 1
        r = self.random
        uid = "%08x-%04x-4%03x-8%03x-%012x" % (r.getrandbits(32), r.getrandbits(16), r.getrandbits(12),
                                               r.getrandbits(12), r.getrandbits(48))
        claim = new_claim(uid, f"claim-{self.count}", consumed={
            "memory": f"{r.randrange(64, 2048)}Mi", "compute": str(r.randrange(1, 101)), "vms": "1"})
        self.world.api.add(claim)
        return claim

    def some(self, of):
        return self.random.sample(sorted(of), min(len(of), self.random.randrange(1, 3)))

    # -- what is true --

    def check(self):
        """What the kubelet knows is there, with the limits of its own claim."""
        for uid, claim in self.prepared.items():
            name = f"claim-{uid}"
            assert self.calls.node.is_whole(name), f"{name} is lost"
            with open(self.calls.node.conf(name), encoding="ascii") as f:
                text = f.read()
            consumed = claim["status"]["allocation"]["devices"]["results"][0]["consumedCapacity"]
            words = text.split("OPTIONS=")[1].split()
            assert words[words.index("--vram") + 1] == str(int(consumed["memory"][:-2]) << 20), text
            assert "--max" not in words if consumed["compute"] == "100" else \
                words[words.index("--max") + 1] == consumed["compute"], text

    def check_after_look(self):
        """After the driver has looked, with nothing broken: all that is prepared runs, and nothing else is there."""
        self.check()
        running = {n for n, s in self.world.units.items() if s == "active"}
        assert running >= {f"claim-{u}" for u in self.prepared}, "a claim's unit does not run"
        there = self.calls.node.names(self.calls.node.units())
        assert there <= {f"claim-{u}" for u in self.asked}, f"leaked: {there}"
        assert all(self.calls.node.is_whole(n) for n in there), "half of a device"

    def nothing_breaks(self):
        w = self.world
        w.crash_in = w.disk_in = w.dumb = 0
        w.fail, w.api.down, self.fault = {}, False, "none"

    # -- what happens --

    def turn(self):
        r, w = self.random, self.world
        what = r.choice(("new", "new", "new", "again", "unprepare", "unprepare", "restart", "die", "forget", "look",
                         "reboot" if r.random() < 0.2 else "look"))
        fault = self.fault = r.choice(("none", "none", "crash", "crash", "disk", "start", "dumb", "stop", "list", "api"))
        self.history.append(f"{what}/{fault}")
        if fault == "crash":
            w.crash_in = r.randrange(1, 24)
        elif fault == "disk":
            w.disk_in = r.randrange(1, 16)
        elif fault == "dumb":
            w.dumb = 1
        elif fault == "api":
            w.api.down = True
        elif fault != "none":
            w.fail = {"list-units" if fault == "list" else fault: r.randrange(1, 3)}
        try:
            if what == "new":
                self.prepare([self.new() for _ in range(r.randrange(1, 3))])
            elif what == "again" and self.asked:
                self.prepare([self.asked[u] for u in self.some(self.asked)])
            elif what == "unprepare" and self.asked:
                self.unprepare(self.some(self.asked))
            elif what == "restart":
                self.start_driver()
            elif what == "die":
                for n in self.some(w.units) if w.units else []:
                    w.units[n] = "failed" if w.units[n] == "active" else w.units[n]
                self.calls.look_after()
            elif what == "forget":
                for uid in self.some(self.asked) if self.asked else []:
                    w.api.claims.pop(self.asked.pop(uid)["metadata"]["name"], None)
                    self.prepared.pop(uid, None)
                self.calls.look_after()
            elif what == "reboot":
                w.boot()
                self.prepared = {}
                self.start_driver()
            else:
                self.calls.look_after()
        except Crash:
            self.nothing_breaks()
            self.start_driver()
            self.check_after_look()
        self.check()
        if r.random() < 0.3:
            self.nothing_breaks()
            self.calls.look_after()
            self.check_after_look()
            # The kubelet asks again until it has an answer.
            self.prepare([c for u, c in self.asked.items() if u not in self.prepared][:2])
            self.check()
        self.nothing_breaks()

    def end(self):
        self.start_driver()
        self.check_after_look()
        if self.asked:
            self.unprepare(list(self.asked))
        assert not self.asked, "not all can be unprepared"
        assert not self.world.left(), f"left: {self.world.left()}"


def main():
    folder, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(f"{folder}/token", "w", encoding="ascii") as f:
        f.write("of-the-test")
    if "--broken" in sys.argv:
        # What the test must find: a configuration that goes before the rest, so that the rest is not found.
        node.Node.names = lambda self, units: {os.path.basename(p)[:-5] for p in node.glob.glob(
            f"{self.settings.state}/*.conf")}
    turns = faults = 0
    for seed in range(first, last):
        s = Sequence(f"{folder}/world", seed)
        try:
            for _ in range(s.random.randrange(4, 20)):
                s.turn()
                turns += 1
            s.end()
        except AssertionError as e:
            print(f"sequence {seed}: {e}\n  after {' '.join(s.history)}")
            return 1
        faults += sum(not h.endswith("/none") for h in s.history)
    print(f"{last - first} sequences of {turns} turns with {faults} faults: no claim lost, no device leaked")
    return 0


sys.exit(main())
