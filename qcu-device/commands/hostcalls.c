// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Host functions and stream callbacks. They belong to the guest program, so they run in the guest.
 * When a stream reaches one, the backend calls run_in_guest(), which sends the function's token to
 * the guest and blocks the stream until the guest reports that the function has returned. The guest
 * has one thread for them, as CUDA has, so only one is in the guest at a time.
 *
 * Most of these functions are short, and waking a thread takes longer than they do. So one stream
 * at a time polls for the end of its call before it sleeps (spin.h).
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "qcu-device/commands/commands.h"

struct host_call {
	struct mirror *m;
	uint64_t token;
	uint32_t error;
	atomic_bool done;	       /* set under the lock */
	STAILQ_ENTRY(host_call) link;  /* in `all` */
	STAILQ_ENTRY(host_call) order; /* in `ready` */
};

/* A function that a graph runs. */
struct graph_host {
	struct mirror *m;
	uint64_t token;
	unsigned int refs; /* under the lock */
	LIST_ENTRY(graph_host) link;
};

void mir_host_calls_init(struct mirror *m)
{
	struct host_calls *h = &m->host_calls;

	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->moved, NULL);
	spin_init(&h->spin, m->cfg.poll_us);
	STAILQ_INIT(&h->ready);
	STAILQ_INIT(&h->all);
	LIST_INIT(&h->graph_hosts);
}

/* Frees the calls that the backend has dropped. */
void mir_host_calls_fini(struct mirror *m)
{
	struct host_calls *h = &m->host_calls;
	struct host_call *call;
	struct graph_host *g;

	while ((call = STAILQ_FIRST(&h->all))) {
		STAILQ_REMOVE_HEAD(&h->all, link);
		free(call);
	}
	while ((g = LIST_FIRST(&h->graph_hosts))) {
		LIST_REMOVE(g, link);
		free(g);
	}
	pthread_cond_destroy(&h->moved);
	pthread_mutex_destroy(&h->lock);
}

/*
 * The caller holds the lock. Returns the parked request if it can be answered now; it is then no
 * longer parked.
 */
static struct mir_request *next_answer(struct host_calls *h)
{
	struct mir_request *req = h->parked;
	struct host_call *call = STAILQ_FIRST(&h->ready);

	if (!req || (!call && !h->ended))
		return NULL;
	h->parked = NULL;
	req->cmd.flags = 0;
	req->cmd.status = h->ended;
	if (!h->ended) {
		STAILQ_REMOVE_HEAD(&h->ready, order);
		h->running = call;
		req->cmd.host_next.token = call->token;
		req->cmd.host_next.error = call->error;
	}
	return req;
}

bool mir_host_calls_look(const struct mirror *m)
{
	return m->host_calls.running || !STAILQ_EMPTY(&m->host_calls.ready);
}

static void answer_parked_request(struct mir_request *req)
{
	if (req)
		req->done(req);
}

static void poll_for_end(struct host_call *call, uint64_t began, uint64_t ns)
{
	unsigned int i;

	for (i = 1; !atomic_load_explicit(&call->done, memory_order_acquire); i++) {
		spin_pause();
		if (i % 64 == 0 && !spin_more(began, ns))
			return;
	}
}

/* Runs on a thread of the backend; the stream waits. */
static void run_in_guest(void *arg, int error)
{
	struct host_call *call = arg;
	struct host_calls *h = &call->m->host_calls;
	struct mir_request *req;
	uint64_t began = spin_clock(), ns;
	bool polls;

	pthread_mutex_lock(&h->lock);
	call->error = (uint32_t)error;
	STAILQ_INSERT_TAIL(&h->ready, call, order);
	/* A move of managed memory may be waiting for the GPU, see managed.c. */
	pthread_cond_broadcast(&h->moved);
	req = next_answer(h);
	ns = h->spin.now_ns;
	polls = ns && !h->polling;
	h->polling |= polls;
	pthread_mutex_unlock(&h->lock);
	answer_parked_request(req);

	if (polls)
		poll_for_end(call, began, ns);
	pthread_mutex_lock(&h->lock);
	h->polling &= !polls;
	while (!call->done && !h->ended)
		pthread_cond_wait(&h->moved, &h->lock);
	spin_came(&h->spin, spin_clock() - began);
	/* After the end, mir_host_calls_fini() frees it. */
	if (call->done)
		STAILQ_REMOVE(&h->all, call, host_call, link);
	else
		call = NULL;
	pthread_mutex_unlock(&h->lock);
	free(call);
}

void mir_host_calls_end(struct mirror *m)
{
	struct host_calls *h = &m->host_calls;
	struct mir_request *req;

	pthread_mutex_lock(&h->lock);
	h->ended = m->abandoned ? QCU_ERR_CudartUnloading : QCU_ERR_DevicesUnavailable;
	req = next_answer(h);
	pthread_cond_broadcast(&h->moved);
	pthread_mutex_unlock(&h->lock);
	answer_parked_request(req);
}

