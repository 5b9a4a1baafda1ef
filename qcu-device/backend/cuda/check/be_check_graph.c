// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * be_check's checks of graphs: wrong ones, chains, branches, fills, copies of every shape, events,
 * host functions, launches one after the other, and updates, also while a launch is under way.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/check/be_check.h"

#define CHAIN	 100u
#define BRANCHES 12u

/* A word that a kernel has changed shows how often, and in which order. */
struct step {
	uint64_t p;
	uint32_t n;
} __attribute__((packed));

static struct be_node kernel_node(struct be_kernel *k, const struct step *s, uint32_t index,
				  const uint32_t *deps, uint32_t count)
{
	return (struct be_node){
		.type = QCU_NODE_KERNEL,
		.index = index,
		.deps = deps,
		.dep_count = count,
		.kernel = k,
		.launch = {.grid = {1, 1, 1},
			   .block = {1, 1, 1},
			   .params = s,
			   .param_bytes = sizeof(*s)},
	};
}

static struct be_node make_memset_node(uint64_t at, uint32_t words, uint32_t value, uint32_t index,
				       const uint32_t *deps, uint32_t count)
{
	return (struct be_node){
		.type = QCU_NODE_MEMSET,
		.index = index,
		.deps = deps,
		.dep_count = count,
		.set = {.dst = at, .width = 4ull * words, .height = 1, .value = value, .elem = 4},
	};
}

/* From device memory to registered memory. */
static struct be_node copy_node(uint64_t to, uint64_t from, uint64_t len, uint32_t index,
				const uint32_t *deps, uint32_t count)
{
	return (struct be_node){
		.type = QCU_NODE_COPY,
		.index = index,
		.deps = deps,
		.dep_count = count,
		.box = {.dst = {.addr = to, .pitch = len, .rows = 1, .host = true},
			.src = {.addr = from, .pitch = len, .rows = 1},
			.width = len,
			.height = 1,
			.depth = 1},
	};
}

static uint32_t step(uint32_t v, uint32_t n)
{
	return v * 5 + n;
}

static bool launch_graph(struct check *c, struct be_graph *g, struct be_stream *s)
{
	return want(CALL(c, graph_launch, g, s), 0, "graph_launch");
}

static bool launch_and_wait(struct check *c, struct be_graph *g)
{
	return launch_graph(c, g, c->legacy) &&
	       want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
}

static void check_bad(struct check *c, struct be_kernel *k)
{
	struct step s = {c->scratch, 1};
	struct be_node n = kernel_node(k, &s, 0, NULL, 0);
	struct be_graph *g = NULL;

	n.launch.grid.x = 0;
	check(CALL(c, graph_make, 0, &n, 1, &g) != 0, "no graph with a kernel without blocks");
	n = kernel_node(k, &s, 0, NULL, 0);
	n.launch.param_bytes = 1;
	check(CALL(c, graph_make, 0, &n, 1, &g) != 0, "none with too few parameters");
	want(CALL(c, device_sync, 0), 0, "no error is left behind");
	want(CALL(c, graph_make, 0, NULL, 0, &g), 0, "a graph without nodes");
	launch_and_wait(c, g);
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
}

