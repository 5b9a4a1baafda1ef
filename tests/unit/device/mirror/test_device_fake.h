/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simple, transparent backend for the tests of the device. Device memory is host memory. A copy
 * that uses registered memory happens when its stream, or an event recorded behind it, is waited
 * for. Any other copy happens at once. Kernels only leave a trace.
 */
#ifndef TEST_DEVICE_FAKE_H
#define TEST_DEVICE_FAKE_H

#include "qcu-device/mirror/mirror.h"

/*
 * The start of images that the fake loads. It is PTX, because a mirror lets nothing else through.
 */
#define FAKE_IMAGE ".version FAKE"
/* Names that the fake has in every module. */
#define FAKE_KERNEL	"fake_kernel" /* parameters of 4, 8 and 2 bytes at 0, 8 and 16 */
#define FAKE_KERNEL_LEN 18
#define FAKE_VAR	"fake_var"

struct fake {
	unsigned int devices;
	int open_error;		      /* fake_ops.open returns it */
	unsigned int open_ms;	      /* and takes this long */
	_Atomic unsigned int objects; /* streams, events and modules that exist */
	_Atomic unsigned int images;  /* images that have reached the fake */
	_Atomic unsigned int allocations;
	_Atomic unsigned int registrations, registered_ever;
	_Atomic uint64_t registered_bytes;
	_Atomic unsigned int batches; /* calls of copy_pieces */
	_Atomic unsigned int at_once; /* calls of copy_d2h_wait */
	_Atomic unsigned int
		registered_on; /* devices of the threads that registered memory, a bit for each */
	_Atomic unsigned int launches;
	bool endless;		 /* kernels run until their stream is waited for */
	struct be_launch launch; /* the last one; its params are in params */
	uint8_t params[64];
	uint32_t attr; /* of the last kernel_set */
	int value;
	_Atomic bool hold; /* event_sync does not return while this is set */
	_Atomic unsigned int held;
	_Atomic bool busy; /* the GPU is busy: host_unregister and device_sync do not return */
	_Atomic unsigned int waiting;
	void (*host_fn)(void *arg, int error); /* of the last host_func; the test calls it */
	void *host_arg;
	bool host_always;
	const char *text;		   /* the output of kernels */
	const char *complaint;		   /* the text of failed assertions */
	_Atomic bool crash;		   /* device_sync ends the process */
	_Atomic unsigned int waiting_most; /* the most copies that waited in one stream at once */
	/*
	 * This many calls succeed, then one fails with `error`. If `sticky`, the context is lost.
	 */
	_Atomic int copies_left, records_left, registers_left;
	_Atomic int error;
	_Atomic bool sticky, lost;
	_Atomic unsigned int others; /* calls of functions that the fake has no part of */
	int other_status;	     /* what these return */
};

extern struct fake fake;
extern const struct be_ops fake_ops; /* also under the name be_soft */

void fake_reset(void);

#endif
