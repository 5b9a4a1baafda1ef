/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Graphs. An instance is a list of work, made once, and the branches in which this work is done. A
 * launch is one piece of work in its stream: the thread of that stream does the first branch, and
 * streams of the instance do the others. Each branch does its nodes in the order of their numbers,
 * and a node waits for nodes of other branches that it depends on. Numbers only depend on smaller
 * ones, so branches cannot wait in a circle.
 *
 * A launch holds the version of the list with which it was put into its stream. An update makes
 * another version if there are such launches.
 *
 * The nodes of a body come after those of the graph. The branch with the conditional node does
 * them, one after the other.
 *
 * An event that a node records is done when the node is done, not when the graph is done. So each
 * such node has a counter of its own: a stream without work, whose numbers the event's ticket has.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/gpu/soft.h"

/* How many branches run at once. Further ones share these. */
#define BRANCHES_MAX 8u
/* Each branch but the first has a thread. So many threads there may be for all graphs. */
#define THREADS_MAX  256u
#define NON_BLOCKING 1u /* cudaStreamNonBlocking */

/* What a node does. It is not changed once it is made. */
struct item {
	unsigned int refs;
	uint8_t type;
	bool off;
	struct soft_work *work; /* NULL: nothing */
	struct soft_device *dev;
	struct be_event *event;
	struct be_cond *cond;
	void (*fn)(void *arg);
	void *arg;
};

/* A version of the list. */
struct list {
	unsigned int refs; /* of the graph, and of launches */
	struct item *items[];
};

/* When a launch does a node. */
struct schedule_entry {
	uint32_t branch;
	uint32_t first_wait, waits; /* in be_graph.waits */
	bool awaited;		    /* by a node of another branch */
	struct be_stream *counter;  /* of a node that records an event */
	uint32_t *bodies;	    /* of a conditional node: where each begins; 0: it is empty */
};

struct be_graph {
	struct be *be;
	unsigned int refs; /* of the owner, and of launches */
	uint32_t count;
	uint32_t outer; /* the nodes that are in no body, which are the first */
	struct be_cond
		*conds; /* the outermost graph of the conditional nodes; NULL: there are none */
	struct schedule_entry *schedule;
	uint32_t *waits;
	unsigned int branches;
	unsigned int room; /* branches that it may have; all but one count in be->branches */
	struct be_stream *streams[BRANCHES_MAX]; /* the first is not used */
	unsigned int events, hosts;		 /* nodes of these types */
	struct list *list;
	struct soft_ticket last; /* the end of the last launch; no stream: there is none */
};

/* An event that a launch records or waits for. */
struct use {
	uint32_t node;
	struct soft_promise promise;
};

struct launch {
	struct soft_work work;
	struct be_graph *g;
	struct list *list;
	struct use *uses;
	unsigned int use_count;
	unsigned int left; /* branches that other streams do, and that are not done */
	int err;	   /* the first error */
	bool done[];	   /* nodes */
};

struct branch {
	struct soft_work work;
	struct launch *launch;
	unsigned int number;
};

/* ---- called with be->lock held ---- */

static void item_put(struct item *it)
{
	if (!it || --it->refs)
		return;
	if (it->work)
		it->work->free(it->work);
	soft_cond_put(it->cond);
	free(it);
}

static void list_put(struct list *l, uint32_t count)
{
	uint32_t i;

	if (!l || --l->refs)
		return;
	for (i = 0; i < count; i++)
		item_put(l->items[i]);
	free(l);
}

static void graph_put(struct be_graph *g)
{
	unsigned int i;

	if (!g || --g->refs)
		return;
	list_put(g->list, g->count);
	if (g->last.s)
		soft_stream_put(g->last.s);
	for (i = 1; i < g->branches; i++)
		if (g->streams[i])
			soft_stream_stop(g->streams[i]);
	g->be->branches -= g->room - 1;
	for (i = 0; g->schedule && i < g->count; i++) {
		if (g->schedule[i].counter)
			soft_stream_put(g->schedule[i].counter);
		free(g->schedule[i].bodies);
	}
	soft_cond_put(g->conds);
	free(g->schedule);
	free(g->waits);
	free(g);
}

/* ---- a launch ---- */

static bool has_launch_stopped(const struct launch *l)
{
	return l->err || atomic_load(&l->g->be->sticky) || l->g->be->closing;
}

static struct use *use_of(const struct launch *l, uint32_t node)
{
	unsigned int i = 0;

