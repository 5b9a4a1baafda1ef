/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditional nodes. A body is a list of work that is kept: what is put into the body's stream goes
 * there instead of being done. The node itself is one piece of work, which looks at the value that
 * kernels have set and does the lists that it stands for, on the thread of the stream that it is
 * in.
 */
#include <stdlib.h>

#include "qcu-device/soft/soft.h"

#define NON_BLOCKING 1u /* cudaStreamNonBlocking */

/* One body as it was recorded; replaced when it is recorded again. */
struct soft_body {
	unsigned int refs;
	struct be_cond *cond; /* held until the recording has ended */
	uint32_t index;
	struct soft_work *head, **tail;
};

struct be_cond {
	struct be_cond *next;
	struct be *be;
	unsigned int dev;
	unsigned int refs; /* the owner's, and of work that is about it */
	uint64_t handle;
	_Atomic uint32_t value;
	uint32_t type, size;
	struct soft_body **body; /* size entries; NULL: there is no node */
	unsigned int recording;
	bool ready;
};

struct cond_work {
	struct soft_work work;
	struct be_cond *cond;
	uint32_t value;
};

/* ---- be->lock is held ---- */

static void cond_put(struct be_cond *c);

static void body_put(struct soft_body *b)
{
	struct soft_work *w;

	if (!b || --b->refs)
		return;
	while ((w = b->head)) {
		b->head = w->next;
		w->free(w);
	}
	free(b);
}

static void cond_put(struct be_cond *c)
{
	struct be_cond **p = &c->be->conds;
	uint32_t i;

	if (--c->refs)
		return;
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	for (i = 0; i < c->size; i++)
		body_put(c->body[i]);
	free(c->body);
	free(c);
}

int soft_body_keep(struct be_stream *s, struct soft_work *w)
{
	if (!w->again) {
		w->free(w);
		return QCU_ERR_StreamCaptureUnsupported;
	}
	w->kept = true;
	w->next = NULL;
	*s->body->tail = w;
	s->body->tail = &w->next;
	return QCU_ERR_Success;
}

void soft_body_end(struct be_stream *s)
{
	struct soft_body *b = s->body;
	struct be_cond *c;

	if (!b)
		return;
	c = b->cond;
	body_put(c->body[b->index]);
	c->body[b->index] = b;
	c->recording--;
	cond_put(c);
}

bool soft_work_usable(struct be *be, const struct soft_work *w, uint64_t addr, uint64_t len)
{
	return !w->kept || soft_mem_usable(be, addr, len);
}

/* ---- doing it ---- */

static int do_body(struct be_cond *c, uint32_t i)
{
	struct be *be = c->be;
	struct soft_body *b;
	struct soft_work *w;
	int err = 0;

	pthread_mutex_lock(&be->lock);
	b = c->body[i];
	if (b)
		b->refs++;
	pthread_mutex_unlock(&be->lock);
	for (w = b ? b->head : NULL; w && !err; w = w->next)
		err = w->run(w);
	pthread_mutex_lock(&be->lock);
	body_put(b);
	pthread_mutex_unlock(&be->lock);
	return err;
}

/* Under the same limit of time as a kernel: it need not end, either. */
static int loop(struct be_cond *c)
{
	struct be *be = c->be;
	struct soft_running running;
	int err = 0;

	soft_watchdog_begin(be, &running, "(a loop of a conditional node)");
	while (atomic_load(&c->value) && !err && !__atomic_load_n(&be->cancel, __ATOMIC_RELAXED))
		err = do_body(c, 0);
	soft_watchdog_end(be, &running);
	return err;
}

static int run_run(struct soft_work *w)
{
	struct be_cond *c = ((struct cond_work *)w)->cond;
	uint32_t value = atomic_load(&c->value);

	switch (c->type) {
	case QCU_COND_IF:
		if (value)
			return do_body(c, 0);
		return c->size > 1 ? do_body(c, 1) : 0;
	case QCU_COND_WHILE:
		return loop(c);
	default:
		return value < c->size ? do_body(c, value) : 0;
	}
}

static int set_run(struct soft_work *w)
{
	const struct cond_work *cw = (const struct cond_work *)w;

	atomic_store(&cw->cond->value, cw->value);
	return 0;
}

