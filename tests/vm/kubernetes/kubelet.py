#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Plays the kubelet and the cluster's API for the driver as it is: a process with its sockets, which starts real
qcu-devices through the played systemctl. Each case prints a line for tests/run.

usage: kubelet.py FOLDER CASE..."""

import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from concurrent import futures

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, here)
# pylint: disable=wrong-import-position
import grpc  # noqa: E402
from played import DRA, MESSAGES, Api, dra, new_claim  # noqa: E402

ROOT = os.path.join(here, "../../..")
WAIT = 60 * int(os.environ.get("QCU_SLOW", "1"))
API = Api()
URL = API.serve()


def uid(n):
    return f"{n:08x}-0000-4000-8000-000000000000"


def until(what, condition):
    """Waits for something, with a limit that only a hang reaches."""
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT} s"
        time.sleep(0.02)


def in_session(sid):
    """Are there processes of this session? Devices have sessions of their own."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                fields = f.read().rpartition(") ")[2].split()
        except OSError:
            continue
        if fields[3] == str(sid) and fields[0] != "Z":
            return True
    return False


class Node:
    """A folder that is a node, and the driver on it."""

    def __init__(self, folder, *options):
        self.folder, self.options, self.driver, self.said = folder, options, None, ""
        for d in ("state", "cdi", "units", "bin", "kubelet/plugins", "kubelet/plugins_registry", "kubelet/device-plugins"):
            os.makedirs(f"{folder}/{d}", 0o755)
        shutil.copy(f"{here}/systemctl", f"{folder}/bin/")
        os.symlink(os.environ["DEVICE"], f"{folder}/device")
        with open(f"{folder}/token", "w", encoding="ascii") as f:
            f.write("of-the-test")
        self.dra = f"{folder}/kubelet/plugins/gpu.qcuda.example/dra.sock"
        self.registry = f"{folder}/kubelet/plugins_registry/gpu.qcuda.example-reg.sock"
        self.slots = f"{folder}/kubelet/device-plugins/qcuda.sock"

    def command(self, *more):
        f = self.folder
        return [f"{ROOT}/scripts/kubernetes/driver", "--node", "node-1", "--kubelet", f"{f}/kubelet", "--state", f"{f}/state",
                "--cdi", f"{f}/cdi", "--device", f"{f}/device", "--soft", "1Gi", "--group", str(os.getegid()),
                "--qemu-user", "107", "--api", URL, "--token", f"{f}/token", *self.options, *more]

    def start(self, wait=True):
        with open(f"{self.folder}/log", "ab") as log:
            # pylint: disable-next=consider-using-with
            self.driver = subprocess.Popen(self.command(), stdout=log, stderr=log, start_new_session=True,
                                           env={**os.environ, "PATH": f"{self.folder}/bin:" + os.environ["PATH"]})
        path = self.slots if "--plugin" in self.options else self.registry
        if wait:
            until(f"{path} is served", lambda: self.serves(path))

    def serves(self, path):
        if self.driver.poll() is not None:
            raise AssertionError("the driver has ended: " + self.log())
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
        except OSError:
            return False
        return True

    def kill(self, sig=signal.SIGKILL):
        """Ends the driver. A systemctl that it has called may still be at work, and is waited for."""
        self.driver.send_signal(sig)
        self.driver.wait()
        until("systemctl ends", lambda: not in_session(self.driver.pid))

    def log(self):
        with open(f"{self.folder}/log", encoding="utf-8") as f:
            return f.read()

    def call(self, path, method, request, response):
        with grpc.insecure_channel(f"unix:{path}") as channel:
            data = channel.unary_unary(method)(
                request if isinstance(request, bytes) else request.SerializeToString(), timeout=WAIT)
        return MESSAGES[response].FromString(data)

    def resources(self, verb, claims):
        request = dra(f"Node{verb}ResourcesRequest")(claims=[dra("Claim")(**c) for c in claims])
        return self.call(self.dra, f"/{DRA}.DRAPlugin/Node{verb}Resources", request,
                         f"{DRA}.Node{verb}ResourcesResponse").claims

    def prepare(self, *numbers):
        return self.resources("Prepare", [{"namespace": "default", "uid": uid(n), "name": f"c{n}"} for n in numbers])

    def unprepare(self, *numbers):
        return self.resources("Unprepare", [{"namespace": "default", "uid": uid(n), "name": f"c{n}"} for n in numbers])

    def device_pid(self, name):
        with open(f"{self.folder}/units/{name}", encoding="ascii") as f:
            return int(f.read())

    def listens(self, n):
        """The device of claim n is there as its file for the container runtime says."""
        with open(f"{self.folder}/cdi/qcuda-claim-{uid(n)}.json", encoding="ascii") as f:
            spec = json.load(f)
        device, = spec["devices"]
        assert f"{spec['kind']}={device['name']}" == f"qcuda.example/vm=claim-{uid(n)}", spec
        mount, = device["containerEdits"]["mounts"]
        assert mount["containerPath"] == "/run/qcuda" and "ro" in mount["options"], mount
        st = os.stat(f"{mount['hostPath']}/vm.sock")
        assert st.st_gid == os.getegid() and os.stat(mount["hostPath"]).st_mode & 0o7777 == 0o2750
        assert os.path.exists(f"/proc/{self.device_pid(device['name'])}")

    def left(self):
        return sorted(os.listdir(f"{self.folder}/units") + os.listdir(f"{self.folder}/cdi") +
                      [n for n in os.listdir(f"{self.folder}/state") if n != "kubernetes.lock"])

    def end(self):
        if self.driver and self.driver.poll() is None:
            self.kill()
        for name in os.listdir(f"{self.folder}/units"):
            subprocess.run([f"{self.folder}/bin/systemctl", "stop", f"qcu-device@{name}.service"], check=False)


