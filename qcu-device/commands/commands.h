/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands: one function for each, and what the files that have them call in one another. The
 * order of these files, from low to high, is that of the sections.
 */
#ifndef QCU_COMMANDS_H
#define QCU_COMMANDS_H

#include "qcu-device/commands/call.h"
#include "qcu-device/memory/shares.h"

/*
 * output.c: is there text to fetch? The checks of a software GPU print text without an error. The
 * reason why an image was refused may come with any error.
 */
bool mir_has_output(struct mirror *m);

/* tokens.c */
/* Makes a token for a share. */
int mir_share_put(struct mirror *m, const struct share *share, struct qcu_ipc_token *token);
/* Finds the object for which a token of another process stands. */
int mir_share_find(struct mirror *m, const struct qcu_ipc_token *token, enum share_kind kind,
		   struct share *share);
void mir_share_end(struct mirror *m, const struct qcu_ipc_token *token);
/*
 * As mir_share_find(), for memory that will be opened. As long as it is open, the VM is charged for
 * it: its owner, or who has it open when the owner has given it up.
 */
int mir_share_open(struct mirror *m, const struct qcu_ipc_token *token, enum share_kind kind,
		   struct share *share);
void mir_share_close(struct mirror *m, const struct qcu_ipc_token *token);

/* results.c */
void mir_results_init(struct mirror *m);
void mir_results_fini(struct mirror *m);
/* The thread's earlier results are void. */
void mir_result_drop(struct call *c);
/* Leaves a copy of the bytes for RESULT_READ. what: QCU_RESULT_* */
int mir_result_put(struct call *c, uint32_t what, const void *bytes, size_t len);
/*
 * Checks the options, drops the thread's earlier results, and makes room for texts if they are
 * wanted. mir_jit_tell() leaves the texts for RESULT_READ, mir_jit_end() frees the room.
 */
int mir_jit_begin(struct call *c, const struct qcu_jit *options, struct be_jit *jit);
int mir_jit_tell(struct call *c, const struct be_jit *jit);
void mir_jit_end(struct be_jit *jit);

/* kerneltime.c */
void mir_times_init(struct mirror *m);
void mir_times_fini(struct mirror *m);
/* Called before and after a kernel is put into a stream. NULL: the kernel is not timed. */
struct timed *mir_time_begin(struct call *c, const struct stream_ref *s);
void mir_time_end(struct call *c, const struct stream_ref *s, struct timed *t, bool launched);
/* The same for a call of a library, whose work begins before it returns. */
struct timed *mir_time_call_begin(struct call *c, const struct stream_ref *s);
void mir_time_call_end(struct call *c, const struct stream_ref *s, struct timed *t);
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
bool mir_watch(struct call *c, uint32_t slot, uint64_t token, const struct watch *what);
/*
 * Returns an error found while watching, once. The next command that waits or queries reports it.
 */
int mir_watch_error(struct mirror *m);
/* Ends all watches, and tells the guest to send its queries instead. */
void mir_watches_end(struct mirror *m);
/* This memory is about to leave the window. Length 0: no memory is leaving. */
void mir_watch_leaves(struct mirror *m, uint64_t va, uint64_t len);

/* rects.c: rows that are copied between a command's buffer and the GPU's side */
struct mir_rect {
	bool down; /* to the buffer */
	struct be_side side;
	uint64_t width, height, pitch; /* the pitch is the buffer's */
	uint32_t stream, flags;	       /* QCU_COPY_QUEUED, QCU_COPY_SYNC */
};
int mir_rect(struct call *c, const struct mir_rect *r);

/* copy.c: copies between the segments of the command and device memory, and waits for that. */
int mir_copy_segments(struct call *c, bool h2d, uint64_t device, const struct stream_ref *s);

/*
 * managed.c: the command is about to wait for all work of a device, and has waited. The second one
 * is called only if the first one has said so.
 */
bool mir_managed_sync(struct call *c);
void mir_managed_synced(struct call *c);
/* The end of all moves. Host calls have ended, and no request is outstanding. */
void mir_moves_end(struct mirror *m);
/* All placed memory goes, with the streams of the moves. No other command runs. */
void mir_managed_reset(struct mirror *m);
/* For the window: placed memory is gone. */
void mir_managed_gone(void *mirror, unsigned int device, uint64_t bytes);

/*
 * arrays.c: fills in a side with a level and a position in the array with this number, into which
 * the box must fit. On success the caller must put back the handle.
 */
int mir_array_side(struct call *c, uint32_t id, struct be_side *side, const struct be_box *box,
		   struct handle **h);

/* memset.c: the distance from the first byte to the end of the last byte that a memset writes */
int mir_memset_extent(const struct be_memset *s, uint64_t *len);

/*
 * Conditions on parameters, for commands.list. streams.c: of a stream's attribute, whose value may
 * name memory. devices.c: of a peer's attribute. driver/virtual.c: the range is not empty and does
 * not wrap; the kind of access.
 */
bool mir_stream_attr_known(uint32_t attr);
bool mir_stream_attr_good(struct call *c, uint32_t attr, const void *value);
bool mir_peer_attr_known(uint32_t attr);
bool mir_range_good(uint64_t addr, uint64_t size);
bool mir_access_known(uint32_t flags);

/* pools.c */
struct pool_ref {
	struct be_pool *p;
	struct handle *h; /* NULL: a default pool */
	unsigned int device;
	struct pool_charge *charge;
};
int mir_pool_get(struct call *c, uint32_t id, struct pool_ref *ref);
void mir_pool_put(struct call *c, struct pool_ref *ref);
/*
 * Called before memory is taken from a device or a pool: other pools release what they only keep.
 */
