// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory that moves. Its device memory lies in the window at the address of the guest's
 * mapping. The guest's driver knows which side has which part (docs/managed.md); here are the
 * beginning and the end of such memory, and the moves.
 *
 * A move down must come after the GPU's work, which may write the memory. The guest asks for it in
 * a page fault. If that fault is in a host function, or in a thread for which a host function
 * waits, the GPU's work does not end before the fault does. So a move waits only until the GPU is
 * idle or a host function is in the guest. Work that began before that function and goes on in
 * another stream is then not waited for. CUDA's rules for devices with concurrentManagedAccess 0
 * forbid a program to touch memory that such work uses.
 *
 * Because of that the lane of the moves does not wait in the backend. A thread does it, and the
 * lane waits for the thread.
 */
#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"

#define NON_BLOCKING 1u /* cudaStreamNonBlocking */

void mir_managed_gone(void *mirror, unsigned int device, uint64_t bytes)
{
	struct mirror *m = mirror;

	count_sub(m->counts, COUNT_DEVICE, bytes);
	mir_give_memory(m, device, bytes);
	mir_give(m, LIMIT_ALLOCATIONS, 1);
}

int mir_do_managed(struct call *c)
{
	const struct qcu_managed *g = &c->cmd->managed;
	struct mirror *m = c->m;
	int rc;

	if (g->bytes > QCU_WINDOW_SIZE)
		return QCU_ERR_InvalidValue;
	rc = mir_take(c, LIMIT_ALLOCATIONS, 1);
	if (rc)
		return rc;
	rc = mir_take_memory_from_pools(c->m, c->cmd->device, g->bytes);
	if (rc) {
		mir_give(m, LIMIT_ALLOCATIONS, 1);
		return rc;
	}
	count_add(m->counts, COUNT_DEVICE, g->bytes);
	rc = window_place(&m->window, c->cmd->device, g->va, g->len, g->bytes);
	if (rc)
		mir_managed_gone(m, c->cmd->device, g->bytes);
	return rc;
}

int mir_do_managed_end(struct call *c)
{
	const struct qcu_managed_end *e = &c->cmd->managed_end;

	return window_unplace(&c->m->window, e->va, e->len);
}

/* ---- moves ---- */

/*
 * Waits for what the guest has sent and for what the GPU has begun. The guest's own calls report
 * the errors. Returns how many commands have come by then.
 */
static uint64_t wait_for_all(struct mirror *m)
{
	pthread_mutex_t *use = &m->use[MIR_USER_WAITING].lock;
	uint64_t count = lanes_settle(m->lanes);
	unsigned int dev;

	pthread_mutex_lock(use);
	for (dev = 0; dev < m->devices && !atomic_load(&m->abandoned); dev++)
		(void)m->cfg.ops->device_sync(m->be, dev);
	pthread_mutex_unlock(use);
	return count;
}

