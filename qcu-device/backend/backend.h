/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface to a GPU: one table of functions. Two backends fill it in: `soft` (a GPU in
 * software, linked in) and `cuda` (the real GPU, a plugin). A backend knows nothing of guests and
 * records. If a function is left out (NULL), the command fails with "not supported".
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

#define BE_ABI 13u

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
	bool (*queue_room)(void *ctx, int64_t bytes);
	/* The same for memory that is made from a module's image and stays. */
	bool (*module_room)(void *ctx, int64_t bytes);
	/*
	 * The same for device memory, for a backend that has `charges`. It may call pool_trim, so
	 * the backend holds no lock.
	 */
	bool (*device_room)(void *ctx, unsigned int dev, int64_t bytes);
	void *room_ctx;
};

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

/* One end of a copy of a box: a place in an array, or memory. */
struct be_end {
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
	struct be_end dst, src; /* each may be an array or memory */
	uint64_t width;		/* in bytes: whole elements */
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

struct be_ops {
	uint32_t abi; /* BE_ABI */
	const char *name;
	/* The backend itself ends kernels that run longer than options.kernel_seconds. */
	bool kernel_time;
	/* The window's addresses must be free during open(), so that mem_place can have them. */
	bool wants_window;
	/* mem_alloc and mem_free tell options.device_room what they take and give back. */
	bool charges;

	/*
	 * Is there a GPU? Called once in the device process, before any mirror exists. Must not
	 * keep state.
	 */
	bool (*probe)(void);
	int (*open)(struct be **be, const struct be_options *opt);
	void (*close)(struct be *be);

	/*
	 * Bytes of memory of each device, for a backend whose device memory is host memory that
	 * each mirror allocates for itself. All mirrors of a VM must then share the amount of one
	 * device.
	 */
	uint64_t (*memory)(const struct be_options *opt);
	int (*device_count)(struct be *be, unsigned int *count);
	int (*versions)(struct be *be, uint32_t *driver, uint32_t *runtime);
	int (*device_desc)(struct be *be, unsigned int dev, struct qcu_device_desc *desc);
	int (*device_sync)(struct be *be, unsigned int dev);
	int (*device_reset)(struct be *be, unsigned int dev);
	int (*mem_info)(struct be *be, unsigned int dev, uint64_t *free, uint64_t *total);
	/*
	 * From dev to peer, which must differ. attr: QCU_PEER_* or a cudaDeviceP2PAttr. With
	 * QCU_PEER_HOST_ATOMICS, peer may have any value.
	 */
	int (*peer_access)(struct be *be, unsigned int dev, unsigned int peer, bool enable);
	int (*peer_info)(struct be *be, unsigned int dev, unsigned int peer, uint32_t attr,
			 int32_t *value);
	/* limit: cudaLimit. limit_set is a request; limit_get returns the value in effect. */
	int (*limit_set)(struct be *be, unsigned int dev, uint32_t limit, uint64_t value);
	int (*limit_get)(struct be *be, unsigned int dev, uint32_t limit, uint64_t *value);

