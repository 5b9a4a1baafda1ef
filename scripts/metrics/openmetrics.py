# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of all VMs as one text, in the format OpenMetrics: `qcu top --openmetrics` and `--serve`."""

import re

# Families: what they are, and whether programs have them, too. docs/vm/tools.md says more.
FAMILIES = {
    "up": ("gauge", "1 if the device behind this socket has answered."),
    "device": ("gauge", "Always 1. The labels describe the device."),
    "connected": ("gauge", "1 when QEMU is connected."),
    "sessions": ("gauge", "Guest programs that use CUDA now."),
    "sessions_limit": ("gauge", "How many guest programs can use CUDA at once."),
    "sessions_opened": ("counter", "Guest programs that have used CUDA."),
    "start_time_seconds": ("gauge", "When the program began, as Unix time."),
    "copied_bytes": ("counter", "Bytes copied."),
    "moved_bytes": ("counter", "Bytes of managed memory moved."),
    "swapped_bytes": ("counter", "GPU memory that has left a GPU, or come back."),
    "away_bytes": ("gauge", "GPU memory that is away."),
    "lent_bytes": ("gauge", "GPU memory that is away on another GPU."),
    "swap_gpu_bytes": ("counter", "Bytes that went to another GPU for GPU memory that is away, or came from there."),
    "filed_bytes": ("gauge", "GPU memory that is away in a file."),
    "swap_file_bytes": ("counter", "Bytes that went to files for GPU memory that is away, or came from there."),
    "swap_refusals": ("counter", "How often memory could not leave."),
    "copies": ("counter", "Copies that the backend received."),
    "launches": ("counter", "Kernels launched."),
    "calls": ("counter", "Commands that came from the guest."),
    "waits": ("counter", "Commands that waited for the GPU."),
    "errors": ("counter", "Commands that ended with an error."),
    "registered_bytes": ("gauge", "Guest memory that is registered with the GPU."),
    "chunks": ("gauge", "Chunks of guest memory that are mapped."),
    "gpu_seconds": ("counter", "For how long kernels kept GPUs busy."),
    "turn_wait_seconds": ("counter", "For how long commands waited for the VM's turn on a GPU."),
    "room_wait_seconds": ("counter", "For how long commands waited for room on a GPU."),
    "mapped_bytes": ("gauge", "Guest memory that is mapped."),
    "device_memory_bytes": ("gauge", "Memory of each GPU in use."),
    "refused": ("counter", "How often a limit was in the way."),
}
LABELS = ("session", "pid", "program", "gpu", "wire", "direction", "path", "command", "limit")
UNITS = ("bytes", "seconds")


def label_text(pairs):
    return ",".join('%s="%s"' % (k, re.sub(r'(["\\])', r"\\\1", v)) for k, v in pairs)


def note_sample(found, of, name, labels, value):
    """Only families and labels that are known get through. A series that is there already stays as it is."""
    own = name.removeprefix("session_")
    prefix, family = name[:len(name) - len(own)], own.removesuffix("_total")
    if FAMILIES.get(family, ("",))[0] != ("counter" if own.endswith("_total") else "gauge"):
        return
    pairs = of + [(k, labels[k]) for k in LABELS if k in labels and not (own == "device" and k == "pid")]
    number = f"{value:.6f}" if isinstance(value, float) else str(value)
    found.setdefault(prefix + family, {}).setdefault(f"qcuda_{name}{{{label_text(pairs)}}}", number)


def open_metrics(vms, samples, silent=()):
    """vms: as --json shows them. samples: what their devices said, by the socket. silent: sockets of others."""
    found, seen = {}, set()
    for vm in vms:
        of = [("vm", vm["name"]), ("device", str(vm["pid"]))]
        good = label_text(of) not in seen
        seen.add(label_text(of))
        note_sample(found, [("socket", vm["socket"])], "up", {}, int(good))
        for name, labels, value in samples[vm["socket"]] if good else ():
            if name != "up":
                note_sample(found, of, name, labels, value)
    for path in silent:
        note_sample(found, [("socket", path)], "up", {}, 0)
    for prefix in ("", "session_"):
        for family, (kind, what) in FAMILIES.items():
            lines = found.get(prefix + family)
            if not lines:
                continue
            yield f"# TYPE qcuda_{prefix}{family} {kind}"
            unit = family.rpartition("_")[2]
            if unit in UNITS:
                yield f"# UNIT qcuda_{prefix}{family} {unit}"
            yield f"# HELP qcuda_{prefix}{family} {what}"
            yield from (f"{key} {value}" for key, value in lines.items())
    yield "# EOF"
