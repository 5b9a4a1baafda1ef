# SPDX-License-Identifier: GPL-2.0-or-later
"""Halide, which makes PTX by LLVM: a function of two variables in tiles."""
import halide as hl
import numpy as np

x, y, xi, yi = (hl.Var(name) for name in ('x', 'y', 'xi', 'yi'))
f = hl.Func('f')
f[x, y] = hl.cast(hl.Int(32), x * 3 + y * y)
f.gpu_tile(x, y, xi, yi, 8, 8)
target = hl.get_host_target().with_feature(hl.TargetFeature.CUDA)
f.compile_jit(target)
buffer = f.realize([32, 24], target)
buffer.copy_to_host()
got = np.array(buffer)
yy, xx = np.mgrid[0:24, 0:32]
want = xx * 3 + yy * yy
assert (got == (want if got.shape == want.shape else want.T)).all()
