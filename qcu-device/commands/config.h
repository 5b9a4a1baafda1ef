/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a mirror is made with. */
#ifndef QCU_CONFIG_H
#define QCU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/base/sensors.h"
#include "qcu-device/memory/window.h"
#include "qcu-device/turns/pages.h"

struct limits;	 /* limits.h */
struct usage;	 /* usage.h: what the mirrors of one VM use of the host */
struct shares;	 /* shares.h: what the mirrors of one VM share with one another */
struct guestmem; /* guestmem.h: guest-physical ranges, and where this process maps them */

struct mir_config {
	const struct be_ops *ops;
	struct be_options options;
	/* NULL: guest and mirror are one process, and "guest-physical" addresses are pointers. */
	const struct guestmem *mem;
	enum mir_map map;
	uint64_t pin_limit;	     /* bytes of chunks to keep registered; 0: all */
	unsigned int copiers;	     /* threads for one large copy, including the lane; 0: 1 */
	bool trace;		     /* one line per command on stderr */
	struct shares *shares;	     /* NULL: nothing can be shared */
	const struct limits *limits; /* NULL: the default limits */
	/* Called when a kernel has run for too long: the GPU does no more work for this mirror. */
	void (*timed_out)(void *ctx);
	void *timed_out_ctx;
	uint32_t refused_libraries; /* bits 1 << QCU_LIB_*: the operator does not allow these */
	struct turns_view turns;    /* how the VM shares its GPUs with others */
	struct usage *usage;	    /* NULL: only the session's own limits apply */
	enum sensors_for sensors;   /* what programs may learn of the GPUs */
	int store_file; /* from store_file_open(), for memory that has left; 0: there is none */
	unsigned int session;
	uint32_t guest_pid;   /* of the session's program; 0: not known yet */
	unsigned int poll_us; /* how long a lane polls for its next request before it sleeps */
};

#endif
