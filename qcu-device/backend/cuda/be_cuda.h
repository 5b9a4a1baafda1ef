/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the cuda backend share. The backend is a thin layer over the CUDA runtime API.
 * The runtime is linked in statically, so that it can live in one process with a libcudart.so of
 * ours. The backend's own work is:
 *
 * - to know which addresses and handles are alive;
 * - to know which device a thread has set;
 * - to keep a failed call from leaving an error behind for the next call.
 */
#ifndef QCU_BE_CUDA_H
#define QCU_BE_CUDA_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/backend/pass.h"
#include "qcu-device/base/sorted.h"

#define CU_DEVICES 64u

/*
 * Streams and events remember in which life of their device they were made. A reset destroys them
 * inside CUDA, and CUDA must not be asked about them any more.
 */
struct be_stream {
	cudaStream_t s;
	unsigned int dev;
	unsigned int life;
	uint64_t number; /* no other stream of the device ever has it; 0: the legacy stream */
	LIST_ENTRY(be_stream) link;
};

LIST_HEAD(cu_streams, be_stream);

struct be_event {
	cudaEvent_t e;
	unsigned int dev;
	unsigned int life;
	/* In a session that was restored it was recorded later than the program thinks, ns. */
	_Atomic uint64_t late;
};

#define CU_LOT_BINS 40u

/*
 * Without options.movable the memory is that of CUDA's pool. With it, CUDA's pool only keeps the
 * attributes, and the other members are used (be_cuda_lot.c). They are protected by `lot_lock`.
 */
struct be_pool {
	cudaMemPool_t p;
	unsigned int dev;
	bool listed, gone; /* gone: destroyed, but some of its memory is used */
	uint64_t max_size, threshold;
	uint64_t used, used_high, reserved, reserved_high;
	_Atomic uint8_t access[CU_DEVICES]; /* CUmemAccess_flags of each device */
	TAILQ_HEAD(cu_lots, cu_lot) lots, marked, idle[CU_LOT_BINS];
	LIST_ENTRY(be_pool) link;
};

LIST_HEAD(cu_pools, be_pool);

/* A kernel in the context of one device. A reset of the device takes it away. */
struct cu_function {
	_Atomic(CUfunction) f;
	atomic_uint life; /* the device's life, plus 1; 0: not looked up */
};

struct be_kernel {
	struct be_kernel *next;
	cudaKernel_t k;
	struct cu_function *on; /* by device */
	uint32_t count;		/* number of params */
	uint32_t bytes; /* from the start of the first parameter to the end of the last one */
	struct qcu_param params[];
};

/* A fat binary and the units that went into it, in the form that the driver takes. */
struct cu_linked;

struct be_module {
	cudaLibrary_t lib;
	char *image; /* followed by its units; NULL: the driver has copied a single fat binary */
	struct cu_linked *linked;
	struct be_wanted *wanted; /* of variables, until module_settle; else NULL */
	size_t wanted_count;
	/* What was loaded, and how, until module_settle; else NULL. */
	const void *code;
	struct qcu_jit jit;
	pthread_mutex_t lock; /* protects `kernels` */
	struct be_kernel *kernels;
};

/*
 * Device memory that exists now: of cudaMalloc, of another process, (module set) a variable, or
 * (seen set) a mapping.
 */
struct cu_range {
	uint64_t addr, size;
	unsigned int dev;
	const struct be_module *module;
	bool imported;	      /* of another process */
	bool managed;	      /* a variable: CUDA's own managed memory */
	uint64_t seen;	      /* mapped memory: a bit for each device that may use it; else 0 */
	bool keep;	      /* may be given out again when it is freed, see be_cuda_kept.c */
	struct cu_slab *slab; /* in which it lies, see be_cuda_slabs.c; else NULL */
	struct cu_lot *lot;   /* of a pool, see be_cuda_lot.c; else NULL */
	uint64_t charged;     /* if it is a whole allocation of cudaMalloc */
	uint64_t offset;      /* in what has been imported */
};

LIST_HEAD(cu_slabs, cu_slab);
LIST_HEAD(cu_arrays, be_array);

/* CUDA maps memory in units of this size. Smaller allocations are in be_cuda_slabs.c. */
#define CU_UNIT ((uint64_t)2 << 20)