static void check_chain(struct check *c, struct be_kernel *k)
{
	struct be_node nodes[CHAIN + 2];
	struct step s[CHAIN];
	uint32_t before[CHAIN + 2], i, v = 0, *w = c->window;
	struct be_graph *g = NULL;

	for (i = 0; i < CHAIN + 2; i++)
		before[i] = i - 1;
	nodes[0] = make_memset_node(c->scratch, 1, 3, 0, NULL, 0);
	for (i = 0; i < CHAIN; i++) {
		s[i] = (struct step){c->scratch, i};
		nodes[i + 1] = kernel_node(k, &s[i], i + 1, &before[i + 1], 1);
	}
	nodes[CHAIN + 1] = copy_node((uintptr_t)w, c->scratch, 4, CHAIN + 1, &before[CHAIN + 1], 1);
	if (!want(CALL(c, graph_make, 0, nodes, CHAIN + 2, &g), 0, "graph_make of a chain"))
		return;
	memset(nodes, 0, sizeof(nodes));
	memset(s, 0, sizeof(s));
	want(CALL(c, graph_upload, g, c->legacy), 0, "graph_upload");
	for (v = 3, i = 0; i < CHAIN; i++)
		v = step(v, i);
	*w = 0;
	launch_and_wait(c, g);
	check(*w == v, "a chain of %u kernels", CHAIN);
	*w = 0;
	launch_and_wait(c, g);
	check(*w == v, "the same once more");
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
}

static void check_branches(struct check *c, struct be_kernel *k)
{
	struct be_node nodes[2 * BRANCHES + 2];
	struct step s[2 * BRANCHES];
	uint32_t zero = 0, before[2 * BRANCHES], ends[BRANCHES], i, *w = c->window;
	struct be_graph *g = NULL;
	bool good = true;

	nodes[0] = make_memset_node(c->scratch, BRANCHES, 7, 0, NULL, 0);
	for (i = 0; i < BRANCHES; i++) {
		s[2 * i] = (struct step){c->scratch + 4 * i, i};
		s[2 * i + 1] = (struct step){c->scratch + 4 * i, 100};
		before[i] = 2 * i + 1;
		ends[i] = 2 * i + 2;
		nodes[2 * i + 1] = kernel_node(k, &s[2 * i], 2 * i + 1, &zero, 1);
		nodes[2 * i + 2] = kernel_node(k, &s[2 * i + 1], 2 * i + 2, &before[i], 1);
	}
	nodes[2 * BRANCHES + 1] =
		copy_node((uintptr_t)w, c->scratch, 4 * BRANCHES, 2 * BRANCHES + 1, ends, BRANCHES);
	if (!want(CALL(c, graph_make, 0, nodes, 2 * BRANCHES + 2, &g), 0, "graph_make of branches"))
		return;
	memset(w, 0, 4 * BRANCHES);
	launch_and_wait(c, g);
	for (i = 0; i < BRANCHES; i++)
		good &= w[i] == step(step(7, i), 100);
	check(good, "%u branches", BRANCHES);
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
}

/* Rows with gaps, slices with gaps, and the way back. */
static void check_boxes(struct check *c)
{
	unsigned char *w = c->window;
	uint64_t dev = c->scratch, at = (uintptr_t)w;
	uint32_t zero = 0, one = 1;
	struct be_node nodes[3] = {
		{.type = QCU_NODE_MEMSET,
		 .set = {.dst = dev,
			 .pitch = 128,
			 .width = 96,
			 .height = 12,
			 .value = 9,
			 .elem = 1}},
		{.type = QCU_NODE_COPY, .index = 1, .deps = &zero, .dep_count = 1},
		{.type = QCU_NODE_COPY, .index = 2, .deps = &one, .dep_count = 1},
	};
	struct be_graph *g = NULL;
	unsigned int x, y, z;
	bool good = true;

	nodes[1].box = (struct be_box){
		.dst = {.addr = dev, .pitch = 128, .rows = 4},
		.src = {.addr = at, .pitch = 64, .rows = 5, .host = true},
		.width = 32,
		.height = 2,
		.depth = 3,
	};
	nodes[2].box = (struct be_box){
		.dst = {.addr = at + 4096, .pitch = 128, .rows = 12, .host = true},
		.src = {.addr = dev, .pitch = 128, .rows = 12},
		.width = 96,
		.height = 12,
		.depth = 1,
	};
	for (x = 0; x < 4096; x++)
		w[x] = (unsigned char)(x * 7 + x / 64);
	memset(w + 4096, 0, 4096);
	if (!want(CALL(c, graph_make, 0, nodes, 3, &g), 0, "graph_make of boxes"))
		return;
	launch_and_wait(c, g);
	for (z = 0; z < 3; z++)
		for (y = 0; y < 4; y++)
			for (x = 0; x < 128; x++) {
				unsigned char is = w[4096 + (z * 4 + y) * 128 + x];
				unsigned char should = x < 96 ? 9 : 0;

				if (x < 32 && y < 2)
					should = w[(z * 5 + y) * 64 + x];
				good &= is == should;
			}
	check(good, "rows and slices are in their places, and nothing else");
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
}

