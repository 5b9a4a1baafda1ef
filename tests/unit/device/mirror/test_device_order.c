// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Order between guest threads that post: which command comes after which, and which must not wait
 * for which. Requests run when the test lets them. If a lane waits for another lane, the test sees
 * that its request does not run.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/lanes/order.h"

struct item {
	struct mir_request req;
	sem_t go;
	atomic_bool held, ran;
};

static struct lanes *lanes;
static struct order order;
static struct item *made[4096], *seen[4096];
static unsigned int made_count;
static atomic_uint seen_count;

static bool run(void *ctx, struct mir_request *req)
{
	struct item *it = (struct item *)req;

	(void)ctx;
	if (it->held)
		sem_wait(&it->go);
	seen[atomic_fetch_add(&seen_count, 1)] = it;
	it->ran = true;
	return false;
}

static void in_order(void *ctx, struct mir_request *req, lanes_point end)
{
	(void)ctx;
	order_request(&order, req, end);
}

static int start(void **state)
{
	(void)state;
	seen_count = 0;
	if (order_init(&order) || lanes_create(&lanes, run, in_order, NULL, 20))
		return -1;
	order.lanes = lanes;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	lanes_destroy(lanes);
	order_fini(&order);
	while (made_count)
		free(made[--made_count]);
	return 0;
}

static struct item *new_item(uint16_t op, uint32_t tid, bool posted)
{
	struct item *it = calloc(1, sizeof(*it));

	assert_non_null(it);
	made[made_count++] = it;
	sem_init(&it->go, 0, 0);
	it->req.cmd.op = op;
	it->req.cmd.tid = tid;
	it->req.cmd.flags = posted ? QCU_F_POSTED : 0;
	return it;
}

static struct item *submit(struct item *it)
{
	assert_int_equal(lanes_submit(lanes, &it->req), 0);
	return it;
}

static struct item *launch(uint32_t tid, uint32_t stream, bool held)
{
	struct item *it = new_item(QCU_OP_LAUNCH, tid, true);

	it->held = held;
	it->req.cmd.launch.stream = stream;
	return submit(it);
}

static struct item *record(uint32_t tid, uint32_t event, uint32_t stream, bool held)
{
	struct item *it = new_item(QCU_OP_EVENT_RECORD, tid, true);

	it->held = held;
	it->req.cmd.event_record.event = event;
	it->req.cmd.event_record.stream = stream;
	return submit(it);
}

static struct item *wait_event(uint32_t tid, uint32_t stream, uint32_t event)
{
	struct item *it = new_item(QCU_OP_STREAM_WAIT_EVENT, tid, true);

	it->req.cmd.stream_wait_event.event = event;
	it->req.cmd.stream_wait_event.stream = stream;
	return submit(it);
}

static void has_run(struct item *it)
{
	int tries;

	for (tries = 0; tries < 5000 && !it->ran; tries++)
		usleep(1000);
	assert_true(it->ran);
}

/* Long enough for a lane to run the item if it does not wait. */
static void waits(struct item *it)
{
	usleep(30000);
	assert_false(it->ran);
}

static void let_go(struct item *it)
{
	sem_post(&it->go);
	has_run(it);
}

/*
 * Thread A launches. Then thread B launches in the same stream, and a third thread synchronises
 * with it. Other streams are not affected.
 */
static void same_stream(void **state)
{
	struct item *a = launch(1, 5, true), *b, *sync, *other, *elsewhere;

	(void)state;
	b = launch(2, 5, false);
	sync = new_item(QCU_OP_STREAM_SYNC, 3, false);
	sync->req.cmd.stream_sync.stream = 5;
	submit(sync);
	other = launch(4, 6, false);
	elsewhere = new_item(QCU_OP_STREAM_SYNC, 5, false);
	elsewhere->req.cmd.stream_sync.stream = 6;
	submit(elsewhere);
	has_run(other);
	has_run(elsewhere);
	waits(b);
	assert_false(sync->ran);
	let_go(a);
	has_run(b);
	has_run(sync);
}

/* Order through an event: one thread records it, another waits for it, a third records it again. */
static void through_event(void **state)
{
	struct item *a = record(1, 9, 5, true), *b, *c, *d, *e;

	(void)state;
	b = wait_event(2, 6, 9);
	c = launch(3, 6, false);
	d = record(4, 9, 7, false);
	e = new_item(QCU_OP_EVENT_ELAPSED, 5, false);
	e->req.cmd.event_elapsed.start = 8;
	e->req.cmd.event_elapsed.end = 9;
	submit(e);
	waits(b);
	assert_false(c->ran || d->ran || e->ran);
	let_go(a);
	has_run(e);
	has_run(c);
	assert_ptr_equal(seen[0], a);
	assert_ptr_equal(seen[1], b);
}

