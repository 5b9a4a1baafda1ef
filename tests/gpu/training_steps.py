# SPDX-License-Identifier: GPL-2.0-or-later
"""Training and inference with PyTorch: a residual network and a transformer layer, step by step, as graphs and
compiled; batches from workers, a file with weights, and a small language model. Algorithms are those that
give the same bits each time, so what a step returns are the bits of all losses or tokens."""
import os
import tempfile
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, Dataset

from steps import digest, log, run, step

DEVICE = "cuda"
log(f"imported torch {torch.__version__}")
torch.backends.cudnn.deterministic = True


@step
def products():
    """A product of matrices in each type."""
    bits = []
    for dtype in (torch.float, torch.half, torch.bfloat16, torch.double, torch.complex64, torch.complex128):
        torch.manual_seed(1)
        a, b = torch.randn(256, 192, dtype=dtype), torch.randn(192, 320, dtype=dtype)
        bits.append(digest(torch.view_as_real(a.to(DEVICE) @ b.to(DEVICE)) if dtype.is_complex
                           else (a.to(DEVICE) @ b.to(DEVICE)).float()))
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(1)
    bits.append(digest(torch.randn(256, 192).to(DEVICE) @ torch.randn(192, 320).to(DEVICE)))
    torch.backends.cuda.matmul.allow_tf32 = False
    a = torch.randint(-9, 9, (64, 64), dtype=torch.int8)
    bits.append(digest(torch._int_mm(a.to(DEVICE), a.to(DEVICE))))
    return " ".join(bits)


@step
def attention_and_gradients():
    bits = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        torch.manual_seed(2)
        q, k, v = [torch.randn(2, 4, 128, 64).half().to(DEVICE).requires_grad_() for _ in range(3)]
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out.square().mean().backward()
        # The gradient of q has one order of additions in each of them.
        bits += [digest(out.float()), digest(q.grad.float())]
    return " ".join(bits)


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)])
        self.short = nn.Conv2d(inner, outer, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.short(x))


def residual():
    torch.manual_seed(3)
    x, target = torch.randn(64, 3, 32, 32).to(DEVICE), torch.randint(0, 10, (64,)).to(DEVICE)
    network = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(DEVICE)
    return network, x, target


def transformer():
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
    network = nn.Sequential(layer, nn.Flatten(), nn.Linear(128 * 16, 10)).to(DEVICE)
    return network, torch.randn(32, 16, 128).to(DEVICE), torch.randint(0, 10, (32,)).to(DEVICE)


def train(name, network, forward, x, target, steps):
    """Returns the losses. They must fall."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=True)
    losses, times = [], []
    for _ in range(steps):
        began = time.monotonic()
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(forward(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.monotonic() - began)
    log(f"losses {name} " + " ".join(f"{loss:.5f}" for loss in losses[::max(1, steps // 10)]))
    log(f"a step of training {name}: {1e3 * sorted(times)[steps // 2]:.2f} ms")
    assert losses[-1] < losses[0] / 2, losses
    return digest(torch.tensor(losses))


def whole_step(name, network, x, target):
    """Captures a whole step of training, and replays it: the GPU's own time."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=True, capturable=True)

    def one():
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(network(x), target)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            one()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = one()
    losses = []
    for _ in range(20):
        graph.replay()
        losses.append(loss.item())
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    took = []
    for _ in range(5):
        begin.record()
        for _ in range(50):
            graph.replay()
        end.record()
        end.synchronize()
        took.append(begin.elapsed_time(end) / 50)
    log(f"a step of training {name} as a graph, on the GPU: {1e3 * sorted(took)[2]:.1f} us")
    return digest(torch.tensor(losses))


@step
def residual_network():
    network, x, target = residual()
    return train("residual", network, network, x, target, 100)


@step
def residual_graphed():
    network, x, target = residual()
    return train("residual graphed", network, torch.cuda.make_graphed_callables(network, (x,)), x, target, 20)


@step
def residual_whole_step():
    network, x, target = residual()
    return whole_step("residual", network, x, target)


@step
def transformer_layer():
    network, x, target = transformer()
    return train("transformer", network, network, x, target, 30)


@step
def transformer_graphed():
    network, x, target = transformer()
    return train("transformer graphed", network, torch.cuda.make_graphed_callables(network, (x,)), x, target, 20)


@step
def transformer_whole_step():
    network, x, target = transformer()
    return whole_step("transformer", network, x, target)


@step
def residual_compiled():
    network, x, target = residual()
    return train("residual compiled", network, torch.compile(network), x, target, 20)


