// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranks that TCP connects: who knocks at their doors, and what a rank may say. One rank is a communicator of the
 * library, the other one is this program. Only our own library does it in this way.
 */
#include "strangers.h"

/* After NVIDIA's header, if that is there. */
#include "qcu-library/nccl/carry.h"
#include "qcu-library/nccl/far.h"

#define ROOM	 (1 << 20)
#define STRANGERS 200 /* more than anyone has places for */

struct joiner {
	ncclUniqueId id;
	ncclResult_t result;
	ncclComm_t comm;
	pthread_t thread;
};

static void *join(void *arg)
{
	struct joiner *j = (struct joiner *)arg;

	CHECK(cudaSetDevice(0));
	j->result = ncclCommInitRank(&j->comm, 2, j->id, 0);
	return NULL;
}

/* Rank 1. */
struct fake {
	int meeting, data;
	uint32_t channels;
	struct qccl_address there; /* where rank 0 listens */
	ncclUniqueId id;
};

static void tell(struct fake *f, const void *what, size_t size)
{
	struct qccl_head h = {QCCL_SAY_TELL, (uint32_t)size};

	say(f->meeting, &h, sizeof(h));
	say(f->meeting, what, size);
}

/* What both ranks told. */
static void hear(struct fake *f, void *both, size_t size)
{
	struct qccl_head h;

	REQUIRE(recv(f->meeting, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == QCCL_ANSWER_OK &&
			h.size == size && (!size || recv(f->meeting, both, size, MSG_WAITALL) == (ssize_t)size),
		"no answer of %zu bytes", size);
}

/* Meets rank 0, until it is known where that one listens. */
static void meet(struct joiner *j, struct fake *f)
{
	struct qccl_where where, wheres[2];
	struct qccl_reached reached = {ncclSuccess, 1}, reacheds[2];
	struct qccl_what what, whats[2];
	struct qccl_who who, whos[2];
	struct message m;

	NC(ncclGetUniqueId(&j->id));
	REQUIRE(!pthread_create(&j->thread, NULL, join, j), "pthread_create");
	f->id = j->id;
	m = hello(&f->id, 1, 2);
	f->meeting = knock_by_tcp(&f->id);
	say(f->meeting, &m, sizeof(m));
	hear(f, NULL, 0);
	memset(&who, 0, sizeof(who));
	strcpy(who.machine, "elsewhere");
	who.channels = 4;
	who.by_tcp = 1;
	tell(f, &who, sizeof(who));
	hear(f, whos, sizeof(whos));
	f->channels = whos[0].channels < who.channels ? whos[0].channels : who.channels;
	memset(&what, 0, sizeof(what));
	tell(f, &what, sizeof(what));
	hear(f, whats, sizeof(whats));
	tell(f, &reached, sizeof(reached));
	hear(f, reacheds, sizeof(reacheds));
	REQUIRE(reacheds[0].missed == 2, "rank 0 missed %x", reacheds[0].missed);
	memset(&where, 0, sizeof(where));
	tell(f, &where, sizeof(where));
	hear(f, wheres, sizeof(wheres));
	f->there = wheres[0].address;
}

static struct qccl_far_hello far_hello(const struct fake *f)
{
	struct qccl_far_hello h;
	struct qccl_id id;

	memcpy(&id, &f->id, sizeof(id));
	memset(&h, 0, sizeof(h));
	memcpy(h.magic, "qCUDA-F", 8);
	memcpy(h.secret, id.secret, sizeof(h.secret));
	h.version = QCCL_WIRE;
	h.from = 1;
	return h;
}

static void refused(const struct fake *f, const struct qccl_far_hello *h)
{
	int fd = knock_at(&f->there);

	say(fd, h, sizeof(*h));
	dropped(fd);
}

/* Strangers at the door of rank 0 while it waits for rank 1. */
static void knock_wrongly(const struct fake *f)
{
	struct qccl_far_hello h = far_hello(f), right = h;
	int fd;

	h.secret[15] ^= 0x80;
	refused(f, &h);
	h = right;
	h.from = 0;
	refused(f, &h);
	h.from = 77;
	refused(f, &h);
	h = right;
	h.to = 1;
	refused(f, &h);
	h = right;
	h.version++;
	refused(f, &h);
	h = right;
	h.magic[0] = 0;
	refused(f, &h);
	fd = knock_at(&f->there);
	say(fd, &h, 5);
	close(fd);
}

static void connect_rightly(struct fake *f)
{
	struct qccl_far_hello h = far_hello(f);
	ncclResult_t mine = ncclSuccess, both[2];

	f->data = knock_at(&f->there);
	say(f->data, &h, sizeof(h));
	tell(f, &mine, sizeof(mine));
	hear(f, both, sizeof(both));
	tell(f, &mine, sizeof(mine));
	hear(f, both, sizeof(both));
}

static void joined(struct joiner *j, ncclResult_t want)
{
	pthread_join(j->thread, NULL);
	REQUIRE(j->result == want, "ncclCommInitRank gave %d %s, not %d", (int)j->result, ncclGetLastError(NULL),
		(int)want);
}

static void frame(struct fake *f, uint32_t what, uint32_t channel, uint32_t size, uint32_t pad)
{
	struct qccl_frame h = {what, channel, size, pad};

	say(f->data, &h, sizeof(h));
}

enum misdeed {
	VANISH,
	VANISH_IN_HEAD,
	VANISH_IN_SLOT,
	UNKNOWN_FRAME,
	WRONG_PAD,
	LONG_SLOT,
	EMPTY_SLOT,
	WRONG_CHANNEL,
	NO_ROOM,
	SHORT_CREDITS,
	TOO_MUCH_CREDIT,
	LONG_BYE,
	SLOT_AFTER_BYE,
	MISDEEDS
};

static void misbehave(struct fake *f, enum misdeed d)
{
	uint64_t credits[4] = {1, 0, 0, 0};
	char bytes[100] = {0};

	switch (d) {
	case VANISH:
		break;
	case VANISH_IN_HEAD:
		say(f->data, bytes, 3);
		break;
	case VANISH_IN_SLOT:
		frame(f, QCCL_CARRY_SLOT, 0, 1000, 0);
		say(f->data, bytes, sizeof(bytes));
		break;
	case UNKNOWN_FRAME:
		frame(f, 77, 0, 0, 0);
		break;
	case WRONG_PAD:
		frame(f, QCCL_CARRY_SLOT, 0, sizeof(bytes), 1);
		break;
	case LONG_SLOT:
		frame(f, QCCL_CARRY_SLOT, 0, QCCL_SLOT_BYTES + 1, 0);
		break;
	case EMPTY_SLOT:
		frame(f, QCCL_CARRY_SLOT, 0, 0, 0);
		break;
	case WRONG_CHANNEL:
		frame(f, QCCL_CARRY_SLOT, f->channels, sizeof(bytes), 0);
		break;
	case NO_ROOM: /* one of them is received */
		for (unsigned int i = 0; i <= QCCL_SLOTS; i++) {
			frame(f, QCCL_CARRY_SLOT, 0, sizeof(bytes), 0);
			say(f->data, bytes, sizeof(bytes));
		}
		frame(f, QCCL_CARRY_SLOT, 0, sizeof(bytes), 0);
		break;
	case SHORT_CREDITS:
		frame(f, QCCL_CARRY_CREDITS, 0, 4, 0);
		break;
	case TOO_MUCH_CREDIT:
		frame(f, QCCL_CARRY_CREDITS, 0, f->channels * 8, 0);
		say(f->data, credits, f->channels * 8);
		break;
	case LONG_BYE:
		frame(f, QCCL_CARRY_BYE, 0, 1, 0);
		break;
	default:
		frame(f, QCCL_CARRY_BYE, 0, 0, 0);
		frame(f, QCCL_CARRY_SLOT, 0, sizeof(bytes), 0);
	}
	if (d <= VANISH_IN_SLOT)
		close(f->data);
}

/* Rank 0 waits for data of rank 1, which does something wrong instead. */
static void misdeed(enum misdeed d, char *at, cudaStream_t stream)
{
	ncclResult_t state = ncclSuccess;
	struct joiner j;
	struct fake f;
	char c;

	meet(&j, &f);
	connect_rightly(&f);
	joined(&j, ncclSuccess);
	NC(ncclRecv(at, 1000, ncclInt8, 1, j.comm, stream));
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	misbehave(&f, d);
	while (state == ncclSuccess)
		NC(ncclCommGetAsyncError(j.comm, &state));
	REQUIRE(state == ncclRemoteError, "misdeed %d: state %d", (int)d, (int)state);
	CHECK(cudaStreamSynchronize(stream));
	NC_IS(ncclRecv(at, 1000, ncclInt8, 1, j.comm, stream), ncclRemoteError);
	if (d > VANISH_IN_SLOT) {
		while (recv(f.data, &c, 1, 0) > 0)
			;
		close(f.data);
	}
	NC(ncclCommAbort(j.comm));
	close(f.meeting);
}

/* Rank 1 ends before it has connected, or says that it could not. */
static void does_not_connect(bool says)
{
	ncclResult_t mine = ncclSystemError, both[2];
	struct joiner j;
	struct fake f;

	meet(&j, &f);
	if (says) {
		tell(&f, &mine, sizeof(mine));
		hear(&f, both, sizeof(both));
		tell(&f, &mine, sizeof(mine));
	} else {
		close(f.meeting);
	}
	joined(&j, ncclRemoteError);
	if (says)
		close(f.meeting);
}

/* Many that say nothing, at both doors, hold up nobody. Then a send, a receive, and the end. */
static void good(char *at, cudaStream_t stream)
{
	int silent[STRANGERS], half, quiet;
	struct qccl_frame h;
	char out[1000], in[1000], back[1000];
	uint64_t credits[4];
	struct joiner j;
	struct fake f;

	memset(out, 3, sizeof(out));
	memset(in, 5, sizeof(in));
	meet(&j, &f);
	strangers(&f.id, knock_by_tcp, &quiet, &half);
	knock_wrongly(&f);
	for (int i = 0; i < STRANGERS; i++)
		silent[i] = knock_at(&f.there);
	connect_rightly(&f);
	joined(&j, ncclSuccess);

	CHECK(cudaMemcpy(at, out, sizeof(out), cudaMemcpyHostToDevice));
	NC(ncclSend(at, sizeof(out), ncclInt8, 1, j.comm, stream));
	REQUIRE(recv(f.data, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == QCCL_CARRY_SLOT && !h.channel &&
			h.size == sizeof(out),
		"frame %u of channel %u, %u bytes", h.what, h.channel, h.size);
	REQUIRE(recv(f.data, back, sizeof(back), MSG_WAITALL) == sizeof(back) && !memcmp(back, out, sizeof(out)),
		"wrong bytes");
	NC(ncclRecv(at, sizeof(in), ncclInt8, 1, j.comm, stream));
	frame(&f, QCCL_CARRY_SLOT, 0, sizeof(in), 0);
	say(f.data, in, sizeof(in));
	REQUIRE(recv(f.data, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == QCCL_CARRY_CREDITS &&
			h.size == f.channels * 8 && recv(f.data, credits, h.size, MSG_WAITALL) == (ssize_t)h.size &&
			credits[0] == 1,
		"no credit");
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(back, at, sizeof(back), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(back, in, sizeof(in)), "wrong bytes");
	frame(&f, QCCL_CARRY_BYE, 0, 0, 0);
	NC(ncclCommDestroy(j.comm));
	REQUIRE(recv(f.data, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == QCCL_CARRY_BYE, "no end");
	close(f.data);
	close(f.meeting);
	for (int i = 0; i < STRANGERS; i++)
		close(silent[i]);
	close(half);
	close(quiet);
}

int main(void)
{
	cudaStream_t stream;
	char *at;

	if (!is_ours("cudaMalloc")) {
		printf("this is NVIDIA's library\n");
		return 77;
	}
	setenv("NCCL_P2P_DISABLE", "1", 1);
	setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
	CHECK(cudaMalloc(&at, ROOM));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	does_not_connect(false);
	does_not_connect(true);
	for (int d = 0; d < MISDEEDS; d++)
		misdeed((enum misdeed)d, at, stream);
	good(at, stream);
	CHECK(cudaFree(at));
	return verified("%d misdeeds of a rank, and strangers at two doors", (int)MISDEEDS);
}