bool mir_awaits_program(struct mirror *m)
{
	bool awaits;

	pthread_mutex_lock(&m->host_calls.lock);
	awaits = mir_host_calls_look(m);
	pthread_mutex_unlock(&m->host_calls.lock);
	pthread_mutex_lock(&m->result_lock);
	awaits |= m->result_count > 0;
	pthread_mutex_unlock(&m->result_lock);
	return awaits;
}

struct mir_request *mir_unpark(struct mirror *m)
{
	struct host_calls *h = &m->host_calls;
	struct mir_request *req;

	pthread_mutex_lock(&h->lock);
	req = h->parked;
	h->parked = NULL;
	/* What it said about an earlier call has been heard. */
	if (req)
		req->cmd.host_next.done = 0;
	pthread_mutex_unlock(&h->lock);
	return req;
}

/* ---- functions in graphs ---- */

struct graph_host *mir_graph_host_new(struct mirror *m, uint64_t token)
{
	struct graph_host *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct graph_host){.m = m, .token = token, .refs = 1};
	pthread_mutex_lock(&m->host_calls.lock);
	LIST_INSERT_HEAD(&m->host_calls.graph_hosts, g, link);
	pthread_mutex_unlock(&m->host_calls.lock);
	return g;
}

void mir_graph_host_hold(struct graph_host *g)
{
	pthread_mutex_lock(&g->m->host_calls.lock);
	g->refs++;
	pthread_mutex_unlock(&g->m->host_calls.lock);
}

void mir_graph_host_put(struct graph_host *g)
{
	pthread_mutex_t *lock;
	bool gone;

	if (!g)
		return;
	lock = &g->m->host_calls.lock;
	pthread_mutex_lock(lock);
	gone = !--g->refs;
	if (gone)
		LIST_REMOVE(g, link);
	pthread_mutex_unlock(lock);
	if (gone)
		free(g);
}

void mir_graph_host_run(void *arg)
{
	struct graph_host *g = arg;
	struct host_calls *h = &g->m->host_calls;
	struct host_call *call = calloc(1, sizeof(*call));

	if (call) {
		call->m = g->m;
		call->token = g->token;
		pthread_mutex_lock(&h->lock);
		STAILQ_INSERT_TAIL(&h->all, call, link);
		pthread_mutex_unlock(&h->lock);
		run_in_guest(call, QCU_ERR_Success);
	}
	mir_graph_host_put(g);
}

int mir_do_host_func(struct call *c)
{
	const struct qcu_host_func *f = &c->cmd->host_func;
	struct host_calls *h = &c->m->host_calls;
	struct host_call *call;
	struct stream_ref s;
	int rc;

	if (!f->token || f->flags & ~QCU_HOST_ALWAYS)
		return QCU_ERR_InvalidValue;
	rc = mir_stream_get(c, f->stream, &s);
	if (rc)
		return rc;
	call = calloc(1, sizeof(*call));
	if (!call) {
		rc = QCU_ERR_MemoryAllocation;
		goto out;
	}
	call->m = c->m;
	call->token = f->token;
	pthread_mutex_lock(&h->lock);
	STAILQ_INSERT_TAIL(&h->all, call, link);
	pthread_mutex_unlock(&h->lock);
	rc = c->m->cfg.ops->host_func(c->m->be, run_in_guest, call, f->flags & QCU_HOST_ALWAYS,
				      s.s);
	if (rc) {
		pthread_mutex_lock(&h->lock);
		STAILQ_REMOVE(&h->all, call, host_call, link);
		pthread_mutex_unlock(&h->lock);
		free(call);
	}
out:
	mir_stream_put(c, &s);
	return rc;
}

/* Called on the thread that passes requests to the mirror, with no lock held. */
int mir_do_host_next(struct call *c)
{
	struct qcu_host_next *n = &c->cmd->host_next;
	struct host_calls *h = &c->m->host_calls;
	struct mir_request *req = NULL;
	int rc = QCU_ERR_Success;

	pthread_mutex_lock(&h->lock);
	if (h->parked || n->wait > 1 || n->done != (h->running ? h->running->token : 0)) {
		rc = QCU_ERR_InvalidValue;
		goto out;
	}
	if (h->running) {
		h->running->done = true;
		h->running = NULL;
		pthread_cond_broadcast(&h->moved);
	}
	if (n->wait) {
		h->parked = c->req;
		req = next_answer(h);
		rc = MIR_PARKED;
	}
out:
	pthread_mutex_unlock(&h->lock);
	answer_parked_request(req);
	return rc;
}
