/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of a mirror share: its state, and the small steps that most commands need. */
#ifndef QCU_MIRROR_IMPL_H
#define QCU_MIRROR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "qcu-device/carriers.h"
#include "qcu-device/handles.h"
#include "qcu-device/lanes.h"
#include "qcu-device/mirror.h"
#include "qcu-device/order.h"
#include "qcu-device/spin.h"
#include "qcu-device/staging.h"
#include "qcu-device/usage.h"
#include "qcu-device/window.h"

/* Who may be in the backend: the lanes, the watching thread and the thread that times kernels. */
#define MIR_USERS	     (LANES_SLOTS + 2)
#define MIR_USER_WATCHING    LANES_SLOTS
#define MIR_USER_TIMING	     (LANES_SLOTS + 1)
#define MIR_DEVICES_MAX	     64u
#define MIR_NAME_MAX	     4096u	  /* bytes of the name of a kernel or a variable */
#define MIR_IMAGE_MAX	     (1ull << 30) /* bytes of a fat binary */
#define MIR_KERNEL_PARAM_MAX 4096u

/* What STATS returns. Submitting threads count `commands`, lanes count the rest. */
struct mir_stats {
	_Alignas(64) _Atomic uint64_t commands;
	_Alignas(64) _Atomic uint64_t h2d_bytes, d2h_bytes, d2d_bytes;
	_Atomic uint64_t window_bytes, pages_bytes, staged_bytes;
	_Atomic uint64_t copies;
	_Atomic uint64_t device_bytes;
};

STAILQ_HEAD(host_call_list, host_call);

/* Functions of the guest program that streams have reached (hostcalls.c). */
struct host_calls {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct host_call_list ready;
	struct host_call_list all;  /* calls that have not run yet */
	struct host_call *running;  /* the guest is running it */
	struct mir_request *parked; /* the guest's request for the next call, waiting */
	int ended;		    /* no more calls will come: the status for the guest */
};

/* The object of a query that was answered "not ready". */
struct watch {
	uint64_t token;	     /* 0: nothing is watched */
	struct handle *h;    /* the stream or event, held; NULL: a legacy stream */
	unsigned int device; /* the device of that legacy stream */
};

/* Answers that the mirror writes into a page of the guest (watch.c). */
struct watches {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool running, stop;
	uint64_t *page; /* the mirror only writes it; NULL: there is none */
	uint64_t va;	/* the page's address in the guest */
	uint64_t leaving_va, leaving_len;
	unsigned int count;
	struct watch place[QCU_WATCH_PLACES];
	struct spin spin;
	atomic_int error; /* found while watching, not reported yet */
};

/* Launched kernels, if the backend does not measure how long they run (kerneltime.c). */
struct kernel_times {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool running, stop, told;
	uint64_t limit_ns;	      /* 0: there is no limit */
	struct timed_stream *streams; /* streams that kernels have been put into */
	struct timed *spare;
};

LIST_HEAD(allocation_list, allocation);
LIST_HEAD(thread_stream_list, thread_stream);
LIST_HEAD(object_list, object);
LIST_HEAD(import_list, import);

struct mirror {
	struct mir_config cfg;
	struct be *be;
	struct budget budget;
	unsigned int devices;
	atomic_bool abandoned; /* the backend must not be called any more */
	struct window window;
	struct handles handles;
	struct staging staging;
	struct carriers carriers;
	struct lanes *lanes;
	_Alignas(64) struct order order; /* under the lanes' lock */
	_Alignas(64) struct host_calls host_calls;
	struct watches watches;
	struct kernel_times times;
	struct mir_stats stats;
	/*
	 * A lane holds its own lock while it carries out a command. DEVICE_RESET takes all of them.
	 */
	struct {
		_Alignas(64) pthread_mutex_t lock;
	} use[MIR_USERS];
	pthread_mutex_t lock; /* protects what follows */
	void *allocations;    /* tree by address, and all of them */
	struct allocation_list allocation_list;
	struct thread_stream_list thread_streams;
	pthread_mutex_t image_lock;
	pthread_mutex_t pool_lock;
	struct pool_room *rooms; /* of pools that have been used */
	struct pool_room default_room[MIR_DEVICES_MAX];
	uint64_t recordings; /* graphs recorded so far */
	char refusal[256];   /* why an image was refused, for the program's stderr */
	void *objects;	     /* textures and surfaces: tree by number, and all of them */
	struct object_list object_list;
	uint64_t mapping;			  /* bytes of the MAP that is being carried out */
	uint64_t limit_bytes[MIR_DEVICES_MAX][3]; /* see mir_take_limit() */
	uint8_t said[QCU_OP_COUNT];		  /* "not supported" has been reported */
	pthread_mutex_t share_lock;		  /* protects this session's part of cfg.shares */
	pthread_mutex_t import_lock;		  /* protects `imports`; taken before share_lock */
	struct import_list imports;
};

