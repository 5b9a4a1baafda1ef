// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory that one process shares with another by a handle. Each process sees what the
 * other one writes, in allocations smaller than a page and in one of many pages. One of two
 * neighbours can be closed before the other one. Invented handles are refused.
 */
#include "ipc.h"

#define BIG   (1000 * 1000 + 3)
#define SMALL 100
#define LAZY  cudaIpcMemLazyEnablePeerAccess

struct message {
	cudaIpcMemHandle_t big, small, neighbour, inside;
};

__global__ void add(uint32_t *p, int n, uint32_t what)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += what;
}

static void run_add(uint32_t *p, int n, uint32_t what)
{
	add<<<(n + 255) / 256, 256>>>(p, n, what);
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
}

static void put(uint32_t *p, int n, uint32_t seed)
{
	uint32_t *host = (uint32_t *)malloc(n * 4);

	fill_words(host, n * 4, seed);
	CHECK(cudaMemcpy(p, host, n * 4, cudaMemcpyHostToDevice));
	free(host);
}

static void expect(const uint32_t *p, int n, uint32_t seed, uint32_t plus, const char *who)
{
	uint32_t *host = (uint32_t *)malloc(n * 4);

	CHECK(cudaMemcpy(host, p, n * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		REQUIRE(host[i] == scramble(i, seed) + plus, "%s: word %d of %d is %08x", who, i, n,
			host[i]);
	free(host);
}

/* Any error is right: a GPU's driver may choose which one it returns. */
static void refuse(const cudaIpcMemHandle_t *h, const char *what)
{
	void *p = NULL;

	REQUIRE(cudaIpcOpenMemHandle(&p, *h, LAZY) != cudaSuccess, "%s", what);
	REQUIRE(!p, "%s: a pointer all the same", what);
	(void)cudaGetLastError();
}

static void refuse_inventions(void)
{
	cudaIpcMemHandle_t h;

	memset(&h, 0, sizeof(h));
	refuse(&h, "a handle of zeros");
	memset(&h, 0xff, sizeof(h));
	refuse(&h, "a handle of ones");
	fill_words(&h, sizeof(h), 77);
	refuse(&h, "a random handle");
}

static void child(const struct peer *parent)
{
	uint32_t *big, *again, *small, *neighbour, *inside;
	struct message m;

	refuse_inventions();
	hear(parent, &m, sizeof(m));
	CHECK(cudaIpcOpenMemHandle((void **)&big, m.big, LAZY));
	CHECK(cudaIpcOpenMemHandle((void **)&small, m.small, LAZY));
	expect(big, BIG, 1, 0, "what the parent wrote");
	CHECK(cudaIpcOpenMemHandle((void **)&neighbour, m.neighbour, LAZY));
	expect(small, SMALL, 2, 0, "what the parent wrote");
	expect(neighbour, SMALL, 7, 0, "what the parent wrote");
	run_add(neighbour, SMALL, 8);
	CHECK(cudaIpcCloseMemHandle(neighbour));
	EXPECT(cudaFree(big), cudaErrorInvalidValue);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);

	/*
	 * Opened again, it has the same address. A handle made from its middle is a handle of
	 * the whole.
	 */
	CHECK(cudaIpcOpenMemHandle((void **)&again, m.big, LAZY));
	REQUIRE(again == big, "%p instead of %p", again, big);
	CHECK(cudaIpcOpenMemHandle((void **)&inside, m.inside, LAZY));
	REQUIRE(inside == big, "%p instead of %p", inside, big);
	CHECK(cudaIpcCloseMemHandle(again));
	CHECK(cudaIpcCloseMemHandle(inside));

	run_add(big, BIG, 5);
	run_add(small, SMALL, 6);
	meet(parent);
	meet(parent);
	expect(big, BIG, 3, 0, "what the parent wrote later");
	put(small, SMALL, 4);
	CHECK(cudaIpcCloseMemHandle(big));
	EXPECT(cudaIpcCloseMemHandle(big), cudaErrorInvalidValue);
	meet(parent);
	/* The other allocation stays open until the process ends. */
}

int main(void)
{
	struct peer peer = start_peer();
	uint32_t *big, *small, *neighbour, host[4];
	struct message m;
	void *p = NULL;

	if (!peer.pid) {
		child(&peer);
		return 0;
	}
	CHECK(cudaMalloc(&big, BIG * 4));
	CHECK(cudaMalloc(&small, SMALL * 4));
	CHECK(cudaMalloc(&neighbour, SMALL * 4));
	EXPECT(cudaIpcGetMemHandle(&m.big, host), cudaErrorInvalidValue);
	EXPECT(cudaIpcGetMemHandle(&m.big, NULL), cudaErrorInvalidValue);
	refuse_inventions();
	put(big, BIG, 1);
	put(small, SMALL, 2);
	put(neighbour, SMALL, 7);
	CHECK(cudaIpcGetMemHandle(&m.big, big));
	CHECK(cudaIpcGetMemHandle(&m.small, small));
	CHECK(cudaIpcGetMemHandle(&m.neighbour, neighbour));
	CHECK(cudaIpcGetMemHandle(&m.inside, big + BIG / 2));
	REQUIRE(memcmp(&m.big, &m.small, sizeof(m.big)), "one handle for two allocations");
	REQUIRE(memcmp(&m.small, &m.neighbour, sizeof(m.small)), "one handle for neighbours");
	EXPECT(cudaIpcOpenMemHandle(&p, m.big, 0x40), cudaErrorInvalidValue);
	refuse(&m.big, "a handle in the process that it comes from");
	EXPECT(cudaIpcCloseMemHandle(big), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	tell(&peer, &m, sizeof(m));

	meet(&peer);
	expect(big, BIG, 1, 5, "what the child added");
	expect(small, SMALL, 2, 6, "what the child added");
	expect(neighbour, SMALL, 7, 8, "what the child added");
	put(big, BIG, 3);
	meet(&peer);
	meet(&peer);
	expect(small, SMALL, 4, 0, "what the child wrote");
	end_peer(&peer);
	expect(big, BIG, 3, 0, "after the child's end");
	CHECK(cudaFree(big));
	CHECK(cudaFree(small));
	CHECK(cudaFree(neighbour));
	return verified("two processes use the same device memory");
}
