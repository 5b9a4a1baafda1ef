# SPDX-License-Identifier: GPL-2.0-or-later
"""
For pytest: uses of JAX's primitives, a sample of the list that JAX has for its own tests. Each is compiled and run on the GPU,
and its result is compared with the processor's. Arguments and the processor's results are kept in the folder WANTED, so that a
VM, where another processor is emulated, need not make them.

Each test reports two properties: the digest of the result's bits, or "-" if two native runs differ, and whether the
GPU's code was compiled or found in JAX's cache.
"""
import collections
import hashlib
import os
import pickle
import zlib

import jax
import numpy as np
import pytest
from jax._src import cache_key, public_test_util
from jax._src.internal_test_util import test_harnesses

import sampled

MOST = 12  # of each group of primitives, evenly spread over it
# Any sign of a vector is right, and any basis of a space. Only values that are in an order of their own can be compared.
VECTORS = ("eigh", "qr", "svd")
COMPILED = "/jax/compilation_cache/cache_misses"
TOLERANCE = {np.dtype(t): limit for t, limit in public_test_util.default_gradient_tolerance.items()}
events = collections.Counter()
key_of_topology = cache_key._hash_accelerator_config
jax.monitoring.register_event_listener(lambda event, **_: events.update([event]))


def hash_kind(data, devices):
    """The name of the processor is in JAX's description of a GPU, so that a VM would compile all again."""
    (cache_key._hash_devices if devices.flat[0].platform == "gpu" else key_of_topology)(data, devices)


cache_key._hash_accelerator_config = hash_kind


def take_some():
    groups = collections.defaultdict(list)
    # JAX's own order differs from process to process.
    for harness in sorted(test_harnesses.all_harnesses, key=str):
        if harness.filter(jax.default_backend()) and not any(limit.skip_run for limit in harness.jax_unimplemented):
            groups[harness.group_name].append(harness)
    return {of[i * len(of) // min(MOST, len(of))].fullname: of[i * len(of) // min(MOST, len(of))]
            for of in groups.values() for i in range(min(MOST, len(of)))}


# Without its plugin for the GPU, JAX goes on with the processor and says so only on stderr.
jax.devices(os.environ["JAX_PLATFORMS"].split(",")[0])
HARNESSES = take_some()
NAMES = [name for name in HARNESSES if not sampled.chosen or f"{__name__}.py::test_use[{name}]" in sampled.chosen]


def bits(result):
    data = hashlib.sha256()
    for leaf in jax.tree.leaves(result):
        data.update(f"{leaf.dtype} {leaf.shape}".encode())
        data.update(np.ascontiguousarray(leaf).tobytes())
    return data.hexdigest()[:16]


def compare(got, want, order_only):
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        if not order_only or g.ndim == min(leaf.ndim for leaf in jax.tree.leaves(want)):
            limit = TOLERANCE.get(g.dtype, 0)
            public_test_util._assert_numpy_allclose(g, w, atol=limit, rtol=limit)


@pytest.mark.parametrize("name", NAMES, ids=NAMES)
def test_use(name, record_property):
    harness = HARNESSES[name]
    use = jax.jit(harness.dyn_fun)
    kept = os.path.join(os.environ["WANTED"], hashlib.sha256(name.encode()).hexdigest()[:24])
    native = not os.path.exists(kept)
    if native:
        arguments = harness.dyn_args_maker(np.random.RandomState(zlib.adler32(name.encode())))
        with jax.default_device(jax.devices("cpu")[0]):
            want = jax.device_get(jax.jit(harness.dyn_fun)(*arguments))
        with open(kept, "wb") as file:
            pickle.dump((arguments, want), file)
    else:
        with open(kept, "rb") as file:
            arguments, want = pickle.load(file)
    compiled = events[COMPILED]
    got = jax.device_get(use(*arguments))
    compiled = events[COMPILED] > compiled
    record_property("bits", bits(got) if not native or bits(jax.device_get(use(*arguments))) == bits(got) else "-")
    record_property("code", "compiled" if compiled else "found")
    compare(got, want, harness.group_name in VECTORS)