	int (*mem_alloc)(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr);
	int (*mem_free)(struct be *be, uint64_t addr);
	/*
	 * Of memory from mem_alloc: how much of the device stays taken if nothing but this is kept.
	 * Without this function: its size.
	 */
	uint64_t (*mem_taken)(struct be *be, uint64_t addr);
	/*
	 * Stream-ordered memory. Work put into the stream after pool_alloc may use the memory; so
	 * may work put there before pool_free. mem_free accepts such memory, too. A destroyed pool
	 * stays until the last of its memory is freed. Default pools always exist.
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
	/*
	 * Virtual memory. The caller has checked that sizes and addresses are multiples of what
	 * phys_grain says, that nothing overlaps, and that each address lies in a reservation.
	 * Reserved addresses lie outside of the window. phys_unmap and phys_access are about one
	 * mapping; phys_unmap returns when nothing uses it any more. flags of phys_access:
	 * CUmemAccess_flags. phys_destroy comes when nothing maps the memory any more.
	 */
	int (*va_reserve)(struct be *be, uint64_t size, uint64_t align, uint64_t *addr);
	int (*va_free)(struct be *be, uint64_t addr, uint64_t size);
	int (*phys_grain)(struct be *be, unsigned int dev, bool recommended, uint64_t *bytes);
	int (*phys_create)(struct be *be, unsigned int dev, uint64_t size, bool shareable,
			   struct be_phys **p);
	int (*phys_destroy)(struct be *be, struct be_phys *p);
	int (*phys_map)(struct be *be, struct be_phys *p, uint64_t offset, uint64_t addr,
			uint64_t size);
	int (*phys_unmap)(struct be *be, uint64_t addr, uint64_t size);
	int (*phys_access)(struct be *be, uint64_t addr, uint64_t size, unsigned int dev,
			   uint32_t flags);
	/* As mem_export and mem_import. */
	int (*phys_export)(struct be *be, struct be_phys *p, void *handle);
	int (*phys_import)(struct be *be, unsigned int dev, const void *handle, uint64_t size,
			   struct be_phys **p);
	/*
	 * Does [addr, addr + len) lie in one allocation of device memory, in one module variable,
	 * or in mappings without a gap that a device may use?
	 */
	bool (*mem_valid)(struct be *be, uint64_t addr, uint64_t len);
	/*
	 * Counts the times that mem_valid has become false for some address, in the whole process:
	 * raised after that, and before the address can be that of anything else. NULL: it is not
	 * counted.
	 */
	const _Atomic uint64_t *mem_gone;
	/*
	 * Makes device memory, all zero, at an address of the window: the first `len` bytes of the
	 * `room` bytes at `addr`, which are reserved without access. All devices can use it.
	 * mem_unplace waits until nothing uses it any more. After it, and after an error, the
	 * caller reserves the addresses again. mem_valid does not know this memory.
	 */
	int (*mem_place)(struct be *be, unsigned int dev, uint64_t addr, uint64_t len,
			 uint64_t room);
	int (*mem_unplace)(struct be *be, unsigned int dev, uint64_t addr, uint64_t len,
			   uint64_t room);
	/*
	 * From now on, copy engines and kernels may use this host memory in place, at the same
	 * address. Unregister waits until nothing uses it any more.
	 */
	int (*host_register)(struct be *be, void *addr, size_t len);
	int (*host_unregister)(struct be *be, void *addr);

	/*
	 * Copies in stream order. The host side lies within one registration, or wholly in memory
	 * that is not registered.
	 */
	int (*copy_h2d)(struct be *be, uint64_t dst, const void *src, size_t len,
			struct be_stream *s);
	int (*copy_d2h)(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s);
	/*
	 * As copy_d2h, and waits for the copy. Without this function the mirror waits for the
	 * stream.
	 */
	int (*copy_d2h_wait)(struct be *be, void *dst, uint64_t src, size_t len,
			     struct be_stream *s);
	/*
	 * Copies between several pieces of registered host memory and one range of device memory.
	 * The pieces may be copied in any order. Without this function the mirror copies each piece
	 * on its own.
	 */
	int (*copy_pieces)(struct be *be, bool h2d, uint64_t device, const struct iovec *host,
			   size_t count, struct be_stream *s);
	/* host: BE_HOST_*, the sides that are registered host memory. */
	int (*copy_d2d)(struct be *be, uint64_t dst, uint64_t src, size_t len, unsigned int host,
			struct be_stream *s);
	int (*mem_set)(struct be *be, const struct be_memset *m, struct be_stream *s);

	/*
	 * CUDA arrays. The caller of copy_box has checked that the box lies within the array.
	 * Destroy waits until nothing uses the array any more. With p, a mipmapped array lies in
	 * that memory, which was made shareable or imported, and lives longer than the array.
	 */
	int (*array_create)(struct be *be, unsigned int dev, const struct be_array_desc *desc,
			    struct be_phys *p, uint64_t offset, struct be_array **a);
	int (*array_destroy)(struct be *be, struct be_array *a);
	int (*copy_box)(struct be *be, const struct be_box *box, struct be_stream *s);