def allocate(n, **more):
    API.add(new_claim(uid(n), f"c{n}", **more))


def refused(answers, n, why):
    assert why in answers[uid(n)].error, f"{n}: {answers[uid(n)].error!r}, expected {why!r}"
    assert not answers[uid(n)].devices


def fails(function, code, why):
    try:
        function()
    except grpc.RpcError as e:
        assert e.code() == code and why in e.details(), f"{e.code()}: {e.details()}"
    else:
        raise AssertionError(f"{why}: it has not failed")


# ---- the cases ----

def hostile(node):
    """Claims and calls that must be refused, and the reason. Nothing is left of them."""
    node.start()
    good = {"memory": "64Mi"}
    own = [{"source": "FromClaim", "opaque": {"driver": "gpu.qcuda.example", "parameters": {}}}]

    def asks(**parameters):
        return {"consumed": good, "config": [{"source": "FromClaim", "opaque": {
            "driver": "gpu.qcuda.example", "parameters": parameters}}]}

    cases = [
        ("is not from", {"consumed": {"memory": "63Mi"}}), ("is not from", {"consumed": {"memory": "2Gi"}}),
        ("is no quantity", {"consumed": {"memory": "-1"}}), ("is no quantity", {"consumed": {"memory": "64Mi --no-sandbox"}}),
        ("is no quantity", {"consumed": {"memory": 5}}), ("is no quantity", {"consumed": {"memory": "1" * 40}}),
        ("is not from", {"consumed": {"memory": "1e99"}}), ("is not from", {"consumed": {"memory": "64m"}}),
        ("there is no capacity 'time'", {"consumed": {"time": "1"}}),
        ("is not from 1 to 100", {"consumed": {"compute": "0"}}),
        ("no device 'gpu-7'", {"device": "gpu-7"}), ("no device", {"device": "../x"}),
        ("another node", {"node": "node-2"}), ("no adminAccess", {"adminAccess": True}),
        ("no name", {"request": "a b"}),
        ("no parameter 'socket'", asks(socket="/etc/passwd")),
        ("no parameter '--socket'", asks(**{"--socket": "/x"})),
        ("sessions: '4 --no-sandbox' is not", asks(sessions="4 --no-sandbox")),
        ("sessions: 'True' is not", asks(sessions=True)), ("sessions: '64' is not", asks(sessions=64)),
        ("libraries: 'cublas --trace' is not", asks(libraries="cublas --trace")),
        ("libraries: 'a\\nb' is not", asks(libraries="a\nb")), ("nvml: '\\ud800' is not", asks(nvml="\ud800")), ("nvml: 'all' is not", asks(nvml="all")),
        ("kernelTimeout: '0' is not", asks(kernelTimeout=0)),
        ("class: 'urgent' is not", asks(**{"class": "urgent"})),
        ("the parameters are no object", {"consumed": good, "config": [{**own[0], "opaque": {
            "driver": "gpu.qcuda.example", "parameters": "--trace"}}]}),
        ("libraries: the class or another part of the claim says none", {"consumed": good, "config": [
            {"source": "FromClaim", "opaque": {"driver": "gpu.qcuda.example", "parameters": {"libraries": "all"}}},
            {"source": "FromClass", "opaque": {"driver": "gpu.qcuda.example", "parameters": {"libraries": "none"}}}]}),
    ]
    # What this qcu-device may not have yet.
    usage = subprocess.run([f"{node.folder}/device", "--help"], capture_output=True, text=True, check=True).stdout
    for option, claim in (("--weight", asks(weight=3)), ("--class", asks(**{"class": "batch"})),
                          ("--max", {"consumed": {"compute": "50"}})):
        if option not in usage:
            cases.append((f"no {option}", claim))
    for n, (why, claim) in enumerate(cases):
        allocate(n, **claim)
        refused(node.prepare(n), n, why)
    twice = new_claim(uid(0), "c0")
    twice["status"]["allocation"]["devices"]["results"] *= 2
    API.add(twice)
    refused(node.prepare(0), 0, "2 devices of gpu.qcuda.example")
    API.add({"metadata": {"uid": uid(0), "name": "c0"}})
    refused(node.prepare(0), 0, "0 devices of gpu.qcuda.example")

    # Names that would lead to another place, or that are no names.
    for field, value in (("uid", "../../etc/cron.d"), ("uid", ""), ("uid", uid(0).upper()[:-1] + "G"), ("uid", uid(0) + "\n"),
                         ("namespace", "../kube-system"), ("namespace", "a/b"), ("name", "c0/../../secrets/x"),
                         ("name", "c0?watch=1"), ("name", "x" * 254), ("name", "")):
        claim = {"namespace": "default", "uid": uid(0), "name": "c0", field: value}
        for verb in ("Prepare", "Unprepare"):
            answer = node.resources(verb, [claim])[claim["uid"]]
            assert f"{field}: " in answer.error and "cannot be one" in answer.error, answer.error

    # Answers of the API that are none.
    allocate(1, consumed=good)
    for instead, why in (((200, b"no JSON"), "no object"), ((200, b"[1]"), "no object"), ((500, b""), "500"),
                         ((200, b" " * (5 << 20)), "too long"), ((302, b"http://127.0.0.1:1/"), "302"),
                         ((200, json.dumps(new_claim(uid(2), "c1")).encode()), "another claim"), ((404, b"{}"), "no such"),
                         ((200, b'{"metadata": []}'), "no claim"), ((200, b'{"metadata": {}, "status": "x"}'), "no claim"),
                         ((200, b'{"metadata": {"uid": "%s"}, "status": {"allocation": {"devices": [1]}}}' % uid(1).encode()),
                          "AttributeError")):
        API.instead = instead
        refused(node.prepare(1), 1, why)
    API.instead = None
    assert not node.left(), node.left()

    # What is no message, and too much.
    prepare = f"/{DRA}.DRAPlugin/NodePrepareResources"
    r = random.Random(1)
    good_bytes = dra("NodePrepareResourcesRequest")(claims=[dra("Claim")(uid=uid(0))]).SerializeToString()
    for data, why in ((b"\xff" * 20, "does not end"), (b"\x0a\x7f", "longer than"), (b"\x0f", "the form 7"),
                      (b"\x08\x01", "the form 0"), (b"\x00\x01", "no field 0"), (b"\x0a\x04\x12\x02\xff\xfe", "no UTF-8"),
                      (good_bytes[:-1], "longer than")):
        fails(lambda: node.call(node.dra, prepare, data, f"{DRA}.NodePrepareResourcesResponse"),
              grpc.StatusCode.INVALID_ARGUMENT, why)
    many = dra("NodePrepareResourcesRequest")(claims=[dra("Claim")(uid=uid(i)) for i in range(65)])
    fails(lambda: node.call(node.dra, prepare, many, f"{DRA}.NodePrepareResourcesResponse"),
          grpc.StatusCode.FAILED_PRECONDITION, "65 claims")
    fails(lambda: node.call(node.dra, prepare, r.randbytes(5 << 20), f"{DRA}.NodePrepareResourcesResponse"),
          grpc.StatusCode.RESOURCE_EXHAUSTED, "")
    fails(lambda: node.call(node.dra, "/v1.DRAPlugin/Nothing", b"", f"{DRA}.NodePrepareResourcesResponse"),
          grpc.StatusCode.UNIMPLEMENTED, "")
    for path in (node.dra, node.registry):
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert not node.left(), node.left()


