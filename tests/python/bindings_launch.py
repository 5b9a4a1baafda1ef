# SPDX-License-Identifier: GPL-2.0-or-later
"""cuda-python's bindings: errors, device query, NVRTC, launch, copies in streams, graphs by capture."""
import ctypes

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b'''
extern "C" __global__ void axpy(float a, const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}
'''
N = 1 << 14


def ok(result):
    error, *values = result
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else values


def refused(code, result):
    assert result[0] == code, result


E = driver.CUresult
refused(E.CUDA_ERROR_NOT_INITIALIZED, driver.cuDeviceGetCount())
ok(driver.cuInit(0))
count = ok(driver.cuDeviceGetCount())
assert count >= 1
refused(E.CUDA_ERROR_INVALID_DEVICE, driver.cuDeviceGet(count))
device = ok(driver.cuDeviceGet(0))
name = ok(driver.cuDeviceGetName(64, device)).split(b'\0')[0].decode()
attribute = driver.CUdevice_attribute
major = ok(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
minor = ok(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
print(name, major, minor, ok(driver.cuDriverGetVersion()), ok(driver.cuDeviceTotalMem(device)) >> 20, 'MiB')
refused(E.CUDA_ERROR_INVALID_CONTEXT, driver.cuMemAlloc(16))
context = ok(driver.cuDevicePrimaryCtxRetain(device))
ok(driver.cuCtxSetCurrent(context))

# A program with an error gives a log, and no kernel.
bad = ok(nvrtc.nvrtcCreateProgram(b'__global__ void f() { nothing(); }', b'bad.cu', 0, [], []))
assert nvrtc.nvrtcCompileProgram(bad, 0, [])[0] == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
log = b' ' * ok(nvrtc.nvrtcGetProgramLogSize(bad))
ok(nvrtc.nvrtcGetProgramLog(bad, log))
assert b'nothing' in log
refused(E.CUDA_ERROR_INVALID_PTX, driver.cuModuleLoadData(b'.version 8.0\n.target sm_75\n.entry f() { what; }\0'))

program = ok(nvrtc.nvrtcCreateProgram(SOURCE, b'axpy.cu', 0, [], []))
ok(nvrtc.nvrtcCompileProgram(program, 1, [f'--gpu-architecture=compute_{major}{minor}'.encode()]))
ptx = b' ' * ok(nvrtc.nvrtcGetPTXSize(program))
ok(nvrtc.nvrtcGetPTX(program, ptx))
module = ok(driver.cuModuleLoadData(ptx))
refused(E.CUDA_ERROR_NOT_FOUND, driver.cuModuleGetFunction(module, b'axpyy'))
kernel = ok(driver.cuModuleGetFunction(module, b'axpy'))

x = np.arange(N, dtype=np.float32)
y = np.ones(N, dtype=np.float32)
out = np.empty_like(y)
dx, dy = ok(driver.cuMemAlloc(x.nbytes)), ok(driver.cuMemAlloc(y.nbytes))
stream = ok(driver.cuStreamCreate(0))
arguments = ((2.0, dx, dy, N), (ctypes.c_float, None, None, ctypes.c_int))


def launch():
    ok(driver.cuLaunchKernel(kernel, N // 128, 1, 1, 128, 1, 1, 0, stream, arguments, 0))


ok(driver.cuMemcpyHtoDAsync(dx, x.ctypes.data, x.nbytes, stream))
ok(driver.cuMemcpyHtoDAsync(dy, y.ctypes.data, y.nbytes, stream))
launch()
ok(driver.cuMemcpyDtoHAsync(out.ctypes.data, dy, y.nbytes, stream))
ok(driver.cuStreamSynchronize(stream))
assert (out == 2 * x + 1).all()

# Three launches as a graph, which runs twice.
ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
for _ in range(3):
    launch()
graph = ok(driver.cuStreamEndCapture(stream))
instance = ok(driver.cuGraphInstantiate(graph, 0))
for _ in range(2):
    ok(driver.cuGraphLaunch(instance, stream))
ok(driver.cuStreamSynchronize(stream))
ok(driver.cuMemcpyDtoH(out.ctypes.data, dy, y.nbytes))
assert (out == 14 * x + 1).all()

ok(driver.cuGraphExecDestroy(instance))
ok(driver.cuGraphDestroy(graph))
ok(driver.cuMemFree(dx))
refused(E.CUDA_ERROR_INVALID_VALUE, driver.cuMemFree(dx))
ok(driver.cuMemFree(dy))
ok(driver.cuStreamDestroy(stream))
ok(driver.cuModuleUnload(module))
ok(driver.cuDevicePrimaryCtxRelease(device))