@step
def transformer_compiled():
    network, x, target = transformer()
    return train("transformer compiled", network, torch.compile(network), x, target, 20)


@step
def weights_in_a_file():
    network, x, target = transformer()
    train("transformer", network, network, x, target, 10)
    with tempfile.NamedTemporaryFile() as file:
        torch.save(network.state_dict(), file.name)
        again = transformer()[0]
        again.load_state_dict(torch.load(file.name, map_location=DEVICE, weights_only=True))
    network.eval(), again.eval()
    got = [digest(n(x)) for n in (network, again)]
    assert got[0] == got[1]
    return got[0]


class Images(Dataset):
    """Each is 3 MiB, and its numbers tell its place."""

    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.full((3, 512, 512), i % 23, dtype=torch.float)


@step
def batches_from_workers():
    sums = []
    for pinned in (False, True):
        total = torch.zeros((), dtype=torch.double, device=DEVICE)
        began = time.monotonic()
        for batch in DataLoader(Images(), batch_size=8, num_workers=2, pin_memory=pinned):
            total += batch.to(DEVICE, non_blocking=pinned).double().sum()
        sums.append(total.item())
        log(f"training batches from workers, {'pinned' if pinned else 'pageable'}: "
            f"{48 * 3 / (time.monotonic() - began):.0f} MiB/s")
    return sums


@step
def batches_up():
    """What the way of a batch to the GPU reaches, once its memory is known."""
    sums = []
    for mib in (1, 8, 64):
        for pinned in (False, True):
            batch = torch.ones(mib << 18, pin_memory=pinned)
            there = torch.empty(mib << 18, device=DEVICE)
            times = []
            for _ in range(9):
                torch.cuda.synchronize()
                began = time.monotonic()
                there.copy_(batch, non_blocking=True)
                torch.cuda.synchronize()
                times.append(time.monotonic() - began)
            sums.append(int(there.sum().item()))
            log(f"training batch of {mib} MiB up, {'pinned' if pinned else 'pageable'}: "
                f"{mib / 1024 * 1.073741824 / sorted(times)[4]:.2f} GB/s")
    return sums


class Model(nn.Module):
    """A language model with random weights, and room for the keys and values of all tokens."""

    def __init__(self, layers=4, width=256, heads=4, words=1000, room=128):
        super().__init__()
        self.heads, self.width = heads, width
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(room, width)
        self.mix = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(layers)])
        self.join = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.wide = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(layers)])
        self.narrow = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(layers)])
        self.register_buffer("cache", torch.zeros(layers, 2, heads, room, width // heads))

    def forward(self, word, place):
        x = self.words(word) + self.places(place)
        seen = (torch.arange(self.cache.shape[3], device=x.device) <= place).view(1, 1, -1)
        for i in range(len(self.mix)):
            q, k, v = self.mix[i](F.layer_norm(x, (self.width,))).view(3, self.heads, 1, -1)
            self.cache[i, 0].index_copy_(1, place, k)
            self.cache[i, 1].index_copy_(1, place, v)
            y = F.scaled_dot_product_attention(q, self.cache[i, 0], self.cache[i, 1], attn_mask=seen)
            x = x + self.join[i](y.view(1, -1))
            x = x + self.narrow[i](F.gelu(self.wide[i](F.layer_norm(x, (self.width,)))))
        return (x @ self.words.weight.T).argmax(-1)


@step
@torch.no_grad()
def language_model():
    torch.manual_seed(6)
    model = Model().to(DEVICE).half()
    word, place = torch.zeros(1, dtype=torch.long, device=DEVICE), torch.zeros(1, dtype=torch.long, device=DEVICE)

    def speak(next_word, tokens):
        model.cache.zero_(), word.fill_(1), place.zero_()
        said = []
        torch.cuda.synchronize()
        began = time.monotonic()
        for _ in range(tokens):
            word.copy_(next_word())
            place.add_(1)
            said.append(word.clone())
        said = torch.cat(said).cpu()
        return said, tokens / (time.monotonic() - began)

    speak(lambda: model(word, place), 3)
    plain, rate = speak(lambda: model(word, place), 32)
    log(f"training, but not: a language model: {rate:.0f} tokens a second")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(word, place)

    def replay():
        graph.replay()
        return out

    graphed, rate = speak(replay, 120)
    log(f"training, but not: a language model by a graph: {rate:.0f} tokens a second")
    assert torch.equal(plain, graphed[:32])
    return digest(graphed)


if __name__ == "__main__":
    run()
