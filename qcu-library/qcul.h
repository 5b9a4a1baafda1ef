/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the library's files share. A public call (cuda*) checks its arguments, fills in a record and
 * sends the record with qcul_send(). transport.h describes the layer below that.
 *
 * Errors: every function here returns a cudaError_t unless its comment says otherwise. A public
 * call returns through qcul_done(), which keeps the value for cudaGetLastError.
 *
 * Locks, in the order in which they may nest: arena, places of graph memory, modules, session, then
 * one of memory, reserve, window, handles, print, captures (and graph memory under captures),
 * conditionals, host calls. fork() takes all of them (session.c), so every table is consistent in
 * the child.
 */
#ifndef QCUL_H
#define QCUL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With this macro the toolkit's header declares both names of a call, cudaX and cudaX_ptsz. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "qcu-library/compiler_abi.h"
#pragma GCC visibility pop

#include "include/qcucmd.h"
#include "qcu-library/ranges.h"

/* ---- the calling thread (session.c) ---- */

#define QCUL_CALL_DEPTH 16

struct qcul_call_config {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};

struct qcul_thread {
	uint32_t tid;
	uint32_t seq;
	unsigned int epoch; /* last session in which this thread sent something; 0: none */
	int device;	    /* numbered as for cudaSetDevice */
	bool device_chosen; /* chosen by this thread; if false, cudaSetValidDevices decides */
	cudaError_t last;
	cudaError_t late; /* error of posted commands, not yet reported (session.c) */
	bool recording;	  /* its commands go into a conditional graph */
	bool in_callback; /* runs a host function: CUDA calls are not permitted */
	enum cudaStreamCaptureMode capture_mode;
	unsigned int depth; /* number of <<<>>> configurations pushed and not yet popped */
	struct qcul_call_config config[QCUL_CALL_DEPTH];
};
extern __thread struct qcul_thread qcul_self;

/* ---- session.c ---- */

/* Functions to call when a session opens. The session lock is held during the calls. */
struct qcul_session_user {
	void (*opened)(void);
	void (*refused)(void); /* malloc tried to open a session, and that failed */
	struct qcul_session_user *next;
};
void qcul_session_tell(struct qcul_session_user *user);

/* Moves memory that the program and the GPU do not share. NULL: there is no such memory. */
struct qcul_mover {
	cudaError_t (*to_gpu)(void); /* called before commands that use memory */
	cudaError_t (*back)(void);   /* called after a wait */
};
void qcul_session_moves(const struct qcul_mover *mover);

/* Opens the session if it is not open. Works also after a sticky error. */
cudaError_t qcul_open(void);
/*
 * The same, then returns the sticky error if there is one. For calls that need a working context.
 */
cudaError_t qcul_ready(void);
/*
 * For malloc: opens the session, unless the session lock is held at this moment, perhaps by this
 * very thread. Reports success or failure to malloc_hook.c, and prints nothing.
 */
void qcul_open_quietly(void);
/* Sets how calls wait for the host, in this session and in later ones: QCU_WAIT_*. */
void qcul_wait_how(uint32_t how);
/* From now on every qcul_ready() returns err. */
void qcul_break(cudaError_t err);
bool qcul_broken(void);
/*
 * Counts the sessions of this process and its ancestors. An object with an older number is stale.
 */
unsigned int qcul_epoch(void);
uint32_t qcul_tid(void);
const struct qcu_hello *qcul_hello(void);
const struct qcu_info *qcul_info(void);

/* A record for the calling thread's device. */
struct qCUcmd qcul_cmd(enum qcu_op op);
/* Sends records in order, waits for the answers, returns the first error among them. */
cudaError_t qcul_send(struct qCUcmd *cmds, unsigned int count);
/*
 * The same without waiting. A later error is returned by the thread's next synchronising call, so
 * the caller must first check all that it can check itself. With CUDA_LAUNCH_BLOCKING this function
 * waits.
 */
cudaError_t qcul_post(struct qCUcmd *cmds, unsigned int count);
/*
 * For an answer that the library found without the mirror. Returns err if it is an error, else the
 * pending error of posted commands, if any.
 */
cudaError_t qcul_known(cudaError_t err);
/* Can there be unfinished work that the legacy stream of the device waits for? Any work at all? */
bool qcul_legacy_busy(int device);
bool qcul_device_busy(int device);
/* True if CUDA_LAUNCH_BLOCKING=1. */
bool qcul_blocking(void);

/* ---- errors.c ---- */

cudaError_t qcul_done(cudaError_t err);
/*
 * After such an error no CUDA call works in this process any more. CUDA's header says for each
 * error whether it is one of these.
 */
