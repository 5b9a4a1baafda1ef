// SPDX-License-Identifier: GPL-2.0-or-later
/* One thread for each GPU, without groups, and several communicators one after another, whose memory is freed. */
#include <pthread.h>

#include "collectives.h"

#define ROOM   (1 << 20)
#define ROUNDS 6

static ncclUniqueId id[ROUNDS];
static int ranks;

static void *thread(void *arg)
{
	int rank = *(int *)arg;
	struct team t;

	memset(&t, 0, sizeof(t));
	t.ranks = ranks;
	t.count = 1;
	t.member[0].rank = t.member[0].device = rank;
	CHECK(cudaSetDevice(rank));
	equip(&t, ROOM);
	for (int i = 0; i < ROUNDS; i++) {
		NC(ncclCommInitRank(&t.member[0].comm, ranks, id[i], rank));
		some_collectives(&t);
		NC(ncclCommDestroy(t.member[0].comm));
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[MOST_RANKS];
	int rank[MOST_RANKS];

	ranks = gpu_count();
	for (int i = 0; i < ROUNDS; i++)
		NC(ncclGetUniqueId(&id[i]));
	for (int r = 0; r < ranks; r++) {
		rank[r] = r;
		REQUIRE(!pthread_create(&threads[r], NULL, thread, &rank[r]), "pthread_create");
	}
	for (int r = 0; r < ranks; r++)
		pthread_join(threads[r], NULL);
	return verified("%d threads with a rank each", ranks);
}
