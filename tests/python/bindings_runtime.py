# SPDX-License-Identifier: GPL-2.0-or-later
"""cuda-python's bindings of the runtime, which have NVIDIA's runtime in them, stripped: errors, copies, events, a graph."""
import numpy as np
from cuda.bindings import runtime as rt

N = 1 << 14
KIND = rt.cudaMemcpyKind


def ok(result):
    error, *values = result
    assert error == rt.cudaError_t.cudaSuccess, error
    return values[0] if len(values) == 1 else values


def refused(code, result):
    assert result[0] == code, result


E = rt.cudaError_t
count = ok(rt.cudaGetDeviceCount())
refused(E.cudaErrorInvalidDevice, rt.cudaSetDevice(count))
refused(E.cudaErrorInvalidDevice, rt.cudaGetLastError())
refused(E.cudaErrorInvalidValue, rt.cudaFree(4096))
rt.cudaGetLastError()
device = ok(rt.cudaGetDeviceProperties(0))
print(device.name.decode(), device.major, device.minor, ok(rt.cudaRuntimeGetVersion()))

x = np.arange(N, dtype=np.float32)
out = np.zeros_like(x)
d = ok(rt.cudaMalloc(x.nbytes))
stream, event = ok(rt.cudaStreamCreate()), ok(rt.cudaEventCreate())
ok(rt.cudaMemcpyAsync(d, x.ctypes.data, x.nbytes, KIND.cudaMemcpyHostToDevice, stream))
ok(rt.cudaMemcpyAsync(out.ctypes.data, d, x.nbytes, KIND.cudaMemcpyDeviceToHost, stream))
ok(rt.cudaEventRecord(event, stream))
ok(rt.cudaEventSynchronize(event))
assert (out == x).all()

ok(rt.cudaStreamBeginCapture(stream, rt.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
ok(rt.cudaMemsetAsync(d, 7, x.nbytes // 2, stream))
graph = ok(rt.cudaStreamEndCapture(stream))
instance = ok(rt.cudaGraphInstantiate(graph, 0))
ok(rt.cudaGraphLaunch(instance, stream))
ok(rt.cudaStreamSynchronize(stream))
ok(rt.cudaMemcpy(out.ctypes.data, d, x.nbytes, KIND.cudaMemcpyDeviceToHost))
assert (out[:N // 2].view(np.uint8) == 7).all() and (out[N // 2:] == x[N // 2:]).all()

ok(rt.cudaGraphExecDestroy(instance))
ok(rt.cudaGraphDestroy(graph))
ok(rt.cudaFree(d))
refused(E.cudaErrorInvalidValue, rt.cudaFree(d))
ok(rt.cudaEventDestroy(event))
ok(rt.cudaStreamDestroy(stream))
