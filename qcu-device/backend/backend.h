/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface to a GPU: one table of functions. Two backends fill it in: `soft` (a GPU in
 * software, linked in) and `cuda` (the real GPU, a plugin). A backend knows nothing of guests and
 * records.
 *
 * All calls happen in a mirror process, from any of its threads. Every function returns a value of
 * enum qcu_error, with the meaning that CUDA gives it. Addresses are addresses of the mirror
 * process. The backend chooses the addresses of device memory, outside the window. `dev` is a
 * device ordinal below the count from device_count. Streams, events, modules and kernels are
 * objects of the backend; the caller never passes one that has been destroyed.
 *
 * Copies, memsets, launches and event records are put into a stream, and the function returns.
 * Memory that is not registered is pageable, as in CUDA: a copy from it may only return after the
 * backend has read it.
 */
#ifndef QCU_BACKEND_H
#define QCU_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "include/qcucmd.h"
#include "include/qcuerror.h"

#define BE_ABI 24u

#define BE_IPC_BYTES 72

struct be; /* one per mirror */
struct be_stream;
struct be_event;
struct be_module;
struct be_kernel;
struct be_pool;
struct be_array;
struct be_cond;
struct be_graph;
struct be_link;
struct be_phys;

enum be_busy {
	BE_BUSY_NOT, /* work that only waits */
	BE_BUSY_KERNELS,
	BE_BUSY_COPIES,
};

struct be_options {
	uint64_t vram;	      /* bytes of memory of each soft device; 0: the backend chooses */
	unsigned int gpus;    /* number of soft devices; 0: 1 */
	unsigned int threads; /* host threads of a soft device; 0: all cores */
	unsigned int seat;    /* of the mirror, from 1 on; 0: the process is none */
	int letters;	      /* with a seat: a socket for letters to other mirrors (base/pass.h) */
	bool verbose;
	/*
	 * The process is a mirror and does nothing else. So all that CUDA writes to stdout was
	 * printed by kernels: print_read returns it. assert_read returns the assertions in what
	 * CUDA writes to stderr; the rest of stderr goes to complain. If false, stdout and stderr
	 * stay as they are.
	 */
	bool capture_stdout;
	/*
	 * Prints lines for the operator. A guest may have chosen the text of some: this function
	 * limits how many are printed and escapes what is not printable. A backend writes nothing
	 * to stderr itself. NULL: the lines are dropped.
	 */
	void (*complain)(const char *who, const char *text, size_t len);
	/*
	 * How many bytes of text that kernels print are kept until they are read, for each kind
	 * (printed text, assertions); 0: the backend chooses.
	 */
	uint64_t printed_bytes;
	/* How long a kernel may run; 0: no limit. For backends that enforce it (kernel_time). */
	uint32_t kernel_seconds;
	/*
	 * Called before work that waits in streams takes `bytes` more of the process's memory.
	 * Returns whether it may. A negative number gives memory back and always succeeds. NULL: no
	 * limit.
	 */
	bool (*charge_queue)(void *ctx, int64_t bytes);
	/* The same for memory that is made from a module's image and stays. */
	bool (*charge_module)(void *ctx, int64_t bytes);
	/*
	 * The same for device memory, for a backend that has `charges`. It may call pool_trim, so
	 * the backend holds no lock.
	 */
	bool (*charge_device)(void *ctx, unsigned int dev, int64_t bytes);
	/*
	 * Called when a piece of work begins and ends on a device, by a backend that runs the work
	 * itself (soft). NULL: nobody wants to know.
	 */
	void (*busy)(void *ctx, unsigned int dev, enum be_busy kind, bool begins);
	/* Device memory can leave and come back (mem_leave). */
	bool movable;
	/*
	 * There is one device more, of which only so many bytes of memory are used, for the store
	 * (store_take). It is the last one, and device_count leaves it out. 0: there is none.
	 */
	uint64_t store;
	/* Find out where a kernel fails also if that costs time or memory (fault_read). */
	bool fault_place;
	/*
	 * Called before the device takes `bytes` more of the memory that all VMs share, by a
	 * backend whose devices have no memory of their own (soft). Returns whether it may. A
	 * negative number gives memory back and always succeeds. Memory that is away is not
	 * counted. The backend may hold locks, so the function does not call it. NULL: no limit.
	 */
	bool (*resident)(void *ctx, unsigned int dev, int64_t bytes);
	void *charge_ctx;
};

