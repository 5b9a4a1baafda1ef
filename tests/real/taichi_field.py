# SPDX-License-Identifier: GPL-2.0-or-later
"""Taichi, which makes PTX by LLVM: a field, and a reduction of it."""
import numpy as np
import taichi as ti

ti.init(arch=ti.cuda, offline_cache=False)
assert ti.lang.impl.current_cfg().arch == ti.cuda
field = ti.field(ti.f32, 1000)


@ti.kernel
def fill():
    for i in field:
        field[i] = i * 2.0 + 1


@ti.kernel
def total() -> ti.f32:
    s = 0.0
    for i in field:
        s += field[i]
    return s


fill()
assert (field.to_numpy() == np.arange(1000) * 2 + 1).all()
assert total() == 1000000
