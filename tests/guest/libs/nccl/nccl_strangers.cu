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

static void hears(int fd, uint32_t what, size_t size)
{
	static char data[QCCL_MAX_RANKS * sizeof(struct qccl_some)];
	struct qccl_head h;

	REQUIRE(recv(fd, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == what && h.size == size,
		"answered with %u and %u bytes", h.what, h.size);
	REQUIRE(!size || recv(fd, data, size, MSG_WAITALL) == (ssize_t)size, "an answer that is cut");
}

static void wants(int fd, uint32_t ranks, uint32_t size)
{
	struct {
		struct qccl_head head;
		struct qccl_some some;
	} m;

	memset(&m, 0, sizeof(m));
	m.head.what = QCCL_SAY_SOME;
	m.head.size = size;
	m.some.ranks = ranks;
	say(fd, &m, sizeof(m.head) + size);
}

/* Two ranks of three that go on with some, and do not agree, or name ranks that there are not. */
static void some_ranks(void)
{
	const uint32_t whole = sizeof(struct qccl_some);
	ncclUniqueId id;
	struct message m;
	int fd[3];

	NC(ncclGetUniqueId(&id));
	for (int r = 0; r < 3; r++) {
		m = hello(&id, r, 3);
		fd[r] = knock(&id);
		say(fd[r], &m, sizeof(m));
	}
	for (int r = 0; r < 3; r++)
		hears(fd[r], QCCL_ANSWER_OK, 0);
	for (uint32_t wrong : {0u, 2u, 9u, 0x80000001u}) {
		wants(fd[0], wrong, whole);
		hears(fd[0], QCCL_ANSWER_MISMATCH, 0);
	}
	for (uint32_t size : {0u, 4u, whole - 4}) {
		wants(fd[0], 1, size);
		hears(fd[0], QCCL_ANSWER_MISMATCH, 0);
	}
	wants(fd[0], 3, whole);
	wants(fd[1], 6, whole);
	hears(fd[0], QCCL_ANSWER_MISMATCH, 0);
	wants(fd[2], 6, whole);
	hears(fd[1], QCCL_ANSWER_OK, 3 * whole);
	hears(fd[2], QCCL_ANSWER_OK, 3 * whole);
	/* Without one that has ended, and with it. */
	close(fd[2]);
	wants(fd[0], 3, whole);
	wants(fd[1], 3, whole);
	hears(fd[0], QCCL_ANSWER_OK, 3 * whole);
	hears(fd[1], QCCL_ANSWER_OK, 3 * whole);
	wants(fd[0], 5, whole);
	hears(fd[0], QCCL_ANSWER_GONE, 0);
	close(fd[0]);
	close(fd[1]);
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
	some_ranks();

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
