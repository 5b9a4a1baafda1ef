# SPDX-License-Identifier: GPL-2.0-or-later
"""tinygrad on CUDA: a product, its gradient, softmax. Results are NumPy's."""
import os

os.environ.update(CUDA='1', DEV='CUDA', CACHELEVEL='0')
import numpy as np
from tinygrad import Device, Tensor

assert Device.DEFAULT == 'CUDA', Device.DEFAULT
rng = np.random.default_rng(11)
a, b = rng.random((16, 16), dtype=np.float32), rng.random((16, 16), dtype=np.float32)
x, y = Tensor(a), Tensor(b)
loss = ((x @ y).relu() + x.exp()).sum()
grad = loss.gradient(x)[0]
assert np.allclose(loss.numpy(), (a @ b + np.exp(a)).sum(), rtol=1e-4)
assert np.allclose(grad.numpy(), np.ones((16, 16)) @ b.T + np.exp(a), rtol=1e-4)
assert np.allclose(Tensor(a).softmax().numpy(), np.exp(a) / np.exp(a).sum(axis=1, keepdims=True), rtol=1e-4)
print('tinygrad: a product, its gradient, softmax')