/* A graph says that it records events, but not which: all that is about events comes after it. */
static void through_graph(void **state)
{
	struct item *a = new_item(QCU_OP_GRAPH_LAUNCH, 1, true), *b, *c, *d;

	(void)state;
	a->held = true;
	a->req.cmd.graph_launch.stream = 5;
	a->req.cmd.graph_launch.event = QCU_GRAPH_NO_EVENT;
	a->req.cmd.graph_launch.flags = QCU_GRAPH_RECORDS;
	submit(a);
	b = wait_event(2, 6, 9);
	c = record(3, 10, 7, false);
	d = launch(4, 8, false);
	has_run(d);
	waits(b);
	assert_false(c->ran);
	let_go(a);
	has_run(b);
	has_run(c);
	/* It comes after an earlier record, too. */
	a = record(1, 9, 5, true);
	b = new_item(QCU_OP_GRAPH_LAUNCH, 2, true);
	b->req.cmd.graph_launch.stream = 6;
	b->req.cmd.graph_launch.event = QCU_GRAPH_NO_EVENT;
	b->req.cmd.graph_launch.flags = QCU_GRAPH_RECORDS;
	waits(submit(b));
	let_go(a);
	has_run(b);
}

/*
 * The legacy stream comes after earlier work in blocking streams and before later work there.
 * Non-blocking streams are not affected.
 */
static void legacy(void **state)
{
	struct item *make = new_item(QCU_OP_STREAM_CREATE, 1, true), *free_one, *a, *b, *c, *own;

	(void)state;
	make->req.cmd.stream_create.stream = 7;
	make->req.cmd.stream_create.flags = 1;
	has_run(submit(make));
	free_one = launch(1, 7, true);
	a = launch(2, 5, true);
	b = launch(3, QCU_STREAM_LEGACY, false);
	c = launch(4, 6, false);
	own = launch(5, QCU_STREAM_PER_THREAD, false);
	waits(b);
	assert_false(c->ran || own->ran);
	let_go(a);
	has_run(b);
	has_run(c);
	has_run(own);
	assert_false(free_one->ran);
	let_go(free_one);
}

/*
 * A command that concerns no stream comes after everything posted before it. Nothing waits for this
 * command.
 */
static void everything(void **state)
{
	struct item *a = launch(1, 5, true), *b, *c;

	(void)state;
	b = new_item(QCU_OP_FREE, 2, false);
	b->held = true;
	submit(b);
	c = launch(3, 6, false);
	has_run(c);
	waits(b);
	let_go(a);
	/* The command now runs, and takes its time. Posted commands do not wait for it. */
	has_run(launch(1, 5, false));
	has_run(launch(3, QCU_STREAM_LEGACY, false));
	assert_false(b->ran);
	let_go(b);
}

/* A thread that waits for a stream does not hold up threads that post to the stream. */
static void a_wait_is_no_obstacle(void **state)
{
	struct item *sync = new_item(QCU_OP_STREAM_SYNC, 1, false);

	(void)state;
	sync->held = true;
	sync->req.cmd.stream_sync.stream = 5;
	submit(sync);
	has_run(launch(2, 5, false));
	has_run(launch(3, 5, false));
	has_run(launch(3, QCU_STREAM_LEGACY, false));
	assert_false(sync->ran);
	let_go(sync);
}

/* More lanes than a request has room for. */
static void many(void **state)
{
	struct item *held[40], *all, *free_all;
	unsigned int i;

	(void)state;
	for (i = 0; i < 40; i++)
		held[i] = launch(1 + i, 10 + i, true);
	all = launch(100, QCU_STREAM_LEGACY, false);
	free_all = submit(new_item(QCU_OP_FREE, 101, false));
	for (i = 0; i < 40; i++) {
		assert_false(all->ran || free_all->ran);
		let_go(held[i]);
	}
	has_run(all);
	has_run(free_all);
}

/*
 * In each stream the requests run in the order of their submission, whichever thread submits them.
 */
