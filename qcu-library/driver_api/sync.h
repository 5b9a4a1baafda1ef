/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions that have no stream parameter use the legacy stream, or with _ptds the thread's own. */
#ifndef QCUL_DRIVER_SYNC_H
#define QCUL_DRIVER_SYNC_H

#include "qcu-library/driver_base/driver.h"

/* BOTH(name, (parameters), call): the call may name `stream`. */
#define BOTH(name, parameters, call)                             \
	CUresult name parameters                                 \
	{                                                        \
		const cudaStream_t stream = cudaStreamLegacy;    \
                                                                 \
		return QCUL_RUNTIME(call);                       \
	}                                                        \
                                                                 \
	CUresult name##_ptds parameters                          \
	{                                                        \
		const cudaStream_t stream = cudaStreamPerThread; \
                                                                 \
		return QCUL_RUNTIME(call);                       \
	}

#endif
