# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes all memory of the GPU that is free, says so, and holds it until it is ended. Needs NVIDIA's driver, and nothing else."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
    sys.exit("no GPU")
size, taken = 1 << 36, 0
while size >= 1 << 16:
    if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)):
        size //= 2
    else:
        taken += size
print(f"the GPU is full: {taken >> 20} MiB of it", flush=True)
sys.stdin.read()