static void storm(void **state)
{
	enum { N = 4000 };
	static struct item *it[N];
	unsigned int i, k, streams[N];
	uint32_t seed = 1;
	int last[8];

	(void)state;
	for (i = 0; i < N; i++) {
		seed = seed * 1664525 + 1013904223;
		streams[i] = (seed >> 16) % 8;
		it[i] = new_item(QCU_OP_LAUNCH, 1 + (seed >> 24) % 13, true);
		it[i]->req.cmd.launch.stream =
			streams[i] ? streams[i] + 1 : (uint32_t)QCU_STREAM_LEGACY;
		it[i]->req.cmd.seq = i;
		submit(it[i]);
	}
	for (i = 0; i < N; i++)
		has_run(it[i]);
	memset(last, -1, sizeof(last));
	for (i = 0; i < N; i++) {
		int seq = (int)seen[i]->req.cmd.seq;
		unsigned int s = streams[seq];

		/* The legacy stream is in one order with each of the other streams. */
		for (k = 0; k < 8; k++)
			if (!s || !k || k == s)
				assert_true(seq > last[k]);
		last[s] = seq;
	}
}

/* The driver's two commands, for [va, va + len). */
static struct item *memory(uint16_t op, uint64_t va, uint64_t len, bool held)
{
	struct item *it = new_item(op, 0, false);

	it->held = held;
	if (op == QCU_OP_MAP) {
		it->req.cmd.map.va = va;
		it->req.cmd.map.len = len;
	} else {
		it->req.cmd.unmap.va = va;
		it->req.cmd.unmap.len = len;
	}
	return submit(it);
}

/* A MAP waits for an UNMAP that overlaps it, and for no other UNMAP. */
static void map_after_unmap(void **state)
{
	struct item *out, *below, *above, *elsewhere, *over, *first, *last;

	(void)state;
	out = memory(QCU_OP_UNMAP, 100, 10, true);
	below = memory(QCU_OP_MAP, 90, 10, false);
	above = memory(QCU_OP_MAP, 110, 10, false);
	elsewhere = memory(QCU_OP_MAP, 1000, 10, false);
	has_run(below);
	has_run(above);
	has_run(elsewhere);
	first = memory(QCU_OP_MAP, 91, 10, false);
	last = memory(QCU_OP_MAP, 109, 10, false);
	over = memory(QCU_OP_MAP, 0, UINT64_MAX, false);
	waits(first);
	assert_false(last->ran || over->ran);
	let_go(out);
	has_run(first);
	has_run(last);
	has_run(over);
}

/* Lengths that a lane will later refuse must not make other commands wait for ever either. */
static void memory_of_any_length(void **state)
{
	static const uint64_t lengths[] = {0, 1, UINT64_MAX - 50, UINT64_MAX};
	struct item *it;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		it = memory(QCU_OP_UNMAP, 100, lengths[i], true);
		has_run(memory(QCU_OP_MAP, 50, 50, false));
		let_go(it);
		has_run(memory(QCU_OP_MAP, 100, lengths[i], false));
		has_run(memory(QCU_OP_UNMAP, UINT64_MAX, lengths[i], false));
	}
}

/* An UNMAP comes after the MAPs before it, whatever the MAPs wait for. */
static void unmap_after_map(void **state)
{
	struct item *out = memory(QCU_OP_UNMAP, 100, 10, true), *in, *again, *other;

	(void)state;
	in = memory(QCU_OP_MAP, 100, 10, true);
	again = memory(QCU_OP_UNMAP, 100, 10, false);
	other = memory(QCU_OP_UNMAP, 500, 10, false);
	waits(again);
	let_go(out);
	waits(again);
	assert_false(other->ran);
	let_go(in);
	has_run(again);
	has_run(other);
}

/* More UNMAPs than the first table holds, some of them done: each MAP waits for its own UNMAP. */
static void many_unmaps(void **state)
{
	struct item *out[100], *in[100];
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		out[i] = memory(QCU_OP_UNMAP, 1000 + i * 10, 10, true);
		if (i >= 20)
			let_go(out[i - 20]);
	}
	for (i = 0; i < 80; i++)
		has_run(in[i] = memory(QCU_OP_MAP, 1000 + i * 10, 10, false));
	for (; i < 100; i++) {
		in[i] = memory(QCU_OP_MAP, 1000 + i * 10, 10, false);
		waits(in[i]);
		let_go(out[i]);
		has_run(in[i]);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	static const struct CMUnitTest tests[] = {
		T(same_stream),
		T(through_event),
		T(through_graph),
		T(legacy),
		T(everything),
		T(a_wait_is_no_obstacle),
		T(many),
		T(storm),
		T(map_after_unmap),
		T(memory_of_any_length),
		T(unmap_after_map),
		T(many_unmaps),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