def wrong_node(node):
    """A driver that cannot work says why, and ends."""
    f = node.folder
    env = {**os.environ, "PATH": f"{f}/bin:" + os.environ["PATH"]}

    def says(why, code, *options):
        p = subprocess.run(node.command(*options), capture_output=True, text=True, timeout=WAIT, check=False, env=env)
        assert p.returncode == code and why in p.stdout + p.stderr, (p.returncode, p.stdout + p.stderr)

    says("a node's name is wanted", 2, "--node", "Node 1")
    says("is the package qcuda-host installed", 1, "--state", f"{f}/none")
    says("is the package qcuda-host installed", 1, "--device", "/bin/false")
    says("plain characters", 2, "--state", f"{f}/a b")
    says("must be https", 1, "--api", "http://192.0.2.1/")
    says("is no quantity", 2, "--soft", "4 GB")
    says("a user is wanted", 2, "--qemu-user", "107 --no-sandbox")
    os.chmod(f"{f}/state", 0o777)
    says("others than its owner may write", 1)
    os.chmod(f"{f}/state", 0o755)
    os.chmod(f"{f}/kubelet/plugins_registry", 0o777)
    node.start(wait=False)
    until("it says why", lambda: "plugins_registry: others than its owner may write" in node.log())
    says("another driver runs", 1)
    assert not os.path.exists(node.registry)