static void work_free(struct soft_work *w)
{
	cond_put(((struct cond_work *)w)->cond);
	free(w);
}

static int submit(struct be_cond *c, struct be_stream *s, int (*run)(struct soft_work *w),
		  uint32_t value)
{
	struct cond_work *w = calloc(1, sizeof(*w));

	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work = (struct soft_work){.run = run, .free = work_free, .again = true};
	w->cond = c;
	w->value = value;
	pthread_mutex_lock(&c->be->lock);
	c->refs++;
	pthread_mutex_unlock(&c->be->lock);
	return soft_submit(s, &w->work, SOFT_QUEUE, NULL);
}

bool soft_env_condition(void *ctx, uint64_t handle, uint32_t value)
{
	struct be *be = ((struct soft_device *)ctx)->be;
	struct be_cond *c;

	pthread_mutex_lock(&be->lock);
	for (c = be->conds; c && c->handle != handle; c = c->next)
		;
	if (c)
		atomic_store(&c->value, value);
	pthread_mutex_unlock(&be->lock);
	return c;
}

/* ---- the backend's functions ---- */

int soft_cond_create(struct be *be, unsigned int dev, struct be_cond *within, struct be_cond **out,
		     uint64_t *handle)
{
	int err = atomic_load(&be->sticky);
	struct be_cond *c;

	(void)within;
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return QCU_ERR_MemoryAllocation;
	c->be = be;
	c->dev = dev;
	c->refs = 1;
	pthread_mutex_lock(&be->lock);
	c->handle = ++be->handles;
	c->next = be->conds;
	be->conds = c;
	pthread_mutex_unlock(&be->lock);
	*out = c;
	*handle = c->handle;
	return QCU_ERR_Success;
}

int soft_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size,
		   struct be_stream *s)
{
	struct soft_body **body;
	bool made;

	body = calloc(size, sizeof(*body));
	if (!body)
		return QCU_ERR_MemoryAllocation;
	pthread_mutex_lock(&be->lock);
	made = c->body;
	if (!made) {
		c->type = type;
		c->size = size;
		c->body = body;
	}
	pthread_mutex_unlock(&be->lock);
	if (made) {
		free(body);
		return QCU_ERR_InvalidValue;
	}
	return s ? submit(c, s, run_run, 0) : QCU_ERR_Success;
}

int soft_cond_record(struct be *be, struct be_cond *c, uint32_t body, struct be_stream **out)
{
	struct soft_body *b = NULL;
	int err;

	*out = NULL;
	err = soft_stream_create(be, c->dev, NON_BLOCKING, 0, out);
	if (!err) {
		b = calloc(1, sizeof(*b));
		err = b ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
	}
	if (!err) {
		*b = (struct soft_body){.refs = 1, .cond = c, .index = body, .tail = &b->head};
		pthread_mutex_lock(&be->lock);
		if (body < c->size) {
			c->refs++;
			c->recording++;
			c->ready = false;
			(*out)->body = b;
		} else {
			err = QCU_ERR_InvalidValue;
		}
		pthread_mutex_unlock(&be->lock);
	}
	if (!err)
		return QCU_ERR_Success;
	free(b);
	if (*out)
		soft_stream_destroy(be, *out);
	*out = NULL;
	return err;
}

int soft_cond_ready(struct be *be, struct be_cond *c)
{
	int err = atomic_load(&be->sticky);

	pthread_mutex_lock(&be->lock);
	if (!err && (!c->body || c->recording))
		err = QCU_ERR_InvalidValue;
	if (!err)
		c->ready = true;
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_cond_set(struct be *be, struct be_cond *c, uint32_t value, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);

	return err ? err : submit(c, s, set_run, value);
}

int soft_cond_run(struct be *be, struct be_cond *c, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	bool ready;

	pthread_mutex_lock(&be->lock);
	ready = c->ready;
	pthread_mutex_unlock(&be->lock);
	if (!err && !ready)
		err = QCU_ERR_InvalidValue;
	return err ? err : submit(c, s, run_run, 0);
}

int soft_cond_destroy(struct be *be, struct be_cond *c)
{
	pthread_mutex_lock(&be->lock);
	cond_put(c);
	pthread_mutex_unlock(&be->lock);
	return atomic_load(&be->sticky);
}