	while (l->uses[i].node != node)
		i++;
	return &l->uses[i];
}

/* As for all that does nodes, be->lock is held, and dropped while the node's work is done. */
static int do_node(struct launch *l, uint32_t i);

/* `at` is where the body begins; 0: it is empty. */
static int do_body(struct launch *l, uint32_t at)
{
	const struct be_graph *g = l->g;
	uint32_t i;
	int err = 0;

	for (i = at + 1; at && i < g->count && l->list->items[i]->type != QCU_NODE_BODY && !err &&
			 !has_launch_stopped(l);
	     i++)
		err = do_node(l, i);
	return err;
}

/* A loop has the same time limit as a kernel, because it might not end either. */
static int do_loop(struct launch *l, struct be_cond *c, uint32_t at)
{
	struct be *be = l->g->be;
	struct soft_running running;
	bool stop = false;
	int err = 0;

	pthread_mutex_unlock(&be->lock);
	soft_watchdog_begin(be, &running, "(a loop of a conditional node)");
	while (atomic_load(&c->value) && !err && !stop &&
	       !__atomic_load_n(&be->cancel, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&be->lock);
		err = do_body(l, at);
		stop = has_launch_stopped(l);
		pthread_mutex_unlock(&be->lock);
	}
	soft_watchdog_end(be, &running);
	pthread_mutex_lock(&be->lock);
	return err;
}

static int do_cond(struct launch *l, uint32_t i)
{
	const uint32_t *bodies = l->g->schedule[i].bodies;
	struct be_cond *c = l->list->items[i]->cond;
	uint32_t value = atomic_load(&c->value);

	switch (c->type) {
	case QCU_COND_IF:
		if (value)
			return do_body(l, bodies[0]);
		return c->size > 1 ? do_body(l, bodies[1]) : 0;
	case QCU_COND_WHILE:
		return do_loop(l, c, bodies[0]);
	default:
		return value < c->size ? do_body(l, bodies[value]) : 0;
	}
}

static int do_node(struct launch *l, uint32_t i)
{
	struct be *be = l->g->be;
	const struct item *it = l->list->items[i];
	int err = 0;

	if (it->off)
		return 0;
	if (it->type == QCU_NODE_RECORD)
		soft_promise_keep(be, &use_of(l, i)->promise);
	else if (it->type == QCU_NODE_WAIT)
		soft_promise_wait(be, &use_of(l, i)->promise);
	else if (it->type == QCU_NODE_COND)
		return do_cond(l, i);
	if (!it->work && it->type != QCU_NODE_HOST)
		return 0;
	pthread_mutex_unlock(&be->lock);
	if (it->work)
		err = soft_run_work(it->dev, it->work);
	else
		it->fn(it->arg);
	pthread_mutex_lock(&be->lock);
	return err;
}

/* be->lock is held. False: the launch has stopped. */
static bool wait_for(struct launch *l, const struct schedule_entry *p)
{
	const struct be_graph *g = l->g;
	uint32_t i;

	for (i = 0; i < p->waits; i++)
		while (!l->done[g->waits[p->first_wait + i]] && !has_launch_stopped(l))
			pthread_cond_wait(&g->be->progress, &g->be->lock);
	return !has_launch_stopped(l);
}

static void do_branch(struct launch *l, unsigned int number)
{
	struct be_graph *g = l->g;
	uint32_t i;
	int err;

	pthread_mutex_lock(&g->be->lock);
	for (i = 0; i < g->outer; i++) {
		if (g->schedule[i].branch != number)
			continue;
		if (!wait_for(l, &g->schedule[i]))
			break;
		err = do_node(l, i);
		if (err && !l->err)
			l->err = err;
		l->done[i] = true;
		if (g->schedule[i].awaited || err)
			pthread_cond_broadcast(&g->be->progress);
	}
	pthread_mutex_unlock(&g->be->lock);
}

static int branch_run(struct soft_work *w)
{
	struct branch *b = (struct branch *)w;

	do_branch(b->launch, b->number);
	return 0;
}

/* Also called for a branch that is dropped. The launch may be gone after this. */
static void branch_free(struct soft_work *w)
{
	struct branch *b = (struct branch *)w;

	b->launch->left--;
	pthread_cond_broadcast(&b->launch->g->be->progress);
	free(b);
}

