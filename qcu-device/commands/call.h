/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands work on: the state of their mirror, the call that is being carried out, and the
 * small steps that most of them need.
 */
#ifndef QCU_CALL_H
#define QCU_CALL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "qcu-device/base/carriers.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/base/usage.h"
#include "qcu-device/commands/config.h"
#include "qcu-device/commands/turn.h"
#include "qcu-device/lanes/handles.h"
#include "qcu-device/lanes/kept.h"
#include "qcu-device/lanes/lanes.h"
#include "qcu-device/lanes/order.h"
#include "qcu-device/memory/held.h"
#include "qcu-device/memory/staging.h"
#include "qcu-device/memory/window.h"

/*
 * Who may be in the backend: the lanes, the watching thread, the thread that times kernels, the one
 * that waits for them, those of turn.c, and who has memory go ahead.
 */
#define MIR_USERS	     (LANES_SLOTS + 5)
#define MIR_USER_WATCHING    LANES_SLOTS
#define MIR_USER_TIMING	     (LANES_SLOTS + 1)
#define MIR_USER_WAITING     (LANES_SLOTS + 2)
#define MIR_USER_TURNS	     (LANES_SLOTS + 3)
#define MIR_USER_GOING	     (LANES_SLOTS + 4)
#define MIR_DEVICES_MAX	     64u
#define MIR_NAME_MAX	     4096u	  /* bytes of the name of a kernel or a variable */
#define MIR_IMAGE_MAX	     (1ull << 30) /* bytes of a fat binary */
#define MIR_KERNEL_PARAM_MAX 4096u

STAILQ_HEAD(host_call_list, host_call);
LIST_HEAD(graph_host_list, graph_host);

