/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a GPU must be able to do for the device: one table of functions, filled in by `soft` (a GPU
 * in software, linked in) and by `cuda` (the real thing, a plugin). A backend knows nothing of
 * guests and records. A function left out answers "not supported".
 *
 * All calls happen in a mirror process, from any of its threads. Every function returns a value of
 * enum qcu_error, with the meaning that CUDA gives it. Addresses are the mirror's own; those of
 * device memory are the backend's to choose, outside of the window. `dev` is a device ordinal that
 * be_device_count has announced. Streams, events, modules and kernels are the backend's objects;
 * the caller never passes one that has been destroyed.
 *
 * Copies, memsets, launches and event records are put into a stream and return. Memory that is not
 * registered keeps pageable meaning: a copy from it may return only when it has been read.
 */
#ifndef QCU_BACKEND_H
#define QCU_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "include/qcucmd.h"
#include "include/qcuerror.h"

#define BE_ABI 7u

#define BE_IPC_BYTES 64

struct be; /* one per mirror */
struct be_stream;
struct be_event;
struct be_module;
struct be_kernel;
struct be_pool;
struct be_array;
struct be_cond;

struct be_options {
	uint64_t vram;	      /* bytes of memory of each soft device; 0: the backend's choice */
	unsigned int gpus;    /* how many soft devices; 0: 1 */
	unsigned int threads; /* host threads of a soft device; 0: all cores */
	bool verbose;
	/*
	 * The process is a mirror and nothing else: what CUDA writes to stdout was printed by
	 * kernels, print_read hands it out; assert_read the assertions in what it writes to
	 * stderr, and the rest of that goes to complain. Otherwise both stay.
	 */
	bool capture_stdout;
	/*
	 * Lines for the operator, some of which a guest may have chosen: it sees to it that they
	 * are few and clean. A backend writes nothing to stderr itself. NULL: they are left out.
	 */
	void (*complain)(const char *who, const char *text, size_t len);
	/* Text that kernels print and nobody fetches, of each kind; 0: the backend's choice. */
	uint64_t printed_bytes;
	/* How long a kernel may run; 0: for ever. For backends that see to it (kernel_time). */
	uint32_t kernel_seconds;
	/*
	 * Asked before `bytes` more of the process's memory (or fewer, which is always granted) go
	 * to work that waits in streams. NULL: as much as there is.
	 */
	bool (*queue_room)(void *ctx, int64_t bytes);
	/* The same for what is made of a module's image, and stays. */
	bool (*module_room)(void *ctx, int64_t bytes);
	void *room_ctx;
};

struct be_dim3 {
	uint32_t x, y, z;
};

struct be_launch {
	struct be_dim3 grid, block;
	uint32_t dynamic_shared;
	uint32_t flags; /* QCU_LAUNCH_* */
	struct be_dim3 cluster;
	uint32_t cluster_policy;
	int32_t priority;
	const void *params; /* packed as kernel_params says; read before the call returns */
	size_t param_bytes;
};

struct be_memset {
	uint64_t dst, pitch, width, height;
	uint32_t value, elem;
};

/* As struct qcu_array_create says it. */
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

/* What a level measures, at least 1 in each direction. Layers and faces are as many in each. */
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

/* One end of a copy of a box: a place in an array, or memory. */
struct be_end {
	struct be_array *array; /* NULL: memory */
	uint32_t level;
	uint32_t x, y, z; /* x in bytes */
	uint64_t addr;
	uint64_t pitch, rows; /* bytes from row to row, rows from slice to slice */
	bool host;	      /* addr is the host's: one registration, or not registered at all */
};

struct be_box {
	struct be_end dst, src; /* one of them is an array, or both are, or none */
	uint64_t width;		/* bytes: whole elements */
	uint64_t height, depth;
};

struct be_ops {
	uint32_t abi; /* BE_ABI */
	const char *name;
	/* It ends kernels itself that run for longer than options.kernel_seconds. */
	bool kernel_time;

