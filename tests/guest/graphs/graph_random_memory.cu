// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs with random edges that allocate, fill, copy and free many pieces of memory. Two pieces of
 * a graph may have an address in common only if one is freed before the other is allocated, by the
 * edges of the graph. Several graphs run at the same time, some leave memory behind, and they are
 * destroyed behind their last launch. All bytes must be right.
 */
#include "check.h"

#define SEEDS	8
#define GRAPHS	3
#define PIECES	24
#define STREAMS 3
#define NODES	(4 * PIECES)
#define WORDS	4096 /* at most, in a piece */

struct node {
	cudaGraphNode_t node;
	bool before[NODES]; /* nodes that come before this one, by their numbers */
};

struct piece {
	char *ptr;
	size_t bytes;
	unsigned int value;
	int alloc, fill, freed; /* numbers of nodes; freed: -1 while it is not */
};

struct graph {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	struct node nodes[NODES];
	struct piece pieces[PIECES];
	int count;
};

static struct graph graphs[GRAPHS];
static struct piece made[SEEDS][GRAPHS][PIECES];
static unsigned int *out;
static cudaStream_t streams[STREAMS];
static uint32_t drawn;

static int below(int n)
{
	return (int)(scramble(drawn++, 42) % (unsigned int)n);
}

/* Makes room for a node, whose dependencies are `first`, if that is not -1, and up to two random
 * nodes. */
static struct node *begin_node(struct graph *g, int first, cudaGraphNode_t *deps, size_t *count)
{
	struct node *n = &g->nodes[g->count];
	int on[3] = {first, -1, -1};

	*n = {};
	*count = 0;
	for (int i = 0; i < 3; i++) {
		if (i && g->count && below(2))
			on[i] = below(g->count);
		if (on[i] < 0 || (i == 2 && on[2] == on[1]) || (i && on[i] == first))
			continue;
		deps[(*count)++] = g->nodes[on[i]].node;
		n->before[on[i]] = true;
		for (int k = 0; k < g->count; k++)
			n->before[k] |= g->nodes[on[i]].before[k];
	}
	return n;
}

static unsigned int *out_of(int seed, int graph, int piece)
{
	return out + ((seed * GRAPHS + graph) * PIECES + piece) * (size_t)WORDS;
}

static unsigned int *out_of_piece(int seed, const struct graph *g, const struct piece *p)
{
	return out_of(seed, (int)(g - graphs), (int)(p - g->pieces));
}

static void allocate_and_fill(struct graph *g, struct piece *p, unsigned int value)
{
	cudaMemAllocNodeParams m = {};
	cudaMemsetParams set = {};
	cudaGraphNode_t deps[3];
	struct node *n;
	size_t count;

	m.poolProps.allocType = cudaMemAllocationTypePinned;
	m.poolProps.location.type = cudaMemLocationTypeDevice;
	m.bytesize = sizeof(int) * (size_t)(1 + below(WORDS));
	p->alloc = g->count;
	n = begin_node(g, -1, deps, &count);
	CHECK(cudaGraphAddMemAllocNode(&n->node, g->graph, deps, count, &m));
	g->count++;
	p->ptr = (char *)m.dptr;
	p->bytes = m.bytesize;
	p->value = value;
	p->freed = -1;

	set.dst = p->ptr;
	set.value = value;
	set.elementSize = sizeof(int);
	set.width = p->bytes / sizeof(int);
	set.height = 1;
	p->fill = g->count;
	n = begin_node(g, p->alloc, deps, &count);
	CHECK(cudaGraphAddMemsetNode(&n->node, g->graph, deps, count, &set));
	g->count++;
}

static void copy_out(struct graph *g, const struct piece *p, unsigned int *to, bool and_free)
{
	int copied = g->count;
	cudaGraphNode_t deps[3];
	size_t count;
	struct node *n = begin_node(g, p->fill, deps, &count);

	CHECK(cudaGraphAddMemcpyNode1D(&n->node, g->graph, deps, count, to, p->ptr, p->bytes,
				       cudaMemcpyDeviceToHost));
	g->count++;
	if (!and_free)
		return;
	n = begin_node(g, copied, deps, &count);
	CHECK(cudaGraphAddMemFreeNode(&n->node, g->graph, deps, count, p->ptr));
	g->count++;
}

