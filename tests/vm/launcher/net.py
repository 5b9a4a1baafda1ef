#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The switch of a step's network, qcu-net hub, and strangers who connect to it. Boots nothing.

usage: net.py QCU_NET CASE

munge and unmunge are stand-ins: a credential names its writer, who may be anybody.
"""

import base64
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
TAG = "7.0"
UID = os.geteuid()
FAKES = {
    "munge": '#!/bin/sh\n[ "$1 $2" = "--restrict-uid $(id -u)" ] || exit 1\nprintf MUNGE:%s:%s: "$(id -u)" "$(base64 -w0)"\necho\n',
    "unmunge": '#!/bin/sh\nIFS=: read -r _ uid text rest\n[ -n "$text" ] && [ -z "$rest" ] || exit 1\n'
               'printf "UID:   %s\\n\\n" "$uid"\necho "$text" | base64 -d\n',
}


def credential(text, uid=UID):
    return f"MUNGE:{uid}:{base64.b64encode(text.encode()).decode()}:".encode()


def mac(vm):
    return bytes([0x52, 0x54, 0, 0x71, vm >> 8, vm & 255])


def frame(to, sender, text=b"text"):
    return to + sender + b"\x08\x00" + text


def packed(data):
    return struct.pack("!I", len(data)) + data


class Hub:
    def __init__(self, vms):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([PROGRAM, "hub", "127.0.0.1", str(self.port), TAG, str(vms)], stderr=self.log)

    def connect(self):
        """Returns a connection and the hub's number."""
        while True:
            try:
                s = socket.create_connection(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                assert self.process.poll() is None, "the hub does not start"
                time.sleep(0.01)
        s.settimeout(60)
        return s, line(s)

    def join(self, vm):
        s, nonce = self.connect()
        own = "0" * 32
        s.sendall(credential(f"join {TAG} {vm} {nonce} {own}") + b"\n")
        answer = line(s)
        assert base64.b64decode(answer.split(":")[2]).decode() == f"hub {TAG} {vm} {own}", answer
        return s

    def refuses(self, proof):
        """proof: of the hub's number makes a line. The hub must close the connection, and say nothing."""
        s, nonce = self.connect()
        s.sendall(proof(nonce))
        assert closed(s)


def closed(s):
    try:
        return s.recv(100) == b""
    except ConnectionResetError:
        return True


def line(s):
    got = b""
    while not got.endswith(b"\n"):
        more = s.recv(1)
        assert more, "closed"
        got += more
    return got[:-1].decode()


def receive(s):
    def exactly(n):
        got = b""
        while len(got) < n:
            more = s.recv(n - len(got))
            assert more, "closed"
            got += more
        return got
    return exactly(struct.unpack("!I", exactly(4))[0])


def case_calls():
    for args in ([], ["hub"], ["hub", "127.0.0.1", "1", TAG, "0"], ["hub", "127.0.0.1", "1", TAG, "1025"],
                 ["hub", "no such host", "1", TAG, "2"], ["hub", "192.0.2.1", "7", TAG, "2"], ["join", "127.0.0.1", "1", TAG, "0", "5"]):
        done = subprocess.run([PROGRAM, *args], stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and done.stderr.startswith(b"qcu-net: "), (args, done)


def case_strangers():
    hub = Hub(2)
    own = "a" * 32

    def proof(text, uid=UID):
        return lambda nonce: credential(text.format(nonce=nonce), uid) + b"\n"
    hub.refuses(lambda nonce: b"\n")
    hub.refuses(lambda nonce: b"GET / HTTP/1.0\r\n")
    hub.refuses(lambda nonce: b"MUNGE:\n")
    hub.refuses(lambda nonce: b"x" * 5000)
    hub.refuses(lambda nonce: b"MUNGE:0;touch /tmp/x;:::\n")
    hub.refuses(proof("join 7.0 1 {nonce} " + own, UID + 1))
    hub.refuses(proof("join 7.1 1 {nonce} " + own))
    hub.refuses(proof("join 7.0 2 {nonce} " + own))
    hub.refuses(proof("join 7.0 -1 {nonce} " + own))
    hub.refuses(proof("join 7.0 1 " + own + " " + own))
    hub.refuses(proof("join 7.0 1 {nonce} " + own + " more"))
    hub.refuses(proof("join 7.0 1 {nonce} short"))
    hub.refuses(proof("hub 7.0 1 {nonce} " + own))
    hub.refuses(proof("j" * 600))
    # More who say nothing than there are places.
    silent = [hub.connect()[0] for _ in range(100)]
    first, second = hub.join(0), hub.join(1)
    hub.refuses(proof("join 7.0 1 {nonce} " + own))
    second.sendall(packed(frame(mac(0), mac(1))))
    assert receive(first) == frame(mac(0), mac(1))
    first.close()
    second.close()
    assert hub.process.wait(60) == 0
    for s in silent:
        s.close()
    hub.log.seek(0)
    assert len(hub.log.readlines()) == 8


def case_frames():
    hub = Hub(3)
    vms = [hub.join(vm) for vm in range(3)]
    everybody = b"\xff" * 6
    # One that pretends to be another is not heard, nor is one for nobody.
    vms[1].sendall(packed(frame(mac(0), mac(2))) + packed(frame(mac(9), mac(1))))
    for byte in packed(frame(everybody, mac(1), b"all")):
        vms[1].sendall(bytes([byte]))
    assert receive(vms[0]) == receive(vms[2]) == frame(everybody, mac(1), b"all")
    vms[2].sendall(packed(frame(mac(1), mac(2), b"to one")))
    assert receive(vms[1]) == frame(mac(1), mac(2), b"to one")
    longest = frame(mac(0), mac(1), b"x" * (4096 + 65536 - 14))
    vms[1].sendall(packed(longest))
    assert receive(vms[0]) == longest
    for wrong in (b"", b"x" * 13):
        other = Hub(2)
        first, second = other.join(0), other.join(1)
        second.sendall(packed(wrong))
        assert closed(second)
        first.close()
        assert other.process.wait(60) == 0
    vms[2].sendall(struct.pack("!I", 4096 + 65536 + 1))
    assert closed(vms[2])
    # Who reads nothing loses frames, and keeps nobody from anything.
    for _ in range(200):
        vms[1].sendall(packed(longest))
    vms[1].sendall(packed(frame(mac(9), mac(1))))
    assert receive(vms[0]) == longest
    vms[0].settimeout(1)
    count = 1
    try:
        while True:
            assert receive(vms[0]) == longest
            count += 1
    except TimeoutError:
        pass
    assert count <= 200, count
    # The first VM has left; the hub stays for the other.
    vms[0].close()
    vms[1].sendall(packed(frame(everybody, mac(1))))
    assert hub.process.poll() is None
    vms[1].close()
    assert hub.process.wait(60) == 0


def case_random():
    """A VM that a guest has taken over sends anything: only it may lose its connection."""
    for seed in range(40):
        numbers = random.Random(seed)
        hub = Hub(3)
        vms = [hub.join(vm) for vm in range(3)]
        try:
            for _ in range(50):
                size = numbers.choice([0, 1, 13, 14, 60, 1500, 9014, 69632, 69633, numbers.getrandbits(32)])
                body = numbers.randbytes(min(size, numbers.choice([0, 20, 1514, 70000])))
                if numbers.random() < 0.5:
                    body = mac(numbers.randrange(4)) + mac(numbers.randrange(4)) + body[12:]
                vms[1].sendall(struct.pack("!I", size if numbers.random() < 0.3 else len(body)) + body)
        except OSError:
            pass
        vms[1].close()
        vms[2].sendall(packed(frame(mac(0), mac(2), b"still here")))
        while receive(vms[0]) != frame(mac(0), mac(2), b"still here"):
            pass
        vms[0].close()
        vms[2].close()
        assert hub.process.wait(60) == 0, seed


def join_command(port, *command):
    return [PROGRAM, "join", "127.0.0.1", str(port), TAG, "1", "40", *command]


def case_join():
    # Somebody else listens there, and cannot prove to be the hub.
    for answer in (lambda proof: b"\n", lambda proof: proof + b"\n", lambda proof: credential("hub 7.0 1 " + "0" * 32) + b"\n"):
        with socket.create_server(("127.0.0.1", 0)) as ear:
            joining = subprocess.Popen(join_command(ear.getsockname()[1], "echo", "began"), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            s, _ = ear.accept()
            s.sendall(b"0" * 32 + b"\n")
            s.sendall(answer(line(s).encode()))
            out, err = joining.communicate(timeout=60)
            assert joining.returncode == 2 and not out and b"nobody proves to be the hub" in err, (out, err)
            s.close()
    hub = Hub(2)
    first = hub.join(0)
    code = f"import socket; s = socket.socket(fileno=40); s.sendall({packed(frame(mac(0), mac(1)))!r})"
    assert subprocess.run(join_command(hub.port, "python3", "-c", code), check=False).returncode == 0
    assert receive(first) == frame(mac(0), mac(1))
    first.close()
    assert hub.process.wait(60) == 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FAKES.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(path, 0o755)
        os.environ["PATH"] = folder + ":" + os.environ["PATH"]
        globals()["case_" + sys.argv[2]]()
    print("all is well")


main()