static atomic_bool gate;
static atomic_uint calls;

static void hold_until_gate_opens(void *unused)
{
	(void)unused;
	while (!atomic_load(&gate))
		usleep(100);
	atomic_fetch_add(&calls, 1);
}

static void check_updates(struct check *c, struct be_kernel *k)
{
	uint32_t zero = 0, one = 1, two = 2, *w = c->window;
	struct step s = {c->scratch, 1}, t = {c->scratch, 2};
	struct be_node nodes[4] = {
		{.type = QCU_NODE_HOST, .host = {hold_until_gate_opens, NULL}},
		make_memset_node(c->scratch, 1, 10, 1, &zero, 1),
		kernel_node(k, &s, 2, &one, 1),
		copy_node((uintptr_t)w, c->scratch, 4, 3, &two, 1),
	};
	struct be_graph *g = NULL;

	if (!want(CALL(c, graph_make, 0, nodes, 4, &g), 0, "graph_make"))
		return;
	w[0] = w[8] = 0;
	atomic_store(&gate, false);
	atomic_store(&calls, 0);
	launch_graph(c, g, c->legacy);
	nodes[1] = make_memset_node(c->scratch, 1, 20, 1, NULL, 0);
	nodes[2] = kernel_node(k, &t, 2, NULL, 0);
	nodes[3] = copy_node((uintptr_t)(w + 8), c->scratch, 4, 3, NULL, 0);
	want(CALL(c, graph_update, g, nodes + 1, 3), 0, "graph_update of a graph that runs");
	atomic_store(&gate, true);
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	check(w[0] == step(10, 1) && !w[8], "it does what it was told before");
	launch_and_wait(c, g);
	check(w[8] == step(20, 2) && atomic_load(&calls) == 2, "then what it was told last");
	nodes[2].off = true;
	want(CALL(c, graph_update, g, nodes + 2, 1), 0, "a kernel is left out");
	launch_and_wait(c, g);
	check(w[8] == 20, "without it");
	nodes[2].off = false;
	want(CALL(c, graph_update, g, nodes + 2, 1), 0, "and taken in again");
	launch_and_wait(c, g);
	check(w[8] == step(20, 2), "with it");
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
}

