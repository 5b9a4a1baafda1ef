/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all of the library builds on. A public call (cuda*) checks its arguments, fills in a record
 * and sends the record with qcul_send(). transport.h describes the layer below that.
 *
 * Errors: every function here returns a cudaError_t unless its comment says otherwise. A public
 * call returns through qcul_done(), which keeps the value for cudaGetLastError.
 *
 * fork.h lists all locks, in the order in which they may nest, and says where state belongs.
 */
#ifndef QCUL_LINK_H
#define QCUL_LINK_H

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

#include "qcu-library/link/compiler_abi.h"
#pragma GCC visibility pop

#include "include/qcucmd.h"

/* ---- the calling thread (thread.c) ---- */

/*
 * A variable of each thread, at a fixed distance from the thread's pointer. Others are found by a
 * function that costs 25 instructions, and 110 as soon as the program has loaded one more library.
 * A library that a program loads later finds little room for such variables, less than 1.6 KB for
 * all such libraries together: they must be small (check/libcuda).
 */
#define QCUL_NEAR __thread __attribute__((tls_model("initial-exec")))

struct qcul_call_config {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
	struct qcul_call_config *below;
};

struct qcul_kept;

struct qcul_thread {
	uint32_t tid;
	uint32_t seq;
	unsigned int epoch; /* last session in which this thread sent something; 0: none */
	int device;	    /* numbered as for cudaSetDevice */
	bool device_chosen; /* chosen by this thread; if false, cudaSetValidDevices decides */
	cudaError_t last;
	cudaError_t late; /* error of posted commands, not yet reported (session.c) */
	bool unheard;	  /* it has posted commands since its last answer */
	bool traced;	  /* sends what the trace has to do with: it is not traced itself */
	bool in_callback; /* runs a host function: CUDA calls are not permitted */
	bool bound;	  /* it has a current context, which is one of its device */
	unsigned int
		counted; /* it need not call qcul_device_bind(): qcul_bindings at the last call */
	unsigned int ready; /* its context can be used: qcul_bindings when that was found out */
	struct CUctx_st *context;  /* the driver API's context; NULL: the device's primary one */
	struct qcul_green *green;  /* the green context that this is; NULL: it is none */
	cudaStream_t green_stream; /* which stands for stream 0 then */
	enum cudaStreamCaptureMode capture_mode;
	bool configured;		/* a <<<>>> configuration was pushed and not yet popped: */
	struct qcul_call_config config; /* the newest; the others are below it */
	struct qcul_kept *kept;		/* answers about occupancy, freed when the thread ends */
};
extern QCUL_NEAR struct qcul_thread qcul_self;

/* The thread's current context is this one. NULL: its device's primary one, or none. */
static inline void qcul_self_context(struct CUctx_st *context, struct qcul_green *green,
				     cudaStream_t green_stream)
{
	qcul_self.context = context;
	qcul_self.green = green;
	qcul_self.green_stream = green_stream;
}

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
/* Has the program called a function of the runtime that needs the session? */
bool qcul_opened(void);
/*
 * Counts the sessions of this process and its ancestors. An object with an older number is stale.
 */
unsigned int qcul_epoch(void);
uint32_t qcul_tid(void);
const struct qcu_hello *qcul_hello(void);
const struct qcu_info *qcul_info(void);

/* May there be an object at this address? Programs give other pointers, too. */
static inline bool qcul_may_point(const void *p)
{
	return p && (uintptr_t)p % sizeof(void *) == 0;
}

/* A record for this device, and one for the calling thread's. */
struct qCUcmd qcul_cmd_for(enum qcu_op op, int device);
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

/*
 * Someone else sends all commands instead (trace.c), and calls qcul_send_untraced() for it. NULL:
 * no one does. A thread that is `traced` sends its own.
 */