	/* Is there a GPU? Called once in the device process, before any mirror; must not keep
	 * state. */
	bool (*probe)(void);
	int (*open)(struct be **be, const struct be_options *opt);
	void (*close)(struct be *be);

	/*
	 * Bytes of each device, if that is the host's memory and each mirror's own, so that the
	 * mirrors of a VM must share what one has.
	 */
	uint64_t (*memory)(const struct be_options *opt);
	int (*device_count)(struct be *be, unsigned int *count);
	int (*versions)(struct be *be, uint32_t *driver, uint32_t *runtime);
	int (*device_desc)(struct be *be, unsigned int dev, struct qcu_device_desc *desc);
	int (*device_sync)(struct be *be, unsigned int dev);
	int (*device_reset)(struct be *be, unsigned int dev);
	int (*mem_info)(struct be *be, unsigned int dev, uint64_t *free, uint64_t *total);
	/*
	 * From dev to peer, which are different. attr: QCU_PEER_* or a cudaDeviceP2PAttr; with
	 * QCU_PEER_HOST_ATOMICS peer may be anything.
	 */
	int (*peer_access)(struct be *be, unsigned int dev, unsigned int peer, bool enable);
	int (*peer_info)(struct be *be, unsigned int dev, unsigned int peer, uint32_t attr,
			 int32_t *value);
	/* limit: cudaLimit. What is set is a wish; what is got is what holds. */
	int (*limit_set)(struct be *be, unsigned int dev, uint32_t limit, uint64_t value);
	int (*limit_get)(struct be *be, unsigned int dev, uint32_t limit, uint64_t *value);

	int (*mem_alloc)(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr);
	int (*mem_free)(struct be *be, uint64_t addr);
	/*
	 * Stream-ordered memory. What has been allocated may be used by what is put into the stream
	 * from then on; what is freed, by what was put there before. mem_free takes it, too. A pool
	 * that is destroyed stays until the last of its memory is freed. Default pools always are.
	 */
	int (*pool_default)(struct be *be, unsigned int dev, struct be_pool **p);
	int (*pool_create)(struct be *be, unsigned int dev, uint64_t max_size, struct be_pool **p);
	int (*pool_destroy)(struct be *be, struct be_pool *p);
	int (*pool_set)(struct be *be, struct be_pool *p, uint32_t attr, uint64_t value);
	int (*pool_get)(struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value);
	int (*pool_trim)(struct be *be, struct be_pool *p, uint64_t keep);
	int (*pool_access_set)(struct be *be, struct be_pool *p, unsigned int dev, uint32_t flags);
	int (*pool_access_get)(struct be *be, struct be_pool *p, unsigned int dev, uint32_t *flags);
	int (*pool_alloc)(struct be *be, struct be_pool *p, uint64_t size, struct be_stream *s,
			  uint64_t *addr);
	int (*pool_free)(struct be *be, uint64_t addr, struct be_stream *s);
	/* Does [addr, addr + len) lie in one allocation of device memory or one module variable? */
	bool (*mem_valid)(struct be *be, uint64_t addr, uint64_t len);
	/*
	 * Host memory that copy engines and kernels may use in place from now on, at the same
	 * address. Unregister waits until nothing uses it any more.
	 */
	int (*host_register)(struct be *be, void *addr, size_t len);
	int (*host_unregister)(struct be *be, void *addr);

	/*
	 * In stream order. The host side lies within one registration, or wholly in memory that is
	 * not registered. A d2d address may also lie in registered host memory.
	 */
	int (*copy_h2d)(struct be *be, uint64_t dst, const void *src, size_t len,
			struct be_stream *s);
	int (*copy_d2h)(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s);
	/*
	 * Registered host memory in several pieces, from or to device memory in one. The pieces may
	 * go in any order. Without it the mirror copies each on its own.
	 */
	int (*copy_pieces)(struct be *be, bool h2d, uint64_t device, const struct iovec *host,
			   size_t count, struct be_stream *s);
	int (*copy_d2d)(struct be *be, uint64_t dst, uint64_t src, size_t len, struct be_stream *s);
	int (*mem_set)(struct be *be, const struct be_memset *m, struct be_stream *s);

