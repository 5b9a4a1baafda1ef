/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Contexts, for the functions that ask about them. */
#ifndef QCUL_DRIVER_CONTEXT_H
#define QCUL_DRIVER_CONTEXT_H

#include "qcu-library/driver_base/driver.h"
#include "qcu-library/stream/green.h"

struct CUctx_st {
	int device;
	uint64_t number;
	atomic_uint flags;
	/* of a primary context: how often it was retained; of another: 0 when it is destroyed */
	atomic_uint users;
	struct qcul_green *green; /* of which it is the context; NULL: none */
	struct CUctx_st *next;
};

struct CUctx_st *qcul_driver_primary(int device);
/* The context of a green one, and its end. NULL: no memory. */
struct CUctx_st *qcul_driver_context_from(struct qcul_green *green);
void qcul_driver_context_ends(struct CUctx_st *context);
CUresult qcul_driver_flags_check(unsigned int flags);
CUresult qcul_driver_flags_set(struct CUctx_st *context, unsigned int flags);

#endif