	/*
	 * The objects through which kernels read textures and surfaces. If t->array names an array,
	 * `a` is that array; it lives longer than the object. If t describes memory, the GPU can
	 * use all of that memory now.
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
	int (*stream_destroy)(struct be *be, struct be_stream *s); /* queued work still completes */
	int (*stream_sync)(struct be *be, struct be_stream *s);
	int (*stream_query)(struct be *be, struct be_stream *s);
	int (*stream_wait_event)(struct be *be, struct be_stream *s, struct be_event *e,
				 uint32_t flags);

	/* Only t->what and t->rank have been checked. map: QCU_TENSOR_MAP_BYTES. */
	int (*tensor_map)(struct be *be, unsigned int dev, const struct qcu_tensor_msg *t,
			  void *map);

	/* Memory and flags have been checked. */
	int (*stream_value)(struct be *be, struct be_stream *s, const struct qcu_stream_value *v);
	/*
	 * The guest is gone, and nobody will write the numbers that streams wait for: they go on.
	 * Not needed if close, or the end of the process, ends such work.
	 */
	void (*values_end)(struct be *be);

	/* value: QCU_STREAM_ATTR bytes. */
	int (*stream_attr_set)(struct be *be, struct be_stream *s, uint32_t attr,
			       const void *value);
	int (*stream_attr_get)(struct be *be, struct be_stream *s, uint32_t attr, void *value);
	int (*stream_attr_copy)(struct be *be, struct be_stream *to, struct be_stream *from);
	/*
	 * Libraries such as cuBLAS, which work on the backend's streams. lib_open: NULL, with a
	 * sentence about the reason, if there is none with this soname; it stays open. lib_symbol:
	 * its function, or NULL. native: makes the stream's device the thread's current one, and
	 * gives what the library's functions take as a stream.
	 */
	void *(*lib_open)(struct be *be, const char *soname, char *why, size_t size);
	void *(*lib_symbol)(struct be *be, void *lib, const char *name);
	int (*native)(struct be *be, struct be_stream *s, void **stream);
	/*
	 * Queues a call of fn(arg, 0) in a stream. The stream waits until fn returns. fn runs on a
	 * thread of the backend and must not call the backend. After an error that has ended
	 * everything, fn is not called, unless `always` is true: then it is called with that error.
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
	 * Memory and events shared with other processes. Export writes BE_IPC_BYTES; import takes
	 * those bytes in another mirror of the same host, and never gets bytes from any other
	 * source. Only memory from mem_alloc and events created for it can be exported. Imported
	 * memory and events cannot.
	 */
	int (*mem_export)(struct be *be, unsigned int dev, uint64_t addr, void *handle);
	int (*mem_import)(struct be *be, unsigned int dev, const void *handle, uint64_t size,
			  uint64_t *addr);
	int (*mem_unimport)(struct be *be, uint64_t addr);
	int (*event_export)(struct be *be, struct be_event *e, void *handle);
	int (*event_import)(struct be *be, unsigned int dev, const void *handle,
			    struct be_event **e);