/* be->lock is held. */
static void start_branches(struct launch *l)
{
	struct be_graph *g = l->g;
	unsigned int i;
	int err;

	for (i = 1; i < g->branches; i++) {
		struct branch *b = calloc(1, sizeof(*b));

		if (!b) {
			l->err = QCU_ERR_MemoryAllocation;
			return;
		}
		b->work = (struct soft_work){.run = branch_run, .free = branch_free};
		b->launch = l;
		b->number = i;
		l->left++;
		err = soft_submit_locked(g->streams[i], &b->work, SOFT_QUEUE, NULL, NULL);
		if (err && !l->err)
			l->err = err;
	}
}

static int graph_launch_run(struct soft_work *w)
{
	struct launch *l = (struct launch *)w;
	struct be *be = l->g->be;

	pthread_mutex_lock(&be->lock);
	if (l->g->conds)
		soft_cond_begin(l->g->conds);
	start_branches(l);
	pthread_mutex_unlock(&be->lock);
	do_branch(l, 0);
	pthread_mutex_lock(&be->lock);
	while (l->left)
		pthread_cond_wait(&be->progress, &be->lock);
	if (l->g->conds)
		soft_cond_end(l->g->conds);
	pthread_mutex_unlock(&be->lock);
	return l->err;
}

/* Events that the launch has not reached count as recorded, so that nobody waits for them. */
static void graph_launch_free(struct soft_work *w)
{
	struct launch *l = (struct launch *)w;
	unsigned int i;

	for (i = 0; i < l->use_count; i++)
		soft_promise_end(l->g->be, &l->uses[i].promise);
	free(l->uses);
	l->g->be->calls -= l->g->hosts;
	list_put(l->list, l->g->count);
	graph_put(l->g);
	free(l);
}

/* be->lock is held. Events have the state of this moment, nodes before a wait included. */
static int use_events(struct launch *l)
{
	const struct be_graph *g = l->g;
	uint32_t i;
	int err = 0;

	for (i = 0; i < g->count && l->use_count < g->events && !err; i++) {
		const struct item *it = l->list->items[i];
		struct use *u = &l->uses[l->use_count];

		if (it->type != QCU_NODE_RECORD && it->type != QCU_NODE_WAIT)
			continue;
		u->node = i;
		err = it->type == QCU_NODE_RECORD
			      ? soft_promise_record(it->event, g->schedule[i].counter, &u->promise)
			      : soft_promise_look(it->event, &u->promise);
		l->use_count += !err;
	}
	return err;
}

/* be->lock is held. */
static int submit(struct launch *l, struct be_stream *s)
{
	struct be_graph *g = l->g;
	uint64_t n;
	int err = soft_queue_wait(s);

	l->list = g->list;
	l->list->refs++;
	g->refs++;
	g->be->calls += g->hosts;
	if (g->hosts)
		pthread_cond_broadcast(&g->be->progress); /* for soft_queue_wait() */
	if (!err)
		err = use_events(l);
	if (err) {
		graph_launch_free(&l->work);
		return err;
	}
	soft_stream_get(s);
	err = soft_submit_locked(s, &l->work, SOFT_QUEUE, g->last.s ? &g->last : NULL, &n);
	if (err) {
		soft_stream_put(s);
		return err;
	}
	if (g->last.s)
		soft_stream_put(g->last.s);
	g->last = (struct soft_ticket){.s = s, .n = n};
	return QCU_ERR_Success;
}

int soft_graph_launch(struct be *be, struct be_graph *g, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	struct launch *l;

	if (err)
		return err;
	l = calloc(1, sizeof(*l) + g->count * sizeof(l->done[0]));
	if (l)
		l->uses = calloc(g->events + 1, sizeof(*l->uses));
	if (!l || !l->uses) {
		free(l);
		return QCU_ERR_MemoryAllocation;
	}
	l->work = (struct soft_work){.run = graph_launch_run, .free = graph_launch_free};
	l->work.bytes = (uint32_t)(g->count * sizeof(l->done[0]) + g->events * sizeof(*l->uses));
	l->g = g;
	pthread_mutex_lock(&be->lock);
	err = submit(l, s);
	pthread_mutex_unlock(&be->lock);
	return err;
}

/* A launch needs nothing beforehand. */
int soft_graph_upload(struct be *be, struct be_graph *g, struct be_stream *s)
{
	(void)g;
	(void)s;
	return atomic_load(&be->sticky);
}

/* ---- making ---- */

/* A stream that does not do its work but keeps one piece of it. */
struct recording {
	struct be_stream s;
	struct soft_work *work;
};