static void check_addresses(const struct graph *g)
{
	for (const struct piece *a = g->pieces; a < g->pieces + PIECES; a++)
		for (const struct piece *b = a + 1; b < g->pieces + PIECES; b++)
			REQUIRE(a->ptr >= b->ptr + b->bytes || b->ptr >= a->ptr + a->bytes ||
					(a->freed >= 0 && g->nodes[b->alloc].before[a->freed]),
				"pieces %d and %d share %p", (int)(a - g->pieces),
				(int)(b - g->pieces), (void *)b->ptr);
}

/* A piece stays open for a while, so that the lives of pieces overlap in many ways. */
static void build(struct graph *g, int seed)
{
	int open[PIECES], count = 0;

	g->count = 0;
	g->stream = streams[below(STREAMS)];
	CHECK(cudaGraphCreate(&g->graph, 0));
	for (int i = 0; i < PIECES; i++) {
		allocate_and_fill(g, &g->pieces[i],
				  (unsigned int)((seed << 16) + ((g - graphs) << 8) + i + 1));
		open[count++] = i;
		while (count && below(3)) {
			int k = below(count);
			struct piece *p = &g->pieces[open[k]];

			open[k] = open[--count];
			copy_out(g, p, out_of_piece(seed, g, p), true);
			p->freed = g->count - 1;
		}
	}
	/* Each second one of the last is copied, but not freed. */
	while (count) {
		struct piece *p = &g->pieces[open[--count]];

		copy_out(g, p, out_of_piece(seed, g, p), count % 2 == 0);
		if (count % 2 == 0)
			p->freed = g->count - 1;
	}
	check_addresses(g);
	memcpy(made[seed][g - graphs], g->pieces, sizeof(g->pieces));
	CHECK(cudaGraphInstantiate(&g->exec, g->graph, 0));
}

/* What the graph has left behind is copied and freed in the stream. */
static void launch(struct graph *g, int seed)
{
	CHECK(cudaGraphLaunch(g->exec, g->stream));
	for (struct piece *p = g->pieces; p < g->pieces + PIECES; p++) {
		if (p->freed >= 0)
			continue;
		CHECK(cudaMemcpyAsync(out_of_piece(seed, g, p), p->ptr, p->bytes,
				      cudaMemcpyDeviceToHost, g->stream));
		CHECK(cudaFreeAsync(p->ptr, g->stream));
	}
}

static void check_bytes(int seed, int graph, int piece)
{
	const struct piece *p = &made[seed][graph][piece];
	const unsigned int *got = out_of(seed, graph, piece);

	for (size_t i = 0; i < p->bytes / sizeof(int); i++)
		REQUIRE(got[i] == p->value, "seed %d, graph %d, piece %d: word %zu is %x, not %x",
			seed, graph, piece, i, got[i], p->value);
}

static void run_seed(int seed)
{
	for (struct graph *g = graphs; g < graphs + GRAPHS; g++)
		build(g, seed);
	for (int round = 0; round < 3; round++)
		for (struct graph *g = graphs; g < graphs + GRAPHS; g++)
			launch(g, seed);
	for (struct graph *g = graphs; g < graphs + GRAPHS; g++) {
		CHECK(cudaGraphExecDestroy(g->exec));
		CHECK(cudaGraphDestroy(g->graph));
	}
}

int main(void)
{
	uint64_t left = ~0ull;

	CHECK(cudaMallocHost(&out, sizeof(int) * (size_t)SEEDS * GRAPHS * PIECES * WORDS));
	for (cudaStream_t &stream : streams)
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int seed = 0; seed < SEEDS; seed++)
		run_seed(seed);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaDeviceGraphMemTrim(0));
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &left));
	REQUIRE(left == 0, "%zu bytes are reserved", (size_t)left);
	for (int i = 0; i < SEEDS * GRAPHS * PIECES; i++)
		check_bytes(i / PIECES / GRAPHS, i / PIECES % GRAPHS, i % PIECES);
	for (cudaStream_t stream : streams)
		CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(out));
	return verified("%d graphs allocate and free %d pieces of memory each, in random order",
			SEEDS * GRAPHS, PIECES);
}