/* An event in the middle is done while the graph still runs, in which a stream's launch waits. */
static void check_events(struct check *c, struct be_kernel *k)
{
	uint32_t before[] = {0, 1, 2}, *w = c->window;
	struct step s = {c->scratch, 1};
	struct be_stream *a = NULL, *b = NULL;
	struct be_event *e = NULL;
	struct be_graph *g = NULL;

	if (!want(CALL(c, event_create, 0, 2, &e), 0, "event_create") ||
	    !want(CALL(c, stream_create, 0, 1, 0, &a), 0, "stream_create") ||
	    !want(CALL(c, stream_create, 0, 1, 0, &b), 0, "stream_create"))
		return;
	struct be_node nodes[4] = {
		kernel_node(k, &s, 0, NULL, 0),
		{.type = QCU_NODE_RECORD,
		 .index = 1,
		 .deps = &before[0],
		 .dep_count = 1,
		 .event = e},
		{.type = QCU_NODE_HOST,
		 .index = 2,
		 .deps = &before[1],
		 .dep_count = 1,
		 .host = {hold_until_gate_opens, NULL}},
		copy_node((uintptr_t)w, c->scratch, 4, 3, &before[2], 1),
	};
	struct be_memset zero = {.dst = c->scratch, .width = 4, .height = 1, .value = 0, .elem = 4};

	want(CALL(c, mem_set, &zero, c->legacy), 0, "mem_set");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	if (!want(CALL(c, graph_make, 0, nodes, 4, &g), 0, "graph_make with events"))
		return;
	atomic_store(&gate, false);
	*w = 0;
	launch_graph(c, g, a);
	want(CALL(c, event_sync, e), 0, "an event in the middle of a graph");
	want(CALL(c, stream_query, a), QCU_ERR_NotReady, "the graph still runs");
	launch_graph(c, g, b);
	want(CALL(c, stream_query, b), QCU_ERR_NotReady, "its next launch waits for it");
	want(CALL(c, graph_destroy, g), 0, "graph_destroy of a graph that runs");
	check(!*w, "nothing has come behind the host function");
	atomic_store(&gate, true);
	want(CALL(c, stream_sync, a), 0, "stream_sync");
	want(CALL(c, stream_sync, b), 0, "stream_sync");
	check(*w == step(step(0, 1), 1), "both launches are done");
	CALL(c, stream_destroy, a);
	CALL(c, stream_destroy, b);
	CALL(c, event_destroy, e);
}

/* Kernels with attributes. A backend may refuse to change these in place, with the one error. */
static void check_attributes(struct check *c, struct be_kernel *k)
{
	uint32_t *w = c->window, zero = 0;
	struct step s = {c->scratch, 4};
	struct be_node nodes[3] = {make_memset_node(c->scratch, 1, 6, 0, NULL, 0),
				   kernel_node(k, &s, 1, &zero, 1)};
	struct be_graph *g = NULL;
	uint32_t one = 1;
	int ret;

	nodes[1].launch.flags = QCU_LAUNCH_COOPERATIVE | QCU_LAUNCH_PRIORITY;
	nodes[2] = copy_node((uintptr_t)w, c->scratch, 4, 2, &one, 1);
	if (!want(CALL(c, graph_make, 0, nodes, 3, &g), 0, "graph_make of a cooperative kernel"))
		return;
	*w = 0;
	launch_and_wait(c, g);
	check(*w == step(6, 4), "a cooperative kernel in a graph");
	nodes[1].deps = NULL;
	nodes[1].dep_count = 0;
	ret = CALL(c, graph_update, g, nodes + 1, 1);
	check(!ret || ret == QCU_ERR_GraphExecUpdateFailure, "an update of it, or not: %d", ret);
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
}

static struct be_node cond_node(struct be_cond *cond, uint32_t index, const uint32_t *before)
{
	return (struct be_node){
		.type = QCU_NODE_COND,
		.index = index,
		.deps = before,
		.dep_count = before ? 1 : 0,
		.cond = cond,
	};
}

static struct be_node body_node(uint32_t node, uint32_t body, uint32_t index)
{
	return (struct be_node){
		.type = QCU_NODE_BODY, .index = index, .body = {.node = node, .number = body}};
}

static bool word_is(struct check *c, struct be_graph *g, uint32_t value)
{
	uint32_t *w = c->window;

	launch_and_wait(c, g);
	*w = ~value;
	want(CALL(c, copy_d2h, w, c->scratch, 4, c->legacy), 0, "copy_d2h");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	return *w == value;
}

