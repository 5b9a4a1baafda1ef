# SPDX-License-Identifier: GPL-2.0-or-later
"""nvidia-ml-py (pynvml): what tools such as nvitop and gpustat ask of NVML."""
import ctypes

import pynvml as nv


def refused(code, call, *arguments):
    try:
        call(*arguments)
    except nv.NVMLError as error:
        assert error.value == code, (call, error)
        return
    raise SystemExit(f'{call.__name__}: no error')


refused(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetCount)
nv.nvmlInit()
count = nv.nvmlDeviceGetCount()
assert count >= 1
refused(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetHandleByIndex, count)
print('driver', nv.nvmlSystemGetDriverVersion(), 'NVML', nv.nvmlSystemGetNVMLVersion(), 'CUDA',
      nv.nvmlSystemGetCudaDriverVersion_v2())
for i in range(count):
    h = nv.nvmlDeviceGetHandleByIndex(i)
    uuid = nv.nvmlDeviceGetUUID(h)
    pci = nv.nvmlDeviceGetPciInfo(h)
    assert nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID(uuid)) == i
    assert nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(pci.busId)) == i
    memory = nv.nvmlDeviceGetMemoryInfo(h, version=nv.nvmlMemory_v2)
    old = nv.nvmlDeviceGetMemoryInfo(h)
    assert memory.total == old.total and memory.used == old.used and memory.total == memory.used + memory.free
    print(i, nv.nvmlDeviceGetName(h), uuid, pci.busId, nv.nvmlDeviceGetCudaComputeCapability(h),
          nv.nvmlDeviceGetArchitecture(h), memory.total >> 20, 'MiB')
    # This program only asks.
    assert nv.nvmlDeviceGetComputeRunningProcesses(h) == []
    assert nv.nvmlDeviceGetGraphicsRunningProcesses(h) == []
    # By default: clocks, and what this VM does; not what the whole GPU does.
    for kind in nv.NVML_CLOCK_SM, nv.NVML_CLOCK_MEM:
        assert 0 < nv.nvmlDeviceGetClockInfo(h, kind) <= nv.nvmlDeviceGetMaxClockInfo(h, kind)
    rates = nv.nvmlDeviceGetUtilizationRates(h)
    assert 0 <= rates.gpu <= 100 and 0 <= rates.memory <= 100
    for call in (nv.nvmlDeviceGetPowerUsage, nv.nvmlDeviceGetFanSpeed,
                 nv.nvmlDeviceGetPerformanceState, nv.nvmlDeviceGetMigMode, nv.nvmlDeviceGetPersistenceMode,
                 nv.nvmlDeviceGetBAR1MemoryInfo, nv.nvmlDeviceGetTotalEnergyConsumption):
        refused(nv.NVML_ERROR_NOT_SUPPORTED, call, h)
    refused(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetTemperature, h, nv.NVML_TEMPERATURE_GPU)
    refused(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetNvLinkState, h, 0)

# The same process begins to use CUDA, and stays in the list until it resets the device.
cudart = ctypes.CDLL('libcudart.so.13')
pointer = ctypes.c_void_p()
assert cudart.cudaGetDeviceCount(ctypes.byref(ctypes.c_int())) == 0
h = nv.nvmlDeviceGetHandleByIndex(0)
assert nv.nvmlDeviceGetComputeRunningProcesses(h) == [], 'counting the devices is no use of them'
assert cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(48 << 20)) == 0
processes = nv.nvmlDeviceGetComputeRunningProcesses(h)
assert [p.usedGpuMemory for p in processes] == [48 << 20], processes
assert nv.nvmlDeviceGetMemoryInfo(h).used == 48 << 20
print('process', processes[0].pid, nv.nvmlSystemGetProcessName(processes[0].pid))
assert cudart.cudaDeviceReset() == 0
assert nv.nvmlDeviceGetComputeRunningProcesses(h) == []
nv.nvmlShutdown()
refused(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetCount)
