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

/* Who may be in the backend: lanes, and the threads that watch and take the time. */
#define MIR_USERS	     (LANES_SLOTS + 2)
#define MIR_USER_WATCHING    LANES_SLOTS
#define MIR_USER_TIMING	     (LANES_SLOTS + 1)
#define MIR_DEVICES_MAX	     64u
#define MIR_NAME_MAX	     4096u	  /* bytes of a kernel's or a variable's name */
#define MIR_IMAGE_MAX	     (1ull << 30) /* bytes of a fat binary */
#define MIR_KERNEL_PARAM_MAX 4096u

/* What STATS tells: counted by those who submit, then by all lanes. */
struct mir_stats {
	_Alignas(64) _Atomic uint64_t commands;
	_Alignas(64) _Atomic uint64_t h2d_bytes, d2h_bytes, d2d_bytes;
	_Atomic uint64_t window_bytes, pages_bytes, staged_bytes;
	_Atomic uint64_t copies;
	_Atomic uint64_t device_bytes;
};

STAILQ_HEAD(host_call_list, host_call);

/* Functions of the guest program's that streams have come to (hostcalls.c). */
struct host_calls {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct host_call_list ready;
	struct host_call_list all;  /* what has not been run yet */
	struct host_call *running;  /* the guest has it */
	struct mir_request *parked; /* the guest waits for the next one */
	int ended;		    /* there are no more: what the guest is told */
};

/* What a query has been told "not ready" of. */
struct watch {
	uint64_t token;	     /* 0: nothing is watched */
	struct handle *h;    /* stream or event, held; NULL: */
	unsigned int device; /* the legacy stream of this one */
};

/* Answers that are written into a page of the guest's (watch.c). */
struct watches {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool running, stop;
	uint64_t *page; /* only written; NULL: there is none */
	uint64_t va;	/* where the guest has it */
	uint64_t leaving_va, leaving_len;
	unsigned int count;
	struct watch place[QCU_WATCH_PLACES];
	struct spin spin;
	atomic_int error; /* that looking has brought, and nobody has been told of */
};

/* Kernels that have been launched, where the backend does not take their time (kerneltime.c). */
struct kernel_times {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool running, stop, told;
	uint64_t limit_ns;	      /* 0: there is none */
	struct timed_stream *streams; /* that kernels have been put into */
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
	atomic_bool abandoned; /* the backend is not to be called any more */
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
	/* A lane holds its own while it carries a command out; DEVICE_RESET takes all of them. */
	struct {
		_Alignas(64) pthread_mutex_t lock;
	} use[MIR_USERS];
	pthread_mutex_t lock; /* what follows */
	void *allocations;    /* tree by address, and all of them */
	struct allocation_list allocation_list;
	struct thread_stream_list thread_streams;
	pthread_mutex_t image_lock;
	pthread_mutex_t pool_lock;
	struct pool_room *rooms; /* of pools that have been used */
	struct pool_room default_room[MIR_DEVICES_MAX];
	uint64_t recordings; /* of graphs, so far */
	char refusal[256];   /* why an image was refused: for the program's stderr */
	void *objects;	     /* textures and surfaces: tree by number, and all of them */
	struct object_list object_list;
	uint64_t mapping;			  /* bytes of the MAP that is being carried out */
	uint64_t limit_bytes[MIR_DEVICES_MAX][3]; /* see mir_take_limit() */
	uint8_t said[QCU_OP_COUNT];		  /* "not supported" has been said */
	pthread_mutex_t share_lock;		  /* this session's part of cfg.shares */
	pthread_mutex_t import_lock; /* what comes from other processes; before share_lock */
	struct import_list imports;
};

/* One command on its way. */
struct call {
	struct mirror *m;
	struct mir_request *req;
	struct qCUcmd *cmd;	   /* &req->cmd */
	bool waited;		   /* for work of the GPU: kernels may have printed */
	struct window_holds holds; /* let go before the answer */
};

/* Instead of a status: the function has kept the request, and answers it some time. */
#define MIR_PARKED (-2)

/* Carries one command out: a value of enum qcu_error, MIR_RULE_BROKEN or MIR_PARKED. */
typedef int mir_call_fn(struct call *c);

/* dispatch.c: everything from a checked request to its answer; true if it was THREAD_EXIT. */
bool mir_dispatch(void *mirror, struct mir_request *req);
uint64_t mir_now_ns(void);
const char *mir_error_name(int error);

/* charges.c: QCU_ERR_MemoryAllocation, which has been said, if there is a limit in the way. */
int mir_take(struct call *c, enum limit what, uint64_t n);
void mir_give(struct mirror *m, enum limit what, uint64_t n);
int mir_take_memory(struct call *c, unsigned int device, uint64_t bytes);
void mir_give_memory(struct mirror *m, unsigned int device, uint64_t bytes);
/*
 * Guest memory that the window has, and that which a MAP is about to add. One page may be mapped
 * many times, and each costs the host's page tables.
 */