static inline uint64_t cu_units(uint64_t size)
{
	return size > UINT64_MAX - CU_UNIT ? size : (size + CU_UNIT - 1) / CU_UNIT * CU_UNIT;
}

/*
 * Device memory that has been freed and not given back to CUDA. The bytes are more than a VM's
 * quota, for each mirror, so there are few.
 */
#define CU_KEPT	      16
#define CU_KEPT_BYTES (8u << 20)
struct cu_kept {
	uint64_t addr, size;
	unsigned int dev;
};

/* Host memory that is registered now, and the device on which it was registered. */
struct cu_host {
	void *addr;
	size_t len;
	unsigned int dev;
	bool lost; /* lost in a reset; registered again when the device is used again */
};

/* be_cuda_place.c: the driver's functions, and what is placed now. */
struct cu_placed;
struct cu_place {
	PFN_cuMemAddressReserve_v10020 reserve;
	PFN_cuMemAddressFree_v10020 unreserve;
	PFN_cuMemCreate_v10020 create;
	PFN_cuMemRelease_v10020 release;
	PFN_cuMemMap_v10020 map;
	PFN_cuMemUnmap_v10020 unmap;
	PFN_cuMemSetAccess_v10020 access;
	bool possible;				 /* the driver has all of them */
	PFN_cuMemMapArrayAsync_v11010 map_array; /* NULL: arrays stay */
	pthread_mutex_t lock;			 /* protects the list, and what follows */
	struct cu_placed *placed;
	/* be_cuda_plot.c: the range of addresses that is ours; size 0: there is none. */
	bool area_tried;
	uint64_t area_size, area_next;
	struct sorted area_taken; /* struct be_wanted, of which address and size count */
	/* be_cuda_plot.c: units of addresses that CUDA should not use. */
	bool rooms_made;
	struct sorted outside;
};

/* be_cuda_plot.c: the largest part. Smaller ones cost more time to map: so many parts, so many
 * calls. */
#define CU_PART ((uint64_t)1 << 30)

enum cu_part_state {
	CU_PART_HERE,
	CU_PART_AWAY,
	CU_PART_MOVING, /* in mem_leave and mem_return */
};

struct cu_part {
	CUmemGenericAllocationHandle memory; /* unless it is away */
	enum cu_part_state state;
	struct be_store store;
	void *copy[CU_PART / BE_PIECE]; /* in the store */
};

/* Reserved addresses with parts mapped behind them. All but the last part are equally large. */
struct cu_plot {
	uint64_t addr, size, part_bytes;
	unsigned int dev;
	const struct be_pool *pool; /* which says who may use it; NULL: it is of no pool */
	bool known;   /* another process may have it open, or it is another process's */
	bool offered; /* to other processes: each part on its own */
	struct be_pass_handle offer;
	unsigned int parts;
	struct cu_part part[];
};

static inline uint64_t cu_part_addr(const struct cu_plot *b, unsigned int i)
{
	return b->addr + i * b->part_bytes;
}

static inline uint64_t cu_part_bytes(const struct cu_plot *b, unsigned int i)
{
	return i + 1 < b->parts ? b->part_bytes : b->size - i * b->part_bytes;
}