int mir_take_memory_from_pools(struct mirror *m, unsigned int device, uint64_t size);
/* Called after memory has been asked of a pool. `came`: was it given? */
int mir_pool_taken(struct call *c, const struct pool_ref *ref, uint64_t size, bool came);
/* Memory of a pool of this device has been freed. */
void mir_pool_given(struct mirror *m, unsigned int device, uint64_t size);
/* Counts the memory of all pools. */
void mir_pools_count(struct mirror *m);
void mir_pool_gone(struct mirror *m, struct pool_charge *charge);
/* All memory of a device's pools is gone. NULL: of all devices. */
void mir_pools_end(struct mirror *m, const unsigned int *device);

/* driver/virtual.c */
void mir_phys_end(struct mirror *m, struct handle *h);
/* Ends all mappings and reservations. */
void mir_virtual_end(struct mirror *m);

/* memory.c */
void mir_allocations_end(struct mirror *m, const unsigned int *device);
/* Reports the allocation by MALLOC that begins at `addr`. False: none begins there. */
bool mir_allocation_size(struct mirror *m, uint64_t addr, uint64_t *size, unsigned int *device);
/* The same for memory of pools, too; and how many allocations there are. */
bool mir_allocation_at(struct mirror *m, uint64_t addr, uint64_t *size, unsigned int *device);
size_t mir_allocations(struct mirror *m);
/*
 * The token will end with the allocation. False: there is no allocation, or it has a token already.
 */
bool mir_allocation_share(struct mirror *m, uint64_t addr, const struct qcu_ipc_token *token);
/* QCU_ERR_NotReady: the allocation has no token. */
int mir_allocation_shared(struct mirror *m, uint64_t addr, struct qcu_ipc_token *token);

/* ipc.c: closes the memory of other processes that is open on a device. NULL: on any device. */
void mir_imports_end(struct mirror *m, const unsigned int *device);

/* textures.c: ends the objects of a device (NULL: all objects). Called before their arrays end. */
void mir_objects_end(struct mirror *m, const unsigned int *device);

/* conds.c: the node of a handle is described. */
int mir_cond_node(struct call *c, struct handle *cond, uint32_t type, uint32_t size);

/* modules.c: false: the guest may not send this */
bool mir_launch_params(const struct qcu_launch_msg *msg, const void *params, struct be_launch *l);
/* Unloads a module that nothing uses any more. */
void mir_module_end(struct mirror *m, struct handle *h);
/*
 * Copies an image out of the command's buffer, and checks it. The caller frees it. If the program
 * wants the compiler's texts, the reason for a refusal goes there. *memory is what the image's
 * variables take of a device, see image_measure().
 */
int mir_image_read(struct call *c, size_t len, struct be_jit *jit, void **image, uint64_t *memory);

/* hostcalls.c */
/*
 * Is a function of the guest running, or about to run? Then work of the GPU may be waiting for it.
 * The caller holds host_calls->lock, and is woken when the answer becomes yes.
 */
bool mir_host_calls_look(const struct mirror *m);
void mir_host_calls_init(struct mirror *m);
/* Releases the streams that wait for the guest, and the guest if it waits for them. */
void mir_host_calls_end(struct mirror *m);
void mir_host_calls_fini(struct mirror *m);
/*
 * Takes the guest's request for the next call out of the mirror, which does not answer it then. It
 * can be sent to another mirror. NULL: there is none.
 */
struct mir_request *mir_unpark(struct mirror *m);
/* A call of a library in a graph, which lives as long as the graph. */
struct graph_call {
	struct call *c;			/* while the graph is made */
	struct handle *object, *second; /* of the library, held; may be NULL */
	void *made;			/* what the library may still read; freed with it */
	uint64_t *memory;		/* addresses that the library has been given */
	uint32_t memory_count;
	uint16_t library, function;
	uint32_t bytes;
	uint8_t args[] __attribute__((aligned(8)));
};

/*
 * A function of the guest in a graph. The graph holds it, and so does each run that is to come.
 * NULL: there is no memory.
 */
struct graph_host *mir_graph_host_new(struct mirror *m, uint64_t token);
void mir_graph_host_hold(struct graph_host *g);
void mir_graph_host_put(struct graph_host *g); /* may be NULL */
/* For the backend: `arg` is the struct. Ends one run. */
void mir_graph_host_run(void *arg);

/* graphs.c */
void mir_graph_end(struct mirror *m, struct handle *h);
/* The session ends. First goes what the backend has of graphs that have ended, then the rest. */
void mir_graphs_end(struct mirror *m);
void mir_graphs_fini(struct mirror *m);
/* Is all memory that the graph names still there, and is it as its updates say? No command runs. */
bool mir_graph_memory(struct mirror *m, const struct handle *h);
/* The graph's first call of a library from node *i on, or NULL. *i becomes its node. */
const struct graph_call *mir_graph_call(const struct handle *h, uint32_t *i);
/* graph_read.c: bytes of what follows the head of a node of this type, which is one. */
size_t mir_node_bytes(uint8_t type);

/* One function for each command. There is no mir_do_open and no mir_do_close. */
#define MIR_DECLARE_CTL(name)
#define MIR_DECLARE_DRV(name)	   mir_call_fn mir_do_##name;
#define MIR_DECLARE_USR(name)	   mir_call_fn mir_do_##name;
#define MIR_DECLARE_POST(name)	   mir_call_fn mir_do_##name;
#define X(n, NAME, name, who, ...) MIR_DECLARE_##who(name)
QCU_COMMANDS(X)
#undef X

#endif
