/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the library's files share. A public call (cuda*) checks its arguments, fills in a record and
 * sends it with qcul_send; transport.h takes it from there.
 *
 * Errors: every function here returns a cudaError_t unless it says otherwise. A public call returns
 * through qcul_done(), which keeps the value for cudaGetLastError.
 *
 * Locks, in the order in which they may nest: arena, places of graph memory, modules, session, then
 * one of memory, reserve, window, handles, print, captures (and graph memory under that),
 * conditionals, host calls. fork() takes all of them (session.c), so that the child finds every
 * table whole.
 */
#ifndef QCUL_H
#define QCUL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With this the toolkit's header declares both names of a call, cudaX and cudaX_ptsz. */
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
	unsigned int epoch; /* session in which this thread has sent something; 0: in none */
	int device;	    /* as cudaSetDevice counts */
	bool device_chosen; /* by this thread; else it follows cudaSetValidDevices */
	cudaError_t last;
	cudaError_t late; /* of what it has posted, and not been told of (session.c) */
	bool recording;	  /* what it sends goes into a conditional graph */
	bool in_callback; /* runs a host function: no call of CUDA's is permitted */
	enum cudaStreamCaptureMode capture_mode;
	unsigned int depth; /* of the <<<>>> configurations pushed and not popped */
	struct qcul_call_config config[QCUL_CALL_DEPTH];
};
extern __thread struct qcul_thread qcul_self;

/* ---- session.c ---- */

/* Who wants to hear when there is a session; called with its lock held. */
struct qcul_session_user {
	void (*opened)(void);
	void (*refused)(void); /* malloc has asked for one, and there is none */
	struct qcul_session_user *next;
};
void qcul_session_tell(struct qcul_session_user *user);

/* Memory that is not in one place for program and GPU: NULL while there is none. */
struct qcul_mover {
	cudaError_t (*to_gpu)(void); /* before commands that use memory */
	cudaError_t (*back)(void);   /* after a wait */
};
void qcul_session_moves(const struct qcul_mover *mover);

/* Opens the session if there is none. Works also after a sticky error. */
cudaError_t qcul_open(void);
/* The same, then the sticky error if there is one: for calls that need a working context. */
cudaError_t qcul_ready(void);
/*
 * For malloc: opens it unless someone is at it this moment, perhaps this very thread. Success and
 * failure are told to malloc_hook.c, and nothing is said to the user.
 */
void qcul_open_quietly(void);
/* How calls wait for the host, also in sessions to come: QCU_WAIT_*. */
void qcul_wait_how(uint32_t how);
/* From now on every qcul_ready() returns err. */
void qcul_break(cudaError_t err);
bool qcul_broken(void);
/* Counts sessions of this process and its ancestors; what carries an older number is stale. */
unsigned int qcul_epoch(void);
uint32_t qcul_tid(void);
const struct qcu_hello *qcul_hello(void);
const struct qcu_info *qcul_info(void);

/* A record for the calling thread's device. */
struct qCUcmd qcul_cmd(enum qcu_op op);
/* Sends records in order, waits for the answers, returns the first error among them. */
cudaError_t qcul_send(struct qCUcmd *cmds, unsigned int count);
/*
 * The same without waiting. What goes wrong later surfaces at the thread's next synchronising call,
 * so what can be seen to be wrong here has to be checked before. With CUDA_LAUNCH_BLOCKING it
 * waits.
 */
cudaError_t qcul_post(struct qCUcmd *cmds, unsigned int count);
/* An answer that was found here: unless it is an error, that of what has been posted comes first.
 */
cudaError_t qcul_known(cudaError_t err);
/* Could there be work that the device's legacy stream waits for, or any at all? */
bool qcul_legacy_busy(int device);
bool qcul_device_busy(int device);
/* CUDA_LAUNCH_BLOCKING=1. */
bool qcul_blocking(void);

/* ---- errors.c ---- */

