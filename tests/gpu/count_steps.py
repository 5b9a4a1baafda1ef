# SPDX-License-Identifier: GPL-2.0-or-later
"""What a step of training costs: natively the calls of CUDA's runtime and driver and the waits among them, which PyTorch's
profiler counts; in a VM the commands that go to the device and the waits among them, which the guest's driver counts.
A step asks for its loss, which is one wait, natively, too."""
import contextlib
import os

import torch
import torch.nn.functional as F
from torch import nn

from steps import log, run, step

DEVICE = "cuda"
STEPS = 20
SESSIONS = "/sys/kernel/debug/qcuda/sessions"
log(f"imported torch {torch.__version__}")


def counted():
    """The driver's counters of this process."""
    if not os.path.exists(SESSIONS):
        return None
    with open(SESSIONS) as lines:
        for line in lines:
            pid, *rest = line.split()
            if int(pid) == os.getpid():
                return dict(zip(rest[::2], map(int, rest[1::2])))
    raise LookupError("this process has no session")


def calls(profile):
    """Calls of CUDA in a step, and those that wait."""
    counts = {event.key: event.count for event in profile.key_averages() if event.key.startswith(("cuda", "cu"))}
    waits = sum(n for name, n in counts.items() if name.endswith("Synchronize"))
    return sum(counts.values()) / STEPS, waits / STEPS


def count(name, network, x, target):
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)

    def steps():
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(network(x), target)
            loss.backward()
            optimizer.step()
            loss.item()

    steps()
    before = counted()
    with contextlib.nullcontext() if before else torch.profiler.profile() as profile:
        steps()
    if before:
        after = counted()
        commands, posted = [(after[what] - before[what]) / STEPS for what in ("commands", "posted")]
        log(f"a step of training {name}: {commands:.1f} commands, {commands - posted:.2f} waits")
        assert commands - posted <= 2
    else:
        log("a step of training %s: %.1f calls, %.2f waits" % (name, *calls(profile)))
    return "counted"


@step
def convolutions():
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                            nn.Flatten(), nn.Linear(32, 10)).to(DEVICE)
    return count("convolutions", network, torch.randn(64, 3, 32, 32).to(DEVICE), torch.randint(0, 10, (64,)).to(DEVICE))


@step
def transformer():
    torch.manual_seed(2)
    network = nn.Sequential(nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True), nn.Flatten(),
                            nn.Linear(128 * 16, 10)).to(DEVICE)
    return count("transformer", network, torch.randn(32, 16, 128).to(DEVICE), torch.randint(0, 10, (32,)).to(DEVICE))


run()