struct be {
	bool verbose;
	bool movable;
	void (*complain)(const char *who, const char *text, size_t len);
	bool (*charge_device)(void *ctx, unsigned int dev, int64_t bytes);
	void *charge_ctx;
	PFN_cuLaunchKernel_v4000 launch_kernel;
	PFN_cuKernelGetFunction_v12000 kernel_function;
	PFN_cuGraphAddKernelNode_v12000 graph_add_kernel;
	PFN_cuGraphExecKernelNodeSetParams_v12000 graph_set_kernel;
	unsigned int devices;
	bool store; /* one device more is only for the store: number `devices` */
	struct be_stream legacy[CU_DEVICES];
	struct be_pool pool[CU_DEVICES]; /* default pools */
	atomic_uint life[CU_DEVICES];	 /* counts the resets */
	/*
	 * A thread has made the device current since its last reset: it has a context, or will have
	 * one.
	 */
	atomic_bool used[CU_DEVICES];
	/* Called by the first thread that uses the device in this life of the device. */
	void (*first_use)(struct be *be, unsigned int dev);
	pthread_rwlock_t range_lock; /* protects the ranges, an array of struct cu_range */
	struct sorted ranges;
	struct cu_place place;
	bool wanting; /* what is allocated gets the wanted addresses, or fails */
	const struct be_wanted *wanted;
	size_t wanted_count;
	/* Reserved addresses for what is wanted later, struct be_wanted by address; size 0: taken.
	 */
	struct sorted held;
	bool settling; /* modules have only the room that is wanted: cu_rooms_prefer() takes none */
	struct sorted fillers; /* cudaLibrary_t: modules that take room until the restoring ends */
	uint64_t filled;       /* their bytes */
	pthread_mutex_t stream_lock; /* protects the list of streams */
	struct cu_streams streams;
	uint64_t stream_numbers;  /* given so far */
	pthread_mutex_t lot_lock; /* protects the pools with memory that can leave */
	struct cu_pools pools;
	atomic_uint marks;	   /* events of frees that exist */
	pthread_mutex_t plot_lock; /* protects the plots, a table by address, and the next list */
	struct sorted plots;
	struct cu_arrays arrays;	    /* those that can leave */
	uint64_t part_bytes;		    /* of new plots: CU_PART, or less in tests */
	_Atomic uint64_t users[CU_DEVICES]; /* a bit for each peer that may use the plots here */
	pthread_mutex_t kept_lock; /* protects the array of kept memory, the oldest first */
	struct cu_kept kept[CU_KEPT];
	size_t kept_count;
	pthread_mutex_t slab_lock;    /* protects the slabs */
	struct cu_slabs slabs, roomy; /* all, and those with room */
	_Atomic uint64_t slab_bytes;
	pthread_mutex_t few_lock; /* be_cuda_copy.c: for copies of a few bytes */
	_Atomic(char *) few;
	atomic_uint few_taken;
	bool few_failed;
	pthread_mutex_t host_lock; /* protects the array of registrations */
	pthread_mutex_t cond_lock;
	pthread_mutex_t capture_lock; /* one capture at a time */
	struct cu_capture {
		cudaStream_t s; /* NULL: not made yet */
		unsigned int life;
	} captures[CU_DEVICES];
	struct cu_host *hosts;
	size_t host_count, host_room;
	struct be_pass pass;
};

/* The backend's functions, in the list's order. */
#define BE_OP_OF(type, name, ...) type cu_##name(__VA_ARGS__);
#define BE_SOFT_OP(...)
#include "qcu-device/backend/ops.h"

/* be_cuda_use.c */
/*
 * Turns CUDA's result into the backend's return value. A failed call also leaves its error for
 * cudaGetLastError(), where a later, innocent call would find it. So this function takes that error
 * away. Errors that stick to the process come again by themselves.
 */
int cu_result(const struct be *be, cudaError_t err, const char *call);
#define CU(be, call, ...) cu_result((be), call(__VA_ARGS__), #call)

/*
 * Looks up a function of the driver at run time, so that no driver library is needed to build or
 * load this plugin. Errors that come from the driver have the same numbers in both APIs.
 */
int cu_driver_function(const struct be *be, const char *name, void *fn);

/* Makes a device this thread's current one. */
int cu_use(struct be *be, unsigned int dev);
/* Returns the device that this thread has set, or 0. */
unsigned int cu_current(void);

/* be_cuda_mem.c */
int cu_mem_open(struct be *be);
void cu_mem_close(struct be *be);
void cu_mem_reset(struct be *be, unsigned int dev);
void cu_mem_forget(struct be *be, const struct be_module *m);
int cu_mem_add(struct be *be, const struct cu_range *r);
/*
 * Takes the range of a pool that begins at `addr` out of the table. False: none begins there.
 */
