// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptions of graphs in a mirror on the software GPU. Bad ones first: lengths, numbers, orders,
 * handles and memory that the guest may not name; updates that do not fit. Then what a graph keeps
 * of what the guest destroys, and that limits are given back.
 */
#include "qcu-device/base/limits.h"
#include "tests/unit/device/mirror/test_device_graph.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

static const char ptx[] = ".version 8.3\n.target sm_75\n.address_size 64\n"
			  /* *p = *p * 3 + n */
			  ".visible .entry step(.param .u64 p, .param .u32 n)\n"
			  "{\n"
			  ".reg .b64 %p;\n"
			  ".reg .b32 %v, %n;\n"
			  "ld.param.u64 %p, [p];\n"
			  "ld.param.u32 %n, [n];\n"
			  "ld.global.u32 %v, [%p];\n"
			  "mul.lo.u32 %v, %v, 3;\n"
			  "add.u32 %v, %v, %n;\n"
			  "st.global.u32 [%p], %v;\n"
			  "ret;\n"
			  "}\n";

#define GRAPH 2
#define EVENT 2
#define NODES 40 /* the limit of these tests */

static struct limits limits;

static int start(void **state)
{
	(void)state;
	limits.session[LIMIT_GRAPHS] = 2;
	limits.session[LIMIT_GRAPH_NODES] = NODES;
	limits_default(&limits);
	return start_with(ptx, &limits);
}

/* The params follow the dependencies. */
static struct qcu_graph_kernel *kernel(uint32_t index, uint32_t n, const uint32_t *deps,
				       uint32_t count)
{
	const struct qcu_graph_kernel body = {
		.kernel = KERNEL,
		.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 12},
	};
	struct qcu_graph_node *head =
		node(QCU_NODE_KERNEL, index, &body, sizeof(body), deps, count);
	struct {
		uint64_t p;
		uint32_t n, zero;
	} params = {memory, n, 0};

	memcpy(d.bytes + d.len, &params, sizeof(params));
	d.len += sizeof(params);
	head->bytes += sizeof(params);
	return (void *)(head + 1);
}

/* Comes after the node before it. */
static struct qcu_graph_copy *copy(uint32_t index, uint64_t to, uint64_t from, uint64_t len)
{
	const uint32_t before = index - 1;
	const struct qcu_graph_copy body = {
		.dst = {.addr = to, .pitch = len, .rows = 1},
		.src = {.addr = from, .pitch = len, .rows = 1},
		.width = len,
		.height = 1,
		.depth = 1,
	};

	return (void *)(node(QCU_NODE_COPY, index, &body, sizeof(body), &before, index > 0) + 1);
}

/* The whole limit is free, and a graph can be made and launched. */
static void still_works(void)
{
	uint32_t i, n = 1;

	assert_int_equal(fill(memory, 1), 0);
	for (i = 0; i < 30; i++) {
		uint32_t on = i - 1;

		kernel(i, i, &on, i > 0);
		n = n * 3 + i;
	}
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), n);
	assert_int_equal(destroy(GRAPH), 0);
}

