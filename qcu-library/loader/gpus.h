/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists for which GPUs a program has device code. */
#ifndef QCUL_GPUS_H
#define QCUL_GPUS_H

#include "qcu-library/loader/elf.h"

#define QCUL_GPUS_MAX 64u

enum qcul_gpu_kind { QCUL_GPU_SM, QCUL_GPU_PTX, QCUL_GPU_OTHER };

struct qcul_gpu {
	enum qcul_gpu_kind kind;
	unsigned int arch; /* 10 * major + minor */
	char suffix;	   /* 'a' or 'f', which bind it to a GPU or to a family; 0: none */
};

struct qcul_gpus {
	size_t count; /* further ones are left out */
	bool damaged; /* not all could be read */
	struct qcul_gpu gpu[QCUL_GPUS_MAX];
};

void qcul_gpus_read(const struct qcul_elf *e, struct qcul_gpus *g);

#endif