bool cu_mem_take(struct be *be, uint64_t addr, struct cu_range *r);
bool cu_mem_take_import(struct be *be, uint64_t addr, struct cu_range *r);
/* What the driver maps may still have what this process had there before. Waits. */
int cu_mem_clear(struct be *be, const struct cu_range *r);
/* The lots of the last range that begins up to this address, and of the next one; or NULL. */
struct cu_lots_near {
	struct cu_lot *before, *after;
};
void cu_mem_lots_near(struct be *be, uint64_t addr, struct cu_lots_near *near);
/* From now on, the device may use the mapping, or may not (seen is false). */
int cu_mem_see(struct be *be, uint64_t addr, uint64_t size, unsigned int dev, bool seen);
/* The mapping is about to go. */
void cu_mem_unsee(struct be *be, uint64_t addr);
/*
 * Other processes know this memory: when it is freed, it goes back to CUDA. Returns where it begins
 * in what CUDA has allocated.
 */
uint64_t cu_mem_known_elsewhere(struct be *be, uint64_t addr);
/* Raised under `range_lock`, when ranges have been taken out. */
extern _Atomic uint64_t cu_mem_gone;

/* be_cuda_plot.c */
int cu_plots_open(struct be *be);
void cu_plots_close(struct be *be);
/* The device is about to be reset. */
void cu_plots_reset(struct be *be, unsigned int dev);
/* `dev` may use the plots of `peer`, or may not any more. */
int cu_plots_peer(struct be *be, unsigned int dev, unsigned int peer, bool on);
/* Memory for mem_alloc, from CUDA or as a plot. The device is current. */
int cu_plot_new(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr);
/* The same at this address, as a plot. p: the pool that it is for, or NULL. */
int cu_plot_at(struct be *be, unsigned int dev, const struct be_pool *p, uint64_t size,
	       uint64_t at);
/* The same for a pool. */
int cu_plot_of_pool(struct be *be, const struct be_pool *p, uint64_t size, uint64_t *addr);
/* Of a plot or of anything else that cudaFree frees. */
int cu_plot_free(struct be *be, uint64_t addr);
/* The same without a wait: nothing uses the plot any more. */
int cu_plot_drop(struct be *be, uint64_t addr);
/* Waits for the devices that may use the plot around this address. */
int cu_plot_wait(struct be *be, uint64_t addr);
/* Changes what a device may do with the plots of a pool. */
int cu_plots_access(struct be *be, struct be_pool *p, unsigned int dev, uint8_t flags);
/* Where all device memory lies, in each process, and below it the rooms for modules. */
#define CU_AREA	       0x480000000000ull
#define CU_PIECE       ((uint64_t)32 << 20) /* in which CUDA reserves addresses */
#define CU_GRAIN       256u		    /* what modules get lies at multiples of it */
#define CU_ROOMS       (16 * CU_PIECE)
#define CU_ROOMS_BEGIN (CU_AREA - CU_ROOMS)
#define CU_APART       (CU_ROOMS_BEGIN - CU_PIECE) /* a piece that nobody else has */
static inline bool cu_in_rooms(uint64_t addr)
{
	return addr >= CU_ROOMS_BEGIN && addr < CU_AREA;
}
/* Reserves CU_UNIT of addresses; the caller wants these. Returns where it is, or 0. */
uint64_t cu_unit_reserve(struct be *be, uint64_t wanted);
void cu_unit_free(struct be *be, uint64_t at);
/* Makes the rooms for modules, when the first device has a context. */
void cu_rooms_make(struct be *be);
/* A module may be used for the first time: CUDA has room for it only in the rooms. */
void cu_rooms_prefer(struct be *be);
void cu_rooms_close(struct be *be);
/*
 * Takes addresses for device memory from the area. If there is none, CUDA reserves them. wanted:
 * these, or none at all (0: any).
 */
int cu_area_take(struct be *be, uint64_t size, uint64_t align, uint64_t wanted, CUdeviceptr *at);
int cu_area_give(struct be *be, uint64_t addr, uint64_t size);
/* Takes addresses that are wanted, or fails. */
int cu_reserve_wanted(struct be *be, uint64_t size, uint64_t align, uint64_t *addr);
/*
 * Lets CUDA reserve these addresses. It does so only if it has no room for as much elsewhere: such
 * room is taken meanwhile. "Not supported": CUDA chooses others all the same.
 */