	/*
	 * Arrays of CUDA. The caller of copy_box has compared the box with the array's size.
	 * Destroy waits until nothing uses the array any more.
	 */
	int (*array_create)(struct be *be, unsigned int dev, const struct be_array_desc *desc,
			    struct be_array **a);
	int (*array_destroy)(struct be *be, struct be_array *a);
	int (*copy_box)(struct be *be, const struct be_box *box, struct be_stream *s);

	/*
	 * Objects that kernels read textures and surfaces by. `a` is the array that t->array names,
	 * if it names one; it lives longer than the object. So far as t tells of memory, all of it
	 * is memory that the GPU can use now.
	 */
	int (*texture_create)(struct be *be, unsigned int dev, const struct qcu_texture_msg *t,
			      struct be_array *a, uint64_t *object);
	int (*texture_destroy)(struct be *be, unsigned int dev, uint64_t object);
	int (*surface_create)(struct be *be, unsigned int dev, struct be_array *a, uint32_t level,
			      uint64_t *object);
	int (*surface_destroy)(struct be *be, unsigned int dev, uint64_t object);

	/* flags: cudaStreamNonBlocking. The legacy stream of each device always exists. */
	int (*stream_create)(struct be *be, unsigned int dev, uint32_t flags, int priority,
			     struct be_stream **s);
	struct be_stream *(*stream_legacy)(struct be *be, unsigned int dev);
	int (*stream_destroy)(struct be *be, struct be_stream *s); /* work in it still completes */
	int (*stream_sync)(struct be *be, struct be_stream *s);
	int (*stream_query)(struct be *be, struct be_stream *s);
	int (*stream_wait_event)(struct be *be, struct be_stream *s, struct be_event *e,
				 uint32_t flags);

	/* value: QCU_STREAM_ATTR bytes. */
	int (*stream_attr_set)(struct be *be, struct be_stream *s, uint32_t attr,
			       const void *value);
	int (*stream_attr_get)(struct be *be, struct be_stream *s, uint32_t attr, void *value);
	int (*stream_attr_copy)(struct be *be, struct be_stream *to, struct be_stream *from);
	/*
	 * Puts a call of fn(arg, 0) into a stream, which waits until it returns; the call comes on
	 * a thread of the backend's, and must not call the backend. After an error that has ended
	 * everything it is left out, or, with `always`, made with that error.
	 */
	int (*host_func)(struct be *be, void (*fn)(void *arg, int error), void *arg, bool always,
			 struct be_stream *s);

	int (*event_create)(struct be *be, unsigned int dev, uint32_t flags, struct be_event **e);
	int (*event_destroy)(struct be *be, struct be_event *e);
	int (*event_record)(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags);
	int (*event_sync)(struct be *be, struct be_event *e);
	int (*event_query)(struct be *be, struct be_event *e);
	int (*event_elapsed)(struct be *be, struct be_event *start, struct be_event *end,
			     float *ms);

	/*
	 * Memory and events for other processes. What export writes, BE_IPC_BYTES, import takes in
	 * another mirror of the same host; import never sees bytes from anywhere else. Only memory
	 * of mem_alloc and events made for it can be exported, not what has been imported.
	 */
	int (*mem_export)(struct be *be, unsigned int dev, uint64_t addr, void *handle);
	int (*mem_import)(struct be *be, unsigned int dev, const void *handle, uint64_t size,
			  uint64_t *addr);
	int (*mem_unimport)(struct be *be, uint64_t addr);
	int (*event_export)(struct be *be, struct be_event *e, void *handle);
	int (*event_import)(struct be *be, unsigned int dev, const void *handle,
			    struct be_event **e);