int mir_take_mapping(struct call *c, uint64_t len);
void mir_mapping_ends(struct mirror *m);
/* After an UNMAP. */
void mir_count_mapped(struct mirror *m);
/* What a cudaLimit takes of the device's memory from now on; and as it was before. */
int mir_take_limit(struct call *c, uint32_t limit, uint64_t *value, uint64_t *before);
void mir_limit_back(struct mirror *m, unsigned int device, uint32_t limit, uint64_t before);
/* As handle_new() and handle_drop(); the limit of its kind counts it. */
int mir_handle_new(struct call *c, enum handle_kind kind, struct handle **h);
void mir_handle_drop(struct mirror *m, struct handle *h);
/* Its last reference is gone, and its object. */
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
/* A kernel is about to be launched: if the stream records a graph, it stays as long as that. */
int mir_cond_keep(struct call *c, const struct stream_ref *s, struct handle *kernel);
void mir_cond_end(struct mirror *m, struct handle *cond);
/* The stream, which records one, is to be given one more piece of work; or it ends. */
int mir_cond_work(struct call *c, struct handle *stream);
void mir_cond_recorded(struct mirror *m, struct handle *stream);

/* hostcalls.c */
void mir_host_calls_init(struct mirror *m);
/* Lets the streams go that wait for the guest, and the guest that waits for them. */
void mir_host_calls_end(struct mirror *m);
void mir_host_calls_fini(struct mirror *m);

/* kerneltime.c */
void mir_times_init(struct mirror *m);
void mir_times_fini(struct mirror *m);
/* Around what puts a kernel into a stream. NULL: nobody takes its time. */
struct timed *mir_time_begin(struct call *c, const struct stream_ref *s);
void mir_time_end(struct call *c, const struct stream_ref *s, struct timed *t, bool launched);
/* What the thread does each time that it looks, at this moment. */
void mir_times_look(struct mirror *m, uint64_t now_ns);
/* The device is about to be reset. */
void mir_times_reset(struct mirror *m, unsigned int device);

/* watch.c */
void mir_watches_init(struct mirror *m);
void mir_watches_fini(struct mirror *m);
/* A query was answered "not ready": tells the guest when it would not be any more. */
bool mir_watch(struct call *c, uint32_t place, uint64_t token, const struct watch *what);
/* An error that looking has brought; whoever waits next is told. */
int mir_watch_error(struct mirror *m);
/* Watches nothing any more, and tells the guest to ask. */
void mir_watches_end(struct mirror *m);
/* Memory is about to leave the window; none (length 0) is. */
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
/* Before memory comes out of a pool, and when it has come, or (false) has not. */
int mir_pool_take(struct call *c, const struct pool_ref *ref, uint64_t size);
int mir_pool_taken(struct call *c, const struct pool_ref *ref, uint64_t size, bool came);
/* Memory of a pool of this device has been freed. */
void mir_pool_given(struct mirror *m, unsigned int device, uint64_t size);
/* Other memory, for which pools let go of what they only keep. */
int mir_take_memory_from_pools(struct call *c, unsigned int device, uint64_t size);
/* Counts what all pools have. */
void mir_pools_count(struct mirror *m);
void mir_pool_gone(struct mirror *m, struct pool_room *room);
/* All memory of a device's pools is gone, or (NULL) of all. */
void mir_pools_end(struct mirror *m, const unsigned int *device);

/* memory.c */
void mir_allocations_end(struct mirror *m, const unsigned int *device);
/* Of an allocation of MALLOC's that begins there; false: none does. */
bool mir_allocation_size(struct mirror *m, uint64_t addr, uint64_t *size, unsigned int *device);
/* Makes it end with the allocation; false: there is none, or it has one. */
bool mir_allocation_share(struct mirror *m, uint64_t addr, const struct qcu_ipc_token *token);
/* QCU_ERR_NotReady: it has none. */
int mir_allocation_shared(struct mirror *m, uint64_t addr, struct qcu_ipc_token *token);

/* ipc.c */
void mir_share_end(struct mirror *m, const struct qcu_ipc_token *token);
/* Closes what other processes' memory is open on a device, or (NULL) anywhere. */
void mir_imports_end(struct mirror *m, const unsigned int *device);

/* copy.c: the buffer of a command. Writing beyond its end is QCU_ERR_InvalidValue. */
int mir_pieces(struct call *c, struct pieces *ps);
int mir_buf_write(struct call *c, size_t off, const void *src, size_t len);
int mir_buf_read(struct call *c, void *dst, size_t len);
/* Is [addr, addr + len) memory that the GPU may use: device memory or pinned window memory? */
int mir_device_range(struct call *c, uint64_t addr, uint64_t len);

/* textures.c: ends the objects of a device, or (NULL) all of them. Before their arrays. */
void mir_objects_end(struct mirror *m, const unsigned int *device);

/* rects.c: rows between a command's buffer and the GPU's side */
struct mir_rect {
	bool down; /* to the buffer */
	struct be_end end;
	uint64_t width, height, pitch; /* the pitch is the buffer's */
	uint32_t stream, flags;	       /* QCU_COPY_QUEUED, QCU_COPY_SYNC */
};
int mir_rect(struct call *c, const struct mir_rect *r);

/* One function for each command. mir_do_open and mir_do_close do not exist. */
#define MIR_DECLARE_CTL(name)
#define MIR_DECLARE_DRV(name)	   mir_call_fn mir_do_##name;
#define MIR_DECLARE_USR(name)	   mir_call_fn mir_do_##name;
#define MIR_DECLARE_POST(name)	   mir_call_fn mir_do_##name;
#define X(n, NAME, name, who, ...) MIR_DECLARE_##who(name)
QCU_COMMANDS(X)
#undef X

/* Returns "not supported" from the calling function if the backend leaves an op out. */
#define MIR_NEED(c, op)                                \
	do {                                           \
		if (!(c)->m->cfg.ops->op)              \
			return mir_not_supported((c)); \
	} while (0)
int mir_not_supported(struct call *c);

#endif
