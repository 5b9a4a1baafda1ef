# SPDX-License-Identifier: GPL-2.0-or-later
"""What a claim asks for, as options of qcu-device. Claims are written by users of the cluster: every value is
compared with a list or a bound here, and what is not described is refused by its name."""

import re
from fractions import Fraction

from wire import Refused

DRIVER = "gpu.qcuda.example"

UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
REQUEST = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")

QUANTITY = re.compile(r"([0-9]{1,19})(?:\.([0-9]{1,9}))?([KMGTPE]i|[mkMGTPE]|[eE][0-9]{1,2})?")
SCALE = {"m": Fraction(1, 1000), "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
         "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}

MEMORY_MIN = 64 << 20


def quantity(text):
    """The value of a quantity of Kubernetes: 4Gi, 512M, 1e9, 2.5."""
    m = QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if not m:
        raise Refused(f"{str(text)[:40]!a} is no quantity")
    whole, part, unit = m[1], m[2] or "", m[3] or ""
    scale = 10**int(unit[1:]) if unit[:1] in ("e", "E") and unit[1:].isdigit() else SCALE[unit]
    return Fraction(int(whole + part), 10**len(part)) * scale


def whole(name, text, low, high):
    n = quantity(text)
    n = -(-n.numerator // n.denominator)  # the scheduler rounds up, too
    if not low <= n <= high:
        raise Refused(f"{name}: {str(text)[:40]} is not from {low} to {high}")
    return n


# ---- parameters of a class or a claim: NAME: (option of qcu-device, check) ----

def number(low, high):
    def check(value):
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return check, f"a number from {low} to {high}"


def one_of(*words):
    return (lambda value: isinstance(value, str) and value in words), "one of " + ", ".join(words)


def libraries(value):
    return isinstance(value, str) and re.fullmatch(r"[a-z]{1,20}(,[a-z]{1,20}){0,15}", value)


PARAMETERS = {
    "sessions": ("--sessions", *number(1, 63)),
    "libraries": ("--libraries", libraries, "all, none or names such as cublas,cufft"),
    "nvml": ("--nvml", *one_of("own", "full", "none")),
    "kernelTimeout": ("--kernel-timeout", *number(1, 86400)),
    "weight": ("--weight", *number(1, 10000)),
    "class": ("--class", *one_of("interactive", "batch")),
}


def parameters(config, request):
    """The parameters for this request: the class's, and what the claim adds. A claim cannot change what its class says,
    because the class is the administrator's."""
    found = {}
    for source in ("FromClass", "FromClaim"):
        for entry in config:
            opaque = entry.get("opaque") or {}
            wanted = entry.get("requests") or []
            if entry.get("source") != source or opaque.get("driver") != DRIVER or \
                    wanted and request not in wanted and request.split("/")[0] not in wanted:
                continue
            given = opaque.get("parameters")
            if not isinstance(given, dict):
                raise Refused("the parameters are no object")
            for name, value in given.items():
                if name not in PARAMETERS:
                    raise Refused(f"there is no parameter {name[:40]!a}: there are {', '.join(PARAMETERS)}")
                _, check, what = PARAMETERS[name]
                if not check(value):
                    raise Refused(f"{name}: {str(value)[:40]!a} is not {what}")
                if source == "FromClaim" and found.get(name, value) != value:
                    raise Refused(f"{name}: the class or another part of the claim says {found[name]}, "
                                  f"so the claim cannot say {value}")
                found[name] = value
    return found


# ---- a claim ----

def check_names(claim):
    """The names in the kubelet's call. They become parts of paths."""
    for field, form in (("uid", UID), ("namespace", LABEL), ("name", SUBDOMAIN)):
        if not form.fullmatch(claim[field]):
            raise Refused(f"{field}: {claim[field][:80]!a} cannot be one")


def our_result(claim, node):
    """The one device of ours that is allocated to the claim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    devices = allocation.get("devices") or {}
    results = [r for r in devices.get("results") or [] if r.get("driver") == DRIVER]
    if len(results) != 1:
        raise Refused(f"{len(results)} devices of {DRIVER} are allocated to the claim; it must be one, "
                      "because a virtual machine has one qcu-device")
    if results[0].get("pool") != node:
        raise Refused("the claim's device is of another node")
    if results[0].get("adminAccess"):
        raise Refused("there is no adminAccess: a device has nothing to watch another one with")
    if not REQUEST.fullmatch(str(results[0].get("request"))):
        raise Refused("the claim's request has no name")
    return results[0], devices.get("config") or []


def capacity(device, consumed, options):
    """Options for what the claim consumes of the device. A cluster that does not know consumable capacity allocates
    a device whole."""
    unknown = [name for name in consumed if name not in ("memory", "compute", "vms")]
    if unknown:
        raise Refused(f"there is no capacity {str(unknown[0])[:40]!a}")
    memory = device["memory"]
    if "memory" in consumed:
        memory = whole("memory", consumed["memory"], MEMORY_MIN, device["memory"])
    found = ["--vram", str(memory)]
    compute = whole("compute", consumed.get("compute", "100"), 1, 100)
    if compute < 100:
        if "--max" not in options:
            raise Refused("compute: this node's qcu-device has no --max, so it cannot keep a limit of the GPU's time")
        found += ["--max", str(compute)]
    return found


def device_options(name, device, more, settings):
    """The text of the unit's environment file: how qcu-device serves this device under this name."""
    text = ""
    if device["kind"] == "cuda":
        text += f"CUDA_VISIBLE_DEVICES={device['uuid']}\n"
    words = ["--socket", f"{settings.state}/{name}/vm.sock", "--name", name,
             "--metrics", f"{settings.state}/{name}.metrics", "--gpu", device["kind"]]
    if settings.qemu_user:
        words += ["--qemu-user", settings.qemu_user]
    return text + "OPTIONS=" + " ".join(words + more) + "\n"


def read_claim(claim, node, devices, options):
    """The claim's request, its device and the options that it leads to."""
    result, config = our_result(claim, node)
    device = devices.get(result.get("device"))
    if not device:
        raise Refused(f"this node has no device {str(result.get('device'))[:40]!a}")
    more = capacity(device, result.get("consumedCapacity") or {}, options)
    for name, value in parameters(config, result["request"]).items():
        option = PARAMETERS[name][0]
        if option not in options:
            raise Refused(f"{name}: this node's qcu-device has no {option}")
        more += [option, str(value)]
    return result["request"], device, more