static int keep_one(struct be_stream *s, struct soft_work *w)
{
	struct recording *r = (struct recording *)s;

	if (r->work) {
		w->free(w);
		return QCU_ERR_StreamCaptureUnsupported;
	}
	w->kept = true;
	r->work = w;
	return QCU_ERR_Success;
}

static int make_work(struct be *be, const struct be_node *n, struct soft_work **work)
{
	struct recording r = {
		.s = {.be = be, .dev = &be->dev[n->dev], .keep = keep_one},
	};
	int err = QCU_ERR_Success;

	if (n->type == QCU_NODE_KERNEL)
		err = soft_launch(be, n->kernel, &n->launch, &r.s);
	else if (n->type == QCU_NODE_MEMSET)
		err = soft_mem_set(be, &n->set, &r.s);
	else if (n->type == QCU_NODE_COPY)
		err = soft_copy_box(be, &n->box, &r.s);
	*work = r.work;
	return err;
}

static int make_item(struct be *be, const struct be_node *n, struct item **out)
{
	struct item *it = calloc(1, sizeof(*it));
	int err;

	if (!it)
		return QCU_ERR_MemoryAllocation;
	it->refs = 1;
	it->dev = &be->dev[n->dev];
	it->type = n->type;
	it->off = n->off;
	if (n->type == QCU_NODE_RECORD || n->type == QCU_NODE_WAIT) {
		it->event = n->event;
	} else if (n->type == QCU_NODE_HOST) {
		it->fn = n->host.fn;
		it->arg = n->host.arg;
	} else if (n->type == QCU_NODE_COND) {
		pthread_mutex_lock(&be->lock);
		it->cond = n->cond;
		it->cond->refs++;
		pthread_mutex_unlock(&be->lock);
	}
	err = make_work(be, n, &it->work);
	if (err) {
		free(it);
		return err;
	}
	*out = it;
	return QCU_ERR_Success;
}

static struct list *new_list(uint32_t count)
{
	struct list *l = calloc(1, sizeof(*l) + count * sizeof(l->items[0]));

	if (l)
		l->refs = 1;
	return l;
}

/*
 * If a node depends on the last node of a branch, it goes on with that branch. Otherwise it begins
 * a new one, or shares one if there are enough. last_of_branch: for each node, whether it is.
 */
static void choose_branch(struct be_graph *g, const struct be_node *n, bool *last_of_branch)
{
	struct schedule_entry *p = &g->schedule[n->index];
	uint32_t k;

	for (k = 0; k < n->dep_count && !last_of_branch[n->deps[k]]; k++)
		;
	if (k < n->dep_count) {
		p->branch = g->schedule[n->deps[k]].branch;
		last_of_branch[n->deps[k]] = false;
	} else if (g->branches < g->room) {
		p->branch = g->branches++;
	} else {
		p->branch = n->index % g->room;
	}
	last_of_branch[n->index] = true;
}

static int schedule_nodes(struct be_graph *g, const struct be_node *nodes)
{
	bool *last_of_branch = calloc(g->outer + 1, sizeof(*last_of_branch));
	uint32_t i, k, waits = 0;
	uint64_t deps = 0;

	for (i = 0; i < g->outer; i++)
		deps += nodes[i].dep_count;
	g->waits = calloc(deps + 1, sizeof(*g->waits));
	if (!last_of_branch || !g->waits) {
		free(last_of_branch);
		return QCU_ERR_MemoryAllocation;
	}
	for (i = 0; i < g->outer; i++) {
		struct schedule_entry *p = &g->schedule[i];

		choose_branch(g, &nodes[i], last_of_branch);
		p->first_wait = waits;
		for (k = 0; k < nodes[i].dep_count; k++) {
			struct schedule_entry *on = &g->schedule[nodes[i].deps[k]];

			if (on->branch == p->branch)
				continue;
			on->awaited = true;
			g->waits[waits++] = nodes[i].deps[k];
		}
		p->waits = waits - p->first_wait;
	}
	free(last_of_branch);
	return QCU_ERR_Success;
}

/* A conditional node comes before its bodies. */
static int make_bodies(struct be_graph *g, const struct be_node *n)
{
	struct schedule_entry *p;

	if (n->type == QCU_NODE_BODY) {
		g->schedule[n->body.node].bodies[n->body.number] = n->index;
		return QCU_ERR_Success;
	}
	p = &g->schedule[n->index];
	p->bodies = calloc(n->cond->size, sizeof(*p->bodies));
	if (!p->bodies)
		return QCU_ERR_MemoryAllocation;
	if (g->conds)
		return QCU_ERR_Success;
	pthread_mutex_lock(&g->be->lock);
	g->conds = n->cond->graph;
	g->conds->refs++;
	pthread_mutex_unlock(&g->be->lock);
	return QCU_ERR_Success;
}

