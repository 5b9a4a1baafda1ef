// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * NVML's types and numbers of qcu-library/nvml/abi.h are those of NVIDIA's header: compiles only if
 * they are.
 */
#include <stddef.h>

#include <nvml.h>

#include "qcu-library/nvml/abi.h"

#define SAME(a, b) _Static_assert((unsigned long)(a) == (unsigned long)(b), #a " is " #b)

/* X(number, name, text), as in NVML_ERRORS */
SAME(NV_SUCCESS, NVML_SUCCESS);
#define X(n, NAME, text) SAME(NV_##NAME, NVML_ERROR_##NAME);
NVML_ERRORS(X)
#undef X

SAME(NV_INIT_NO_GPUS, NVML_INIT_FLAG_NO_GPUS);
SAME(NV_BRAND_UNKNOWN, NVML_BRAND_UNKNOWN);
SAME(NV_BRAND_QUADRO, NVML_BRAND_QUADRO);
SAME(NV_BRAND_TESLA, NVML_BRAND_TESLA);
SAME(NV_BRAND_GEFORCE, NVML_BRAND_GEFORCE);
SAME(NV_BRAND_TITAN, NVML_BRAND_TITAN);
SAME(NV_BRAND_NVIDIA, NVML_BRAND_NVIDIA);
SAME(NV_ARCH_KEPLER, NVML_DEVICE_ARCH_KEPLER);
SAME(NV_ARCH_MAXWELL, NVML_DEVICE_ARCH_MAXWELL);
SAME(NV_ARCH_PASCAL, NVML_DEVICE_ARCH_PASCAL);
SAME(NV_ARCH_VOLTA, NVML_DEVICE_ARCH_VOLTA);
SAME(NV_ARCH_TURING, NVML_DEVICE_ARCH_TURING);
SAME(NV_ARCH_AMPERE, NVML_DEVICE_ARCH_AMPERE);
SAME(NV_ARCH_ADA, NVML_DEVICE_ARCH_ADA);
SAME(NV_ARCH_HOPPER, NVML_DEVICE_ARCH_HOPPER);
SAME(NV_ARCH_BLACKWELL, NVML_DEVICE_ARCH_BLACKWELL);
SAME(NV_ARCH_UNKNOWN, NVML_DEVICE_ARCH_UNKNOWN);
SAME(NV_CLOCK_GRAPHICS, NVML_CLOCK_GRAPHICS);
SAME(NV_CLOCK_SM, NVML_CLOCK_SM);
SAME(NV_CLOCK_MEM, NVML_CLOCK_MEM);
SAME(NV_CLOCK_VIDEO, NVML_CLOCK_VIDEO);
SAME(NV_CLOCK_NOW, NVML_CLOCK_ID_CURRENT);
SAME(NV_CLOCK_APP, NVML_CLOCK_ID_APP_CLOCK_TARGET);
SAME(NV_CLOCK_APP_DEFAULT, NVML_CLOCK_ID_APP_CLOCK_DEFAULT);
SAME(NV_CLOCK_BOOST_MAX, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
SAME(NV_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME(NV_PEER_READ, NVML_P2P_CAPS_INDEX_READ);
SAME(NV_PEER_WRITE, NVML_P2P_CAPS_INDEX_WRITE);
SAME(NV_PEER_NVLINK, NVML_P2P_CAPS_INDEX_NVLINK);
SAME(NV_PEER_ATOMICS, NVML_P2P_CAPS_INDEX_ATOMICS);
SAME(NV_PEER_PCI, NVML_P2P_CAPS_INDEX_PCI);
SAME(NV_PEER_OK, NVML_P2P_STATUS_OK);
SAME(NV_PEER_STATUS_NOT_SUPPORTED, NVML_P2P_STATUS_NOT_SUPPORTED);
SAME(NV_TOPOLOGY_INTERNAL, NVML_TOPOLOGY_INTERNAL);
SAME(NV_SCOPE_NODE, NVML_AFFINITY_SCOPE_NODE);
SAME(NV_SCOPE_SOCKET, NVML_AFFINITY_SCOPE_SOCKET);
SAME(NV_VERSION(nv_memory_v2, 2), nvmlMemory_v2);
SAME(NV_VERSION(nv_pci_ext, 1), nvmlPciInfoExt_v1);
SAME(NV_VERSION(nv_temperature, 1), nvmlTemperature_v1);

#define SIZE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
#define FIELD(ours, a, theirs, b)                     \
	SAME(offsetof(ours, a), offsetof(theirs, b)); \
	SAME(sizeof(((ours *)0)->a), sizeof(((theirs *)0)->b))

SIZE(nv_pci, nvmlPciInfo_t);
FIELD(nv_pci, legacy_id, nvmlPciInfo_t, busIdLegacy);
FIELD(nv_pci, domain, nvmlPciInfo_t, domain);
FIELD(nv_pci, bus, nvmlPciInfo_t, bus);
FIELD(nv_pci, device, nvmlPciInfo_t, device);
FIELD(nv_pci, pci_id, nvmlPciInfo_t, pciDeviceId);
FIELD(nv_pci, subsystem_id, nvmlPciInfo_t, pciSubSystemId);
FIELD(nv_pci, id, nvmlPciInfo_t, busId);

SIZE(nv_pci_ext, nvmlPciInfoExt_v1_t);
FIELD(nv_pci_ext, version, nvmlPciInfoExt_v1_t, version);
FIELD(nv_pci_ext, domain, nvmlPciInfoExt_v1_t, domain);
FIELD(nv_pci_ext, bus, nvmlPciInfoExt_v1_t, bus);
FIELD(nv_pci_ext, device, nvmlPciInfoExt_v1_t, device);
FIELD(nv_pci_ext, pci_id, nvmlPciInfoExt_v1_t, pciDeviceId);
FIELD(nv_pci_ext, subsystem_id, nvmlPciInfoExt_v1_t, pciSubSystemId);
FIELD(nv_pci_ext, base_class, nvmlPciInfoExt_v1_t, baseClass);
FIELD(nv_pci_ext, sub_class, nvmlPciInfoExt_v1_t, subClass);
FIELD(nv_pci_ext, id, nvmlPciInfoExt_v1_t, busId);

SIZE(nv_memory, nvmlMemory_t);
FIELD(nv_memory, total, nvmlMemory_t, total);
FIELD(nv_memory, free, nvmlMemory_t, free);
FIELD(nv_memory, used, nvmlMemory_t, used);

SIZE(nv_memory_v2, nvmlMemory_v2_t);
FIELD(nv_memory_v2, version, nvmlMemory_v2_t, version);
FIELD(nv_memory_v2, total, nvmlMemory_v2_t, total);
FIELD(nv_memory_v2, reserved, nvmlMemory_v2_t, reserved);
FIELD(nv_memory_v2, free, nvmlMemory_v2_t, free);
FIELD(nv_memory_v2, used, nvmlMemory_v2_t, used);

SIZE(nv_process_v1, nvmlProcessInfo_v1_t);
FIELD(nv_process_v1, pid, nvmlProcessInfo_v1_t, pid);
FIELD(nv_process_v1, bytes, nvmlProcessInfo_v1_t, usedGpuMemory);

SIZE(nv_process, nvmlProcessInfo_t);
FIELD(nv_process, pid, nvmlProcessInfo_t, pid);
FIELD(nv_process, bytes, nvmlProcessInfo_t, usedGpuMemory);
FIELD(nv_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
FIELD(nv_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);

SIZE(nv_rates, nvmlUtilization_t);
FIELD(nv_rates, gpu, nvmlUtilization_t, gpu);
FIELD(nv_rates, memory, nvmlUtilization_t, memory);

SIZE(nv_process_busy, nvmlProcessUtilizationSample_t);
FIELD(nv_process_busy, pid, nvmlProcessUtilizationSample_t, pid);
FIELD(nv_process_busy, when, nvmlProcessUtilizationSample_t, timeStamp);
FIELD(nv_process_busy, sm, nvmlProcessUtilizationSample_t, smUtil);
FIELD(nv_process_busy, memory, nvmlProcessUtilizationSample_t, memUtil);
FIELD(nv_process_busy, encoder, nvmlProcessUtilizationSample_t, encUtil);
FIELD(nv_process_busy, decoder, nvmlProcessUtilizationSample_t, decUtil);

SIZE(nv_temperature, nvmlTemperature_t);
FIELD(nv_temperature, version, nvmlTemperature_t, version);
FIELD(nv_temperature, sensor, nvmlTemperature_t, sensorType);
FIELD(nv_temperature, celsius, nvmlTemperature_t, temperature);

SIZE(nv_field, nvmlFieldValue_t);
FIELD(nv_field, field, nvmlFieldValue_t, fieldId);
FIELD(nv_field, scope, nvmlFieldValue_t, scopeId);
FIELD(nv_field, timestamp, nvmlFieldValue_t, timestamp);
FIELD(nv_field, latency, nvmlFieldValue_t, latencyUsec);
FIELD(nv_field, type, nvmlFieldValue_t, valueType);
FIELD(nv_field, status, nvmlFieldValue_t, nvmlReturn);
FIELD(nv_field, value, nvmlFieldValue_t, value);