static void bad_numbers(void **state)
{
	(void)state;
	empty(0);
	assert_int_equal(make(0), QCU_ERR_InvalidResourceHandle);
	empty(0);
	assert_int_equal(make(0x10000), QCU_ERR_InvalidResourceHandle);
	empty(0);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(launch(GRAPH), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(destroy(GRAPH), QCU_ERR_InvalidResourceHandle);
	empty(0);
	assert_int_equal(make(GRAPH), 0);
	empty(0);
	assert_int_equal(make(GRAPH), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(GRAPH_LAUNCH, graph_launch, .graph = GRAPH, .event = EVENT)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(GRAPH_LAUNCH, graph_launch, .graph = GRAPH, .stream = 9,
				 .event = QCU_GRAPH_NO_EVENT)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(GRAPH_LAUNCH, graph_launch, .graph = GRAPH,
				 .event = QCU_GRAPH_NO_EVENT, .flags = 8)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(destroy(GRAPH), 0);
	still_works();
}

/* Each line makes one record wrong. */
static void bad_records(void **state)
{
#define BAD(change)                                                  \
	do {                                                         \
		struct qcu_graph_node *n = empty(0);                 \
		change;                                              \
		assert_int_equal(make(GRAPH), QCU_ERR_InvalidValue); \
	} while (0)
	const uint32_t deps[] = {0, 0, 1};

	(void)state;
	BAD(n->bytes = 8);
	BAD(n->bytes = 0);
	BAD(n->bytes = 17);
	BAD(n->bytes = 24);
	BAD(n->bytes = 0xfffffff8);
	BAD(n->type = QCU_NODE_TYPES);
	BAD(n->type = QCU_NODE_KERNEL);
	BAD(n->rsvd = 1);
	BAD(n->flags = 2);
	BAD(n->flags = QCU_NODE_OFF);
	BAD(n->index = 1);
	BAD(n->deps = 1);
	BAD(n->deps = 0xffffffff);
	BAD((void)n; d.nodes = 2);
	BAD((void)n; d.nodes = 0);
	BAD((void)n; d.len = 8);
	BAD((void)n; node(QCU_NODE_EMPTY, 1, NULL, 0, deps + 2, 1));
	BAD((void)n; node(QCU_NODE_EMPTY, 1, NULL, 0, deps, 2));
	BAD((void)n; empty(0));
	BAD((void)n; empty(2));
#undef BAD
	empty(0)->device = 1;
	assert_int_equal(make(GRAPH), QCU_ERR_InvalidDevice);
	empty(0);
	d.nodes = 0xffffffff;
	assert_int_equal(make(GRAPH), QCU_ERR_MemoryAllocation);
	still_works();
}

static void bad_bodies(void **state)
{
	struct qcu_graph_event e = {.event = EVENT};
	struct qcu_graph_host h = {0};
	uint64_t off = memory + 4096;

	(void)state;
#define BAD(make_it, error)                           \
	do {                                          \
		make_it;                              \
		assert_int_equal(make(GRAPH), error); \
	} while (0)
	BAD(kernel(0, 1, NULL, 0)->kernel = 3, QCU_ERR_InvalidResourceHandle);
	BAD(kernel(0, 1, NULL, 0)->rsvd = 1, QCU_ERR_InvalidValue);
	BAD(kernel(0, 1, NULL, 0)->msg.flags = 0x10, QCU_ERR_InvalidValue);
	BAD(kernel(0, 1, NULL, 0)->msg.rsvd[1] = 1, QCU_ERR_InvalidValue);
	BAD(kernel(0, 1, NULL, 0)->msg.param_bytes = 8, QCU_ERR_InvalidValue);
	BAD(kernel(0, 1, NULL, 0)->msg.param_bytes = 16, QCU_ERR_InvalidValue);
	BAD(kernel(0, 1, NULL, 0)->msg.param_bytes = 0xffffffff, QCU_ERR_InvalidValue);
	BAD(kernel(0, 1, NULL, 0)->msg.grid[0] = 0, QCU_ERR_InvalidValue);
	BAD(set(0, off, 1), QCU_ERR_InvalidValue);
	BAD(set(0, 1, 1), QCU_ERR_InvalidValue);
	BAD(set(0, QCU_WINDOW_BASE, 1), QCU_ERR_InvalidValue);
	BAD(set(0, memory, 1)->width = 0, QCU_ERR_InvalidValue);
	BAD(set(0, memory, 1)->height = 0, QCU_ERR_InvalidValue);
	BAD(set(0, memory, 1)->width = UINT64_MAX & ~3ull, QCU_ERR_InvalidValue);
	BAD(set(0, memory, 1)->elem = 3, QCU_ERR_InvalidValue);
	BAD(set(0, memory, 1)->height = 2, QCU_ERR_InvalidPitchValue);
	BAD(copy(0, off, memory, 4), QCU_ERR_InvalidValue);
	BAD(copy(0, memory, off, 4), QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory, 0), QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->depth = 2000, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->depth = UINT64_MAX, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->height = UINT64_MAX, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->height = 0, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->dst.rsvd = 1, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->src.x = 1, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->src.array = 2, QCU_ERR_InvalidValue);
	BAD(copy(0, memory, memory + 8, 4)->dst = (struct qcu_graph_side){.array = 2},
	    QCU_ERR_InvalidResourceHandle);
	BAD(node(QCU_NODE_RECORD, 0, &e, sizeof(e), NULL, 0), QCU_ERR_InvalidResourceHandle);
	BAD(node(QCU_NODE_WAIT, 0, &e, sizeof(e), NULL, 0), QCU_ERR_InvalidResourceHandle);
	BAD(node(QCU_NODE_HOST, 0, &h, sizeof(h), NULL, 0), QCU_ERR_InvalidValue);
	/* Bytes between the parts must be zero. */
	BAD(kernel(0, 1, NULL, 0); d.bytes[d.len - 1] = 1, QCU_ERR_InvalidValue);
#undef BAD
	still_works();
}

static void bad_updates(void **state)
{
	(void)state;
	assert_int_equal(fill(memory, 1), 0);
	kernel(0, 1, NULL, 0);
	set(1, memory + 8, 5);
	assert_int_equal(make(GRAPH), 0);
	empty(0); /* another type */
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	kernel(2, 1, NULL, 0);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	set(1, memory + 8, 6);
	kernel(0, 1, NULL, 0);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	set(1, memory + 8, 6);
	set(1, memory + 8, 7);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	set(1, memory + 4096, 6);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	/* None of them has changed anything. */
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 4);
	assert_int_equal(value_at(memory + 8), 5);
	kernel(0, 9, NULL, 0);
	set(1, memory + 8, 6);
	assert_int_equal(update(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 21);
	assert_int_equal(value_at(memory + 8), 6);
	assert_int_equal(destroy(GRAPH), 0);
	still_works();
}

/* Only the parameters of a kernel change. */
static void arguments(void **state)
{
	const uint32_t n = 9, wrong[4] = {0};
	struct {
		uint64_t memory;
		uint32_t n, fill;
	} args = {memory, n, 0};

	(void)state;
	assert_int_equal(fill(memory, 1), 0);
	node(QCU_NODE_ARGS, 0, &args, sizeof(args), NULL, 0);
	assert_int_equal(make(GRAPH), QCU_ERR_InvalidValue);
	set(0, memory + 8, 5);
	kernel(1, 1, NULL, 0);
	assert_int_equal(make(GRAPH), 0);
#define BAD(change)                                                                              \
	do {                                                                                     \
		struct qcu_graph_node *r = node(QCU_NODE_ARGS, 1, &args, sizeof(args), NULL, 0); \
		change;                                                                          \
		assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);                           \
	} while (0)
	BAD(r->index = 0);
	BAD(r->index = 2);
	BAD(r->flags = QCU_NODE_OFF);
	BAD(r->deps = 1);
	BAD(r->bytes = 24);
	BAD((void)r; d.bytes[d.len - 1] = 1);
	BAD((void)r; node(QCU_NODE_ARGS, 1, &args, sizeof(args), NULL, 0));
#undef BAD
	node(QCU_NODE_ARGS, 1, &args, sizeof(args), NULL, 0)->device = 1;
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidDevice);
	node(QCU_NODE_ARGS, 1, wrong, 8, NULL, 0);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	node(QCU_NODE_ARGS, 1, &args, sizeof(args), NULL, 0);
	assert_int_equal(update(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 3 + n);
	assert_int_equal(destroy(GRAPH), 0);
	/* A kernel that is left out stays so. */
	kernel(0, 1, NULL, 0);
	((struct qcu_graph_node *)d.bytes)->flags = QCU_NODE_OFF;
	assert_int_equal(make(GRAPH), 0);
	node(QCU_NODE_ARGS, 0, &args, sizeof(args), NULL, 0);
	assert_int_equal(update(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 3 + n);
	assert_int_equal(destroy(GRAPH), 0);
	still_works();
}

static void limited(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < NODES + 1; i++)
		empty(i);
	assert_int_equal(make(GRAPH), QCU_ERR_MemoryAllocation);
	empty(0);
	assert_int_equal(make(GRAPH), 0);
	empty(0);
	assert_int_equal(make(GRAPH + 1), 0);
	empty(0);
	assert_int_equal(make(GRAPH + 2), QCU_ERR_MemoryAllocation);
	assert_int_equal(destroy(GRAPH), 0);
	assert_int_equal(destroy(GRAPH + 1), 0);
	still_works();
}