typedef cudaError_t qcul_send_fn(struct qCUcmd *cmds, unsigned int count);
void qcul_session_traced_by(qcul_send_fn *send);
cudaError_t qcul_send_untraced(struct qCUcmd *cmds, unsigned int count);

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
 * A name of C++ as people write it, in memory that the program's own free() takes. NULL: it is
 * none, or there is no library of C++.
 */
char *qcul_demangle(const char *name);

/*
 * While this is on, qcul_say_once prints nothing in this thread and does not set `said`, so it can
 * still print the sentence later.
 */
void qcul_hush(bool on);

/*
 * What else happens to an error. `line` writes it to the log, and `deliver` gives new lines of the
 * log to the program; `print` prints what kernels have said about it. The modules set these when
 * the library is loaded.
 */
void qcul_errors_logged_by(void (*line)(const char *text), void (*deliver)(void));
void qcul_errors_explained_by(void (*print)(void));

/* ---- env.c ---- */

/*
 * Reads a number of bytes with an optional K, M or G. False: not set, or not a number. The second
 * case is reported on stderr.
 */
bool qcul_env_bytes(const char *name, uint64_t *bytes);
bool qcul_env_on(const char *name);
/* Prints a line on stderr if QCU_TRACE is set. */
void qcul_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- devices.c: which devices the program sees ---- */

#define QCUL_DEVICES 64

/*
 * Sets the number of devices that the program may see, after CUDA_VISIBLE_DEVICES. Called when a
 * session opens.
 */
void qcul_devices_start(unsigned int count);
int qcul_device_count(void);
/* Call this before a command names the device. */
void qcul_device_used(int device);
/* A bit for each device that has been used in this session. */
uint64_t qcul_devices_used(void);
/* The mirror's number for a device that the program sees. */
uint8_t qcul_device_ordinal(int device);
/* The other way round. -1: the program does not see it. */
int qcul_device_with_ordinal(uint64_t ordinal);
/*
 * The runtime uses the primary context of the thread's device: it becomes the current one, unless
 * the thread has a current one. qcul_ready() calls this once for each thread and device.
 */
void qcul_device_bind(void);
/* A bit for each device whose primary context the runtime uses. */
uint64_t qcul_devices_bound(void);
/* After a reset the runtime does not use the device (-1: any device) any more. */
void qcul_device_unbind(int device);
extern atomic_uint qcul_bindings; /* changes when a context may have come to its end; never 0 */
void qcul_bindings_changed(void);
/* The device of threads that have not chosen one. */
int qcul_device_default(void);
void qcul_device_set_default(int device);

/* ---- handles.c: streams, events and arrays, and the numbers of modules, kernels and links ---- */

enum qcul_life {
	QCUL_FREE, /* the number may be given out */
	QCUL_LIVE,
	QCUL_KEPT, /* an event: destroyed for the program, but the mirror still has it */
};

struct qcul_handle {
	uint32_t live; /* enum qcul_life */
	uint32_t flags;
	int32_t priority;
	int32_t device;
	struct qcul_captured_event *capture; /* recorded in a capture (graph_capture.c) */
	struct qcul_green *green;	     /* the green context of a stream; NULL: none */
	/* how often an event was recorded; the last of these known to be done (query.c) */
	_Atomic uint64_t recorded, done;
	_Atomic uint64_t waited; /* the last count that was waited for (progress.c) */
	/* an event: the program has not recorded it yet; the mirror has it */
	atomic_bool empty, made;
};
struct qcul_table {
	struct qcul_handle *slots; /* QCU_ID_MAX + 1 */
	uint32_t next, top;
};
extern struct qcul_table qcul_streams, qcul_events, qcul_module_ids, qcul_kernel_ids;
extern struct qcul_table qcul_pools, qcul_conds, qcul_graphs;
extern struct qcul_table qcul_arrays, qcul_link_ids, qcul_green_ids;

