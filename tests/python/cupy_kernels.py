# SPDX-License-Identifier: GPL-2.0-or-later
"""CuPy in few kernels, for a VM whose processor is emulated: copies, one elementwise expression, a raw kernel
of the user's, a stream. cupy_arrays.py has the rest.
"""
import os

os.environ.setdefault('CUPY_COMPILE_WITH_PTX', '1')
os.environ.setdefault('CUPY_CACHE_IN_MEMORY', '1')

import cupy as cp  # noqa: E402
import numpy as np  # noqa: E402

N = 1000

try:
    cp.cuda.Device(99).use()
    raise SystemExit('there is no device 99')
except cp.cuda.runtime.CUDARuntimeError as error:
    assert 'InvalidDevice' in str(error), error

host = np.arange(N, dtype=np.int32)
dev = cp.asarray(host)
assert (cp.asnumpy(dev) == host).all()
raw = cp.RawKernel(r'''
extern "C" __global__ void reverse(const int *from, int *to, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[n - 1 - i] = from[i];
}''', 'reverse')
out = cp.empty_like(dev)
with cp.cuda.Stream(non_blocking=True) as stream:
    raw(((N + 63) // 64,), (64,), (dev, out, np.int32(N)))
stream.synchronize()
assert (cp.asnumpy(out) == host[::-1]).all()
assert (cp.asnumpy(dev * 3) == host * 3).all()