bool qcul_sticky(int err);
cudaError_t qcul_from_errno(int negative);
/* Prints one sentence on stderr, the first time only. The caller owns `said`. */
void qcul_say_once(atomic_flag *said, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * While this is on, qcul_say_once prints nothing in this thread and does not set `said`, so it can
 * still print the sentence later.
 */
void qcul_hush(bool on);

/* ---- logs.c: the log that a program may read ---- */

void qcul_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Calls the program's callbacks. The caller must hold no lock. */
void qcul_log_deliver(void);

/* ---- env.c ---- */

/*
 * Reads a number of bytes with an optional K, M or G. False: not set, or not a number. The second
 * case is reported on stderr.
 */
bool qcul_env_bytes(const char *name, uint64_t *bytes);
bool qcul_env_on(const char *name);
/* Prints a line on stderr if QCU_TRACE is set. */
void qcul_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- device.c ---- */

/*
 * Sets the number of devices that the program may see, after CUDA_VISIBLE_DEVICES. Called when a
 * session opens.
 */
void qcul_devices_start(unsigned int count);
int qcul_device_count(void);
/* Call this before a command names the device. */
void qcul_device_used(int device);
/* Waits until all devices that have been used in this session are idle. */
cudaError_t qcul_devices_idle(void);
/* The mirror's number for a device that the program sees. */
uint8_t qcul_device_ordinal(int device);
/* The device of a thread that has not chosen one (choose.c). */
int qcul_device_default(void);
cudaError_t qcul_device_attr(int device, enum cudaDeviceAttr attr, int *value);

/* ---- limits.c ---- */

/* Call this after a device has been reset. */
void qcul_limits_forget(void);

/* ---- handles.c: streams, events and arrays, and the numbers of modules and kernels ---- */

struct qcul_handle {
	uint32_t live;
	uint32_t flags;
	int32_t priority;
	int32_t device;
	struct qcul_captured_event *capture; /* recorded in a capture (graph_capture.c) */
	/* query.c: how often an event was recorded; the last of these known to be done */
	_Atomic uint64_t recorded, done;
};
struct qcul_table {
	struct qcul_handle *slots; /* QCU_ID_MAX + 1 */
	uint32_t next, top;
};
extern struct qcul_table qcul_streams, qcul_events, qcul_module_ids, qcul_kernel_ids;
extern struct qcul_table qcul_pools, qcul_conds;
extern struct qcul_table qcul_arrays;

/* A free number and its slot, or NULL. */
struct qcul_handle *qcul_handle_new(struct qcul_table *t, uint32_t *id);
/* The number of a live handle. 0: not a live handle. Any pointer may be passed. */
uint32_t qcul_handle_id(const struct qcul_table *t, const void *handle);
void qcul_handle_drop(struct qcul_table *t, uint32_t id);
/* Forgets the streams, events, arrays and textures of a device, or of all devices (-1). */
void qcul_handles_forget(int device);
void qcul_handles_lock(void);
void qcul_handles_unlock(void);

/* The number of a stream. The legacy and per-thread streams are allowed. */
cudaError_t qcul_stream_id(cudaStream_t stream, uint32_t *id);
cudaError_t qcul_stream_wait(uint32_t stream);
int qcul_stream_device(uint32_t stream);

/* ---- query.c: is a stream or an event done? ---- */

cudaError_t qcul_query_event(uint32_t event);
cudaError_t qcul_query_stream(uint32_t stream);
/* Call this after an answer that a call waited for. */
void qcul_query_waited(void);
/*
 * Call these after the record has been sent: for new work in a stream; for an event that was
 * recorded or created.
 */
void qcul_query_moved(void);
void qcul_query_recorded(uint32_t event);

/* ---- memmap.c: what the library knows about addresses ---- */

enum qcul_mem {
	QCUL_MEM_HOST,
	QCUL_MEM_DEVICE,
	QCUL_MEM_VARIABLE,
	QCUL_MEM_PINNED,
	QCUL_MEM_MANAGED,
	QCUL_MEM_REGISTERED,
	QCUL_MEM_ALIAS, /* the device's addresses of registered memory, if they differ */
};

/* Flag of a device range: this process has other memory at the same addresses. */
#define QCUL_MEM_AMBIGUOUS 1u
/* Flag of a device range: it comes from a pool, and may be freed in stream order. */
#define QCUL_MEM_POOLED 2u
/* Flag of a device range: it belongs to another process (ipc.c). */
#define QCUL_MEM_IMPORTED 4u
/* Flag of a variable: the program has a copy of it at the same addresses (managed_copy.c). */
#define QCUL_MEM_COPIED 8u

bool qcul_mem_add(const struct qcul_range *range);
/* Removes the range that starts at `start`, if it is of this kind. */
bool qcul_mem_take(uint64_t start, enum qcul_mem kind, struct qcul_range *range);
/* Finds a range that overlaps this one. False: there is none. */
bool qcul_mem_overlap(const struct qcul_range *range, struct qcul_range *other);
bool qcul_mem_overlap_locked(const struct qcul_range *range, struct qcul_range *other);
/* How many ranges are registered. Reads the number without the lock. */
unsigned int qcul_mem_registered(void);
/* The GPU's address of memory that has this address in the program. */
uint64_t qcul_mem_device_address(const void *addr);
/* The range that contains addr. Its kind is QCUL_MEM_HOST if addr is in no known range. */
struct qcul_range qcul_mem_find(const void *addr);
void qcul_mem_forget_device(int device);
void qcul_mem_lock(void);
void qcul_mem_unlock(void);

/* ---- reserve.c ---- */

/*
 * Reserves the addresses of device memory in this process. False: the process already uses some of
 * them.
 */
bool qcul_reserve(uint64_t start, uint64_t len);

/* ---- window.c ---- */

/* Maps chunk memory in the window. NULL: no space left. */
void *qcul_window_map(size_t len);
void qcul_window_unmap(void *addr, size_t len);

/* ---- copy.c ---- */

struct qcul_copy {
	void *dst;
	const void *src;
	size_t dpitch, spitch; /* used when height is more than 1 */
	size_t width, height;
	enum cudaMemcpyKind kind;
	bool sync; /* return when the copy is done */
};
cudaError_t qcul_copy(const struct qcul_copy *copy, cudaStream_t stream);
cudaError_t qcul_memset(void *dst, size_t pitch, int value, size_t width, size_t height,
			cudaStream_t stream);
struct qcul_fill {
	void *dst;
	size_t pitch;		  /* used when height is more than 1 */
	size_t width, height;	  /* bytes, rows */
	unsigned int value, elem; /* bytes of a value: 1, 2 or 4 */
};
cudaError_t qcul_fill(const struct qcul_fill *fill, cudaStream_t stream);
cudaError_t qcul_copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool sync);
cudaError_t qcul_memset_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
			   cudaStream_t stream);