/* A free number and its slot, or NULL. */
struct qcul_handle *qcul_handle_new(struct qcul_table *t, uint32_t *id);
/* The number of a live handle. 0: not a live handle. Any pointer may be passed. */
uint32_t qcul_handle_id(const struct qcul_table *t, const void *handle);
void qcul_handle_drop(struct qcul_table *t, uint32_t id);
/*
 * Events that the program has destroyed, for those that it creates later. keep() returns false if
 * enough are kept. again() returns an event of these flags and this device, or NULL. give_up()
 * returns the event that was kept longest, which the mirror must destroy, or 0.
 */
bool qcul_event_keep(uint32_t id);
struct qcul_handle *qcul_event_again(uint32_t flags, int device, uint32_t *id);
uint32_t qcul_event_give_up(void);
void qcul_handles_lock(void);
void qcul_handles_unlock(void);

/* The number of a stream. The legacy and per-thread streams are allowed. */
cudaError_t qcul_stream_id(cudaStream_t stream, uint32_t *id);
int qcul_stream_device(uint32_t stream);

/* ---- progress.c: what happened since a question was asked or a wait was answered ---- */

/* How often a call has waited for something, or has seen that something is done. */
extern _Atomic uint64_t qcul_waits;
/*
 * Bit 0 (QCUL_MOVED): work was put into a stream since the count was last taken. The other bits
 * are the count: how often that was so.
 */
#define QCUL_MOVED 1ull
extern _Atomic uint64_t qcul_moved;

/* How long the library believes what it knows without a word from the mirror: a dead mirror is
 * silent. */
#define QCUL_BELIEVE_MS 100
uint64_t qcul_clock_ms(void);

/* Call this after an answer that a call waited for. */
void qcul_progress_waited(void);
/*
 * Call these after the record has been sent: for new work in a stream; for an event that was
 * recorded.
 */
void qcul_progress_moved(void);
void qcul_progress_recorded(uint32_t event);
/* A new event is done, as in CUDA. */
void qcul_progress_created(uint32_t event);
/* Returns the current count. Work that is sent after this call gets a higher count. */
uint64_t qcul_progress_now(void);

/* One wait: for a device, a stream or an event, or for nothing that is kept. */
struct qcul_wait {
	_Atomic uint64_t *waited;
	uint64_t count;
	uint32_t event;
};
/* Call these before a record is sent that waits, and after it has been answered with success. */
void qcul_wait_begins(struct qcul_wait *w, const struct qCUcmd *cmd);
void qcul_wait_ends(const struct qcul_wait *w);
/*
 * Has a wait been answered after which nothing was put into any stream, and that covers all work of
 * the device, the stream, or the event? The stream is one of the thread's current device.
 */
bool qcul_device_waited(int device);
bool qcul_stream_waited(uint32_t stream);
bool qcul_event_waited(uint32_t event);
/* The event was not recorded yet, and no other process can have recorded it. */
bool qcul_event_empty(uint32_t event);
/*
 * May the thread's wait be left out, if `waited`? Not if the thread has posted something since
 * its last answer, because the wait returns the errors of posted commands; and not if the mirror
 * has been silent for long.
 */
bool qcul_wait_needless(bool waited);

/* ---- args.c ---- */

/* Copies a kernel's arguments to their offsets. False: one of them does not fit in `room`. */
bool qcul_pack_args(void *to, size_t room, const struct qcu_param *params, uint32_t count,
		    void *const *args);

/* ---- print.c ---- */

/* An answer has said that kernels have printed something (session.c). */
extern atomic_bool qcul_printed;
/* Writes this output to stdout. Called where CUDA does so: at the end of calls that wait. */
void qcul_print_flush(void);
/* Who makes a text of where a kernel failed, and writes it to stderr. */
void qcul_faults_told_by(void (*tell)(struct qcu_fault *fault));

/* ---- misc.c ---- */

cudaError_t qcul_unsupported(const char *name, atomic_flag *said);

#endif
