/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams, events, modules, kernels and arrays by the numbers that the guest has given them. One
 * table for each kind. A lane that uses an object holds a reference, so that another one may
 * destroy it at any moment: the number is free at once, the object goes with the last reference.
 */
#ifndef QCU_HANDLES_H
#define QCU_HANDLES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend.h"

enum handle_kind {
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_MODULE,
	HANDLE_KERNEL,
	HANDLE_ARRAY,
	HANDLE_POOL,
	HANDLE_COND,
	HANDLE_KINDS,
};

/* What a pool of memory takes of the device's: pools.c's. */
struct pool_room {
	struct be_pool *pool; /* NULL: it has not been used */
	unsigned int device;
	uint64_t charged;
	struct pool_room *next;
};

struct handle {
	enum handle_kind kind; /* HANDLE_KINDS: there is no object */
	atomic_uint refs;
	unsigned int device; /* of streams, events, arrays, pools and conditionals */
	union {
		struct be_stream *stream;
		struct be_event *event;
		struct be_module *module;
		struct be_kernel *kernel;
		struct be_array *array;
		struct be_pool *pool;
		struct be_cond *cond;
	};
	struct be_array_desc desc; /* of an array */
	uint64_t bytes;		   /* that an array or a module takes of the device's memory */
	struct pool_room room;	   /* of a pool */
	bool shared;		   /* of an event: `token` is for other processes */
	struct qcu_ipc_token token;
	/* Referenced: a kernel's module, the conditional that a stream records or one is in. */
	struct handle *parent;
	uint32_t body;	    /* which of it */
	uint64_t recording; /* of such a stream, or of the last in which a conditional was placed */
	uint32_t params, param_bytes;
	struct kept *kept;	   /* by a conditional, see conds.c */
	struct recorded *recorded; /* its bodies; of a stream: the one that it records */
	uint64_t nodes;		   /* work that such a stream has put there */
	struct handle *next;	   /* of those that wait to be used again */
};

#define HANDLE_PAGE 256u

typedef _Atomic(struct handle *) handle_entry;

struct handles {
	pthread_mutex_t lock; /* for new pages */
	_Atomic(handle_entry *) page[HANDLE_KINDS][(QCU_ID_MAX + 1) / HANDLE_PAGE];
	/* The last reference is gone. */
	void (*release)(void *ctx, struct handle *h);
	void *ctx;
};

void handles_init(struct handles *t, void (*release)(void *ctx, struct handle *h), void *ctx);
void handles_fini(struct handles *t); /* drops what is left */

/* A new handle with one reference, the caller's; not in the table yet. */
struct handle *handle_new(enum handle_kind kind);
/* The other way round, while it has no object. */
void handle_drop(struct handles *t, struct handle *h);

/* Is this number free to use? Adding says so again, this one is for asking before any work. */
bool handles_free(struct handles *t, enum handle_kind kind, uint32_t id);

/* The table takes over the caller's reference. A value of enum qcu_error. */
int handles_add(struct handles *t, uint32_t id, struct handle *h);

/* A reference to the object, or NULL. */
struct handle *handles_get(struct handles *t, enum handle_kind kind, uint32_t id);

/* One more reference to one that the caller holds. */
struct handle *handle_hold(struct handles *t, struct handle *h);
void handles_put(struct handles *t, struct handle *h); /* h may be NULL */

/* Frees the number and drops the table's reference. False: there was none. */
bool handles_remove(struct handles *t, enum handle_kind kind, uint32_t id);

/* The same for all that match. */
void handles_remove_if(struct handles *t, enum handle_kind kind,
		       bool (*match)(const struct handle *h, const void *arg), const void *arg);

#endif
