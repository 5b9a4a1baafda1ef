// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions of qcu-library/nvml/api.h are declared as in NVIDIA's header, with NVIDIA's types
 * in place of ours (types.c compares these).
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#define QCUL_NVML_ABI_H
typedef nvmlReturn_t nv_return;
typedef nvmlDevice_t nv_device_t;
typedef nvmlBrandType_t nv_brand;
typedef nvmlDeviceArchitecture_t nv_arch;
typedef nvmlEnableState_t nv_enabled;
typedef nvmlComputeMode_t nv_mode;
typedef nvmlClockType_t nv_clock;
typedef nvmlGpuTopologyLevel_t nv_topology;
typedef nvmlGpuP2PCapsIndex_t nv_peer_index;
typedef nvmlGpuP2PStatus_t nv_peer_status;
typedef nvmlAffinityScope_t nv_scope;
typedef nvmlPciInfo_t nv_pci;
typedef nvmlPciInfoExt_t nv_pci_ext;
typedef nvmlMemory_t nv_memory;
typedef nvmlMemory_v2_t nv_memory_v2;
typedef nvmlProcessInfo_v1_t nv_process_v1;
typedef nvmlProcessInfo_t nv_process;
typedef nvmlFieldValue_t nv_field;
typedef nvmlClockId_t nv_clock_id;
typedef nvmlTemperatureSensors_t nv_sensor;
typedef nvmlTemperature_t nv_temperature;
typedef nvmlUtilization_t nv_rates;
typedef nvmlProcessUtilizationSample_t nv_process_busy;
#include "qcu-library/nvml/api.h"