static int instantiate_node(struct be_graph *g, const struct be_node *n)
{
	int err = make_item(g->be, n, &g->list->items[n->index]);

	if (!err && n->type >= QCU_NODE_COND)
		err = make_bodies(g, n);
	if (err)
		return err;
	g->hosts += n->type == QCU_NODE_HOST;
	g->events += n->type == QCU_NODE_RECORD || n->type == QCU_NODE_WAIT;
	if (n->type != QCU_NODE_RECORD)
		return QCU_ERR_Success;
	g->schedule[n->index].counter = soft_stream_counter(g->be, n->dev);
	return g->schedule[n->index].counter ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

/* With too many threads already, the graph has one branch. */
static void reserve_branches(struct be_graph *g)
{
	struct be *be = g->be;

	pthread_mutex_lock(&be->lock);
	g->room = be->branches + BRANCHES_MAX - 1 <= THREADS_MAX ? BRANCHES_MAX : 1;
	be->branches += g->room - 1;
	pthread_mutex_unlock(&be->lock);
}

/* Gives back what the graph did not need. */
static void return_spare_branches(struct be_graph *g)
{
	unsigned int need = g->branches ? g->branches : 1;

	pthread_mutex_lock(&g->be->lock);
	g->be->branches -= g->room - need;
	g->room = need;
	pthread_mutex_unlock(&g->be->lock);
}

int soft_graph_make(struct be *be, unsigned int dev, const struct be_node *nodes, uint32_t count,
		    struct be_graph **out)
{
	struct be_graph *g = calloc(1, sizeof(*g));
	int err = atomic_load(&be->sticky);
	uint32_t i;

	/* Our libraries work at once, and put nothing into a graph. */
	for (i = 0; i < count && !err; i++)
		err = nodes[i].type == QCU_NODE_CALL ? QCU_ERR_NotSupported : QCU_ERR_Success;
	if (!g)
		return QCU_ERR_MemoryAllocation;
	g->be = be;
	g->refs = 1;
	g->count = count;
	while (g->outer < count && nodes[g->outer].type != QCU_NODE_BODY)
		g->outer++;
	reserve_branches(g);
	g->schedule = calloc(count + 1, sizeof(*g->schedule));
	g->list = new_list(count);
	if (!err && (!g->schedule || !g->list))
		err = QCU_ERR_MemoryAllocation;
	if (!err)
		err = schedule_nodes(g, nodes);
	return_spare_branches(g);
	for (i = 0; i < count && !err; i++)
		err = instantiate_node(g, &nodes[i]);
	for (i = 1; i < g->branches && !err; i++)
		err = soft_stream_create(be, dev, NON_BLOCKING, 0, &g->streams[i]);
	if (!err) {
		*out = g;
		return QCU_ERR_Success;
	}
	soft_graph_destroy(be, g);
	return err;
}

/* be->lock is held. Makes the graph's list one that no launch holds. */
static int own_list(struct be_graph *g)
{
	struct list *l;
	uint32_t i;

	if (g->list->refs == 1)
		return QCU_ERR_Success;
	l = new_list(g->count);
	if (!l)
		return QCU_ERR_MemoryAllocation;
	for (i = 0; i < g->count; i++) {
		l->items[i] = g->list->items[i];
		l->items[i]->refs++;
	}
	list_put(g->list, g->count);
	g->list = l;
	return QCU_ERR_Success;
}

int soft_graph_update(struct be *be, struct be_graph *g, const struct be_node *nodes,
		      uint32_t count)
{
	int err = atomic_load(&be->sticky);
	struct item *it;
	uint32_t i;

	for (i = 0; i < count && !err; i++) {
		err = make_item(be, &nodes[i], &it);
		if (err)
			break;
		pthread_mutex_lock(&be->lock);
		err = own_list(g);
		if (!err) {
			item_put(g->list->items[nodes[i].index]);
			g->list->items[nodes[i].index] = it;
		} else {
			item_put(it);
		}
		pthread_mutex_unlock(&be->lock);
	}
	return err;
}

int soft_graph_destroy(struct be *be, struct be_graph *g)
{
	pthread_mutex_lock(&be->lock);
	graph_put(g);
	pthread_mutex_unlock(&be->lock);
	return atomic_load(&be->sticky);
}
