// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a command leaves for its guest thread because a record has no room for it: the texts of a
 * compiler, a linked image, a descriptor. The thread fetches it with RESULT_READ. Only a few
 * threads have something to fetch at a time, so the oldest results go when there are many.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/commands.h"

#define THREADS 64u

struct result {
	uint32_t tid;
	void *part[QCU_RESULTS];
	size_t len[QCU_RESULTS];
	TAILQ_ENTRY(result) link;
};

void mir_results_init(struct mirror *m)
{
	pthread_mutex_init(&m->result_lock, NULL);
	TAILQ_INIT(&m->results);
}

static void free_result(struct mirror *m, struct result *r)
{
	unsigned int i;

	for (i = 0; r && i < QCU_RESULTS; i++) {
		mir_give(m, LIMIT_MODULE_BYTES, r->len[i]);
		free(r->part[i]);
	}
	free(r);
}

void mir_results_fini(struct mirror *m)
{
	struct result *r;

	while ((r = TAILQ_FIRST(&m->results))) {
		TAILQ_REMOVE(&m->results, r, link);
		free_result(m, r);
	}
	pthread_mutex_destroy(&m->result_lock);
}

/* Takes the thread's results out of the list. NULL: there are none. */
static struct result *take_thread_result(struct mirror *m, uint32_t tid)
{
	struct result *r;

	pthread_mutex_lock(&m->result_lock);
	TAILQ_FOREACH(r, &m->results, link)
	if (r->tid == tid)
		break;
	if (r) {
		TAILQ_REMOVE(&m->results, r, link);
		m->result_count--;
	}
	pthread_mutex_unlock(&m->result_lock);
	return r;
}

static void put_result_last(struct mirror *m, struct result *r)
{
	struct result *oldest = NULL;

	pthread_mutex_lock(&m->result_lock);
	TAILQ_INSERT_TAIL(&m->results, r, link);
	if (++m->result_count > THREADS) {
		oldest = TAILQ_FIRST(&m->results);
		TAILQ_REMOVE(&m->results, oldest, link);
		m->result_count--;
	}
	pthread_mutex_unlock(&m->result_lock);
	free_result(m, oldest);
}

void mir_result_drop(struct call *c)
{
	free_result(c->m, take_thread_result(c->m, c->cmd->tid));
}

int mir_result_put(struct call *c, uint32_t what, const void *bytes, size_t len)
{
	struct mirror *m = c->m;
	struct result *r;
	void *copy;
	int rc;

	if (!len)
		return QCU_ERR_Success;
	rc = mir_take(c, LIMIT_MODULE_BYTES, len);
	if (rc)
		return rc;
	r = take_thread_result(m, c->cmd->tid);
	if (!r)
		r = calloc(1, sizeof(*r));
	copy = malloc(len);
	if (!r || !copy) {
		mir_give(m, LIMIT_MODULE_BYTES, len);
		free(copy);
		free_result(m, r);
		return QCU_ERR_MemoryAllocation;
	}
	memcpy(copy, bytes, len);
	mir_give(m, LIMIT_MODULE_BYTES, r->len[what]);
	free(r->part[what]);
	r->tid = c->cmd->tid;
	r->part[what] = copy;
	r->len[what] = len;
	put_result_last(m, r);
	return QCU_ERR_Success;
}

int mir_do_result_read(struct call *c)
{
	struct qcu_result_read *rr = &c->cmd->result_read;
	struct result *r;
	int rc = QCU_ERR_Success;

	if (rr->what >= QCU_RESULTS || rr->forget > 1)
		return QCU_ERR_InvalidValue;
	/* Nobody else looks for it meanwhile: a thread's commands come one after the other. */
	r = take_thread_result(c->m, c->cmd->tid);
	if (!r)
		return QCU_ERR_Success;
	rr->bytes = r->len[rr->what];
	if (rr->bytes && rr->buf.len)
		rc = mir_buf_write(c, 0, r->part[rr->what],
				   rr->bytes < rr->buf.len ? rr->bytes : rr->buf.len);
	if (rr->forget)
		free_result(c->m, r);
	else
		put_result_last(c->m, r);
	return rc;
}

/* ---- what compilers say ---- */

int mir_jit_begin(struct call *c, const struct qcu_jit *options, struct be_jit *jit)
{
	*jit = (struct be_jit){.options = *options};
	if (options->flags & ~QCU_JIT_FLAGS || options->rsvd || options->optimize > 4)
		return QCU_ERR_InvalidValue;
	mir_result_drop(c);
	if (!(options->flags & QCU_JIT_LOGS))
		return QCU_ERR_Success;
	jit->info = malloc(BE_LOG_BYTES);
	jit->error = malloc(BE_LOG_BYTES);
	if (!jit->info || !jit->error) {
		mir_jit_end(jit);
		return QCU_ERR_MemoryAllocation;
	}
	jit->info[0] = jit->error[0] = '\0';
	return QCU_ERR_Success;
}

int mir_jit_tell(struct call *c, const struct be_jit *jit)
{
	int rc = QCU_ERR_Success;

	if (jit->info)
		rc = mir_result_put(c, QCU_RESULT_INFO, jit->info,
				    strnlen(jit->info, BE_LOG_BYTES));
	if (jit->error && !rc)
		rc = mir_result_put(c, QCU_RESULT_ERROR, jit->error,
				    strnlen(jit->error, BE_LOG_BYTES));
	return rc;
}

void mir_jit_end(struct be_jit *jit)
{
	free(jit->info);
	free(jit->error);
	jit->info = jit->error = NULL;
}
