/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A backend for the tests of the device, as simple as can be seen through: device memory is host
 * memory; a copy that involves registered memory happens when its stream, or an event recorded
 * behind it, is waited for, any other at once; kernels do nothing but leave a trace.
 */
#ifndef TEST_DEVICE_FAKE_H
#define TEST_DEVICE_FAKE_H

#include "qcu-device/mirror.h"

/* The beginning of images that it loads: PTX, because a mirror lets nothing else through. */
#define FAKE_IMAGE ".version FAKE"
/* Names that the fake knows in every module. */
#define FAKE_KERNEL	"fake_kernel" /* parameters of 4, 8 and 2 bytes at 0, 8 and 16 */
#define FAKE_KERNEL_LEN 18
#define FAKE_VAR	"fake_var"

struct fake {
	unsigned int devices;
	int open_error;		      /* fake_ops.open returns it */
	unsigned int open_ms;	      /* and takes that long */
	_Atomic unsigned int objects; /* streams, events and modules that live */
	_Atomic unsigned int images;  /* that have come as far as here */
	_Atomic unsigned int allocations;
	_Atomic unsigned int registrations, registered_ever;
	_Atomic uint64_t registered_bytes;
	_Atomic unsigned int batches;	    /* calls of copy_pieces */
	_Atomic unsigned int registered_on; /* devices of threads at the time, a bit for each */
	_Atomic unsigned int launches;
	bool endless;		 /* kernels run until somebody waits for their stream */
	struct be_launch launch; /* the last one; params are in params */
	uint8_t params[64];
	uint32_t attr; /* of the last kernel_set */
	int value;
	_Atomic bool hold; /* event_sync does not return while this is set */
	_Atomic unsigned int held;
	_Atomic bool busy; /* the GPU: host_unregister and device_sync do not return */
	_Atomic unsigned int waiting;
	void (*host_fn)(void *arg, int error); /* of the last host_func; the test calls it */
	void *host_arg;
	bool host_always;
	const char *text;		   /* what kernels have printed */
	const char *complaint;		   /* what failed assertions said */
	_Atomic bool crash;		   /* device_sync is the end of the process */
	_Atomic unsigned int waiting_most; /* copies that have waited in one stream at a time */
	/* So many calls succeed, then one fails with `error`; if `sticky`, the context is lost. */
	_Atomic int copies_left, records_left, registers_left;
	_Atomic int error;
	_Atomic bool sticky, lost;
};

extern struct fake fake;
extern const struct be_ops fake_ops; /* also under the name be_soft */

void fake_reset(void);

#endif
