# SPDX-License-Identifier: GPL-2.0-or-later
"""pystencils, which writes CUDA C++ for CuPy: one step of Jacobi's method. The result is NumPy's."""
import cupy as cp
import numpy as np
import pystencils as ps

src, dst = ps.fields('src, dst: float64[2D]')
rule = ps.Assignment(dst[0, 0], (src[1, 0] + src[-1, 0] + src[0, 1] + src[0, -1]) / 4)
kernel = ps.create_kernel(rule, ps.CreateKernelConfig(target=ps.Target.CUDA)).compile()
a = np.random.default_rng(4).random((20, 30))
b = cp.zeros((20, 30))
kernel(src=cp.asarray(a), dst=b)
want = (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2]) / 4
assert np.allclose(cp.asnumpy(b)[1:-1, 1:-1], want)
