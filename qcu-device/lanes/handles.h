/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams, events, modules, kernels, arrays, pools, graphs, conditionals, links, green contexts and
 * memory without an address, found by the number that the guest gave each. There is one table for
 * each kind. A lane that uses an object holds a reference, so another lane may destroy the object
 * at any time: its number is free at once, and the object is released with the last reference.
 */
#ifndef QCU_HANDLES_H
#define QCU_HANDLES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"

enum handle_kind {
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_MODULE,
	HANDLE_KERNEL,
	HANDLE_ARRAY,
	HANDLE_POOL,
	HANDLE_COND,
	HANDLE_GRAPH,
	HANDLE_LINK,
	HANDLE_PHYS,	/* memory without an address */
	HANDLE_GREEN,	/* a green context */
	HANDLE_LIBRARY, /* an object of a library */
	HANDLE_KINDS,
};

struct lib_object;

/* What a memory pool takes of the device's memory (pools.c). */
struct pool_charge {
	struct be_pool *pool; /* NULL: the pool has not been used */
	unsigned int device;
	uint64_t charged;
	struct pool_charge *next;
};

struct handle {
	enum handle_kind kind; /* HANDLE_KINDS: there is no object */
	atomic_uint refs;
	unsigned int device; /* of streams, events, arrays, pools, graphs, conditionals, links,
				memory, green contexts */
	union {
		struct be_stream *stream;
		struct be_event *event;
		struct be_module *module;
		struct be_kernel *kernel;
		struct be_array *array;
		struct be_pool *pool;
		struct be_cond *cond;
		struct be_graph *graph;
		struct be_link *link;
		struct be_phys *phys;
		struct be_green *green;
		struct lib_object *library;
	};
	struct be_array_desc desc; /* of an array */
	uint64_t bytes;		   /* device memory of an array, a module, PHYS; images of a link */
	struct pool_charge charge; /* of a pool */
	bool shared;		   /* an event or memory whose `token` is for other processes */
	struct qcu_ipc_token token;
	/*
	 * A counted reference: of a kernel, to its module; of an array, to the memory in which it
	 * was placed; of a conditional, to the one in whose body it is; of a stream, to its green
	 * context. An outermost graph has none.
	 */
	struct handle *parent;
	uint32_t body;	  /* which body of the parent */
	uint32_t depth;	  /* 0: an outermost graph */
	bool instanced;	  /* there is an instance of this outermost graph, or it is being made */
	uint64_t reading; /* the last description that used this conditional */
	uint32_t params, param_bytes;
	struct mir_graph *graph_state; /* of a graph, see graphs.c */
	void *vars;		       /* of a module, see modules.c */
	uint64_t var_bytes;	       /* device memory of a module's variables */
	struct qcu_jit jit;	       /* options of a link */
	bool failed;		       /* of a link: it can only be destroyed */
	bool imported;		       /* memory of another process */
	bool shareable;		       /* memory that can be exported */
	atomic_bool reached;	       /* memory that a GPU could read or write at some time */
	struct handle *next;	       /* in the list of unused handles */
};

#define HANDLE_PAGE 256u

typedef _Atomic(struct handle *) handle_entry;

struct handles {
	pthread_mutex_t lock; /* protects the creation of pages */
	_Atomic(handle_entry *) page[HANDLE_KINDS][(QCU_ID_MAX + 1) / HANDLE_PAGE];
	/* Called when the last reference is gone. */
	void (*release)(void *ctx, struct handle *h);
	void *ctx;
};

void handles_init(struct handles *t, void (*release)(void *ctx, struct handle *h), void *ctx);
void handles_fini(struct handles *t); /* drops what is left */

/* Returns a new handle with one reference, the caller's. It is not in the table yet. */
struct handle *handle_new(enum handle_kind kind);
/* Drops a handle that has no object yet. */
void handle_drop(struct handles *t, struct handle *h);

/*
 * Is this number free? handles_add() checks it again; this is for asking before any work is done.
 */
bool handles_free(struct handles *t, enum handle_kind kind, uint32_t id);

/* The table takes over the caller's reference. Returns a value of enum qcu_error. */
int handles_add(struct handles *t, uint32_t id, struct handle *h);

/* Returns a reference to the object, or NULL. */
struct handle *handles_get(struct handles *t, enum handle_kind kind, uint32_t id);

/* Returns a reference to the object with the least number from *id on, and sets *id; or NULL. */
struct handle *handles_next(struct handles *t, enum handle_kind kind, uint32_t *id);

/* Takes one more reference to a handle on which the caller holds one. */
struct handle *handle_hold(struct handles *t, struct handle *h);
void handles_put(struct handles *t, struct handle *h); /* h may be NULL */

/* Frees the number and drops the table's reference. False: there was no such object. */
bool handles_remove(struct handles *t, enum handle_kind kind, uint32_t id);

/* The same for all objects that match. */
void handles_remove_if(struct handles *t, enum handle_kind kind,
		       bool (*match)(const struct handle *h, const void *arg), const void *arg);

#endif
