# SPDX-License-Identifier: GPL-2.0-or-later
"""
For pytest, as a plugin: PyTorch's own tests of the GPU, without its compiler, whose import takes a minute where the
processor is emulated. The tests may be of an older release than PyTorch, so they find the names of helpers that
have moved.
"""
import importlib.util
import os
import sys
import types
import unittest

import pytest
import torch

sys.path.insert(0, os.getcwd())


def leave_out(name, **contents):
    """Puts a package in the place of a large one. Its modules can be imported, it itself runs nothing."""
    package = types.ModuleType(name)
    package.__path__ = [os.path.join(folder, *name.split(".")[1:]) for folder in torch.__path__ if "torch" == name[:5]]
    package.__dict__.update(contents)
    sys.modules[name] = package
    outer, _, inner = name.rpartition(".")
    if outer:
        setattr(sys.modules[outer], inner, package)


leave_out("torch._dynamo", reset=lambda: None, disable=lambda fn=None, *_, **__: fn or (lambda f: f),
          is_compiling=lambda: False, graph_break=lambda *_, **__: None)
leave_out("torch._inductor")
leave_out("setuptools")
leave_out("setuptools.command")
leave_out("setuptools.command.build_ext", build_ext=object)
if not importlib.util.find_spec("expecttest"):
    # All its tests need it, and few use more of it than the class.
    leave_out("expecttest", TestCase=unittest.TestCase, ACCEPT=False)
import torch._dynamo.config  # noqa: E402
import torch._inductor.config  # noqa: E402

torch.compiler.set_stance = lambda *_, **__: None

from torch.testing._internal import common_cuda, common_device_type, common_mkldnn, common_nn  # noqa: E402

import sampled  # noqa: E402

common_cuda.tf32_is_not_fp32 = lambda: True
common_mkldnn.bf32_on_and_off = common_mkldnn.reduced_f32_on_and_off
common_nn.new_module_tests = common_nn.get_new_module_tests()
# They take long, start processes, need more memory or another GPU, or the compiler.
NOT = ("compile", "dynamo", "inductor", "jit", "script", "trace", "large", "64bit", "multigpu", "multi_gpu", "subprocess",
       "fork", "process", "dataloader", "oom", "out_of_memory", "peer", "triton", "gradgrad", "cpp_warn", "storage_meta",
       "fake", "_refs_", "profiler", "nvtx", "hang", "benchmark", "forward_ad", "memory_snapshot", "_cpu")
INSTANTIATE = common_device_type.instantiate_device_type_tests
OPS = common_device_type.ops.__init__


def instantiate_chosen(generic, *args, **more):
    """Makes tests for the GPU of those templates only from which tests are chosen: the rest takes minutes."""
    for name in [n for n in vars(generic) if n.startswith("test") and not any(f.startswith(n) for f in sampled.functions)]:
        delattr(generic, name)
    return INSTANTIATE(generic, *args, **more)


def take_chosen(self, op_list, **more):
    """The same for operators."""
    op_list = list(op_list)
    OPS(self, [op for op in op_list if any(f"_{op.formatted_name}_" in f for f in sampled.functions)] or op_list[:1], **more)


if sampled.chosen:
    common_device_type.instantiate_device_type_tests = instantiate_chosen
    common_device_type.ops.__init__ = take_chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items[:] = [i for i in items if "cuda" in i.nodeid.lower() and not any(word in i.nodeid.lower() for word in NOT)]
