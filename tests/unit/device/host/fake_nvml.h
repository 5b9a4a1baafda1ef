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
		_Atomic uint64_t bytes[FAKE_GPUS];  /* 0: it does not use the GPU */
		_Atomic uint64_t part_bytes;	    /* of the part of GPU 1 */
		_Atomic uint32_t busy, busy_memory; /* of GPU 0 */
	} process[4];
	/* Of GPU 0. The other one has ten times as much of everything. */
	_Atomic uint32_t clock[4], app_clock[4]; /* nvmlClockType_t */
	_Atomic uint32_t busy, busy_memory, celsius, milliwatts, power_limit;
	_Atomic uint32_t sensors_asked; /* how often GPU 0's memory clock has been asked for */
	char driver[32];
	char part[64]; /* the name of the part of GPU 1; empty: there is none */
};

#endif
