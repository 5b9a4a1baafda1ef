/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gate that all work for the GPU passes (turn.c). While the VM is alone on the GPU, it costs
 * one test of a number.
 */
#ifndef QCU_TURN_H
#define QCU_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "qcu-device/turns/pages.h"

struct call;
struct mirror;
struct be_stream;
struct stream_ref;

/* One GPU. The streams that have or had marked work stand in the order of the report's slots. */
struct turn_gpu {
	struct mirror *m;
	unsigned int device;
	pthread_t thread; /* says when work is done that was submitted before it was measured */
	bool running;
	atomic_bool broken; /* the broker has not looked for long, since this look: */
	_Atomic uint32_t broken_at;
	pthread_mutex_t lock; /* protects what follows */
	bool registered;      /* the GPU can write into the report */
	bool unmarked;	      /* it cannot: work is only held back */
	unsigned int slots;
	struct turn_stream {
		struct be_stream *s;   /* NULL: it was destroyed */
		uint32_t begun, ended; /* how many pieces of work have been marked */
		uint32_t seen;	       /* how many were done when it was last looked at */
		bool open; /* the GPU does not say when the last one is done: who looks does */
	} slot[TURNS_SLOTS];
	atomic_uint open;   /* how many slots are */
	atomic_bool sleeps; /* the thread does not look */
	/* How long a piece of work takes; 0: not known yet. Measured since then. */
	uint64_t each_ns, since_ns;
	uint32_t crowded;	       /* what the broker had counted then */
	uint64_t stalled_ns, stall_ns; /* since then and for so long no more is let through */
};

struct turn_gate {
	struct turns_view view;
	unsigned int gpus;
	/* Of the program's GPUs, and then of the one that is for the store, if there is one. */
	struct turn_gpu *gpu;
	bool store; /* there is one, with a broker */
	atomic_bool stop;
};

/* turns.c: the mirror has its session. */
void mir_turns_begin(struct mirror *m);
/* From now on no thread of the gate calls the backend, and nobody waits. */
void mir_turns_stop(struct mirror *m);
void mir_turns_fini(struct mirror *m);

/* Has all work in the streams of this device ended? An error also counts as done. */
bool mir_streams_done(struct mirror *m, unsigned int device);

/* turn.c. Waits until the command may submit its work. */
void mir_turn_wait(struct call *c, enum turns_kind kind);
/* Mark the begin and the end of the command's work in its stream, if the VM is measured. */
void mir_turn_mark_begin(struct call *c, const struct stream_ref *s);
void mir_turn_mark_end(struct call *c, const struct stream_ref *s);
/*
 * Before a thread waits for work in the driver: while this says so, it asks again whether the work
 * is done. *end is 0 at first.
 */
bool mir_turn_look_again(const struct mirror *m, unsigned int device, uint64_t *end);
/* The same for all streams of a device, until they are done. */
void mir_turns_await(struct mirror *m, unsigned int device);
/* The stream is about to be destroyed. */
void mir_turn_forget(struct mirror *m, unsigned int device, struct be_stream *s);

/* Is the stream's work done? So it counts after an error, too: the context has ended. */
bool mir_stream_done(const struct mirror *m, struct be_stream *s);

/* What the broker orders, and what the session says. */
const struct turns_orders *mir_turn_orders(const struct turn_gpu *g);
struct turns_report *mir_turn_report(const struct turn_gpu *g);
/* There is something to look at for the GPU's thread. */
void mir_turn_wake(const struct turn_gpu *g);
/* Says what is done of the work whose end the GPU does not mark. */
void mir_turn_close_done(struct turn_gpu *g);
/* The backend marks nothing more, for this reason. The caller holds g->lock. */
void mir_turn_unmark(struct turn_gpu *g, int rc);

#endif