int cu_reserve_there(struct be *be, uint64_t size, uint64_t addr);
/* Where the plot around this address is. False: there is none. */
bool cu_plot_place(struct be *be, uint64_t addr, struct be_wanted *place);
/* Is nothing of the plot away? */
bool cu_plot_here(struct be *be, uint64_t addr);
/* The lock is held in these two. NULL: there is none. */
struct cu_plot *cu_plot_number(const struct be *be, size_t i);
struct cu_plot *cu_plot_around(const struct be *be, uint64_t addr);
/*
 * A plot is made in steps: addresses, parts, and then access and the table. If `ret` is an error,
 * or an error occurs, cu_plot_finish() takes back all with the first `mapped` parts. at: the
 * address that it must have, or 0.
 */
struct cu_plot *cu_plot_reserve(struct be *be, unsigned int dev, uint64_t size, uint64_t at,
				int *ret);
int cu_plot_finish(struct be *be, struct cu_plot *b, unsigned int mapped, int ret, uint64_t *addr);
/* Makes a part's memory and maps it; maps it; unmaps and releases it. */
int cu_part_map(struct be *be, struct cu_plot *b, unsigned int i);
int cu_part_put(struct be *be, const struct cu_plot *b, unsigned int i);
int cu_part_unmap(struct be *be, const struct cu_plot *b, unsigned int i);
/*
 * How many copies in the store a part is, how large each is, and the first `count` of them go back
 * to the store.
 */
unsigned int cu_copies(const struct cu_plot *b, unsigned int i);
uint64_t cu_copy_bytes(const struct cu_plot *b, unsigned int i, unsigned int n);
void cu_part_give(struct cu_plot *b, unsigned int i, unsigned int count);
/* Lets all devices that may use the plot use these bytes of it. */
int cu_plot_grant(struct be *be, const struct cu_plot *b, uint64_t addr, uint64_t bytes);

/* be_cuda_kept.c */
/*
 * Charges memory that is about to be taken from CUDA, or to be used again. False: a limit is in the
 * way. cu_uncharge() gives back the charge.
 */
bool cu_charge(struct be *be, unsigned int dev, uint64_t bytes);
void cu_uncharge(struct be *be, unsigned int dev, uint64_t bytes);
int cu_kept_open(struct be *be);
void cu_kept_close(struct be *be);
/* Kept memory of exactly this size, or new memory. The device is current. */
int cu_kept_get(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr);
/* False: the memory was not kept, and the caller must free it. */
bool cu_kept_add(struct be *be, unsigned int dev, uint64_t size, uint64_t addr);
uint64_t cu_kept_bytes(struct be *be, unsigned int dev);
/* Gives all kept memory of the device back to CUDA. False: there was none. */
bool cu_kept_drop(struct be *be, unsigned int dev);
/* The device has been reset, so its memory is gone. */
void cu_kept_forget(struct be *be, unsigned int dev);

/* be_cuda_slabs.c */
int cu_slabs_open(struct be *be);
void cu_slabs_close(struct be *be);
/*
 * Sets the address and the slab. If the address stays 0, the memory is too large for a slab, or
 * there is no memory for a slab. The device is current.
 */
int cu_slab_alloc(struct be *be, unsigned int dev, uint64_t size, struct cu_range *r);
/* The same at r->addr, in a slab at this place, which is made if there is none. */
int cu_slab_at(struct be *be, const struct be_wanted *block, struct cu_range *r);
int cu_slab_free(struct be *be, const struct cu_range *r);
/* The size of its slab, and where it is. */
uint64_t cu_slab_bytes(const struct cu_range *r);
uint64_t cu_slab_addr(const struct cu_range *r);
/* Other processes know the slab. Returns where the allocation begins in it. */
uint64_t cu_slab_known(struct be *be, const struct cu_range *r);
/* The device has been reset, so its memory is gone. */
void cu_slabs_forget(struct be *be, unsigned int dev);

/* be_cuda_lot.c */
int cu_lots_open(struct be *be);
void cu_lots_close(struct be *be);
/* Sets the address and the lot. */
int cu_lot_alloc(struct be *be, struct be_pool *p, uint64_t size, const struct be_stream *s,
		 struct cu_range *r);
/*
 * The same at r->addr, in a plot of the pool at this place, which is made if there is none. Nothing
 * else uses the memory meanwhile. near: as cu_mem_lots_near() says for the address.
 */
