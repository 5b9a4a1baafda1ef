#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Feeds the reader of messages with spoiled ones: it must give a message or raise Malformed, whatever the bytes are. And what
it writes, protobuf's own library reads as the same, and the other way round.

usage: wire_fuzz.py SEED COUNT"""

import os
import random
import sys

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [here, os.path.join(here, "../../../scripts/kubernetes")]
# pylint: disable=wrong-import-position
import wire  # noqa: E402
from played import MESSAGES, dra  # noqa: E402

V1, V1BETA1, HOOKS = "k8s.io.kubelet.pkg.apis.dra.v1", "v1beta1", "kubevirt.hooks.plugins.v1alpha1"
SAME = {
    "PluginInfo": "pluginregistration.PluginInfo", "RegistrationStatus": "pluginregistration.RegistrationStatus",
    "PrepareRequest": f"{V1}.NodePrepareResourcesRequest", "PrepareResponse": f"{V1}.NodePrepareResourcesResponse",
    "UnprepareRequest": f"{V1}.NodeUnprepareResourcesRequest", "UnprepareResponse": f"{V1}.NodeUnprepareResourcesResponse",
    "RegisterRequest": f"{V1BETA1}.RegisterRequest", "SlotList": f"{V1BETA1}.ListAndWatchResponse",
    "AllocateRequest": f"{V1BETA1}.AllocateRequest", "AllocateResponse": f"{V1BETA1}.AllocateResponse",
    "MutateDomainRequest": f"{HOOKS}.MutateDomainRequest", "MutateDomainResponse": f"{HOOKS}.MutateDomainResponse",
}


def some(r, kind):
    """A random value of a kind."""
    if kind[0] == "*":
        return [some(r, kind[1:]) for _ in range(r.randrange(3))]
    if kind[0] == "%":
        return {some(r, "string"): some(r, kind[1:]) for _ in range(r.randrange(3))}
    if kind == "string":
        return "".join(r.choice("ab/é\n ") for _ in range(r.choice((0, 1, 5, 200))))
    if kind == "bytes":
        return r.randbytes(r.choice((0, 3, 300)))
    if kind == "bool":
        return r.random() < 0.5
    return {name: some(r, k) for name, k in wire.MESSAGES[kind].values()}


def plain(kind, values):
    """As protobuf's message says it."""
    if kind[0] == "*":
        return [plain(kind[1:], v) for v in values]
    if kind[0] == "%":
        return {k: plain(kind[1:], v) for k, v in values.items()}
    if kind not in wire.MESSAGES:
        return values
    return {name: plain(k, getattr(values, name)) for name, k in wire.MESSAGES[kind].values()}


def spoil(r, data):
    data = bytearray(data)
    for _ in range(r.randrange(1, 4)):
        how, at = r.randrange(4), r.randrange(len(data) + 1)
        if how == 0 and at < len(data):
            data[at] = r.randrange(256)
        elif how == 1:
            del data[at:at + r.randrange(1, 9)]
        elif how == 2:
            data[at:at] = r.randbytes(r.randrange(1, 9))
        else:
            data += data[at:at + 40]
    return bytes(data)


def main():
    r = random.Random(int(sys.argv[1]))
    refused = 0
    for _ in range(int(sys.argv[2])):
        ours, theirs = r.choice(list(SAME.items()))
        values = some(r, ours)
        data = wire.encode(ours, values)
        assert plain(ours, MESSAGES[theirs].FromString(data)) == values, (ours, values)
        assert wire.decode(ours, MESSAGES[theirs].FromString(data).SerializeToString()) == values, (ours, values)
        try:
            wire.decode(ours, spoil(r, data))
        except wire.Malformed:
            refused += 1
    # Fields of a newer version are skipped.
    newer = dra("Claim")(uid="u").SerializeToString() + b"\xfa\x3f\x02hi\x80\x40\x01\xa5\x40\x01\x02\x03\x04\xa1\x40" + b"12345678"
    assert wire.decode("Claim", newer) == {"namespace": "", "uid": "u", "name": ""}
    print(f"{sys.argv[2]} messages agree, {refused} of as many spoiled ones are refused")


main()