	/*
	 * image: a fat binary, an ELF image or PTX; copied if it is needed after the call.
	 * max_regs: what a compiler may use for each thread, 0: what it wants.
	 */
	int (*module_load)(struct be *be, const void *image, size_t len, uint32_t max_regs,
			   struct be_module **m);
	int (*module_unload)(struct be *be, struct be_module *m);
	/*
	 * QCU_NAMES_*: each with its NUL, up to `room` bytes in all; *bytes is how many there are.
	 * A backend that cannot list managed variables answers "not supported".
	 */
	int (*module_names)(struct be *be, struct be_module *m, uint32_t what, char *names,
			    size_t room, size_t *bytes, uint32_t *count);
	/* Kernels live as long as their module. */
	int (*kernel_find)(struct be *be, struct be_module *m, const char *name,
			   struct be_kernel **k);
	/* max entries are written at most; *count is how many there are. */
	int (*kernel_params)(struct be *be, struct be_kernel *k, struct qcu_param *params,
			     uint32_t max, uint32_t *count);
	int (*kernel_desc)(struct be *be, unsigned int dev, struct be_kernel *k,
			   struct qcu_kernel_desc *desc);
	int (*kernel_set)(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t attr,
			  int value);
	int (*occupancy)(struct be *be, unsigned int dev, struct be_kernel *k,
			 uint32_t block_threads, uint64_t dynamic_shared, uint32_t flags,
			 uint32_t *blocks);
	int (*occupancy_shared)(struct be *be, unsigned int dev, struct be_kernel *k,
				uint32_t blocks, uint32_t block_threads, uint64_t *bytes);
	/* what: QCU_CLUSTERS_* */
	int (*occupancy_cluster)(struct be *be, unsigned int dev, struct be_kernel *k,
				 const struct be_launch *l, uint32_t what, uint32_t *count);
	int (*var_find)(struct be *be, unsigned int dev, struct be_module *m, const char *name,
			uint64_t *addr, uint64_t *size);
	/* The same if it is a managed variable. */
	int (*managed_find)(struct be *be, unsigned int dev, struct be_module *m, const char *name,
			    uint64_t *addr, uint64_t *size);
	/*
	 * Puts a variable into host memory, on all devices: registered memory with the content that
	 * it shall have. Before any kernel_find in the module; addresses of var_find are void.
	 */
	int (*var_bind)(struct be *be, struct be_module *m, const char *name, uint64_t addr,
			uint64_t size);
	int (*launch)(struct be *be, struct be_kernel *k, const struct be_launch *l,
		      struct be_stream *s);

	/*
	 * Graphs with conditional nodes, as qcucmd.h says it. `in` lives longer than what is made
	 * in it; NULL: the outermost graph is made, and body and first mean nothing. first NULL: a
	 * run does not change the value that is there. A stream of cond_record's ends like any
	 * other, and while it is there its graph is. What cannot be kept in it is
	 * cudaErrorStreamCaptureUnsupported. cond_place: s is such a stream, of where c is, and it
	 * has not been placed in this one; size is no more than QCU_COND_BODIES and fits the type.
	 */
	int (*cond_create)(struct be *be, unsigned int dev, struct be_cond *in, uint32_t body,
			   const uint32_t *first, struct be_cond **c, uint64_t *handle);
	int (*cond_node)(struct be *be, struct be_cond *c, uint32_t type, uint32_t size);
	int (*cond_record)(struct be *be, struct be_cond *c, uint32_t body, struct be_stream **s);
	int (*cond_place)(struct be *be, struct be_cond *c, struct be_stream *s);
	int (*cond_ready)(struct be *be, struct be_cond *graph);
	int (*cond_run)(struct be *be, struct be_cond *graph, struct be_stream *s);
	int (*cond_destroy)(struct be *be, struct be_cond *c); /* work in streams still completes */

	/*
	 * Text that kernels have printed: up to max bytes into buf, *got says how many; buf NULL
	 * only asks whether there is any (*got != 0).
	 */
	int (*print_read)(struct be *be, void *buf, size_t max, size_t *got);
	/* The same for the text of failed assertions, which belongs on stderr. */
	int (*assert_read)(struct be *be, void *buf, size_t max, size_t *got);
};

extern const struct be_ops be_soft;

/* The one symbol that a plugin exports. */
#define BE_PLUGIN_SYMBOL "be_plugin"
typedef const struct be_ops *be_plugin_fn(void);

#endif
