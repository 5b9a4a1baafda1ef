/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all functions of NVML build on: the devices, and questions to the mirror. */
#ifndef QCUL_NVML_STATE_H
#define QCUL_NVML_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"
#include "qcu-library/nvml/abi.h"

#define NVML_DEVICES 64u

/* A handle points to one of these. They stay the same from the first nvmlInit on. */
struct nv_device {
	struct qcu_device_desc desc;
	_Atomic unsigned long long measured; /* when the last shares of programs were; 0: never */
};

nv_return qcul_nvml_init(bool without_gpus);
nv_return qcul_nvml_shutdown(void);

/* NV_SUCCESS after nvmlInit, else the error that all functions return. */
nv_return qcul_nvml_ready(void);
/* The same for functions of a device. Any pointer may be passed. */
nv_return qcul_nvml_check(const struct nv_device *device);

unsigned int qcul_nvml_count(void);
/* NULL: there is no such device. */
struct nv_device *qcul_nvml_device(unsigned int index);
unsigned int qcul_nvml_index(const struct nv_device *device);
/* As cudaDriverGetVersion returns it; 0 without a device. */
int qcul_nvml_cuda_version(void);

/*
 * Questions whose answers change. The first one opens a session, which lasts until nvmlShutdown:
 * who asks once will ask again.
 */
nv_return qcul_nvml_use(const struct nv_device *device, struct qcu_vm_use_desc *use);
/* What is not known has no bit in `known`. Waits for numbers that are on their way. */
nv_return qcul_nvml_sensors(const struct nv_device *device, struct qcu_sensors *now);
nv_return qcul_nvml_peer(const struct nv_device *device, const struct nv_device *peer,
			 unsigned int attr, int *value);

#endif
