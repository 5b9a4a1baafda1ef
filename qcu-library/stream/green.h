/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Green contexts: parts of a device's multiprocessors, and streams that use only these. */
#ifndef QCUL_GREEN_H
#define QCUL_GREEN_H

#include "qcu-library/link/link.h"

#define QCUL_RESOURCE_SM 1u

/* What CUDA calls a device resource: as large, with the public fields in the same places. */
struct qcul_resource {
	uint32_t type; /* QCUL_RESOURCE_SM, or 0: none */
	unsigned char internal[92];
	uint32_t sms, least, align, rsvd[9];
};

/* Where a resource comes from, in its internal bytes. */
struct qcul_part {
	uint32_t mark;
	uint32_t epoch;	 /* of the session */
	uint64_t number; /* of the split */
	int32_t device;
	uint32_t parent; /* a green context's number; 0: the device */
	uint32_t groups; /* 0: it has not been split */
	uint32_t flags, least;
	uint32_t member; /* QCU_GREEN_GROUPS: the rest */
};
_Static_assert(sizeof(struct qcul_part) <= 92, "it fits");

/* Never freed, so that streams can name it and any pointer can be checked. */
struct qcul_green {
	atomic_bool alive;
	int device;
	uint32_t number; /* on the wire */
	unsigned int epoch;
	uint64_t id;
	bool waited; /* it has been made to wait for an event */
	cudaStream_t own;
	struct CUctx_st *context; /* the driver API's, if the program has asked for it */
	struct qcul_green *next;
};

struct qcul_green_desc;

/* NULL: not a living green context. Any pointer may be passed. */
struct qcul_green *qcul_green_find(const void *green);
/* NULL: the stream is of none. */
struct qcul_green *qcul_green_of(cudaStream_t stream);
/* All that a device, or a green context of it, has. */
cudaError_t qcul_green_resource(int device, const struct qcul_green *green, unsigned int type,
				struct qcul_resource *to);
/* result NULL: only *groups is wanted. rest may be NULL. */
cudaError_t qcul_green_split(struct qcul_resource *result, unsigned int *groups,
			     const struct qcul_resource *input, struct qcul_resource *rest,
			     unsigned int flags, unsigned int least);
cudaError_t qcul_green_describe(struct qcul_green_desc **desc, const struct qcul_resource *from,
				unsigned int count);
cudaError_t qcul_green_create(struct qcul_green **green, const struct qcul_green_desc *desc,
			      int device);
/* Its streams end, too. */
cudaError_t qcul_green_destroy(struct qcul_green *green);
cudaError_t qcul_green_stream(cudaStream_t *stream, struct qcul_green *green, unsigned int flags,
			      int priority);
/* The event is recorded after all that is in the context's streams. */
cudaError_t qcul_green_record(struct qcul_green *green, cudaEvent_t event);
/* All that is put into the context's streams from now on comes after the event. */
cudaError_t qcul_green_wait(struct qcul_green *green, cudaEvent_t event);
cudaError_t qcul_green_sync(struct qcul_green *green);

#endif
