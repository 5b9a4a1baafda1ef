/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the tests of the software GPU's runtime: a PTX machine whose kernels are C functions, so that
 * streams, events, memory and errors are tested alone. Any text loads, except with `bad` in it. All
 * kernels take three 64-bit parameters.
 *
 *   step     waits c milliseconds, then takes the next number of counter a and stores it at b
 *   gate     waits until the int at a is not 0
 *   open     stores 1 in the int at a
 *   store    stores b at a, if that is memory
 *   status   ends with enum ptx_status a
 *   print    prints a line of a characters
 *   bounded  like step, at most 128 threads
 *   shared   like step, 4 KiB of static shared memory
 */
#ifndef TEST_SOFT_FAKE_H
#define TEST_SOFT_FAKE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/soft/ptx/base/ptx.h"

#define FAKE_PTX ".version 9.0\n.target sm_75\n.address_size 64\n"

/* Modules that the machine holds now. */
extern _Atomic int fake_modules;

static inline void sleep_ms(unsigned int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

static inline struct be *fake_open(unsigned int gpus, uint64_t vram)
{
	struct be_options opt = {.gpus = gpus, .vram = vram, .threads = 2};
	struct be *be;

	assert_int_equal(be_soft.open(&be, &opt), QCU_ERR_Success);
	return be;
}

static inline struct be_module *fake_module(struct be *be)
{
	struct be_module *m;

	assert_int_equal(be_soft.module_load(be, FAKE_PTX, strlen(FAKE_PTX), NULL, &m), 0);
	return m;
}

static inline struct be_kernel *fake_kernel(struct be *be, struct be_module *m, const char *name)
{
	struct be_kernel *k;

	assert_int_equal(be_soft.kernel_find(be, m, name, &k), QCU_ERR_Success);
	return k;
}

static inline int fake_launch(struct be *be, struct be_kernel *k, struct be_stream *s, uint64_t a,
			      uint64_t b, uint64_t c)
{
	uint64_t params[3] = {a, b, c};
	struct be_launch l = {
		.grid = {1, 1, 1},
		.block = {1, 1, 1},
		.params = params,
		.param_bytes = sizeof(params),
	};

	return be_soft.launch(be, k, &l, s);
}

#endif
