# SPDX-License-Identifier: GPL-2.0-or-later
"""Numba's CUDA target: vector add, shared memory, atomics, a reduction, streams, events, device functions,
functions of libdevice, errors. Results are NumPy's.
"""
import math

import numpy as np
from numba import cuda as nb, float32

N = 5000
SHARED = 128

print(nb.__file__, nb.get_current_device().name, nb.get_current_device().compute_capability)


@nb.jit
def add(a, b, c):
    i = nb.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@nb.jit
def total(x, out):
    part = nb.shared.array(SHARED, float32)
    t = nb.threadIdx.x
    i = nb.grid(1)
    part[t] = x[i] if i < x.size else 0
    nb.syncthreads()
    step = SHARED // 2
    while step:
        if t < step:
            part[t] += part[t + step]
        nb.syncthreads()
        step //= 2
    if t == 0:
        nb.atomic.add(out, 0, part[0])


@nb.jit
def histogram(values, bins):
    i = nb.grid(1)
    if i < values.size:
        nb.atomic.add(bins, values[i] % bins.size, 1)


@nb.jit(device=True)
def polynomial(z):
    return z * z + 1


@nb.jit
def functions(x, y):
    i = nb.grid(1)
    if i < x.size:
        y[i] = polynomial(x[i]) + math.sin(x[i]) + math.sqrt(x[i])


@nb.jit
def largest(values, out):
    nb.atomic.max(out, 0, values[nb.grid(1)])


BLOCKS = (N + SHARED - 1) // SHARED
a = np.arange(N, dtype=np.float32)
c = np.zeros_like(a)

# Bad input first.
try:
    add[1, 4096](a, a, c)
    raise SystemExit('a block has at most 1024 threads')
except Exception as error:  # the class depends on Numba's version
    assert 'INVALID_VALUE' in str(error), error
try:
    nb.device_array(1 << 60, dtype=np.uint8)
    raise SystemExit('there is not so much memory')
except Exception as error:
    assert 'MEMORY' in str(error), error

add[BLOCKS, SHARED](a, 2 * a, c)
assert (c == 3 * a).all()
out = np.zeros(1, dtype=np.float32)
total[BLOCKS, SHARED](np.ones(N, dtype=np.float32), out)
assert out[0] == N
values = np.random.default_rng(5).integers(0, 1000, 4096).astype(np.int32)
bins = np.zeros(16, dtype=np.int32)
histogram[32, 128](values, bins)
assert (bins == np.bincount(values % 16, minlength=16)).all()
most = np.zeros(1, dtype=np.int32)
largest[32, 128](values, most)
assert most[0] == values.max()
functions[BLOCKS, SHARED](a, c)
assert np.allclose(c, a * a + 1 + np.sin(a) + np.sqrt(a), rtol=1e-5)

added = nb.reduce(lambda p, q: p + q)
assert added(np.arange(1000, dtype=np.float64)) == 499500

stream = nb.stream()
begin, end = nb.event(), nb.event()
pinned = nb.pinned_array(N, dtype=np.float32)
pinned[:] = a
with stream.auto_synchronize():
    begin.record(stream)
    up = nb.to_device(pinned, stream=stream)
    twice = nb.device_array_like(up, stream=stream)
    add[BLOCKS, SHARED, stream](up, up, twice)
    down = twice.copy_to_host(stream=stream)
    end.record(stream)
assert (down == 2 * a).all()
assert nb.event_elapsed_time(begin, end) >= 0
