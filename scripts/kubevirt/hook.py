# SPDX-License-Identifier: GPL-2.0-or-later
"""What both hooks of KubeVirt do: they put a qCUDA device into the domain of a virtual machine, as the machine's
annotations say. The users of the cluster write these, so each is compared with what it may be."""

import json
import os
import re
import sys

# In the image, domain.py lies beside this file.
here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [here, os.path.join(os.path.dirname(here), "libvirt")]
# pylint: disable=wrong-import-position
from domain import Domain, Refused  # noqa: E402

# Annotations of the virtual machine. For all machines, variables of the sidecar: QCUDA_SOCKET and so on.
SOCKET, SESSIONS, EMULATOR, FRONT = (f"qcuda.example/{n}" for n in ("socket", "sessions", "emulator", "front"))
DEFAULTS = {SOCKET: "/run/qcuda/vm.sock", SESSIONS: "16", EMULATOR: "", FRONT: "ours"}


def settings(vmi):
    try:
        annotations = json.loads(vmi).get("metadata", {}).get("annotations") or {}
        found = {key: annotations.get(key) for key in DEFAULTS}
    except (ValueError, AttributeError, RecursionError):
        raise Refused("--vmi is no description of a virtual machine") from None
    for key, value in DEFAULTS.items():
        found[key] = str(found[key] or os.environ.get("QCUDA_" + key.split("/")[1].upper()) or value)
    return found


def mutate(vmi, xml):
    """The domain with the device that the machine asks for."""
    want = settings(vmi)
    domain = Domain(xml)
    socket = want[SOCKET]
    if not socket.startswith("/") or not socket.isprintable() or len(os.fsencode(socket)) > 107:
        raise Refused(f"{SOCKET}: {socket}: must be an absolute path of up to 107 characters")
    if not re.fullmatch("[0-9]{1,2}", want[SESSIONS]) or not 1 <= int(want[SESSIONS]) <= 63:
        raise Refused(f"{SESSIONS}: {want[SESSIONS]}: must be a number from 1 to 63")
    if want[FRONT] not in ("ours", "general"):
        raise Refused(f"{FRONT}: {want[FRONT]}: must be ours or general")
    if want[EMULATOR] and not want[EMULATOR].startswith("/"):
        raise Refused(f"{EMULATOR}: {want[EMULATOR]}: must be an absolute path")
    domain.attach(want[FRONT], socket, int(want[SESSIONS]), want[EMULATOR] or None)
    return domain.text()
