/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a module must restore after fork(). Each module registers itself when the library is loaded.
 */
#ifndef QCUL_FORK_H
#define QCUL_FORK_H

#include <pthread.h>
#include <stdbool.h>

/*
 * The order in which locks are taken, before fork() and at any other time: a lock further down this
 * list may be taken while one further up is held.
 */
enum qcul_fork_order {
	QCUL_FORK_MALLOC,
	QCUL_FORK_GRAPH_PLACES,
	QCUL_FORK_LIBRARIES,
	QCUL_FORK_MODULES,
	QCUL_FORK_POOLS,
	QCUL_FORK_IPC,
	QCUL_FORK_EXTERNAL,
	QCUL_FORK_SEMAPHORES,
	QCUL_FORK_VIRTUAL,
	QCUL_FORK_LINKS,
	QCUL_FORK_MANAGED_COPIES,
	QCUL_FORK_SESSION,
	QCUL_FORK_SLABS,
	QCUL_FORK_AHEAD,
	QCUL_FORK_RECYCLE,
	QCUL_FORK_MEMORY,
	QCUL_FORK_RESERVE,
	QCUL_FORK_WINDOW,
	QCUL_FORK_EVENTS,
	QCUL_FORK_HANDLES,
	QCUL_FORK_OBJECTS,
	QCUL_FORK_LIBRARY_OBJECTS,
	QCUL_FORK_PRINT,
	QCUL_FORK_CAPTURES,
	QCUL_FORK_GRAPH_MEMORY,
	QCUL_FORK_CONDS,
	QCUL_FORK_HOST_CALLS,
	QCUL_FORK_MANAGED,
	QCUL_FORK_CONTEXTS,
	QCUL_FORK_OLD_LAUNCHES,
	QCUL_FORK_DRIVER,
	QCUL_FORK_LOGS,
	QCUL_FORK_QUERY,
	QCUL_FORK_NOTIFY,
	QCUL_FORK_TRACE,
};

struct qcul_fork_part {
	enum qcul_fork_order order;
	pthread_mutex_t *lock;		  /* held across fork(); NULL: none */
	void (*before)(void);		  /* instead of taking the lock, if that is not enough */
	void (*parent)(void);		  /* instead of releasing the lock */
	void (*child)(void);		  /* the same in the child */
	void (*forget)(bool had_session); /* in the child, which has no session */
	struct qcul_fork_part *next;
};

void qcul_at_fork(struct qcul_fork_part *part);

/* QCUL_AT_FORK(QCUL_FORK_X, .lock = &lock, ...): once in a file. */
#define QCUL_AT_FORK(...)                                               \
	static struct qcul_fork_part fork_part = {__VA_ARGS__};         \
	__attribute__((constructor)) static void register_at_fork(void) \
	{                                                               \
		qcul_at_fork(&fork_part);                               \
	}

/* For session.c. The locks are released before any module forgets its state. */
void qcul_fork_before(void);
void qcul_fork_parent(void);
void qcul_fork_child(void);
void qcul_fork_forget(bool had_session);

#endif
