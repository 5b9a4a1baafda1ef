# SPDX-License-Identifier: GPL-2.0-or-later
"""Quadrants, which makes PTX by LLVM: a field."""
import numpy as np
import quadrants as qd

qd.init(arch=qd.cuda, offline_cache=False)
assert qd.lang.impl.current_cfg().arch == qd.cuda
field = qd.field(qd.f32, 1000)


@qd.kernel
def fill():
    for i in field:
        field[i] = i * 2.0 + 1


fill()
assert (field.to_numpy() == np.arange(1000) * 2 + 1).all()
