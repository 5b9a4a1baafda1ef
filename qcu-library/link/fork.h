/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the library keep, and what becomes of it at fork() and in a device reset.
 *
 * A file keeps its state in one or two structures (tests/check/state.sh):
 *
 * - `session`: what ends with the session. In the child of a fork it is all zero, as in a process
 *   that has just started.
 * - `process`: all else.
 *
 * What a thread has is in qcul_self, or in a __thread variable of the file that uses it.
 *
 * A file with a lock or a `session` has one entry. It registers itself when the library is
 * loaded.
 */
#ifndef QCUL_FORK_H
#define QCUL_FORK_H

#include <pthread.h>
#include <stddef.h>

/*
 * All locks, in the order in which they are taken, before fork() and at any other time: a lock
 * further down this list may be taken while one further up is held. fork() takes all of them, so
 * every table is consistent in the child.
 */
enum qcul_fork_order {
	QCUL_FORK_MALLOC,	   /* malloc_hook.c; the arena has its own mutex */
	QCUL_FORK_GRAPH_POOLS,	   /* making the streams and pools that graph memory uses */
	QCUL_FORK_LIBRARIES,	   /* modules loaded at run time */
	QCUL_FORK_MODULES,	   /* what the mirror has loaded; then the tables of module.c */
	QCUL_FORK_POOLS,	   /* pools that processes share */
	QCUL_FORK_IPC,		   /* memory of other processes */
	QCUL_FORK_EXTERNAL,	   /* external memory */
	QCUL_FORK_SEMAPHORES,	   /* external semaphores */
	QCUL_FORK_VIRTUAL,	   /* virtual memory */
	QCUL_FORK_LINKS,	   /* links of the driver API */
	QCUL_FORK_DESCRIPTIONS,	   /* descriptions of devices */
	QCUL_FORK_MANAGED_COPIES,  /* copies of __managed__ variables */
	QCUL_FORK_SESSION,	   /* opening the session */
	QCUL_FORK_SLABS,	   /* small pinned memory */
	QCUL_FORK_AHEAD,	   /* device memory allocated ahead */
	QCUL_FORK_RECYCLE,	   /* freed pinned memory */
	QCUL_FORK_MEMORY,	   /* what lies at which address */
	QCUL_FORK_RESERVE,	   /* addresses of device memory */
	QCUL_FORK_WINDOW,	   /* used addresses of the window */
	QCUL_FORK_EVENTS,	   /* making an event in the mirror */
	QCUL_FORK_HANDLES,	   /* tables of handles; textures and surfaces */
	QCUL_FORK_OBJECTS,	   /* none: textures and surfaces */
	QCUL_FORK_CURRENT_POOLS,   /* none: each device's current pool */
	QCUL_FORK_LIBRARY_OBJECTS, /* objects of NVIDIA's libraries */
	QCUL_FORK_PRINT,	   /* what kernels have printed */
	QCUL_FORK_CAPTURES,	   /* captures in progress */
	QCUL_FORK_GRAPH_MEMORY,	   /* memory of graphs */
	QCUL_FORK_CONDS,	   /* conditional handles */
	QCUL_FORK_HOST_CALLS,	   /* the thread that runs host functions */
	QCUL_FORK_MANAGED,	   /* advice for managed memory */
	QCUL_FORK_GREENS,	   /* green contexts */
	QCUL_FORK_CONTEXTS,	   /* contexts of the driver API */
	QCUL_FORK_OLD_LAUNCHES,	   /* parameters for cuLaunch */
	QCUL_FORK_DRIVER,	   /* none: has the driver API been started? */
	QCUL_FORK_LOGS,		   /* lines of the log */
	QCUL_FORK_QUERY,	   /* none: the page of answers */
	QCUL_FORK_DEVICES,	   /* none: devices that the program sees */
	QCUL_FORK_NOTIFY,	   /* functions to call when memory is short */
	QCUL_FORK_TRACE_RANGES,	   /* ranges of the program's in a trace */
	QCUL_FORK_TRACE,	   /* the trace */
	QCUL_FORK_TRACE_ABOUT,	   /* names of kernels in a trace */
	QCUL_FORK_FAULTS,	   /* none: how many faults and findings there were */
};

struct qcul_fork_entry {
	enum qcul_fork_order order;
	pthread_mutex_t lock;	   /* held across fork() */
	void (*before)(void);	   /* after the lock was taken */
	void (*parent)(void);	   /* before it is released */
	void (*child)(void);	   /* the same in the child */
	void (*reset)(int device); /* a device was reset; -1: all that `forget` says */
	void (*forget)(void);	   /* in the child, which has no session */
	void *session;		   /* set to 0 after that */
	size_t bytes;
	struct qcul_fork_entry *next;
};

void qcul_at_fork(struct qcul_fork_entry *entry);

/* QCUL_AT_FORK(QCUL_FORK_X, ...): once in a file. The file's lock is at_fork.lock. */
#define QCUL_AT_FORK(...)                                                           \
	static struct qcul_fork_entry at_fork = {.lock = PTHREAD_MUTEX_INITIALIZER, \
						 .order = __VA_ARGS__};             \
	__attribute__((constructor)) static void register_at_fork(void)             \
	{                                                                           \
		qcul_at_fork(&at_fork);                                             \
	}
/* The value of a call that is made under the file's lock. */
#define QCUL_LOCKED(call)                            \
	({                                           \
		cudaError_t result_;                 \
                                                     \
		pthread_mutex_lock(&at_fork.lock);   \
		result_ = (call);                    \
		pthread_mutex_unlock(&at_fork.lock); \
		result_;                             \
	})

/* For QCUL_AT_FORK, in a file that has a `session`. */
#define QCUL_SESSION .session = &session, .bytes = sizeof(session)

/* For session.c. */
void qcul_fork_before(void);
void qcul_fork_parent(void);
void qcul_fork_child(void);
/*
 * Forgets what was on a device, after cudaDeviceReset. -1: all that belongs to the session, in the
 * child of a fork. No lock is held.
 */
void qcul_forget(int device);

#endif