cudaError_t qcul_done(cudaError_t err);
/* After such an error nothing works in this process any more, as CUDA's header says of each. */
bool qcul_sticky(int err);
cudaError_t qcul_from_errno(int negative);
/* One sentence on stderr, the first time only; `said` is the caller's. */
void qcul_say_once(atomic_flag *said, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* From now on, or no longer, qcul_say_once says nothing in this thread, and will say it later. */
void qcul_hush(bool on);

/* ---- logs.c: the log that a program may read ---- */

void qcul_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Calls the program's callbacks; with no lock held. */
void qcul_log_deliver(void);

/* ---- env.c ---- */

/* Bytes with an optional K, M or G. False: not set, or no number (said on stderr). */
bool qcul_env_bytes(const char *name, uint64_t *bytes);
bool qcul_env_on(const char *name);
/* A line on stderr if QCU_TRACE is set. */
void qcul_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- device.c ---- */

/* How many devices the program may see, after CUDA_VISIBLE_DEVICES. Called when a session opens. */
void qcul_devices_start(unsigned int count);
int qcul_device_count(void);
/* A command is about to name this device. */
void qcul_device_used(int device);
/* Waits until no device that has been used in this session has any work left. */
cudaError_t qcul_devices_idle(void);
/* The mirror's number of a device that the program sees. */
uint8_t qcul_device_ordinal(int device);
/* The one that a thread has which has chosen none (choose.c). */
int qcul_device_default(void);
cudaError_t qcul_device_attr(int device, enum cudaDeviceAttr attr, int *value);

/* ---- limits.c ---- */

/* A device has been reset. */
void qcul_limits_forget(void);

/* ---- handles.c: streams, events and arrays, and the numbers of modules and kernels ---- */

struct qcul_handle {
	uint32_t live;
	uint32_t flags;
	int32_t priority;
	int32_t device;
	struct qcul_captured_event *capture; /* graph_capture.c: recorded in a capture */
	/* query.c: how often an event was recorded, and which such number is known to be done */
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
/* The number of a live handle, 0: there is no such. Any pointer may be passed. */
uint32_t qcul_handle_id(const struct qcul_table *t, const void *handle);
void qcul_handle_drop(struct qcul_table *t, uint32_t id);
/* The streams, events, arrays and textures of a device, or everything (device -1). */
void qcul_handles_forget(int device);
void qcul_handles_lock(void);
void qcul_handles_unlock(void);

/* The number of a stream, legacy and per-thread ones included. */
cudaError_t qcul_stream_id(cudaStream_t stream, uint32_t *id);
cudaError_t qcul_stream_wait(uint32_t stream);
int qcul_stream_device(uint32_t stream);

/* ---- query.c: is it done? ---- */

cudaError_t qcul_query_event(uint32_t event);
cudaError_t qcul_query_stream(uint32_t stream);
/* What it has to be told of: an answer that was waited for, */
void qcul_query_waited(void);
/* something new in a stream, an event that is recorded, or made: after it has been sent. */
void qcul_query_moved(void);
void qcul_query_recorded(uint32_t event);

/* ---- memmap.c: what is known of addresses ---- */

enum qcul_mem {
	QCUL_MEM_HOST,
	QCUL_MEM_DEVICE,
	QCUL_MEM_VARIABLE,
	QCUL_MEM_PINNED,
	QCUL_MEM_MANAGED,
	QCUL_MEM_REGISTERED,
	QCUL_MEM_ALIAS, /* the device's addresses of registered memory, where they differ */
};

/* Flag of a device range: something of this process lies at the same addresses. */
#define QCUL_MEM_AMBIGUOUS 1u
/* Another: it comes from a pool, and may be freed in stream order. */
#define QCUL_MEM_POOLED 2u
/* Another: it is another process's (ipc.c). */
#define QCUL_MEM_IMPORTED 4u
/* Of a variable: the program has a copy of it at the same addresses (managed_copy.c). */
#define QCUL_MEM_COPIED 8u

bool qcul_mem_add(const struct qcul_range *range);
/* Takes out the range that starts there, if it is of that kind. */
bool qcul_mem_take(uint64_t start, enum qcul_mem kind, struct qcul_range *range);
/* A range that has some of the same addresses; false: there is none. */
bool qcul_mem_overlap(const struct qcul_range *range, struct qcul_range *other);
bool qcul_mem_overlap_locked(const struct qcul_range *range, struct qcul_range *other);
/* How many ranges are registered; read without the lock. */
unsigned int qcul_mem_registered(void);
/* The address by which the GPU knows what the program knows by this one. */
uint64_t qcul_mem_device_address(const void *addr);
/* The range around addr; kind QCUL_MEM_HOST: nothing is known of it. */
struct qcul_range qcul_mem_find(const void *addr);
void qcul_mem_forget_device(int device);
void qcul_mem_lock(void);
void qcul_mem_unlock(void);

/* ---- reserve.c ---- */

/* Keeps this process from using the addresses of device memory. False: it has something there. */
bool qcul_reserve(uint64_t start, uint64_t len);

/* ---- window.c ---- */

/* Chunk memory at an address of the window, mapped. NULL: none left. */
void *qcul_window_map(size_t len);
void qcul_window_unmap(void *addr, size_t len);

/* ---- copy.c ---- */

struct qcul_copy {
	void *dst;
	const void *src;
	size_t dpitch, spitch; /* used when height is more than 1 */
	size_t width, height;
	enum cudaMemcpyKind kind;
	bool sync; /* return when it is done */
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
/* Where a variable lies on this thread's device, `offset` bytes into it. */
cudaError_t qcul_symbol_place(const void *symbol, size_t count, size_t offset, void **addr);
/* A copy with a variable goes that way, or within the device. */
bool qcul_symbol_kind_ok(enum cudaMemcpyKind kind, enum cudaMemcpyKind way);
cudaError_t qcul_copy_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
				enum cudaMemcpyKind kind, cudaStream_t stream, bool sync);
cudaError_t qcul_copy_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
				  enum cudaMemcpyKind kind, cudaStream_t stream, bool sync);

/* ---- array_copy.c: `down` is from the array to memory; x and width are bytes ---- */

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

/* Of a device, or all (-1); under the lock of the handles. */
void qcul_objects_forget(int device);

/* ---- register.c ---- */

/*
 * Has the mirror register the program's own memory, and enters the range, whose kind, start, len,
 * flags and owner are filled in. `other` is then the address by which kernels know it.
 */
cudaError_t qcul_register(struct qcul_range *range);
/* The other way round; the range is no longer entered. */
cudaError_t qcul_unregister(const struct qcul_range *range);

/* For malloc: is any of this block registered? */
bool qcul_is_registered(const void *p, size_t size);
/*
 * The program frees this block: if any of it is registered, it is kept until it is not. `twice`:
 * that has happened before.
 */
bool qcul_keep_registered(void *p, size_t size, bool *twice);
/* Frees what has been kept and is registered no longer. */
void qcul_free_kept(void);

/* ---- pinned.c ---- */

cudaError_t qcul_host_alloc(void **ptr, size_t size, enum qcul_mem kind, unsigned int flags);
cudaError_t qcul_host_free(void *ptr, enum qcul_mem kind);

/* ---- recycle.c: freed pinned memory of the window, still mapped and registered ---- */

/* The GPU is done with it. False: it is to be given back now. */
bool qcul_recycle_keep(uint64_t start, uint64_t len);
/* A block of exactly that length, or NULL. */
void *qcul_recycle_take(uint64_t len);
/* Gives everything back; false: there was nothing. */
bool qcul_recycle_drop(void);

/* ---- module.c ---- */

struct CUkern_st {
	uint32_t magic;
	uint32_t id;
	const char *name;
	struct qcul_module *module;
	atomic_uint ready; /* epoch in which the mirror knows it */
	uint32_t param_count, param_bytes;
	struct qcu_param *params;
	struct qcul_kernel_limits *limits; /* by device */
};

/* What launches are checked against. */
struct qcul_kernel_limits {
	atomic_uint epoch; /* in which it is so; 0: not known, or changed since */
	uint32_t max_threads, max_dynamic;
	bool clusters; /* there are rules about them */
	struct qcu_kernel_desc *desc;
};

/* The kernel behind a host function or a cudaKernel_t; not loaded yet. */
cudaError_t qcul_kernel(const void *func, struct CUkern_st **kernel);
bool qcul_kernel_valid(const struct CUkern_st *kernel);
/* Makes the mirror know it. Returns at once when it does. */
cudaError_t qcul_kernel_load(struct CUkern_st *kernel);
/* On the calling thread's device; of a kernel that has been loaded. */
cudaError_t qcul_kernel_limits(struct CUkern_st *kernel, const struct qcul_kernel_limits **limits);
void qcul_kernel_limits_forget(struct CUkern_st *kernel, int device);
/* All that the mirror says of it there; asked for once, and after each change. */
cudaError_t qcul_kernel_desc(struct CUkern_st *kernel, struct qcu_kernel_desc *desc);
/* A __device__ or __constant__ variable on the calling thread's device. */
cudaError_t qcul_variable(const void *symbol, void **addr, size_t *size);
/*
 * Modules that a program loads itself; the image is copied. Kernels and variables are found by
 * their mangled names, and gone when the module is unloaded.
 */
struct qcul_module *qcul_module_new(const void *image, size_t bytes, uint32_t max_regs);
cudaError_t qcul_module_load(struct qcul_module *m);
void qcul_module_unload(struct qcul_module *m);
cudaError_t qcul_module_kernel(struct qcul_module *m, const char *name, struct CUkern_st **kernel);
cudaError_t qcul_module_variable(struct qcul_module *m, const char *name, void **addr,
				 size_t *size);
/* The same for a managed variable, which is one for all devices. */
cudaError_t qcul_module_managed(struct qcul_module *m, const char *name, void **addr, size_t *size);
/* The names of its kernels, each with its NUL; to be freed. */
cudaError_t qcul_module_names(struct qcul_module *m, char **names, unsigned int *count);
/* A reset has moved the variables of this device. */
void qcul_variables_forget(int device);

/* ---- args.c ---- */

/* Copies a kernel's arguments to their places. False: one lies outside of `room`. */
bool qcul_pack_args(void *to, size_t room, const struct qcu_param *params, uint32_t count,
		    void *const *args);

/* ---- print.c ---- */

/* A reply said that kernels have printed. */
void qcul_print_note(void);
/* Writes it to stdout. Called where CUDA does: at the end of calls that wait. */
void qcul_print_flush(void);

/* ---- memory.c ---- */

/* Where stream-ordered memory comes from. */
struct qcul_pool_use {
	uint32_t pool; /* 0: the default pool of the device */
	int device;
	uint32_t stream;
};
/* Device memory; from NULL: of cudaMalloc. */
cudaError_t qcul_device_alloc(void **ptr, size_t size, const struct qcul_pool_use *from);

/* ---- pool.c ---- */

/* Can there be memory as these say? */
cudaError_t qcul_pool_check(const struct cudaMemPoolProps *props);

/* ---- graph_memory.c: memory that graphs allocate ---- */

bool qcul_graph_memory_is(const void *ptr);
cudaError_t qcul_graph_memory_free(void *ptr);
cudaError_t qcul_graph_memory_free_async(void *ptr, cudaStream_t stream);
/* That of a device, or all of it (-1), is gone. */
void qcul_graph_memory_forget(int device);

/* ---- managed.c ---- */

/* Managed memory has been freed: what was said of it is void. */
void qcul_managed_forget(uint64_t start, uint64_t len);

/* ---- hostfunc.c ---- */

/* ---- unsupported.c ---- */

cudaError_t qcul_unsupported(const char *name, atomic_flag *said);

#endif
