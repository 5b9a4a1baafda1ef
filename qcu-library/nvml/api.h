/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of NVML that do something. nvml.syms lists all that are exported. */
#ifndef QCUL_NVML_API_H
#define QCUL_NVML_API_H

#include "qcu-library/nvml/abi.h"

#pragma GCC visibility push(default)

nv_return nvmlInit(void);
nv_return nvmlInit_v2(void);
nv_return nvmlInitWithFlags(unsigned int flags);
nv_return nvmlShutdown(void);
const char *nvmlErrorString(nv_return result);

nv_return nvmlSystemGetDriverVersion(char *version, unsigned int length);
nv_return nvmlSystemGetNVMLVersion(char *version, unsigned int length);
nv_return nvmlSystemGetCudaDriverVersion(int *version);
nv_return nvmlSystemGetCudaDriverVersion_v2(int *version);
nv_return nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length);
nv_return nvmlUnitGetCount(unsigned int *count);
nv_return nvmlGetExcludedDeviceCount(unsigned int *count);

nv_return nvmlDeviceGetCount(unsigned int *count);
nv_return nvmlDeviceGetCount_v2(unsigned int *count);
nv_return nvmlDeviceGetHandleByIndex(unsigned int index, nv_device_t *device);
nv_return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nv_device_t *device);
nv_return nvmlDeviceGetHandleByUUID(const char *uuid, nv_device_t *device);
nv_return nvmlDeviceGetHandleByPciBusId(const char *id, nv_device_t *device);
nv_return nvmlDeviceGetHandleByPciBusId_v2(const char *id, nv_device_t *device);

nv_return nvmlDeviceGetName(nv_device_t device, char *name, unsigned int length);
nv_return nvmlDeviceGetUUID(nv_device_t device, char *uuid, unsigned int length);
nv_return nvmlDeviceGetIndex(nv_device_t device, unsigned int *index);
nv_return nvmlDeviceGetMinorNumber(nv_device_t device, unsigned int *minor);
nv_return nvmlDeviceGetBrand(nv_device_t device, nv_brand *brand);
nv_return nvmlDeviceGetArchitecture(nv_device_t device, nv_arch *arch);
nv_return nvmlDeviceGetCudaComputeCapability(nv_device_t device, int *major, int *minor);
nv_return nvmlDeviceGetPciInfo(nv_device_t device, nv_pci *pci);
nv_return nvmlDeviceGetPciInfo_v2(nv_device_t device, nv_pci *pci);
nv_return nvmlDeviceGetPciInfo_v3(nv_device_t device, nv_pci *pci);
nv_return nvmlDeviceGetPciInfoExt(nv_device_t device, nv_pci_ext *pci);
nv_return nvmlDeviceGetComputeMode(nv_device_t device, nv_mode *mode);
nv_return nvmlDeviceGetEccMode(nv_device_t device, nv_enabled *now, nv_enabled *later);
nv_return nvmlDeviceGetDisplayMode(nv_device_t device, nv_enabled *enabled);
nv_return nvmlDeviceGetDisplayActive(nv_device_t device, nv_enabled *enabled);
nv_return nvmlDeviceGetMultiGpuBoard(nv_device_t device, unsigned int *several);
nv_return nvmlDeviceGetMaxClockInfo(nv_device_t device, nv_clock clock, unsigned int *mhz);
nv_return nvmlDeviceGetMemoryBusWidth(nv_device_t device, unsigned int *bits);
nv_return nvmlDeviceIsMigDeviceHandle(nv_device_t device, unsigned int *is);
nv_return nvmlDeviceGetMaxMigDeviceCount(nv_device_t device, unsigned int *count);
nv_return nvmlDeviceGetFieldValues(nv_device_t device, int count, nv_field *values);

nv_return nvmlDeviceOnSameBoard(nv_device_t a, nv_device_t b, int *same);
nv_return nvmlDeviceGetTopologyCommonAncestor(nv_device_t a, nv_device_t b, nv_topology *level);
nv_return nvmlDeviceGetP2PStatus(nv_device_t a, nv_device_t b, nv_peer_index what,
				 nv_peer_status *status);
nv_return nvmlDeviceGetCpuAffinity(nv_device_t device, unsigned int words, unsigned long *set);
nv_return nvmlDeviceGetCpuAffinityWithinScope(nv_device_t device, unsigned int words,
					      unsigned long *set, nv_scope scope);

nv_return nvmlDeviceGetClockInfo(nv_device_t device, nv_clock clock, unsigned int *mhz);
nv_return nvmlDeviceGetClock(nv_device_t device, nv_clock clock, nv_clock_id id, unsigned int *mhz);
nv_return nvmlDeviceGetApplicationsClock(nv_device_t device, nv_clock clock, unsigned int *mhz);
nv_return nvmlDeviceGetDefaultApplicationsClock(nv_device_t device, nv_clock clock,
						unsigned int *mhz);
nv_return nvmlDeviceGetUtilizationRates(nv_device_t device, nv_rates *rates);
nv_return nvmlDeviceGetProcessUtilization(nv_device_t device, nv_process_busy *list,
					  unsigned int *count, unsigned long long since);
nv_return nvmlDeviceGetTemperature(nv_device_t device, nv_sensor sensor, unsigned int *celsius);
nv_return nvmlDeviceGetTemperatureV(nv_device_t device, nv_temperature *temperature);
nv_return nvmlDeviceGetPowerUsage(nv_device_t device, unsigned int *milliwatts);
nv_return nvmlDeviceGetPowerManagementLimit(nv_device_t device, unsigned int *milliwatts);
nv_return nvmlDeviceGetEnforcedPowerLimit(nv_device_t device, unsigned int *milliwatts);

nv_return nvmlDeviceGetMemoryInfo(nv_device_t device, nv_memory *memory);
nv_return nvmlDeviceGetMemoryInfo_v2(nv_device_t device, nv_memory_v2 *memory);
nv_return nvmlDeviceGetComputeRunningProcesses(nv_device_t device, unsigned int *count,
					       nv_process_v1 *list);
nv_return nvmlDeviceGetComputeRunningProcesses_v2(nv_device_t device, unsigned int *count,
						  nv_process *list);
nv_return nvmlDeviceGetComputeRunningProcesses_v3(nv_device_t device, unsigned int *count,
						  nv_process *list);
nv_return nvmlDeviceGetGraphicsRunningProcesses(nv_device_t device, unsigned int *count,
						nv_process_v1 *list);
nv_return nvmlDeviceGetGraphicsRunningProcesses_v2(nv_device_t device, unsigned int *count,
						   nv_process *list);
nv_return nvmlDeviceGetGraphicsRunningProcesses_v3(nv_device_t device, unsigned int *count,
						   nv_process *list);
nv_return nvmlDeviceGetMPSComputeRunningProcesses(nv_device_t device, unsigned int *count,
						  nv_process_v1 *list);
nv_return nvmlDeviceGetMPSComputeRunningProcesses_v2(nv_device_t device, unsigned int *count,
						     nv_process *list);
nv_return nvmlDeviceGetMPSComputeRunningProcesses_v3(nv_device_t device, unsigned int *count,
						     nv_process *list);

#pragma GCC visibility pop

#endif