/*
 * Where device memory lies that has left: in blocks, for which a backend asks one by one, of at
 * most BE_PIECE bytes each. All functions are called while a function of the backend runs. take may
 * register and unregister host memory, and at may register some; take may call store_take, and give
 * store_give. Otherwise they do not call the backend.
 *
 * - take returns NULL if the store is full.
 * - at returns where the block's bytes are copied to, or from (read): host memory that is
 *   registered, so that copy engines use it in place, or memory of store_take. *soon: other blocks
 *   have this memory, too. Then the copy is made before the next call of at, and of a block that
 *   was copied to, keep is called. NULL: the bytes cannot be had, now or ever.
 * - keep returns whether the block has its bytes now. If not, it is of no use but to be given back.
 *
 * A store without at has blocks that are such memory themselves.
 */
#define BE_PIECE ((uint64_t)64 << 20)
struct be_store {
	void *ctx;
	void *(*take)(void *ctx, uint64_t bytes);
	void *(*at)(void *ctx, void *block, bool read, bool *soon);
	bool (*keep)(void *ctx, void *block);
	void (*give)(void *ctx, void *block, uint64_t bytes);
};

static inline void *be_store_at(const struct be_store *s, void *block, bool read, bool *soon)
{
	*soon = false;
	return s->at ? s->at(s->ctx, block, read, soon) : block;
}

struct be_dim3 {
	uint32_t x, y, z;
};

/*
 * How to compile, and what the compiler says. The texts end with a NUL and have at most
 * BE_LOG_BYTES, and their memory is the caller's. NULL: they are not wanted.
 */
#define BE_LOG_BYTES ((size_t)64 << 10)
struct be_jit {
	struct qcu_jit options;
	char *info, *error;
	uint32_t threads; /* out: as in struct qcu_module_load */
};

struct be_launch {
	struct be_dim3 grid, block;
	uint32_t dynamic_shared;
	uint32_t flags; /* QCU_LAUNCH_* */
	struct be_dim3 cluster;
	uint32_t cluster_policy;
	int32_t priority;
	const void *params; /* packed as kernel_params describes; read before the call returns */
	size_t param_bytes;
};

/* How many multiprocessors a part of a device has; the rest as CUdevSmResource. */
struct be_sms {
	uint32_t count, least, align;
};

/* A device, or a green context of it, is split. groups 0: it is not, and is the only group. */
struct be_split {
	struct be_green *parent; /* NULL: the device */
	uint32_t groups, flags, least;
};

struct be_memset {
	uint64_t dst, pitch, width, height;
	uint32_t value, elem;
};

/* Fields as in struct qcu_array_create. */
struct be_array_desc {
	uint32_t flags;
	uint32_t width, height, depth;
	uint32_t levels;
	uint32_t kind;
	uint8_t bits[4];
};

/* Flags of an array. */
#define BE_ARRAY_LAYERED 0x01u
#define BE_ARRAY_SURFACE 0x02u
#define BE_ARRAY_CUBEMAP 0x04u
#define BE_ARRAY_GATHER	 0x08u

/* Bytes of an element; 0: no such format. */
static inline uint32_t be_array_elem(const struct be_array_desc *d)
{
	uint32_t bits = d->bits[0], channels = 1, i;

	if (bits != 8 && bits != 16 && bits != 32)
		return 0;
	while (channels < 4 && d->bits[channels] == bits)
		channels++;
	for (i = channels; i < 4; i++)
		if (d->bits[i])
			return 0;
	return channels == 3 ? 0 : bits / 8 * channels;
}

/*
 * The size of a level, at least 1 in each direction. All levels have the same number of layers and
 * faces.
 */