int cu_lot_at(struct be *be, struct be_pool *p, uint64_t size, const struct be_wanted *place,
	      const struct cu_lots_near *near, struct cu_range *r);
/* When the stream has done what it has; or after a wait for all work. */
int cu_lot_free(struct be *be, const struct cu_range *r, const struct be_stream *s);
int cu_lot_end(struct be *be, const struct cu_range *r);
/* `p` and `dev` are set, the rest is 0, unless the pool has begun already. */
void cu_pool_begin(struct be *be, struct be_pool *p, uint64_t max_size);
/* Also frees the pool: now, or with the last of its memory. */
void cu_pool_end(struct be *be, struct be_pool *p);
/* Gives back what is not used, but keeps so many bytes. */
void cu_pool_give_back(struct be *be, struct be_pool *p, uint64_t keep);
/* One of the pool's numbers, without what is above its threshold and not used. */
uint64_t cu_pool_settled(struct be *be, struct be_pool *p, const uint64_t *count);
/*
 * Gives back what no pool of the device uses: up to `want` bytes, or what is above the pools'
 * thresholds. Returns how much.
 */
uint64_t cu_pools_give_back(struct be *be, unsigned int dev, uint64_t want);
void cu_pools_settle(struct be *be, unsigned int dev);
/* The device has been reset, so its memory is gone. */
void cu_pools_forget(struct be *be, unsigned int dev);

/* be_cuda_virtual.c */
/* Do reserved addresses lie where the window of the mirror may be? */
static inline bool cu_in_window(uint64_t base, uint64_t size)
{
	return base < QCU_WINDOW_BASE + QCU_WINDOW_SIZE + QCU_ANNEX_SIZE &&
	       QCU_WINDOW_BASE < base + size;
}
/* The caller closes the file, or CUDA does. The size is that of the memory. */
int cu_phys_file(struct be *be, struct be_phys *p, int *fd, uint64_t *size);

/* be_cuda_place.c */
#define CU_DRIVER(be, call, ...) cu_result((be), (cudaError_t)(be)->place.call(__VA_ARGS__), #call)
int cu_place_open(struct be *be);
void cu_place_close(struct be *be);

/* be_cuda_host.c */
int cu_host_open(struct be *be);
void cu_host_close(struct be *be);
void cu_host_reset(struct be *be, unsigned int dev);

/* be_cuda_copy.c */
int cu_few_open(struct be *be);
/* After cu_host_close(), which ends the registration. */
void cu_few_close(struct be *be);
/* What a copy is for CUDA. */
enum cudaMemcpyKind cu_copy_kind(bool dst_host, bool src_host);

/* be_cuda_array.c */
/* What of an array is one copy in the store: whole rows of a slice, or whole slices of a level. */
struct cu_piece {
	uint32_t level, y, z;
	uint32_t width, height, depth; /* width in bytes */
	void *copy;
};

struct be_array {
	struct be_array_desc desc;
	unsigned int dev;
	cudaMipmappedArray_t mipmap; /* NULL: level[0] is an array of its own */
	cudaArray_t level[QCU_LEVELS_MAX];
	cudaExternalMemory_t memory; /* in which it was placed, or NULL */
	/* Only of an array that can leave. The lock of the plots protects them. */
	uint64_t taken; /* what it takes of the device's memory; 0: it stays */
	uint64_t charged;
	CUmemGenericAllocationHandle own; /* its memory, unless it is away */
	enum cu_part_state state;
	struct be_store store;
	unsigned int pieces;
	struct cu_piece *piece;
	LIST_ENTRY(be_array) link;
};

static inline uint64_t cu_piece_bytes(const struct cu_piece *p)
{
	return (uint64_t)p->width * p->height * p->depth;
}

/*
 * Makes the memory of an array, and puts its mapping into the stream; puts the end of the mapping
 * into the stream, waits for it, and releases the memory. After an error of unmap the memory is
 * still there.
 */
int cu_array_map(struct be *be, struct be_array *a, cudaStream_t s);
int cu_array_unmap(struct be *be, struct be_array *a, cudaStream_t s);
/* The first `count` copies go back to the store. */
void cu_array_give(struct be_array *a, unsigned int count);
/* In CUDA's form; the addresses say where each end lies. */
struct cudaMemcpy3DParms cu_box_params(const struct be_box *box);