def claims(node):
    """The kubelet's calls, the driver's ends, and sockets that are lost."""
    node.start()
    info = node.call(node.registry, "/pluginregistration.Registration/GetInfo", MESSAGES["pluginregistration.InfoRequest"](),
                     "pluginregistration.PluginInfo")
    assert (info.type, info.name, info.endpoint) == ("DRAPlugin", "gpu.qcuda.example", node.dra), info
    assert list(info.supported_versions) == ["v1.DRAPlugin"], info
    for status in ({"plugin_registered": True}, {"error": "not\nthis one"}):
        node.call(node.registry, "/pluginregistration.Registration/NotifyRegistrationStatus",
                  MESSAGES["pluginregistration.RegistrationStatus"](**status), "pluginregistration.RegistrationStatusResponse")
    assert "refuses the driver: not?this one" in node.log()

    # The slice is written once. Another one is written again, with the next number.
    found, = API.slices.values()
    device, = found["spec"]["devices"]
    assert device["allowMultipleAllocations"] and device["capacity"]["memory"]["value"] == "1Gi", device
    assert ("compute" in device["capacity"]) == ("has no --max" not in node.log())
    writes = API.writes

    allocate(1, consumed={"memory": "256Mi", "vms": "1"}, config=[
        {"source": "FromClass", "opaque": {"driver": "gpu.qcuda.example", "parameters": {"libraries": "none", "nvml": "none"}}},
        {"source": "FromClaim", "requests": ["gpu"], "opaque": {"driver": "gpu.qcuda.example", "parameters": {"sessions": 4}}},
        {"source": "FromClaim", "requests": ["other"], "opaque": {"driver": "gpu.qcuda.example", "parameters": {"sessions": 9}}},
        {"source": "FromClaim", "opaque": {"driver": "of.another", "parameters": {"x": 1}}}])
    allocate(2)  # a cluster without consumable capacity: the whole device
    answers = node.prepare(1, 2, 3)
    for n in (1, 2):
        assert not answers[uid(n)].error, answers
        device, = answers[uid(n)].devices
        assert list(device.request_names) == ["gpu"] and device.device_name == "soft-0" and device.pool_name == "node-1"
        node.listens(n)
    refused(answers, 3, "there is no such object")
    with open(f"{node.folder}/state/claim-{uid(1)}.conf", encoding="ascii") as f:
        text = f.read()
    assert text.endswith("--gpu soft --qemu-user 107 --vram 268435456 --libraries none --nvml none --sessions 4\n"), text
    with open(f"{node.folder}/state/claim-{uid(2)}.conf", encoding="ascii") as f:
        assert f.read().endswith(f" --vram {1 << 30}\n")
    pids = [node.device_pid(f"claim-{uid(n)}") for n in (1, 2)]

    def same():
        assert [node.device_pid(f"claim-{uid(n)}") for n in (1, 2)] == pids, "another device"
        node.listens(1)
        node.listens(2)

    assert not any(a.error for a in node.prepare(2, 1).values())
    same()
    # The driver ends, in both ways, and the next one finds what is there.
    for sig in (signal.SIGKILL, signal.SIGTERM):
        node.kill(sig)
        same()
        node.start()
        assert not any(a.error for a in node.prepare(1, 2).values())
        same()
    assert API.writes == writes, "the slice is written again without a reason"

    # Somebody removes the sockets: there are new ones. The API is down: what is there stays.
    for path in (node.dra, node.registry):
        os.unlink(path)
    for path in (node.dra, node.registry):
        until(f"{path} is there again", lambda p=path: node.serves(p))
    API.down = True
    allocate(4, consumed={"memory": "64Mi"})
    refused(node.prepare(4), 4, "503")
    same()
    assert not node.unprepare(2)[uid(2)].error, "unprepare needs no API"
    assert not node.unprepare(2)[uid(2)].error, "and may come twice"
    API.down = False

    # systemd does not answer; a device that cannot start.
    for verb in ("start", "list-units"):
        with open(f"{node.folder}/broken-{verb}", "w", encoding="ascii"):
            pass
        refused(node.prepare(4), 4, "Failed to connect to bus")
        os.unlink(f"{node.folder}/broken-{verb}")
    os.unlink(f"{node.folder}/device")
    os.symlink("/bin/false", f"{node.folder}/device")
    refused(node.prepare(4), 4, "does not listen; see journalctl")
    os.unlink(f"{node.folder}/device")
    os.symlink(os.environ["DEVICE"], f"{node.folder}/device")
    assert not any(uid(4) in n for n in node.left()), node.left()

    # A device dies while no driver is there, and a claim is deleted.
    assert not node.prepare(4)[uid(4)].error
    node.kill()
    os.kill(node.device_pid(f"claim-{uid(1)}"), signal.SIGKILL)
    del API.claims["c4"]
    node.start()
    node.listens(1)
    assert node.device_pid(f"claim-{uid(1)}") != pids[0]
    assert not any(uid(4) in n for n in node.left()), node.left()
    assert not node.unprepare(1)[uid(1)].error
    assert not node.left(), node.left()


