/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Graphs with conditional nodes. A graph is a list of work. Work that is put into the stream that
 * records a graph is not done but kept in this list. A conditional node is one piece of work in the
 * list: it reads the value that kernels have set, and then does the work of the bodies that it
 * selects. The outermost graph is a node that always does its only body. Everything is done on the
 * thread of the stream in which the graph runs.
 */
#include <stdlib.h>

#include "qcu-device/soft/gpu/soft.h"

#define NON_BLOCKING 1u /* cudaStreamNonBlocking */

/* One recording of a body. A new recording of the same body replaces it. */
struct soft_body {
	unsigned int refs;
	struct be_cond *cond, *graph; /* referenced until the recording ends */
	uint32_t index;
	struct soft_work *head, **tail;
};

struct be_cond {
	struct be_cond *next;
	struct be *be;
	unsigned int dev;
	unsigned int refs; /* held by the owner, by work and by recordings */
	/* The outermost graph has a handle, too, but no kernel knows it. */
	uint64_t handle;
	uint64_t graph; /* handle of the outermost graph that this is in */
	_Atomic uint32_t value;
	uint32_t first;
	bool has_first;
	uint32_t type, size;
	struct soft_body **body; /* size entries; NULL: no node has been made yet */
	/* The members below are used in the outermost graph only. */
	unsigned int recording; /* bodies of this graph that are being recorded */
	unsigned int running;
	bool ready;
};

struct cond_work {
	struct soft_work work;
	struct be_cond *cond;
};

/* ---- called with be->lock held ---- */

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

static int body_keep(struct be_stream *s, struct soft_work *w)
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

static void body_end(struct be_stream *s)
{
	struct soft_body *b = s->body;
	struct be_cond *c = b->cond;

	body_put(c->body[b->index]);
	c->body[b->index] = b;
	b->graph->recording--;
	cond_put(b->graph);
	cond_put(c);
}

static const struct soft_recorder recorder = {.keep = body_keep, .end = body_end};

bool soft_work_usable(struct be *be, const struct soft_work *w, uint64_t addr, uint64_t len)
{
	return (!w->kept && !soft_virtual_holds(be, addr)) || soft_mem_usable(be, addr, len);
}

/* ---- running work ---- */

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

/* A loop has the same time limit as a kernel, because it might not end either. */
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

/* Begins a run: sets each node to its initial value, if it has one. be->lock is held. */
static void begin(struct be_cond *graph)
{
	struct be_cond *c;

	graph->running++;
	for (c = graph->be->conds; c; c = c->next)
		if (c->graph == graph->handle && c->has_first)
			atomic_store(&c->value, c->first);
}

static int graph_run(struct soft_work *w)
{
	struct be_cond *graph = ((struct cond_work *)w)->cond;
	struct be *be = graph->be;
	int err;

	pthread_mutex_lock(&be->lock);
	begin(graph);
	pthread_mutex_unlock(&be->lock);
	err = do_body(graph, 0);
	pthread_mutex_lock(&be->lock);
	graph->running--;
	pthread_mutex_unlock(&be->lock);
	return err;
}

static void work_free(struct soft_work *w)
{
	cond_put(((struct cond_work *)w)->cond);
	free(w);
}

static int submit(struct be_cond *c, struct be_stream *s, int (*run)(struct soft_work *w))
{
	struct cond_work *w = calloc(1, sizeof(*w));

	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work = (struct soft_work){.run = run, .free = work_free, .again = true};
	w->cond = c;
	pthread_mutex_lock(&c->be->lock);
	c->refs++;
	pthread_mutex_unlock(&c->be->lock);
	return soft_submit(s, &w->work, SOFT_QUEUE, NULL);
}

static struct be_cond *find(struct be *be, uint64_t handle)
{
	struct be_cond *c;

	for (c = be->conds; c && c->handle != handle; c = c->next)
		;
	return c;
}

/*
 * As on a GPU, only kernels that run in the handle's own graph may set its value. This function
 * checks that the graph is running.
 */
bool soft_env_condition(void *ctx, uint64_t handle, uint32_t value)
{
	struct be *be = ((struct soft_device *)ctx)->be;
	struct be_cond *c, *graph;

	pthread_mutex_lock(&be->lock);
	c = find(be, handle);
	graph = c && c->graph != handle ? find(be, c->graph) : NULL;
	if (graph && graph->running)
		atomic_store(&c->value, value);
	else
		c = NULL;
	pthread_mutex_unlock(&be->lock);
	return c;
}

/* ---- the backend's functions ---- */

int soft_cond_create(struct be *be, unsigned int dev, struct be_cond *in, uint32_t body,
		     const uint32_t *first, struct be_cond **out, uint64_t *handle)
{
	int err = atomic_load(&be->sticky);
	struct be_cond *c;

	if (err)
		return err;
	if (in && body >= in->size)
		return QCU_ERR_InvalidValue;
	c = calloc(1, sizeof(*c));
	if (c && !in)
		c->body = calloc(1, sizeof(struct soft_body *));
	if (!c || (!in && !c->body)) {
		free(c);
		return QCU_ERR_MemoryAllocation;
	}
	c->be = be;
	c->dev = dev;
	c->refs = 1;
	c->size = !in;
	c->first = first ? *first : 0;
	c->has_first = first;
	pthread_mutex_lock(&be->lock);
	c->handle = ++be->handles;
	c->graph = in ? in->graph : c->handle;
	c->next = be->conds;
	be->conds = c;
	pthread_mutex_unlock(&be->lock);
	*out = c;
	*handle = in ? c->handle : 0;
	return QCU_ERR_Success;
}

int soft_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size)
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
	if (!made)
		return QCU_ERR_Success;
	free(body);
	return QCU_ERR_InvalidValue;
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
		b->graph = find(be, c->graph);
		if (body < c->size && b->graph) {
			c->refs++;
			b->graph->refs++;
			b->graph->recording++;
			b->graph->ready = false;
			(*out)->body = b;
			(*out)->recorder = &recorder;
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

int soft_cond_place(struct be *be, struct be_cond *c, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	bool made;

	pthread_mutex_lock(&be->lock);
	made = c->body;
	pthread_mutex_unlock(&be->lock);
	if (!err && !made)
		err = QCU_ERR_InvalidValue;
	return err ? err : submit(c, s, run_run);
}

int soft_cond_ready(struct be *be, struct be_cond *graph)
{
	int err = atomic_load(&be->sticky);

	pthread_mutex_lock(&be->lock);
	if (!err && graph->recording)
		err = QCU_ERR_InvalidValue;
	if (!err)
		graph->ready = true;
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_cond_run(struct be *be, struct be_cond *graph, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	bool ready;

	pthread_mutex_lock(&be->lock);
	ready = graph->ready;
	pthread_mutex_unlock(&be->lock);
	if (!err && !ready)
		err = QCU_ERR_InvalidValue;
	return err ? err : submit(graph, s, graph_run);
}

int soft_cond_destroy(struct be *be, struct be_cond *c)
{
	pthread_mutex_lock(&be->lock);
	cond_put(c);
	pthread_mutex_unlock(&be->lock);
	return atomic_load(&be->sticky);
}