static inline void be_array_extent(const struct be_array_desc *d, uint32_t level, uint32_t size[3])
{
	uint32_t full[3] = {d->width, d->height, d->depth}, i;

	for (i = 0; i < 3; i++) {
		bool layers = i == 2 && d->flags & (BE_ARRAY_LAYERED | BE_ARRAY_CUBEMAP);

		size[i] = layers ? full[i] : full[i] >> level;
		if (!size[i])
			size[i] = 1;
	}
}

/* The bytes of all levels, without the padding that the device adds. False: the sum overflows. */
static inline bool be_array_bytes(const struct be_array_desc *d, uint64_t *bytes)
{
	uint32_t level = 0, size[3];
	uint64_t n;

	*bytes = 0;
	do {
		be_array_extent(d, level, size);
		n = (uint64_t)size[0] * size[1];
		if (__builtin_mul_overflow(n, (uint64_t)size[2] * be_array_elem(d), &n) ||
		    __builtin_add_overflow(*bytes, n, bytes))
			return false;
	} while (++level < d->levels);
	return true;
}

/* One side of a copy of a box: a position in an array, or memory. */
struct be_side {
	struct be_array *array; /* NULL: memory */
	uint32_t level;
	uint32_t x, y, z; /* x in bytes */
	uint64_t addr;
	uint64_t pitch, rows; /* bytes from one row to the next, rows from one slice to the next */
	bool host;	      /* host memory: in one registration, or not registered at all */
};

/* Sides of a copy by copy_d2d that lie in one registration of host memory. */
#define BE_HOST_DST 1u
#define BE_HOST_SRC 2u

struct be_box {
	struct be_side dst, src; /* each may be an array or memory */
	uint64_t width;		 /* in bytes: whole elements */
	uint64_t height, depth;
};

/* One node of a graph. */
struct be_node {
	uint8_t type;	  /* QCU_NODE_* */
	bool off;	  /* a launch leaves the node out */
	unsigned int dev; /* where a kernel, memset or copy runs */
	uint32_t index;	  /* its own number; those that it depends on are smaller */
	const uint32_t *deps;
	uint32_t dep_count;
	union {
		struct {
			struct be_kernel *kernel;
			struct be_launch launch;
		};
		struct be_memset set;
		struct be_box box; /* each end is device memory, or lies in one registration */
		struct be_event *event;
		struct {
			void (*fn)(void *arg); /* as for host_func */
			void *arg;
		} host;
		struct be_cond *cond; /* its node has been made */
		struct {
			/* Makes a call of a library in a stream of its own kind. Returns 0, or an
			 * error. */
			int (*fn)(void *arg, void *stream);
			void *arg;
		} call; /* called in graph_make; not in a body */
		struct {
			uint32_t node, number;
		} body; /* the nodes after this one are in this body of that node */
	};
};

/* Where something is in device memory. size 0: of any size. */
struct be_wanted {
	uint64_t addr, size;
	uint32_t dev, rsvd;
};

struct image_names; /* image.h */

struct be_ops {
	uint32_t abi; /* BE_ABI */
	const char *name;
	/* The backend itself ends kernels that run longer than options.kernel_seconds. */
	bool kernel_time;
	/* The window's addresses must be free during open(), so that mem_place can have them. */
	bool wants_window;
	/* module_vars and module_settle need the names of the variables. */
	bool vars_by_name;
	/* Generators of random numbers are of our own. */
	bool numbers_ours;
	/* mem_alloc and mem_free tell options.charge_device what they take and give back. */
	bool charges;

	/*
	 * Counts the times that mem_valid has become false for some address, in the whole process:
	 * raised after that, and before the address can be that of anything else. NULL: it is not
	 * counted.
	 */
	const _Atomic uint64_t *mem_gone;
#define BE_OP_OF(type, name, ...) type (*name)(__VA_ARGS__);
#include "qcu-device/backend/ops.h"
};

/* The name of a BE_OP that a backend does not have, or NULL (complete.c). */
const char *be_lacks(const struct be_ops *ops);

extern const struct be_ops be_soft;

/* The only symbol that a plugin exports. */
#define BE_PLUGIN_SYMBOL "be_plugin"
typedef const struct be_ops *be_plugin_fn(void);

#endif
