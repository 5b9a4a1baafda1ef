/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the stand-in for NVML says: a file that the test maps, too. QCU_TEST_NVML is its path. */
#ifndef TEST_FAKE_NVML_H
#define TEST_FAKE_NVML_H

#include <stdint.h>

#define FAKE_GPUS 2u

struct fake_nvml {
	_Atomic int error;	/* every call returns it */
	_Atomic uint32_t asked; /* how often a GPU has been asked about */
	struct {
		_Atomic uint32_t pid;
		_Atomic uint64_t bytes[FAKE_GPUS]; /* 0: it does not use the GPU */
	} process[4];
};

#endif
