// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who connects to the process that made an id: strangers without the secret, ranks that do not fit, and ranks that end
 * while the others wait. Only our own library meets in this way.
 */
#include "strangers.h"

#define ROOM (1 << 20)

struct joiner {
	ncclUniqueId id;
	int ranks;
	ncclResult_t result;
};

static void *join(void *arg)
{
	struct joiner *j = (struct joiner *)arg;
	ncclComm_t comm;

	CHECK(cudaSetDevice(0));
	j->result = ncclCommInitRank(&comm, j->ranks, j->id, 0);
	return NULL;
}

static void expect(pthread_t t, struct joiner *j, ncclResult_t want)
{
	pthread_join(t, NULL);
	REQUIRE(j->result == want, "ncclCommInitRank gave %d, not %d", (int)j->result, (int)want);
}

/* Rank 0 waits for two others. One of them ends. */
static void ends_early(void)
{
	struct joiner j = {{}, 3, ncclSuccess};
	struct message m;
	pthread_t t;
	int fd;

	NC(ncclGetUniqueId(&j.id));
	REQUIRE(!pthread_create(&t, NULL, join, &j), "pthread_create");
	m = hello(&j.id, 1, 3);
	fd = knock(&j.id);
	say(fd, &m, sizeof(m));
	close(fd);
	expect(t, &j, ncclRemoteError);
}

/* Rank 1 is there and then says something else than rank 0, or nothing more. */
static void ends_later(bool speaks)
{
	struct joiner j = {{}, 2, ncclSuccess};
	struct qccl_head h = {QCCL_SAY_TELL, 0};
	struct message m;
	pthread_t t;
	int fd;

	NC(ncclGetUniqueId(&j.id));
	REQUIRE(!pthread_create(&t, NULL, join, &j), "pthread_create");
	m = hello(&j.id, 1, 2);
	fd = knock(&j.id);
	say(fd, &m, sizeof(m));
	REQUIRE(recv(fd, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == QCCL_ANSWER_OK, "no welcome");
	h.what = QCCL_SAY_TELL;
	h.size = 0;
	if (speaks)
		say(fd, &h, sizeof(h));
	else
		close(fd);
	expect(t, &j, speaks ? ncclInvalidUsage : ncclRemoteError);
	if (speaks)
		close(fd);
}

/* A second rank 0. */
static void same_rank(void)
{
	struct joiner j = {{}, 2, ncclSuccess};
	struct message m;
	pthread_t t;
	int first, second;

	NC(ncclGetUniqueId(&j.id));
	m = hello(&j.id, 0, 2);
	first = knock(&j.id);
	say(first, &m, sizeof(m));
	second = knock(&j.id);
	say(second, &m, sizeof(m));
	answered(second, QCCL_ANSWER_MISMATCH);
	REQUIRE(!pthread_create(&t, NULL, join, &j), "pthread_create");
	expect(t, &j, ncclInvalidUsage);
	close(first);
}

int main(void)
{
	struct team t;
	ncclUniqueId id;
	int silent, half;

	if (!is_ours("cudaMalloc")) {
		printf("this is NVIDIA's library\n");
		return 77;
	}
	ends_early();
	ends_later(false);
	ends_later(true);
	same_rank();

	NC(ncclGetUniqueId(&id));
	strangers(&id, knock, &silent, &half);
	memset(&t, 0, sizeof(t));
	t.ranks = t.count = 1;
	CHECK(cudaSetDevice(0));
	NC(ncclCommInitRank(&t.member[0].comm, 1, id, 0));
	equip(&t, ROOM);
	some_collectives(&t);
	end_team(&t);
	close(silent);
	close(half);
	return verified("strangers and ranks that end hold up nobody");
}