	/*
	 * image: a fat binary, an ELF image or PTX. The backend copies it if it needs it after the
	 * call. jit may be NULL.
	 */
	int (*module_load)(struct be *be, const void *image, size_t len, struct be_jit *jit,
			   struct be_module **m);
	int (*module_unload)(struct be *be, struct be_module *m);
	/*
	 * Links images: type is QCU_LINK_*, and the image is of that kind. jit of link_add and
	 * link_complete gets the texts; link_add has options for its image there. The image of
	 * link_complete lives until link_destroy, which may come at any time.
	 */
	int (*link_create)(struct be *be, unsigned int dev, const struct qcu_jit *options,
			   struct be_link **l);
	int (*link_add)(struct be *be, struct be_link *l, uint32_t type, const void *image,
			size_t len, struct be_jit *jit);
	int (*link_complete)(struct be *be, struct be_link *l, struct be_jit *jit,
			     const void **image, size_t *len);
	int (*link_destroy)(struct be *be, struct be_link *l);
	/*
	 * what: QCU_NAMES_*. Writes each name with its NUL, up to `room` bytes in all; *bytes is
	 * the size of all names. A backend that cannot list managed variables returns "not
	 * supported".
	 */
	int (*module_names)(struct be *be, struct be_module *m, uint32_t what, char *names,
			    size_t room, size_t *bytes, uint32_t *count);
	/* A kernel lives as long as its module. */
	int (*kernel_find)(struct be *be, struct be_module *m, const char *name,
			   struct be_kernel **k);
	/* Writes at most max entries; *count is how many there are. */
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
	/* The same, for managed variables only. */
	int (*managed_find)(struct be *be, unsigned int dev, struct be_module *m, const char *name,
			    uint64_t *addr, uint64_t *size);
	/*
	 * Places a variable in host memory, on all devices. The memory is registered and already
	 * holds the variable's content. Call it before any kernel_find in the module. Addresses
	 * that var_find returned before are void.
	 */
	int (*var_bind)(struct be *be, struct be_module *m, const char *name, uint64_t addr,
			uint64_t size);
	int (*launch)(struct be *be, struct be_kernel *k, const struct be_launch *l,
		      struct be_stream *s);

	/*
	 * Graphs; qcucmd.h describes them. The caller keeps kernels and events that a graph names
	 * for as long as the graph, and the memory until it is no longer launched. The nodes, and
	 * what they point to, may be gone after the call.
	 *
	 * - graph_update: the types are those of the nodes. The numbers of dependencies are 0.
	 *   cudaErrorGraphExecUpdateFailure: the graph must be made again.
	 * - graph_destroy: launches that are under way still complete.
	 */
	int (*graph_make)(struct be *be, unsigned int dev, const struct be_node *nodes,
			  uint32_t count, struct be_graph **g);
	int (*graph_update)(struct be *be, struct be_graph *g, const struct be_node *nodes,
			    uint32_t count);
	int (*graph_launch)(struct be *be, struct be_graph *g, struct be_stream *s);
	int (*graph_upload)(struct be *be, struct be_graph *g, struct be_stream *s);
	int (*graph_destroy)(struct be *be, struct be_graph *g);

	/*
	 * Handles of conditional nodes; qcucmd.h describes them. The caller keeps them as long as a
	 * graph that uses them. There is one graph at a time for each outermost graph, and each of
	 * its nodes is in the graph or body that its handle is for.
	 *
	 * - cond_create: `in` lives longer than what is made in it. If `in` is NULL, the outermost
	 *   graph is made, and body and first are not used. Otherwise the body exists. If first is
	 *   NULL, a launch does not change the present value.
	 * - cond_node: makes the node of a handle, with its bodies, unless it has been made already
	 *   in this way. size is at most QCU_COND_BODIES and fits the type.
	 */
	int (*cond_create)(struct be *be, unsigned int dev, struct be_cond *in, uint32_t body,
			   const uint32_t *first, struct be_cond **c, uint64_t *handle);
	int (*cond_node)(struct be *be, struct be_cond *c, uint32_t type, uint32_t size);
	int (*cond_destroy)(struct be *be, struct be_cond *c); /* queued work still completes */

	/*
	 * Text that kernels have printed: copies up to max bytes into buf and stores their number
	 * in *got. With buf NULL it only asks whether there is any (*got != 0).
	 */
	int (*print_read)(struct be *be, void *buf, size_t max, size_t *got);
	/* The same for the text of failed assertions, which belongs on stderr. */
	int (*assert_read)(struct be *be, void *buf, size_t max, size_t *got);
};

extern const struct be_ops be_soft;

/* The only symbol that a plugin exports. */
#define BE_PLUGIN_SYMBOL "be_plugin"
typedef const struct be_ops *be_plugin_fn(void);

#endif
