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

/* The fat binaries of a program or library. */
void qcul_gpus_read(const struct qcul_elf *e, struct qcul_gpus *g);
/* Adds those of fat binaries in a row. */
void qcul_gpus_add(const void *fatbins, size_t size, struct qcul_gpus *g);
/* Writes "sm_90a, compute_100 (PTX)". What does not fit is left out, and "..." says so. */
void qcul_gpus_text(const struct qcul_gpus *g, char *text, size_t size);
/* Can a GPU of this compute capability (10 * major + minor) run any of it, if it runs PTX only? */
bool qcul_gpus_fit(const struct qcul_gpus *g, unsigned int sm, bool only_ptx);

#endif