/* The address `offset` bytes into a variable, on this thread's device. */
cudaError_t qcul_symbol_place(const void *symbol, size_t count, size_t offset, void **addr);
/* For a copy with a variable: is its kind `way`, within the device, or the default? */
bool qcul_symbol_kind_ok(enum cudaMemcpyKind kind, enum cudaMemcpyKind way);
cudaError_t qcul_copy_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
				enum cudaMemcpyKind kind, cudaStream_t stream, bool sync);
cudaError_t qcul_copy_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
				  enum cudaMemcpyKind kind, cudaStream_t stream, bool sync);

/* ---- array_copy.c: `down` means from the array to memory; x and width are in bytes ---- */

cudaError_t qcul_array_copy_2d(cudaArray_const_t array, size_t x, size_t y, void *addr,
			       size_t pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
			       cudaStream_t stream, bool down, bool sync);
cudaError_t qcul_array_copy_run(cudaArray_const_t array, size_t x, size_t y, void *addr,
				size_t count, enum cudaMemcpyKind kind, cudaStream_t stream,
				bool down, bool sync);
cudaError_t qcul_array_to_array_2d(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				   size_t sx, size_t sy, size_t width, size_t height,
				   enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t qcul_array_to_array_run(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				    size_t sx, size_t sy, size_t count, enum cudaMemcpyKind kind,
				    cudaStream_t stream);
/* At least one end is an array. */
cudaError_t qcul_array_copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool sync);

/* ---- texture.c: textures and surfaces ---- */

/* Of a device, or of all devices (-1). The caller holds the lock of the handles. */
void qcul_objects_forget(int device);

/* ---- register.c ---- */

/*
 * Has the mirror register memory of the program, and adds the range to memmap.c. The caller fills
 * in kind, start, len, flags and owner. This function sets `other`, the address that kernels use.
 */
cudaError_t qcul_register(struct qcul_range *range);
/* The opposite of qcul_register(). The caller has removed the range from memmap.c before. */
cudaError_t qcul_unregister(const struct qcul_range *range);

/* For malloc: is any part of this block registered? */
bool qcul_is_registered(const void *p, size_t size);
/*
 * The program frees this block. If any part is registered, the block is kept until it is not.
 * `twice` is set if the program has freed the block before.
 */
bool qcul_keep_registered(void *p, size_t size, bool *twice);
/* Frees the kept blocks that are no longer registered. */
void qcul_free_kept(void);

/* ---- pinned.c ---- */

cudaError_t qcul_host_alloc(void **ptr, size_t size, enum qcul_mem kind, unsigned int flags);
cudaError_t qcul_host_free(void *ptr, enum qcul_mem kind);

/* ---- recycle.c: freed pinned memory of the window that stays mapped and registered ---- */