/* Two bodies, and in one of them a node with a body of its own. */
static void check_decision(struct check *c, uint32_t first, struct be_cond *cond)
{
	const uint32_t one = 1, zero = 0, five = 5;
	struct be_cond *inner = NULL;
	struct be_graph *g = NULL;
	uint64_t handle = 0;
	struct be_node nodes[8] = {
		make_memset_node(c->scratch, 1, 1, 0, NULL, 0),
		cond_node(cond, 1, &zero),
		body_node(1, 0, 2),
		make_memset_node(c->scratch, 1, 11, 3, NULL, 0),
		body_node(1, 1, 4),
		make_memset_node(c->scratch, 1, 22, 5, NULL, 0),
	};

	want(CALL(c, cond_node, cond, QCU_COND_IF, 2), 0, "cond_node");
	want(CALL(c, cond_node, cond, QCU_COND_IF, 2), 0, "cond_node once more");
	check(CALL(c, cond_node, cond, QCU_COND_IF, 1) != 0, "no other node");
	if (!want(CALL(c, graph_make, 0, nodes, 6, &g), 0, "graph_make with a condition"))
		return;
	check(word_is(c, g, first ? 11 : 22), "body %d", !first);
	check(word_is(c, g, first ? 11 : 22), "body %d once more", !first);
	nodes[0] = make_memset_node(c->scratch, 1, 2, 0, NULL, 0);
	want(CALL(c, graph_update, g, nodes, 1), 0, "graph_update beside a condition");
	check(word_is(c, g, first ? 11 : 22), "body %d after an update", !first);
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
	nodes[3].off = nodes[5].off = true;
	if (!want(CALL(c, graph_make, 0, nodes, 6, &g), 0, "graph_make of the same nodes again"))
		return;
	check(word_is(c, g, 2), "what bodies leave out");
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
	if (!want(CALL(c, cond_create, 0, cond, 1, &one, &inner, &handle), 0, "one in a body"))
		return;
	want(CALL(c, cond_node, inner, QCU_COND_SWITCH, 2), 0, "cond_node in a body");
	nodes[3].off = nodes[5].off = false;
	nodes[6] = cond_node(inner, 6, &five);
	nodes[7] = body_node(6, 1, 7);
	if (!want(CALL(c, graph_make, 0, nodes, 8, &g), 0, "graph_make with an empty body"))
		goto out;
	check(word_is(c, g, first ? 11 : 22), "the inner body does nothing");
	want(CALL(c, graph_destroy, g), 0, "graph_destroy");
	nodes[5] = cond_node(inner, 5, NULL);
	nodes[6] = body_node(5, 1, 6);
	nodes[7] = make_memset_node(c->scratch, 1, 33, 7, NULL, 0);
	if (want(CALL(c, graph_make, 0, nodes, 8, &g), 0, "graph_make of one in the other")) {
		check(word_is(c, g, first ? 11 : 33), "the inner body");
		want(CALL(c, graph_destroy, g), 0, "graph_destroy");
	}
out:
	want(CALL(c, cond_destroy, inner), 0, "cond_destroy");
}

static void check_condition(struct check *c, uint32_t first)
{
	struct be_cond *graph = NULL, *cond = NULL;
	uint64_t handle;

	if (!want(CALL(c, cond_create, 0, NULL, 0, NULL, &graph, &handle), 0, "cond_create"))
		return;
	check(CALL(c, cond_create, 0, graph, 1, &first, &cond, &handle) != 0, "no second body");
	if (want(CALL(c, cond_create, 0, graph, 0, &first, &cond, &handle), 0, "cond_create")) {
		check_decision(c, first, cond);
		want(CALL(c, cond_destroy, cond), 0, "cond_destroy");
	}
	want(CALL(c, cond_destroy, graph), 0, "cond_destroy");
}

void check_conditional(struct check *c)
{
	check_condition(c, 1);
	check_condition(c, 0);
}

void check_graphs(struct check *c)
{
	struct be_kernel *k = check_kernel(c, "check_step");

	if (!check(k, "kernel_find of check_step"))
		return;
	check_bad(c, k);
	check_chain(c, k);
	check_branches(c, k);
	check_boxes(c);
	check_updates(c, k);
	check_events(c, k);
	check_attributes(c, k);
	want(CALL(c, device_sync, 0), 0, "no error is left behind");
}