/* One command that is being carried out. */
struct call {
	struct mirror *m;
	struct mir_request *req;
	struct qCUcmd *cmd;	   /* &req->cmd */
	bool waited;		   /* it waited for GPU work: kernels may have printed */
	struct window_holds holds; /* released before the answer */
};

/* Returned instead of a status: the function has kept the request and will answer it later. */
#define MIR_PARKED (-2)

/* Carries out one command. Returns a value of enum qcu_error, MIR_RULE_BROKEN or MIR_PARKED. */
typedef int mir_call_fn(struct call *c);

/* dispatch.c: everything from a checked request to its answer. True if it was THREAD_EXIT. */
bool mir_dispatch(void *mirror, struct mir_request *req);
uint64_t mir_now_ns(void);
const char *mir_error_name(int error);

/* charges.c: returns QCU_ERR_MemoryAllocation, and reports it, if a limit is in the way. */
int mir_take(struct call *c, enum limit what, uint64_t n);
void mir_give(struct mirror *m, enum limit what, uint64_t n);
int mir_take_memory(struct call *c, unsigned int device, uint64_t bytes);
void mir_give_memory(struct mirror *m, unsigned int device, uint64_t bytes);
/*
 * Count the guest memory in the window, and that which a MAP is about to add. One page may be
 * mapped many times, and each mapping costs page tables of the host.
 */
int mir_take_mapping(struct call *c, uint64_t len);
void mir_mapping_ends(struct mirror *m);
/* Called after an UNMAP. */
void mir_count_mapped(struct mirror *m);
/*
 * Counts the device memory that a cudaLimit takes from now on. `before` is the old count, which
 * mir_limit_back() restores.
 */
int mir_take_limit(struct call *c, uint32_t limit, uint64_t *value, uint64_t *before);
void mir_limit_back(struct mirror *m, unsigned int device, uint32_t limit, uint64_t before);
/* As handle_new() and handle_drop(), but the limit of the handle's kind counts it. */
int mir_handle_new(struct call *c, enum handle_kind kind, struct handle **h);
void mir_handle_drop(struct mirror *m, struct handle *h);
/* The handle's last reference is gone, and so is its object. */
void mir_handle_gone(struct mirror *m, const struct handle *h);

/* modules.c */
void mir_give_image(struct mirror *m, const struct handle *h);

/* streams.c */
struct stream_ref {
	struct be_stream *s;
	struct handle *h; /* NULL: a default stream */
	unsigned int device;
};
int mir_stream_get(struct call *c, uint32_t id, struct stream_ref *ref);
void mir_stream_put(struct call *c, struct stream_ref *ref);
int mir_stream_wait(struct call *c, const struct stream_ref *ref);
/* Ends the per-thread streams of a guest thread, or of a device, or (both NULL) all of them. */
void mir_thread_streams_end(struct mirror *m, const uint32_t *tid, const unsigned int *device);

/* conds.c */
/*
 * Called before a kernel is launched. If the stream records a graph, the kernel stays as long as
 * the graph.
 */
int mir_cond_keep(struct call *c, const struct stream_ref *s, struct handle *kernel);
void mir_cond_end(struct mirror *m, struct handle *cond);
/*
 * The stream records a graph. mir_cond_work(): it is about to get one more piece of work.
 * mir_cond_recorded(): it ends.
 */
int mir_cond_work(struct call *c, struct handle *stream);
void mir_cond_recorded(struct mirror *m, struct handle *stream);

/* hostcalls.c */
void mir_host_calls_init(struct mirror *m);
/* Releases the streams that wait for the guest, and the guest if it waits for them. */
void mir_host_calls_end(struct mirror *m);
void mir_host_calls_fini(struct mirror *m);

/* kerneltime.c */
void mir_times_init(struct mirror *m);
void mir_times_fini(struct mirror *m);
/* Called before and after a kernel is put into a stream. NULL: the kernel is not timed. */
struct timed *mir_time_begin(struct call *c, const struct stream_ref *s);
void mir_time_end(struct call *c, const struct stream_ref *s, struct timed *t, bool launched);
/* One look of the timing thread, at the time `now_ns`. */
void mir_times_look(struct mirror *m, uint64_t now_ns);
/* Called before the device is reset. */
void mir_times_reset(struct mirror *m, unsigned int device);

