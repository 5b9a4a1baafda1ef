# SPDX-License-Identifier: GPL-2.0-or-later
"""Dr.Jit, which makes PTX itself: elementwise functions and a sum. Results are NumPy's."""
import drjit as dr
import numpy as np
from drjit.cuda import Float

x = dr.arange(Float, 1000)
y = dr.sin(x) * 2 + dr.sqrt(x)
host = np.arange(1000, dtype=np.float32)
assert np.allclose(np.array(y), np.sin(host) * 2 + np.sqrt(host), rtol=1e-4, atol=1e-4)
assert dr.sum(x)[0] == 499500
