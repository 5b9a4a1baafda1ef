# SPDX-License-Identifier: GPL-2.0-or-later
"""CuPy, without cuBLAS and the like: elementwise, reductions, scans, sorts, indexing, kernels of its own
and of the user's, streams, events, errors. Results are NumPy's.

CuPy's wheel has Thrust and CUB compiled for compute_120 and later, so the software GPU is one of these.
"""
import os

os.environ.setdefault('CUPY_COMPILE_WITH_PTX', '1')
os.environ.setdefault('CUPY_CACHE_IN_MEMORY', '1')
os.environ.setdefault('QCU_SOFT_SM', '120')

import cupy as cp  # noqa: E402
import numpy as np  # noqa: E402

print('CuPy', cp.__version__, cp.cuda.runtime.getDeviceProperties(0)['name'].decode(),
      cp.cuda.Device(0).compute_capability)

# Bad input first.
try:
    cp.cuda.Device(99).use()
    raise SystemExit('there is no device 99')
except cp.cuda.runtime.CUDARuntimeError as error:
    assert 'InvalidDevice' in str(error), error
try:
    cp.RawKernel('extern "C" __global__ void f() { nothing(); }', 'f').compile()
    raise SystemExit('that does not compile')
except cp.cuda.compiler.CompileException as error:
    assert 'nothing' in str(error), error
try:
    cp.empty(1 << 50, dtype=np.uint8)
    raise SystemExit('there is not so much memory')
except (cp.cuda.memory.OutOfMemoryError, cp.cuda.runtime.CUDARuntimeError):
    pass

rng = np.random.default_rng(5)
host = rng.random(600, dtype=np.float32)
ints = rng.integers(0, 100, 600, dtype=np.int32)
dev, dints = cp.asarray(host), cp.asarray(ints)


def same(got, want, exact=False):
    got = cp.asnumpy(got)
    assert got.shape == np.shape(want) and got.dtype == np.asarray(want).dtype, (got.dtype, np.asarray(want).dtype)
    assert (got == want).all() if exact else np.allclose(got, want, rtol=1e-4), (got, want)


same(dev, host, exact=True)
same(dev * 2 + 1, host * 2 + 1)
same(cp.sqrt(dev) - cp.exp(dev), np.sqrt(host) - np.exp(host))
same(cp.where(dev > 0.5, dev, -dev), np.where(host > 0.5, host, -host), exact=True)
same(dints.sum(), ints.sum(), exact=True)
same(dev.max(), host.max(), exact=True)
same(dev.argmin(), host.argmin(), exact=True)
same(dints.reshape(20, 30).sum(axis=0), ints.reshape(20, 30).sum(axis=0), exact=True)
same(cp.cumsum(dints), np.cumsum(ints), exact=True)
same(cp.sort(dev), np.sort(host), exact=True)
same(cp.sort(dints.reshape(20, 30), axis=0), np.sort(ints.reshape(20, 30), axis=0), exact=True)
same(cp.unique(dints), np.unique(ints), exact=True)
same(dints[dev > 0.5], ints[host > 0.5], exact=True)
same(cp.bincount(dints), np.bincount(ints), exact=True)
same(dev.reshape(20, 30).T.copy(), host.reshape(20, 30).T, exact=True)

raw = cp.RawKernel(r'''
extern "C" __global__ void reverse(const int *from, int *to, int n)
{
	__shared__ int part[64];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = i < n ? from[i] : 0;
	__syncthreads();
	if (i < n)
		to[n - 1 - i] = part[threadIdx.x];
}''', 'reverse')
reversed_ = cp.empty_like(dints)
raw((10,), (64,), (dints, reversed_, np.int32(600)))
same(reversed_, ints[::-1], exact=True)

squares = cp.ElementwiseKernel('float32 a, float32 b', 'float32 c', 'c = a * a + b', 'squares')
same(squares(dev, dev), host * host + host)
length = cp.ReductionKernel('T x', 'T y', 'x * x', 'a + b', 'y = sqrt(a)', '0', 'length')
same(length(cp.asarray([3.0, 4.0])), np.float64(5), exact=True)

begin, end = cp.cuda.Event(), cp.cuda.Event()
with cp.cuda.Stream(non_blocking=True) as stream:
    begin.record()
    late = dints * 3
    end.record()
stream.synchronize()
assert end.done and cp.cuda.get_elapsed_time(begin, end) >= 0
same(late, ints * 3, exact=True)
