/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A qcu-device with a software GPU whose VM is saved and loaded, for the tests of this folder. */
#ifndef TEST_DEVICE_MOVED_H
#define TEST_DEVICE_MOVED_H

#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/host/test_device_program.h"

static struct frontend fe;
static uint16_t stopped_at[FE_QUEUES];

/* more: an option, or NULL. */
static inline void start_device(char *more)
{
	char program[PATH_MAX], gpu_option[] = "--gpu", gpu[] = "soft";
	char metrics_option[] = "--metrics", metrics[] = "none";
	char *argv[] = {program, gpu_option, gpu, metrics_option, metrics, more, NULL};

	assert_int_equal(program_path(program, "qcu-device/qcu-device"), 0);
	fe_start_program(&fe, argv, -1);
}

static inline void start_queues(void)
{
	unsigned int q;

	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
}

static inline int stop(void **state)
{
	int status = fe_stop(&fe);

	(void)state;
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

/* As QEMU stops a VM to save it. */
static inline void stop_queues(void)
{
	unsigned int q;

	assert_string_equal(fe_reason(&fe), "");
	for (q = 0; q < FE_QUEUES; q++)
		stopped_at[q] = fe_queue_stop(&fe, q);
}

static inline void go_on(void)
{
	unsigned int q;

	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_go_on(&fe, q, stopped_at[q]);
}

#endif