/* be_cuda_cond.c */
/* For graphs; be->cond_lock is held. The outermost graph that a handle is in, and a body. */
cudaGraph_t cu_cond_graph(const struct be_cond *c);
cudaGraph_t cu_cond_body(const struct be_cond *c, uint32_t body);
/* The node comes after these. */
int cu_cond_add(struct be *be, const struct be_cond *c, const cudaGraphNode_t *deps, uint32_t count,
		cudaGraphNode_t *node);
/* Only conditional nodes are left, without edges: in a graph, or in all bodies of a node. */
int cu_cond_clear_graph(struct be *be, cudaGraph_t graph);
int cu_cond_clear(struct be *be, const struct be_cond *c);
void cu_cond_close(struct be *be);

/* be_cuda_library.c */
/* Adds what a library does to a graph; `node` comes after all of it. */
int cu_graph_call(struct be *be, cudaGraph_t graph, const struct be_node *n,
		  const cudaGraphNode_t *deps, cudaGraphNode_t *node);

/* be_cuda_stream.c */
/* Puts a stream into the list, from which it goes when it is destroyed. */
void cu_stream_link(struct be *be, struct be_stream *s);
/* Does a stream still work? Returns the first error that is not that it does. */
int cu_streams_query(struct be *be, bool *busy);
int cu_stream_use(struct be *be, const struct be_stream *s);
/* Sets the device of an event, if the event is alive. */
int cu_event_use(struct be *be, const struct be_event *e);

/* be_cuda_jit.c: what a load or a link says to the driver, in the driver's form */
#define CU_JIT_OPTIONS 16u
struct cu_jit {
	unsigned int count;
	CUjit_option option[CU_JIT_OPTIONS];
	void *value[CU_JIT_OPTIONS];
	unsigned int threads; /* index of the value with the number of threads, if that is given */
};
/* jit may be NULL. */
void cu_jit_options(const struct be_jit *jit, struct cu_jit *o);
/* Called after the driver's call: fetches what the driver has changed in the values. */
void cu_jit_results(const struct cu_jit *o, struct be_jit *jit);

/* be_cuda_module.c */
/* The attributes that the launch has, at most CU_LAUNCH_ATTRS. Returns how many. */
#define CU_LAUNCH_ATTRS 5
unsigned int cu_launch_attributes(const struct be_launch *l, cudaLaunchAttribute *attrs);
/* The kernel in the form in which the driver takes it, on this device. */
int cu_kernel_function(struct be *be, struct be_kernel *k, unsigned int dev, CUfunction *out);
/* Until module_settle: what CUDA has of the module goes, and is loaded again. */
int cu_module_unload_code(struct be *be, struct be_module *m);
int cu_module_load_code(struct be *be, struct be_module *m);
/* What only module_settle needs goes. */
void cu_module_drop_image(struct be_module *m);

/* be_cuda_print.c */
/* CUDA writes failed assertions to stderr. Other text that it writes there goes to `other`. */
int cu_print_open(void (*other)(const char *who, const char *text, size_t len), uint64_t bytes);

/* be_cuda_fault.c */
/*
 * Has CUDA write a dump when a kernel fails. Says so if it cannot. Before any context. set: the
 * driver's cuCoredumpSetAttributeGlobal, or NULL.
 */
typedef CUresult CUDAAPI cu_dump_set(CUcoredumpSettings attrib, void *value, size_t *size);
void cu_fault_open(struct be *be, cu_dump_set *set);
/* For cu_fault_read(): CUDA has returned this error. It is the first kernel that failed, or
 * nothing. */
void cu_note_fault(int err);
/* At the first use of a device: what cu_believe() needs exists before a kernel can fail. */
void cu_fault_prepare(unsigned int dev);
/*
 * The result of a wait for work of the device, which is the thread's, or of a look at it. With
 * dumps CUDA says for a while that work has succeeded which has failed: on an H200 until 140 ms
 * later. But a kernel that begins then waits until the dump is written. So success is believed only
 * if a kernel that does nothing has ended, too, and there is no dump. If that kernel does not end
 * in 10 s, CUDA is believed.
 */
int cu_believe(unsigned int dev, int ret);

#endif