def bound(node):
    """No more devices than the operator allows."""
    node.start()
    for n in range(3):
        allocate(n, consumed={"memory": "64Mi"})
    answers = node.prepare(0, 1, 2)
    assert not answers[uid(0)].error and not answers[uid(1)].error
    refused(answers, 2, "has 2 devices already")
    node.unprepare(0)
    assert not node.prepare(2)[uid(2)].error
    node.unprepare(1, 2)
    assert not node.left(), node.left()


def killed(node):
    """The driver is killed at any moment of a call, and the kubelet asks again."""
    r = random.Random(7)
    calls = futures.ThreadPoolExecutor(1)
    kills = 0
    node.start()
    for turn in range(int(os.environ.get("KILLS", "6"))):
        for n in range(2):
            allocate(n, consumed={"memory": "64Mi"})
        for function in (node.prepare, node.unprepare):
            pending = calls.submit(function, 0, 1)
            time.sleep(r.random() * 0.3)  # any moment will do
            node.kill()
            kills += 1
            try:
                pending.result()
            except grpc.RpcError:
                pass
            node.start()
            assert not any(a.error for a in function(0, 1).values()), turn
            if function is node.prepare:
                node.listens(0)
                node.listens(1)
        assert not node.left(), node.left()
    print(f"{kills} times killed")


class Kubelet:
    """The side of the kubelet that device plugins call."""

    def __init__(self, path, refuse=False):
        self.requests = []
        self.server = grpc.server(futures.ThreadPoolExecutor(2))

        def register(data, context):
            if refuse:
                context.abort(grpc.StatusCode.UNKNOWN, "not this version")
            self.requests.append(MESSAGES["v1beta1.RegisterRequest"].FromString(data))
            return b""
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
            "v1beta1.Registration", {"Register": grpc.unary_unary_rpc_method_handler(register)}),))
        if os.path.exists(path):
            os.unlink(path)
        assert self.server.add_insecure_port(f"unix:{path}")
        self.server.start()


