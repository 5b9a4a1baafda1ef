# SPDX-License-Identifier: GPL-2.0-or-later
"""Those of Numba's own tests for its CUDA target that need no other machine code than the software GPU's, and take
seconds: memory, streams, events, arrays, contexts, shared memory; at night atomics. Left out are whole files about what a
compiler writes, which need a longer time, or which are about a real GPU."""
import os
import sys
import unittest

FILES = '''
cudadrv.test_array_attr
cudadrv.test_context_stack
cudadrv.test_cuda_array_slicing
cudadrv.test_cuda_auto_context
cudadrv.test_cuda_devicerecord
cudadrv.test_cuda_driver
cudadrv.test_cuda_memory
cudadrv.test_cuda_ndarray
cudadrv.test_deallocations
cudadrv.test_events
cudadrv.test_host_alloc
cudadrv.test_pinned
cudadrv.test_profiler
cudadrv.test_reset_device
cudadrv.test_select_device
cudadrv.test_streams
cudapy.test_sm
'''.split()
if os.environ.get('QCU_NIGHTLY'):  # each of its tests compiles kernels
    FILES.append('cudapy.test_atomics')
# The text that the compiler of CUDA 13 writes for an addition of doubles.
NOT = 'double'


def chosen(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test)
        elif not (NOT in test.id() and 'test_atomics' in test.id()):
            yield test


load = unittest.defaultTestLoader.loadTestsFromNames([f'numba.cuda.tests.{name}' for name in FILES])
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(unittest.TestSuite(chosen(load)))
assert result.testsRun > 190, result.testsRun
sys.exit(not result.wasSuccessful())
