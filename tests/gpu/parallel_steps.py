# SPDX-License-Identifier: GPL-2.0-or-later
"""Two processes train one network on two GPUs with PyTorch's DistributedDataParallel, and reduce large tensors.
The processes are forked before either uses a GPU, so that PyTorch is imported once."""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from steps import digest, log

RANKS = 2
log(f"imported torch {torch.__version__}")


def collectives(rank):
    """All ranks get what the processor computes."""
    one = torch.arange(1000, dtype=torch.float, device="cuda") * (rank + 1)
    dist.all_reduce(one)
    assert torch.equal(one.cpu(), torch.arange(1000, dtype=torch.float) * 3)
    part = torch.full((7,), rank, dtype=torch.long, device="cuda")
    parts = [torch.empty_like(part) for _ in range(RANKS)]
    dist.all_gather(parts, part)
    assert [p[6].item() for p in parts] == list(range(RANKS))
    dist.broadcast(part, 1)
    assert part.sum().item() == 7
    half = torch.ones(64, dtype=torch.bfloat16, device="cuda") * 0.5
    dist.all_reduce(half, op=dist.ReduceOp.AVG)
    assert half.float().sum().item() == 32
    scattered = torch.empty(5, device="cuda")
    dist.reduce_scatter_tensor(scattered, torch.ones(10, device="cuda"))
    assert scattered.sum().item() == 10
    there, back = torch.full((3,), float(rank), device="cuda"), torch.empty(3, device="cuda")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, there, 1 - rank),
                                        dist.P2POp(dist.irecv, back, 1 - rank)]):
        work.wait()
    assert back[0].item() == 1 - rank
    return "right"


def training(rank):
    torch.manual_seed(7)
    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    x, target = torch.randn(RANKS, 128, 64), torch.randint(0, 10, (RANKS, 128))
    x, target = x[rank].cuda(), target[rank].cuda()
    both = DistributedDataParallel(network, device_ids=[rank])
    optimizer = torch.optim.AdamW(both.parameters(), lr=3e-3)
    losses, times = [], []
    for _ in range(30):
        began = time.monotonic()
        optimizer.zero_grad()
        loss = F.cross_entropy(both(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.monotonic() - began)
    # Both have the same weights.
    sums = torch.stack([p.double().sum() for p in network.parameters()])
    least, most = sums.clone(), sums.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    assert torch.equal(least, most)
    if rank == 0:
        log("losses " + " ".join(f"{loss:.5f}" for loss in losses[::5]))
        log(f"a step of training: {1e3 * sorted(times)[15]:.2f} ms")
    assert losses[-1] < losses[0] / 2, losses
    return digest(torch.tensor(losses)), digest(sums)


def bandwidth(rank):
    for mib in (1, 16, 256):
        data = torch.zeros(mib << 18, device="cuda")
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        dist.all_reduce(data)
        took = []
        for _ in range(5):
            dist.barrier()
            begin.record()
            for _ in range(10):
                dist.all_reduce(data)
            end.record()
            end.synchronize()
            took.append(begin.elapsed_time(end) / 10)
        if rank == 0:
            log(f"training: all-reduce of {mib} MiB: {data.nbytes / sorted(took)[2] / 1e6:.1f} GB/s")
    return "measured"


def work(rank, path):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", store=dist.FileStore(path, RANKS), rank=rank, world_size=RANKS,
                            device_id=torch.device("cuda", rank))
    for step in (collectives, training, bandwidth):
        print(step.__name__, rank, step(rank), flush=True)
    dist.destroy_process_group()


def main():
    path = os.path.join(tempfile.mkdtemp(), "store")
    children = []
    for rank in range(RANKS):
        # One after the other, so that what they print has an order.
        out = tempfile.NamedTemporaryFile("w+")
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            work(rank, path)
            sys.stdout.flush()
            os._exit(0)
        children.append((child, out))
    failed = 0
    for child, out in children:
        failed |= os.waitpid(child, 0)[1] != 0
        print(open(out.name).read(), end="")
    sys.exit(failed)


main()
