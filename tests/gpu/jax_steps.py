# SPDX-License-Identifier: GPL-2.0-or-later
"""JAX: transformations, compiled functions, random numbers, and what it does with NVIDIA's libraries (cuBLAS, cuDNN, cuFFT,
cuSOLVER), up to training. Each step compares with NumPy or with the processor, and returns all bits of its result."""
import hashlib

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from steps import log, run, step

jax.config.update("jax_default_matmul_precision", "highest")
log(f"JAX {jax.__version__} is imported")
numbers = np.random.default_rng(1)


def floats(*shape):
    return numbers.standard_normal(shape).astype(np.float32)


def bits(*results):
    data = hashlib.sha256()
    for result in jax.tree.leaves(results):
        data.update(np.ascontiguousarray(result).tobytes())
    return data.hexdigest()[:16]


def close(got, want, limit=1e-4):
    """Is `got`, from the GPU, what the processor says? Returns its bits."""
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        off = np.abs(np.asarray(g) - w).max() / max(np.abs(w).max(), 1)
        assert off < limit, off
    return bits(got)


@step
def devices():
    return [(d.platform, d.device_kind, d.id) for d in jax.devices()], jax.local_device_count()


@step
def copies():
    x = floats(1000, 1000)
    there = jax.device_put(x)
    assert np.array_equal(np.asarray(there), x)
    assert np.array_equal(jnp.flip(there, 1), x[:, ::-1])
    return bits(there.T, there.reshape(-1, 10)[7])


@step
def elementwise():
    x = floats(300, 70)
    return close(jax.jit(lambda v: jnp.tanh(v) * jnp.exp(-v * v) + jnp.where(v > 0, v, 0.5))(x),
                 np.tanh(x) * np.exp(-x * x) + np.where(x > 0, x, 0.5))


@step
def reductions():
    x = floats(64, 1000)
    return (close([x.sum(0), jnp.asarray(x).std(1), jnp.cumsum(x, 1)], [x.sum(0), x.std(1), np.cumsum(x, 1)], 1e-3),
            close([jnp.argmax(x, 1), jnp.max(x)], [x.argmax(1), x.max()]))


@step
def sorting():
    x = floats(5, 3001)
    order = np.argsort(x, 1, kind="stable")
    return (close([jnp.sort(x), jnp.argsort(x)], [np.sort(x), order]),
            close(lax.top_k(x, 7)[0], -np.sort(-x)[:, :7]), close(jnp.unique(jnp.asarray(x[0] > 0).astype(int)), np.array([0, 1])))


@step
def gather_and_scatter():
    x, at = floats(500), numbers.integers(0, 500, 200)
    want = x.copy()
    np.add.at(want, at, 1)
    return close([jnp.asarray(x)[at], jnp.asarray(x).at[at].add(1)], [x[at], want])


@step
def random_numbers():
    keys = jax.random.split(jax.random.key(7), 6)
    with jax.default_device(jax.devices("cpu")[0]):
        want = np.asarray(jax.random.bits(keys[0], (1000,)))
    got = jax.random.bits(keys[0], (1000,))
    assert np.array_equal(got, want)
    return bits(got, jax.random.normal(keys[1], (999,)), jax.random.permutation(keys[2], 100), jax.random.gamma(keys[3], 2.0, (50,)),
                jax.random.categorical(keys[4], jnp.zeros((30, 4))), jax.random.truncated_normal(keys[5], -1, 1, (77,)))


@step
def products():
    a, b = floats(130, 200), floats(200, 90)
    return (close(a @ jnp.asarray(b), a @ b), close(jnp.einsum("bij,bjk->bik", a.reshape(5, 26, 200), b[None].repeat(5, 0)),
                                                   a.reshape(5, 26, 200) @ b),
            close((jnp.asarray(a, jnp.bfloat16) @ jnp.asarray(b, jnp.bfloat16)).astype(np.float32), a @ b, 5e-2))


@step
def convolutions():
    x, w = floats(4, 8, 20, 20), floats(6, 8, 3, 3)
    cpu = jax.devices("cpu")[0]

    def loss(a, b):
        return (lax.conv_general_dilated(a, b, (1, 1), "SAME") ** 2).mean()

    want = jax.grad(loss, (0, 1))(jax.device_put(x, cpu), jax.device_put(w, cpu))
    return close(jax.grad(loss, (0, 1))(jnp.asarray(x), jnp.asarray(w)), jax.tree.map(np.asarray, want), 1e-3)


@step
def transforms():
    x = floats(6, 120)
    return close([jnp.fft.fft(x), jnp.fft.rfft2(x), jnp.fft.irfft(np.fft.rfft(x).astype(np.complex64))],
                 [np.fft.fft(x), np.fft.rfft2(x), x], 1e-3)