/* The GPU no longer uses this block. False: the caller must give it back now. */
bool qcul_recycle_keep(uint64_t start, uint64_t len);
/* A block of exactly this length, or NULL. */
void *qcul_recycle_take(uint64_t len);
/* Gives all blocks back. False: there were none. */
bool qcul_recycle_drop(void);

/* ---- module.c ---- */

struct CUkern_st {
	uint32_t magic;
	uint32_t id;
	const char *name;
	struct qcul_module *module;
	atomic_uint ready; /* epoch in which the mirror has loaded it */
	uint32_t param_count, param_bytes;
	struct qcu_param *params;
	struct qcul_kernel_limits *limits; /* one for each device */
};

/* The limits that launches are checked against. */
struct qcul_kernel_limits {
	atomic_uint epoch; /* epoch in which these limits are valid; 0: unknown, or changed since */
	uint32_t max_threads, max_dynamic;
	bool clusters; /* the kernel has rules for clusters */
	struct qcu_kernel_desc *desc;
};

/* The kernel of a host function or a cudaKernel_t. Does not load it. */
cudaError_t qcul_kernel(const void *func, struct CUkern_st **kernel);
bool qcul_kernel_valid(const struct CUkern_st *kernel);
/* Loads the kernel in the mirror. Returns at once if the mirror already has it. */
cudaError_t qcul_kernel_load(struct CUkern_st *kernel);
/* The kernel's limits on the calling thread's device. The kernel must be loaded already. */
cudaError_t qcul_kernel_limits(struct CUkern_st *kernel, const struct qcul_kernel_limits **limits);
void qcul_kernel_limits_forget(struct CUkern_st *kernel, int device);
/*
 * The mirror's full description of the kernel on that device. The library asks for it once, and
 * again after each change.
 */
cudaError_t qcul_kernel_desc(struct CUkern_st *kernel, struct qcu_kernel_desc *desc);
/* A __device__ or __constant__ variable on the calling thread's device. */
cudaError_t qcul_variable(const void *symbol, void **addr, size_t *size);
/*
 * Modules that a program loads itself. The image is copied. Kernels and variables are found by
 * their mangled names, and are gone when the module is unloaded.
 */
struct qcul_module *qcul_module_new(const void *image, size_t bytes, uint32_t max_regs);
cudaError_t qcul_module_load(struct qcul_module *m);
void qcul_module_unload(struct qcul_module *m);
cudaError_t qcul_module_kernel(struct qcul_module *m, const char *name, struct CUkern_st **kernel);
cudaError_t qcul_module_variable(struct qcul_module *m, const char *name, void **addr,
				 size_t *size);
/* The same for a managed variable. All devices share one. */
cudaError_t qcul_module_managed(struct qcul_module *m, const char *name, void **addr, size_t *size);
/* The names of the module's kernels, each with its NUL. The caller frees them. */
cudaError_t qcul_module_names(struct qcul_module *m, char **names, unsigned int *count);
/* Call this after a reset: the variables of this device have moved. */
void qcul_variables_forget(int device);

/* ---- args.c ---- */

/* Copies a kernel's arguments to their places. False: one of them does not fit in `room`. */
bool qcul_pack_args(void *to, size_t room, const struct qcu_param *params, uint32_t count,
		    void *const *args);

/* ---- print.c ---- */

/* Notes that a reply said that kernels have printed something. */
void qcul_print_note(void);
/* Writes this output to stdout. Called where CUDA does so: at the end of calls that wait. */
void qcul_print_flush(void);

/* ---- memory.c ---- */

/* Where stream-ordered memory comes from. */
struct qcul_pool_use {
	uint32_t pool; /* 0: the default pool of the device */
	int device;
	uint32_t stream;
};
/* Allocates device memory. `from` is NULL: as cudaMalloc does. */
cudaError_t qcul_device_alloc(void **ptr, size_t size, const struct qcul_pool_use *from);

/* ---- pool.c ---- */

/* Can memory with these properties exist? */
cudaError_t qcul_pool_check(const struct cudaMemPoolProps *props);

/* ---- graph_memory.c: memory that graphs allocate ---- */

bool qcul_graph_memory_is(const void *ptr);
cudaError_t qcul_graph_memory_free(void *ptr);
cudaError_t qcul_graph_memory_free_async(void *ptr, cudaStream_t stream);
/* Forgets the graph memory of a device, or of all devices (-1), which is gone. */
void qcul_graph_memory_forget(int device);

/* ---- managed.c ---- */

/* Forgets all advice about managed memory that has been freed. */
void qcul_managed_forget(uint64_t start, uint64_t len);

/* ---- hostfunc.c ---- */

/* ---- unsupported.c ---- */

cudaError_t qcul_unsupported(const char *name, atomic_flag *said);

#endif
