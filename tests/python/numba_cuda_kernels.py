# SPDX-License-Identifier: GPL-2.0-or-later
"""The same as numba_kernels.py with NVIDIA's package numba-cuda in the place of Numba's own CUDA target.

nvJitLink makes machine code, which the software GPU cannot run. Without it numba-cuda has the driver link
PTX, as on machines where it is not installed.
"""
import os
import runpy
import site

import cuda.pathfinder

# The package takes its place by a file that Python reads only in folders of packages.
for folder in os.environ['PYTHONPATH'].split(':'):
    site.addsitedir(folder)

LOAD = cuda.pathfinder.load_nvidia_dynamic_lib


def load(name, *arguments, **more):
    if name == 'nvJitLink':
        raise cuda.pathfinder.DynamicLibNotFoundError('left out')
    return LOAD(name, *arguments, **more)


cuda.pathfinder.load_nvidia_dynamic_lib = load
there = runpy.run_path(os.path.join(os.path.dirname(__file__), 'numba_kernels.py'))
assert 'numba_cuda' in there['nb'].__file__, there['nb'].__file__