static void *wait_whenever_asked(void *mirror)
{
	struct mirror *m = mirror;
	struct host_calls *h = &m->host_calls;
	struct moves *mv = &m->moves;

	pthread_mutex_lock(&h->lock);
	while (!mv->stop) {
		uint64_t asked = mv->asked, count;

		if (mv->done == asked) {
			pthread_cond_wait(&h->moved, &h->lock);
			continue;
		}
		pthread_mutex_unlock(&h->lock);
		count = wait_for_all(m);
		pthread_mutex_lock(&h->lock);
		mv->done = asked;
		mv->settled = count;
		pthread_cond_broadcast(&h->moved);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* The caller holds host_calls->lock. */
static int ask_for_wait(struct mirror *m, uint64_t *n)
{
	struct moves *mv = &m->moves;

	if (!mv->running && pthread_create(&mv->thread, NULL, wait_whenever_asked, m)) {
		complain("no thread can wait for the GPU");
		return QCU_ERR_OperatingSystem;
	}
	mv->running = true;
	*n = ++mv->asked;
	pthread_cond_broadcast(&m->host_calls.moved);
	return QCU_ERR_Success;
}

/*
 * A program usually waits for the GPU before it touches managed memory. Then a move need not wait
 * once more, if all other commands had been carried out when that wait began, and none has come
 * since.
 */
bool mir_managed_sync(struct call *c)
{
	struct mirror *m = c->m;
	uint64_t count;
	bool running;

	if (m->devices > 1)
		return false;
	pthread_mutex_lock(&m->host_calls.lock);
	running = m->moves.running;
	pthread_mutex_unlock(&m->host_calls.lock);
	return running && lanes_only(m->lanes, c->req, &count);
}

void mir_managed_synced(struct call *c)
{
	struct mirror *m = c->m;
	uint64_t count;

	pthread_mutex_lock(&m->host_calls.lock);
	if (lanes_only(m->lanes, c->req, &count))
		m->moves.settled = count;
	pthread_mutex_unlock(&m->host_calls.lock);
}

/*
 * A reset keeps the waiting thread out of the backend, and waits until this command is out of it.
 * So this command lets go of the backend while it waits.
 */
static int wait_for_gpu(struct call *c)
{
	struct mirror *m = c->m;
	pthread_mutex_t *use = &m->use[c->req->order.slot].lock;
	struct host_calls *h = &m->host_calls;
	int rc = QCU_ERR_Success;
	uint64_t n;

	pthread_mutex_unlock(use);
	pthread_mutex_lock(&h->lock);
	if (m->moves.settled != lanes_count(m->lanes) && !mir_host_calls_look(m)) {
		rc = ask_for_wait(m, &n);
		while (!rc && m->moves.done < n && !mir_host_calls_look(m) && !h->ended)
			pthread_cond_wait(&h->moved, &h->lock);
	}
	pthread_mutex_unlock(&h->lock);
	pthread_mutex_lock(use);
	return rc;
}

/* Only the lane of the moves uses the streams, so they need no lock. */
static int get_move_stream(struct call *c, unsigned int device, struct stream_ref *s)
{
	struct be_stream **stream = &c->m->moves.stream[device];
	int rc = QCU_ERR_Success;

	if (!*stream)
		rc = c->m->cfg.ops->stream_create(c->m->be, device, NON_BLOCKING, 0, stream);
	if (rc)
		*stream = NULL;
	*s = (struct stream_ref){.s = *stream, .device = device};
	return rc;
}

int mir_do_managed_move(struct call *c)
{
	const struct qcu_managed_move *mv = &c->cmd->managed_move;
	bool down = mv->flags & QCU_MOVE_DOWN;
	struct stream_ref s;
	unsigned int device;
	int rc = QCU_ERR_Success;

	if (mv->flags & ~QCU_MOVE_DOWN || mv->rsvd)
		return MIR_RULE_BROKEN;
	if (down)
		rc = wait_for_gpu(c);
	if (rc)
		return rc;
	if (!window_placed(&c->m->window, mv->va, mv->len, &device, &c->holds))
		return QCU_ERR_InvalidValue;
	rc = get_move_stream(c, device, &s);
	if (!rc)
		rc = mir_copy_segments(c, !down, mv->va, &s);
	if (!rc)
		count_add(c->m->counts, down ? COUNT_MOVED_DOWN : COUNT_MOVED_UP, mv->len);
	return rc;
}

static void end_streams(struct mirror *m)
{
	unsigned int i;

	for (i = 0; i < m->devices; i++) {
		if (m->moves.stream[i])
			m->cfg.ops->stream_destroy(m->be, m->moves.stream[i]);
		m->moves.stream[i] = NULL;
	}
}

void mir_managed_reset(struct mirror *m)
{
	window_unplace_all(&m->window);
	end_streams(m);
}

void mir_moves_end(struct mirror *m)
{
	struct host_calls *h = &m->host_calls;
	bool running;

	pthread_mutex_lock(&h->lock);
	m->moves.stop = true;
	running = m->moves.running;
	pthread_cond_broadcast(&h->moved);
	pthread_mutex_unlock(&h->lock);
	if (running)
		pthread_join(m->moves.thread, NULL);
	end_streams(m);
}