/* The memory of a node is gone: the launch does nothing. */
static void memory_gone(void **state)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4096);

	(void)state;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(fill(memory, 1), 0);
	kernel(0, 1, NULL, 0);
	copy(1, c.malloc.ptr, memory, 4);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(c.malloc.ptr), 4);
	assert_int_equal(ask(CMD(FREE, free, .ptr = c.malloc.ptr)), 0);
	assert_int_equal(launch(GRAPH), QCU_ERR_InvalidValue);
	assert_int_equal(value_at(memory), 4);
	assert_int_equal(destroy(GRAPH), 0);
	still_works();
}

/* A graph keeps its kernels and events. */
static void names_gone(void **state)
{
	struct qcu_graph_event e = {.event = EVENT};

	(void)state;
	assert_int_equal(fill(memory, 1), 0);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = EVENT)), 0);
	node(QCU_NODE_WAIT, 0, &e, sizeof(e), NULL, 0);
	kernel(1, 7, NULL, 0);
	node(QCU_NODE_RECORD, 2, &e, sizeof(e), NULL, 0);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(ask(CMD(EVENT_DESTROY, event_destroy, .event = EVENT)), 0);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = MODULE)), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 37);
	assert_int_equal(destroy(GRAPH), 0);
	kernel(0, 7, NULL, 0);
	assert_int_equal(make(GRAPH), QCU_ERR_InvalidResourceHandle);
}

/* Nobody fetches the function's token: the end of the session releases the stream. */
static void held(void **state)
{
	struct qcu_graph_host h = {.token = 77};

	(void)state;
	node(QCU_NODE_HOST, 0, &h, sizeof(h), NULL, 0);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(destroy(GRAPH), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(bad_numbers), T(bad_records), T(bad_bodies), T(bad_updates), T(arguments),
		T(limited),	T(memory_gone), T(names_gone), T(held),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