/* Functions of the guest program that streams have reached (hostcalls.c). */
struct host_calls {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct host_call_list ready;
	struct host_call_list all; /* calls that have not run yet */
	struct graph_host_list graph_hosts;
	struct host_call *running;  /* the guest is running it */
	struct mir_request *parked; /* the guest's request for the next call, waiting */
	int ended;		    /* no more calls will come: the status for the guest */
	struct spin spin;	    /* how long a stream polls for the end of its call */
	bool polling;		    /* a stream does that */
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
	struct watch slot[QCU_WATCH_SLOTS];
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

/*
 * Moves of managed memory (managed.c). The thread waits for the GPU on behalf of a move, which need
 * not wait to the end. All fields but `stream` are under host_calls->lock.
 */
struct moves {
	pthread_t thread;
	bool running, stop;
	uint64_t asked, done; /* waits */
	uint64_t settled; /* so many commands of the guest, and their work, are known to be done */
	struct be_stream *stream[MIR_DEVICES_MAX];
};

LIST_HEAD(allocation_list, allocation);
LIST_HEAD(thread_stream_list, thread_stream);
LIST_HEAD(object_list, object);
LIST_HEAD(import_list, import);
LIST_HEAD(opened_list, opened);
TAILQ_HEAD(result_list, result);

struct mirror {
	struct mir_config cfg;
	struct be *be;
	struct budget budget;
	struct busy_meter *meters; /* of each device, or NULL: nobody has asked. Under lock */
	unsigned int devices;
	atomic_uint greens_made; /* green contexts, also those that are gone */
	atomic_bool abandoned;	 /* the backend must not be called any more */
	struct window window;
	struct handles handles;
	struct held held; /* a slot for each user */
	struct staging staging;
	struct carriers carriers;
	struct lanes *lanes;
	_Alignas(64) struct order order; /* under the lanes' lock */
	_Alignas(64) struct host_calls host_calls;
	struct moves moves;
	struct watches watches;
	struct kernel_times times;
	struct turn_gate turns;
	struct swap *swap;	     /* NULL: no device memory leaves (swap/swap.h) */
	_Atomic uint32_t swap_state; /* bits SWAP_* */
	struct counts *counts;	     /* in the budget's usage */
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
	pthread_mutex_t link_lock; /* one link at a time */
	pthread_mutex_t va_lock;   /* protects the two trees by address */
	void *reservations, *mappings;
	pthread_mutex_t pool_lock;
	struct pool_charge *pool_charges; /* of pools that have been used */
	struct pool_charge default_charge[MIR_DEVICES_MAX];
	uint64_t readings;		/* descriptions of graphs with conditional nodes so far */
	struct mir_graph *ended_graphs; /* that may still run (graphs.c), under `lock` */
	char refusal[256];		/* why an image was refused, for the program's stderr */
	void *objects;			/* textures and surfaces: tree by number, and all of them */
	struct object_list object_list;
	uint64_t mapping;			  /* bytes of the MAP that is being carried out */
	uint64_t limit_bytes[MIR_DEVICES_MAX][3]; /* see mir_take_limit() */
	pthread_mutex_t share_lock;  /* protects this session's part of cfg.shares, and `opened` */
	struct opened_list opened;   /* shares of others, see tokens.c */
	pthread_mutex_t import_lock; /* protects `imports`; taken before share_lock */
	struct import_list imports;
	pthread_mutex_t result_lock; /* protects what follows */
	struct result_list results;  /* the oldest first */
	unsigned int result_count;
	uint32_t missing_libraries; /* a bit for each that the host has not, under `lock` */
	_Atomic(struct lib_loaded *) loaded; /* libraries that have been used (libs/load.c) */
	struct kept kept;		     /* what it would take to make the session again */
	const struct mir_restore *restore;   /* NULL: the guest sends the commands */
	struct going *going;		     /* NULL: no memory has gone ahead (going_impl.h) */
	/* Makes the call of a graph's node (struct graph_call) in the backend's own stream. */
	int (*graph_call)(void *call, void *stream);
};

/* While the mirror is being restored (mirror/restore.c): the buffer of the command. */
struct mir_restore {
	void *data;
	size_t len;
	bool registered; /* the GPU may use it in place */
};

/* One command that is being carried out. */
struct call {
	struct mirror *m;
	struct mir_request *req;
	struct qCUcmd *cmd;	   /* &req->cmd */
	bool waited;		   /* it waited for GPU work: kernels may have printed */
	bool holds_memory;	   /* of the device, in the slot of its order (held.h) */
	bool marked;		   /* its end must be marked (turn.c): */
	bool idle;		   /* the stream had no other work; */
	uint8_t turn, slot;	   /* turn: its kind of work and 1, if the VM is measured */
	struct window_holds holds; /* released before the answer */
};

/* Returned instead of a status: the function has kept the request and will answer it later. */
#define MIR_PARKED (-2)

/* Carries out one command. Returns a value of enum qcu_error, MIR_RULE_BROKEN or MIR_PARKED. */
typedef int mir_call_fn(struct call *c);

/* call.c: the buffer of a command. Writing beyond its end returns QCU_ERR_InvalidValue. */
int mir_pieces(struct call *c, struct pieces *ps);
/* For a copy that can carry what is large and not registered yet. */
int mir_pieces_to_carry(struct call *c, struct pieces *ps);
int mir_buf_write(struct call *c, size_t off, const void *src, size_t len);
int mir_buf_read(struct call *c, void *dst, size_t len);
/*
 * Is [addr, addr + len) memory that the GPU may use: device memory or pinned window memory? The
 * command holds it until it is answered: FREE and UNMAP wait for that.
 */
int mir_device_range(struct call *c, uint64_t addr, uint64_t len);
/* The same, and says whether the window has it. */
int mir_memory_range(struct call *c, uint64_t addr, uint64_t len, bool *window);
/* Does this byte of the window lie in guest memory? If not, the GPU has it. */
bool mir_on_host(struct mirror *m, uint64_t addr);

/*
 * Takes the locks of all users of the backend, or none. Returns the number of one that is taken,
 * or MIR_USERS. Who waits for that one holds none, because its holder may wait for another one.
 */
unsigned int mir_try_users(struct mirror *m);
void mir_give_users(struct mirror *m);

/* charges.c: returns QCU_ERR_MemoryAllocation, and reports it, if a limit is in the way. */
int mir_take(struct call *c, enum limit what, uint64_t n);
void mir_give(struct mirror *m, enum limit what, uint64_t n);
int mir_take_memory(struct mirror *m, unsigned int device, uint64_t bytes);
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

/* stream_ref.c */
struct stream_ref {
	struct be_stream *s;
	struct handle *h; /* NULL: a default stream */
	unsigned int device;
};
int mir_stream_get(struct call *c, uint32_t id, struct stream_ref *ref);
void mir_stream_put(struct call *c, struct stream_ref *ref);
int mir_stream_wait(struct call *c, const struct stream_ref *ref);
/* Has all work in the per-thread streams of this device ended? */
bool mir_thread_streams_done(struct mirror *m, unsigned int device);
/* Ends the per-thread streams of a guest thread, or of a device, or (both NULL) all of them. */
void mir_thread_streams_end(struct mirror *m, const uint32_t *tid, const unsigned int *device);

#endif
