# SPDX-License-Identifier: GPL-2.0-or-later
"""What PyTorch does with NVIDIA's libraries: convolutions and their gradients, attention and recurrent layers
(cuDNN), products (cuBLAS, cuBLASLt), transforms (cuFFT), dense linear algebra (cuSOLVER), and training. Each
step compares with the processor. The losses and times of training go to stderr, because they differ a little
from run to run, natively too."""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from steps import log, run, step

DEVICE = "cuda"
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
log(f"PyTorch {torch.__version__} is imported")


def close(got, want, limit=1e-3):
    """Is `got`, from the GPU, what the processor says?"""
    off = ((got.detach().cpu() - want).abs().max() / want.abs().max()).item()
    assert off < limit, off
    return "right"


@step
def convolution():
    torch.manual_seed(1)
    x, w = torch.randn(4, 8, 16, 16), torch.randn(16, 8, 3, 3)
    return close(F.conv2d(x.to(DEVICE), w.to(DEVICE), padding=1), F.conv2d(x, w, padding=1))


@step
def gradients():
    torch.manual_seed(1)
    x, w = torch.randn(4, 8, 16, 16, requires_grad=True), torch.randn(16, 8, 3, 3, requires_grad=True)
    F.conv2d(x, w, padding=1).square().sum().backward()
    gx, gw = (t.detach().to(DEVICE).requires_grad_() for t in (x, w))
    F.conv2d(gx, gw, padding=1).square().sum().backward()
    return close(gx.grad, x.grad), close(gw.grad, w.grad)


@step
def batch_normalization():
    torch.manual_seed(1)
    x, here, there = torch.randn(8, 4, 6, 6), nn.BatchNorm2d(4), nn.BatchNorm2d(4).to(DEVICE)
    return close(there(x.to(DEVICE)), here(x).detach()), close(there.running_mean, here.running_mean)


@step
def transforms():
    torch.manual_seed(1)
    x = torch.randn(4, 100, 60)
    return [close(f(x.to(DEVICE)), f(x)) for f in (torch.fft.rfft, torch.fft.fft2, torch.fft.ifft)]


def scattered(rows, cols):
    x = torch.randn(rows, cols)
    return x * (torch.rand(rows, cols) < 0.2)


@step
def sparse_products():
    torch.manual_seed(1)
    a, b, x, y = scattered(60, 50), scattered(50, 40), torch.randn(50, 7), torch.randn(50)
    there = a.to(DEVICE)
    made = [close(f(there) @ x.to(DEVICE), a @ x) for f in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr)]
    made.append(close(there.to_sparse_csr() @ y.to(DEVICE), a @ y))
    made.append(close((there.to_sparse_csr() @ b.to(DEVICE).to_sparse_csr()).to_dense(), a @ b))
    sampled = torch.sparse.sampled_addmm(there.to_sparse_csr(), torch.randn(60, 9, device=DEVICE),
                                         torch.zeros(9, 50, device=DEVICE))
    return made, close(sampled.to_dense(), a)


@step
def sparse_systems():
    torch.manual_seed(1)
    a, x = scattered(40, 40).tril(-1) + 3 * torch.eye(40), torch.randn(40, 3)
    got = torch.triangular_solve((a @ x).to(DEVICE), a.to(DEVICE).to_sparse_csr(), upper=False).solution
    return close(got, x)


@step
def linear_algebra():
    torch.manual_seed(1)
    a = torch.randn(40, 40, dtype=torch.float64)
    s = a @ a.T + torch.eye(40, dtype=torch.float64)
    q, r = torch.linalg.qr(a.to(DEVICE))
    x = torch.linalg.solve(s.to(DEVICE), a.to(DEVICE)).cpu()
    return (
        close(torch.linalg.cholesky(s.to(DEVICE)), torch.linalg.cholesky(s)),
        close(torch.linalg.eigvalsh(s.to(DEVICE)), torch.linalg.eigvalsh(s)),
        close(torch.linalg.svdvals(a.to(DEVICE)), torch.linalg.svdvals(a)),
        close(q @ r, a),
        close(s @ x, a),
    )


@step
def attention():
    torch.manual_seed(1)
    q = torch.randn(2, 4, 64, 64)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        got = F.scaled_dot_product_attention(*[q.half().to(DEVICE)] * 3)
    return close(got.float(), F.scaled_dot_product_attention(q, q, q), 1e-2)


@step
def recurrent():
    torch.manual_seed(1)
    here, there, x = nn.LSTM(12, 20, 2), nn.LSTM(12, 20, 2), torch.randn(7, 3, 12)
    there.load_state_dict(here.state_dict())
    return close(there.to(DEVICE)(x.to(DEVICE))[0], here(x)[0].detach())


class Network(nn.Module):
    """A small one, with a residual connection as ResNet's."""

    def __init__(self):
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.second, self.second_norm = nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.third, self.third_norm = nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.last = nn.Linear(32 * 16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first_norm(self.first(x))), 2)
        x = F.max_pool2d(F.relu(self.second_norm(self.second(x))), 2)
        x = F.relu(self.third_norm(self.third(x))) + x
        return self.last(F.max_pool2d(x, 2).flatten(1))


def train(network, x, target, optimizer, steps, **autocast):
    """Trains for some steps. The loss must fall."""
    losses, times = [], []
    for _ in range(steps):
        began = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=bool(autocast)):
            loss = F.cross_entropy(network(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.monotonic() - began)
    log("losses " + " ".join(f"{loss:.5f}" for loss in losses))
    log(f"a step of training: {1e3 * sorted(times)[steps // 2]:.2f} ms")
    assert losses[-1] < losses[0] / 2, losses
    return "trained"


def cnn(**options):
    torch.manual_seed(3)
    x, target = torch.randn(64, 3, 32, 32).to(DEVICE), torch.randint(0, 10, (64,)).to(DEVICE)
    network = Network().to(DEVICE)
    return train(network, x, target, torch.optim.SGD(network.parameters(), lr=0.003, momentum=0.9), 20, **options)


@step
def cnn_float():
    return cnn()


@step
def cnn_bfloat16():
    return cnn(bfloat16=True)


@step
def transformer_adamw():
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    network = nn.Sequential(layer, nn.Flatten(), nn.Linear(64 * 16, 10)).to(DEVICE)
    x, target = torch.randn(32, 16, 64).to(DEVICE), torch.randint(0, 10, (32,)).to(DEVICE)
    return train(network, x, target, torch.optim.AdamW(network.parameters(), lr=1e-3), 20)


run()
