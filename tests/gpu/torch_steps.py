# SPDX-License-Identifier: GPL-2.0-or-later
"""PyTorch as far as its own kernels go: no cuBLAS, no cuDNN."""
import os

from steps import digest, log, run, step

log("python runs")
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

log(f"PyTorch {torch.__version__} is imported")


@step
def devices():
    return (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(0),
            torch.cuda.get_device_capability(0))


@step
def empty():
    x = torch.empty(1000, device="cuda")
    return tuple(x.shape), str(x.device)


@step
def copies():
    x = torch.arange(1 << 20, dtype=torch.float32)
    return digest(x.cuda()) == digest(x), digest(x.cuda().view(1024, 1024).t())


@step
def fill():
    return torch.full((1000,), 3.0, device="cuda").cpu().sum().item()


@step
def elementwise():
    x = torch.linspace(-3, 3, 1 << 16, device="cuda")
    names = (torch.exp, torch.tanh, torch.sin, torch.sigmoid, functional.gelu, functional.silu)
    return [digest(f(x)) for f in names] + [digest(x * 2 + 1), digest(x.half() * x.half())]


@step
def reductions():
    x = torch.arange(1 << 16, device="cuda", dtype=torch.float32)
    return x.sum().item(), x.max().item(), x.double().mean().item(), x.argmin().item()


@step
def rows():
    x = torch.linspace(-3, 3, 1 << 16, device="cuda").view(64, 1024)
    return (digest(torch.softmax(x, -1)), digest(functional.layer_norm(x, (1024,))),
            digest(torch.cumsum(x, 1)))


@step
def random_numbers():
    torch.manual_seed(1)
    return digest(torch.randn(4096, device="cuda")), torch.randperm(100, device="cuda")[:5].tolist()


@step
def sorts_and_indices():
    torch.manual_seed(1)
    x = torch.rand(1 << 14, device="cuda")
    values, indices = x.sort()
    return (digest(values), indices.sum().item(), digest(torch.topk(x, 7).values),
            (x > 0.5).nonzero().shape[0], digest(x[indices[:100]]))


@step
def streams_and_events():
    stream = torch.cuda.Stream()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    host = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    back = torch.empty_like(host).pin_memory()
    with torch.cuda.stream(stream):
        begin.record()
        x = host.to("cuda", non_blocking=True)
        x.add_(1)
        back.copy_(x, non_blocking=True)
        end.record()
    end.synchronize()
    return digest(back), begin.elapsed_time(end) > 0, stream.query(), host.is_pinned()


def attention(backend, dtype):
    torch.manual_seed(3)
    q, k, v = (torch.randn(2, 4, 128, 64, device="cuda", dtype=dtype) for _ in range(3))
    with sdpa_kernel(backend):
        return digest(functional.scaled_dot_product_attention(q, k, v, is_causal=True))


@step
def flash_attention():
    return attention(SDPBackend.FLASH_ATTENTION, torch.float16)


@step
def memory_efficient_attention():
    return attention(SDPBackend.EFFICIENT_ATTENTION, torch.float32)


@step
def backward():
    torch.manual_seed(5)
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    (functional.gelu(x).softmax(-1) * x).sum().backward()
    return digest(x.grad)


@step
def graph():
    x = torch.zeros(1024, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2 + 1
    torch.cuda.current_stream().wait_stream(stream)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2 + 1
        x.add_(1)
    for _ in range(5):
        g.replay()
    torch.cuda.synchronize()
    return y[0].item(), x[0].item()


@step
def allocator():
    """With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True this is virtual memory."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    tensors = [torch.empty((i + 1) << 20, dtype=torch.uint8, device="cuda") for i in range(20)]
    held = torch.cuda.memory_allocated() - before
    for i, t in enumerate(tensors):
        t.fill_(i)
    total = sum(int(t[-1].item()) for t in tensors)
    del tensors[::2]
    tensors.append(torch.ones(200 << 20, dtype=torch.uint8, device="cuda"))
    total += int(tensors[-1].sum(dtype=torch.int64).item())
    del tensors, t
    torch.cuda.empty_cache()
    free, everything = torch.cuda.mem_get_info()
    return (held, total, torch.cuda.memory_allocated() == before, 0 < free <= everything,
            os.environ.get("PYTORCH_CUDA_ALLOC_CONF"))


@step
def too_much():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return "OutOfMemoryError", torch.ones(3, device="cuda").sum().item()
    return "no error"


@step
def assertion():
    """The last one, because it breaks the context."""
    x = torch.zeros(4, device="cuda")
    try:
        _ = x[torch.tensor([100], device="cuda")]
        torch.cuda.synchronize()
    except Exception as error:
        return type(error).__name__
    return "no error"


run()