/* watch.c */
void mir_watches_init(struct mirror *m);
void mir_watches_fini(struct mirror *m);
/*
 * A query was answered "not ready". Watches its object, and tells the guest when the answer would
 * be another one. False: it is not watched.
 */
bool mir_watch(struct call *c, uint32_t place, uint64_t token, const struct watch *what);
/*
 * Returns an error found while watching, once. The next command that waits or queries reports it.
 */
int mir_watch_error(struct mirror *m);
/* Ends all watches, and tells the guest to send its queries instead. */
void mir_watches_end(struct mirror *m);
/* This memory is about to leave the window. Length 0: no memory is leaving. */
void mir_watch_leaves(struct mirror *m, uint64_t va, uint64_t len);

/* pools.c */
struct pool_ref {
	struct be_pool *p;
	struct handle *h; /* NULL: a default pool */
	unsigned int device;
	struct pool_room *room;
};
int mir_pool_get(struct call *c, uint32_t id, struct pool_ref *ref);
void mir_pool_put(struct call *c, struct pool_ref *ref);
/* Called before memory is taken from a pool, and afterwards. `came`: was it taken? */
int mir_pool_take(struct call *c, const struct pool_ref *ref, uint64_t size);
int mir_pool_taken(struct call *c, const struct pool_ref *ref, uint64_t size, bool came);
/* Memory of a pool of this device has been freed. */
void mir_pool_given(struct mirror *m, unsigned int device, uint64_t size);
/* Takes other memory, for which pools release what they only keep. */
int mir_take_memory_from_pools(struct call *c, unsigned int device, uint64_t size);
/* Counts the memory of all pools. */
void mir_pools_count(struct mirror *m);
void mir_pool_gone(struct mirror *m, struct pool_room *room);
/* All memory of a device's pools is gone. NULL: of all devices. */
void mir_pools_end(struct mirror *m, const unsigned int *device);

/* memory.c */
void mir_allocations_end(struct mirror *m, const unsigned int *device);
/* Reports the allocation by MALLOC that begins at `addr`. False: none begins there. */
bool mir_allocation_size(struct mirror *m, uint64_t addr, uint64_t *size, unsigned int *device);
/*
 * The token will end with the allocation. False: there is no allocation, or it has a token already.
 */
bool mir_allocation_share(struct mirror *m, uint64_t addr, const struct qcu_ipc_token *token);
/* QCU_ERR_NotReady: the allocation has no token. */
int mir_allocation_shared(struct mirror *m, uint64_t addr, struct qcu_ipc_token *token);

/* ipc.c */
void mir_share_end(struct mirror *m, const struct qcu_ipc_token *token);
/* Closes the memory of other processes that is open on a device. NULL: on any device. */
void mir_imports_end(struct mirror *m, const unsigned int *device);

/* copy.c: the buffer of a command. Writing beyond its end returns QCU_ERR_InvalidValue. */
int mir_pieces(struct call *c, struct pieces *ps);
int mir_buf_write(struct call *c, size_t off, const void *src, size_t len);
int mir_buf_read(struct call *c, void *dst, size_t len);
/* Is [addr, addr + len) memory that the GPU may use: device memory or pinned window memory? */
int mir_device_range(struct call *c, uint64_t addr, uint64_t len);

/* textures.c: ends the objects of a device (NULL: all objects). Called before their arrays end. */
void mir_objects_end(struct mirror *m, const unsigned int *device);

/* rects.c: rows that are copied between a command's buffer and the GPU's side */
struct mir_rect {
	bool down; /* to the buffer */
	struct be_end end;
	uint64_t width, height, pitch; /* the pitch is the buffer's */
	uint32_t stream, flags;	       /* QCU_COPY_QUEUED, QCU_COPY_SYNC */
};
int mir_rect(struct call *c, const struct mir_rect *r);

/* One function for each command. There is no mir_do_open and no mir_do_close. */
#define MIR_DECLARE_CTL(name)
#define MIR_DECLARE_DRV(name)	   mir_call_fn mir_do_##name;
#define MIR_DECLARE_USR(name)	   mir_call_fn mir_do_##name;
#define MIR_DECLARE_POST(name)	   mir_call_fn mir_do_##name;
#define X(n, NAME, name, who, ...) MIR_DECLARE_##who(name)
QCU_COMMANDS(X)
#undef X

/* Returns "not supported" from the calling function if the backend does not have this op. */
#define MIR_NEED(c, op)                                \
	do {                                           \
		if (!(c)->m->cfg.ops->op)              \
			return mir_not_supported((c)); \
	} while (0)
int mir_not_supported(struct call *c);

#endif