@step
def linear_algebra():
    a, b = floats(24, 24), floats(24, 3)
    # Small fractions, whose products are exact: a sum by NumPy depends on the processor.
    a = np.round(a * 8) / 8
    square = a @ a.T + 24 * np.eye(24, dtype=np.float32)
    q, r = jnp.linalg.qr(a)
    u, s, v = jnp.linalg.svd(a)
    w, vectors = jnp.linalg.eigh(square)
    return (close(jnp.linalg.cholesky(square), np.linalg.cholesky(square)), close(jnp.linalg.solve(square, b), np.linalg.solve(square, b)),
            close(q @ r, a, 1e-3), close(u * s @ v, a, 1e-3), close(vectors * w @ vectors.T, square, 1e-3),
            close(jnp.linalg.det(square / 24), np.linalg.det(square / 24), 1e-3), close(jnp.linalg.inv(square), np.linalg.inv(square)))


@step
def loops():
    x = floats(50)
    total, parts = lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.float32(0), x)
    c, want = np.float32(0), []
    for v in x:
        want.append(c)
        c = c * np.float32(0.5) + v
    n = lax.while_loop(lambda s: s[1] < 100, lambda s: (s[0] + 1, s[1] * 3), (0, 1))
    return close([total, parts], [c, np.array(want)]), [int(i) for i in n], int(lax.fori_loop(0, 10, lambda i, s: s + i, 0))


@step
def conditions():
    f = jax.jit(lambda k, v: lax.switch(k, [jnp.sin, jnp.cos, lambda z: z * 2], v))
    x = floats(10)
    return [close(f(k, x), want) for k, want in enumerate([np.sin(x), np.cos(x), x * 2])]


@step
def transformations():
    f = lambda v: jnp.sum(jnp.sin(v) ** 3)
    x = floats(8, 5)
    return (close(jax.vmap(jax.grad(f))(x), 3 * np.sin(x) ** 2 * np.cos(x)), bits(jax.hessian(f)(x[0])),
            bits(jax.jvp(f, (x[0],), (x[1],))), bits(jax.jacrev(jnp.cumsum)(x[0])))


@step
def doubles():
    with jax.enable_x64(True):
        x = numbers.standard_normal((40, 40))
        return close([jnp.asarray(x) @ x, jnp.exp(jnp.asarray(x))], [x @ x, np.exp(x)], 1e-12)


@step
def given_away():
    f = jax.jit(lambda v: v * 2 + 1, donate_argnums=0)
    x = jnp.asarray(floats(1 << 20))
    want = np.asarray(x).copy()
    for _ in range(10):
        x, want = f(x), want * 2 + 1
    return close(x, want)


@step
def callbacks():
    seen = []
    f = jax.jit(lambda v: jax.pure_callback(lambda a: seen.append(1) or np.asarray(a) * 3, jax.ShapeDtypeStruct((7,), np.float32), v) + 1)
    x = floats(7)
    return close(f(x), x * 3 + 1), len(seen)


@step
def refused():
    try:
        jnp.ones((3, 4)) @ jnp.ones((3, 4))
    except TypeError:
        return bits(jnp.ones((3, 4)) @ jnp.ones((4, 3)))
    raise AssertionError("shapes that do not fit")


@step
def training():
    """A small network learns which of two spirals a point lies on."""
    turn = np.linspace(0.5, 3 * np.pi, 200, dtype=np.float32)
    points = np.concatenate([s * np.stack([np.cos(turn), np.sin(turn)], 1) * turn[:, None] / 10 for s in (1, -1)])
    points = np.round(points * 256) / 256  # NumPy's last bits depend on the processor.
    labels = np.repeat(np.float32([0, 1]), 200)
    keys = jax.random.split(jax.random.key(3), 3)
    sizes = [(2, 64), (64, 64), (64, 1)]
    weights = [(jax.random.normal(k, s) * (2 / s[0]) ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, sizes, strict=True)]

    def loss(w):
        x = points
        for a, b in w[:-1]:
            x = jax.nn.relu(x @ a + b)
        x = (x @ w[-1][0] + w[-1][1])[:, 0]
        return jnp.mean(jnp.logaddexp(0, x) - labels * x)

    @jax.jit
    def improve(w, speed):
        value, slope = jax.value_and_grad(loss)(w)
        speed = jax.tree.map(lambda s, g: 0.9 * s - 0.05 * g, speed, slope)
        return jax.tree.map(jnp.add, w, speed), speed, value

    speed = jax.tree.map(jnp.zeros_like, weights)
    losses = []
    for _ in range(300):
        weights, speed, value = improve(weights, speed)
        losses.append(float(value))
    assert losses[-1] < 0.5 * losses[0], losses[::50]
    return [round(v, 4) for v in losses[::60]], bits(weights)


run()