def slots(node):
    """The device plugin."""
    service, kubelet_sock = "/v1beta1.DevicePlugin/", f"{node.folder}/kubelet/device-plugins/kubelet.sock"
    node.start()
    assert "registered" not in node.log()
    first = Kubelet(kubelet_sock, refuse=True)
    until("it says why", lambda: "not this version" in node.log())
    first.server.stop(None).wait()
    second = Kubelet(kubelet_sock)
    until("it is registered", lambda: second.requests)
    request = second.requests[0]
    assert (request.version, request.endpoint, request.resource_name) == ("v1beta1", "qcuda.sock", "qcuda.example/vm")

    options = node.call(node.slots, service + "GetDevicePluginOptions", b"", "v1beta1.DevicePluginOptions")
    assert not options.pre_start_required and not options.get_preferred_allocation_available
    channel = grpc.insecure_channel(f"unix:{node.slots}")
    watch = channel.unary_stream(service + "ListAndWatch")(b"")
    lists = (MESSAGES["v1beta1.ListAndWatchResponse"].FromString(data) for data in watch)
    assert [(d.ID, d.health) for d in next(lists).devices] == [("slot-0", "Healthy"), ("slot-1", "Healthy")]

    def allocate_slot(*ids):
        request = MESSAGES["v1beta1.AllocateRequest"](container_requests=[{"devices_ids": ids}])
        response, = node.call(node.slots, service + "Allocate", request, "v1beta1.AllocateResponse").container_responses
        return response

    for ids in ((), ("slot-9",), ("../claim",), ("slot-0", "slot-1")):
        fails(lambda i=ids: allocate_slot(*i), grpc.StatusCode.FAILED_PRECONDITION, "can have one of 2 slots")
    response = allocate_slot("slot-1")
    mount, = response.mounts
    assert mount.container_path == "/run/qcuda" and mount.read_only and dict(response.envs) == {
        "QCUDA_SOCKET": "/run/qcuda/vm.sock"}, response
    assert os.path.exists(f"{mount.host_path}/vm.sock")
    pid = node.device_pid("slot-1")

    # A slot whose device cannot be started is not healthy, and is again when it can be.
    os.unlink(f"{node.folder}/device")
    os.symlink("/bin/false", f"{node.folder}/device")
    os.kill(node.device_pid("slot-0"), signal.SIGKILL)
    assert [d.health for d in next(lists).devices] == ["Unhealthy", "Healthy"]
    os.unlink(f"{node.folder}/device")
    os.symlink(os.environ["DEVICE"], f"{node.folder}/device")
    assert [d.health for d in next(lists).devices] == ["Healthy", "Healthy"]
    watch.cancel()
    channel.close()

    # The driver and the kubelet start again. The kubelet removes the sockets of plugins then.
    node.kill()
    node.start()
    until("it is registered again", lambda: len(second.requests) > 1)
    assert allocate_slot("slot-1").mounts[0].host_path == mount.host_path and node.device_pid("slot-1") == pid
    second.server.stop(None).wait()
    if os.path.exists(node.slots):
        os.unlink(node.slots)
    third = Kubelet(kubelet_sock)
    until("the new kubelet knows it", lambda: third.requests)
    until("its socket is there again", lambda: node.serves(node.slots))
    # Fewer slots: an idle one goes.
    node.kill()
    node.options += ("--slots", "1")
    node.start()
    until("slot-1 goes", lambda: not os.path.exists(f"{node.folder}/units/slot-1"))
    third.server.stop(None)


CASES = {"hostile": (hostile,), "wrong-node": (wrong_node,), "claims": (claims,), "bound": (bound, "--devices", "2"),
         "killed": (killed,), "slots": (slots, "--plugin")}


def main():
    bad = 0
    for name in sys.argv[2:]:
        function, *options = CASES[name]
        API.claims, API.slices, API.down, API.instead = {}, {}, False, None
        node = Node(f"{sys.argv[1]}/{name}", *options)
        start = time.monotonic()
        try:
            function(node)
            print(f"@ok {name} {time.monotonic() - start:.1f}", flush=True)
        except Exception:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
            print(node.log() if os.path.exists(f"{node.folder}/log") else "no log")
            print(f"@FAIL {name}", flush=True)
            bad = 1
        finally:
            node.end()
    return bad


if __name__ == "__main__":
    sys.exit(main())
