# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels in Triton: sum of vectors, softmax of rows, product of matrices. And what one launch takes."""
import time

from steps import digest, log, run, step

log("python runs")
import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

log(f"Triton {triton.__version__} is imported")


@triton.jit
def add_kernel(a, b, to, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(to + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@triton.jit
def softmax_kernel(to, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + j, mask=j < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(to + row * columns + j, e / tl.sum(e, 0), mask=j < columns)


@triton.jit
def matmul_kernel(a, b, to, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    j = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        across = (k + tl.arange(0, BK))[None, :]
        down = (k + tl.arange(0, BK))[:, None]
        x = tl.load(a + i * K + across, mask=(i < M) & (across < K), other=0.0)
        y = tl.load(b + down * N + j, mask=(down < K) & (j < N), other=0.0)
        total += tl.dot(x, y)
    tl.store(to + i * N + j, total, mask=(i < M) & (j < N))


@triton.jit
def double_tile_kernel(source, target, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    column = tl.program_id(1) * BLOCK
    target.store([row, column], source.load([row, column]) * 2)


@step
def vector_add():
    n = 98432
    host = torch.arange(n, dtype=torch.float32)
    a, b, to = host.cuda(), (host * 0.5).cuda(), torch.empty(n, device="cuda")
    add_kernel[(triton.cdiv(n, 1024),)](a, b, to, n, BLOCK=1024)
    return digest(to), bool((to.cpu() == host * 1.5).all())


@step
def softmax():
    torch.manual_seed(1)
    host = torch.randn(181, 781)
    x = host.cuda()
    to = torch.empty_like(x)
    softmax_kernel[(181,)](to, x, 781, BLOCK=1024)
    return digest(to), float((to.cpu() - host.softmax(1)).abs().max()) < 1e-6


@step
def matmul():
    torch.manual_seed(2)
    left, right = torch.randn(300, 200).half(), torch.randn(200, 150).half()
    a, b, to = left.cuda(), right.cuda(), torch.empty(300, 150, device="cuda")
    matmul_kernel[(triton.cdiv(300, 64), triton.cdiv(150, 64))](a, b, to, 300, 150, 200, BM=64, BN=64,
                                                                BK=32)
    return digest(to), float((to.cpu() - left.float() @ right.float()).abs().max()) < 1e-2


@step
def tensor_maps():
    """Tiles that the GPU's copy unit moves, by a description that the host makes."""
    host = torch.arange(256 * 128, dtype=torch.float32).view(256, 128)
    source, target = host.cuda(), torch.zeros(256, 128, device="cuda")
    maps = [TensorDescriptor.from_tensor(t, [32, 32]) for t in (source, target)]
    double_tile_kernel[(8, 4)](*maps, BLOCK=32)
    return digest(target), bool((target.cpu() == host * 2).all())


@step
def launches():
    x = torch.zeros(1024, dtype=torch.float32).cuda()
    least = float("inf")
    for _ in range(8):
        began = time.perf_counter()
        for _ in range(100):
            add_kernel[(1,)](x, x, x, 1024, BLOCK=1024)
        least = min(least, (time.perf_counter() - began) / 100)
        torch.cuda.synchronize()
    log(f"one launch: {least * 1e6:.1f} us")
    return digest(x)


run()
