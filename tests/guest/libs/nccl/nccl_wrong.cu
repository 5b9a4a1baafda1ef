// SPDX-License-Identifier: GPL-2.0-or-later
/* Wrong calls: each returns NCCL's own code, alone and in a group, and what comes after them works. */
#include "collectives.h"
#include "ours.h"

/* After NVIDIA's header, if that is there. */
#include "qcu-library/nccl/wire.h"

#define ROOM (1 << 20)

static void before_any(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm[2] = {NULL, NULL};
	int twice[] = {0, 0}, missing[] = {1000}, n;
	ncclUniqueId id;

	NC_IS(ncclGetVersion(NULL), ncclInvalidArgument);
	NC(ncclGetVersion(&n));
	REQUIRE(n >= 22000 && n < 40000, "version %d", n);
	NC_IS(ncclGetUniqueId(NULL), ncclInvalidArgument);
	NC(ncclGetUniqueId(&id));
	NC_IS(ncclCommInitRank(comm, 0, id, 0), ncclInvalidArgument);
	NC_IS(ncclCommInitRank(comm, 2, id, 2), ncclInvalidArgument);
	NC_IS(ncclCommInitRank(comm, 2, id, -1), ncclInvalidArgument);
	NC_IS(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument);
	config.magic++;
	NC_IS(ncclCommInitRankConfig(comm, 1, id, 0, &config), ncclInvalidArgument);
	NC_IS(ncclCommInitAll(comm, 2, twice), ncclInvalidUsage);
	NC_IS(ncclCommInitAll(comm, 1, missing), ncclInvalidArgument);
	NC_IS(ncclCommCount(NULL, &n), ncclInvalidArgument);
	NC_IS(ncclCommUserRank(NULL, &n), ncclInvalidArgument);
	NC_IS(ncclCommCuDevice(NULL, &n), ncclInvalidArgument);
	NC_IS(ncclGroupEnd(), ncclInvalidUsage);
	NC(ncclCommFinalize(NULL));
	NC(ncclCommWindowDeregister(NULL, NULL));
	NC(ncclCommDestroy(NULL));
	NC_IS(ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, NULL, 0), ncclInvalidArgument);
	REQUIRE(strlen(ncclGetErrorString(ncclSuccess)) && strlen(ncclGetErrorString((ncclResult_t)77)), "no text");
}

/* An id that nobody serves, and one that is none. NVIDIA's library waits for those. */
static void foreign_ids(void)
{
	struct qccl_id ours;
	ncclUniqueId id;
	ncclComm_t comm = NULL;

	memset(&id, 0, sizeof(id));
	NC_IS(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
	NC(ncclGetUniqueId(&id));
	memcpy(&ours, &id, sizeof(ours));
	ours.name[20]++;
	memset(&ours.address, 0, sizeof(ours.address));
	memcpy(&id, &ours, sizeof(ours));
	NC_IS(ncclCommInitRank(&comm, 1, id, 0), ncclSystemError);
	REQUIRE(!comm, "a communicator all the same");
}

/* Two ranks on one GPU, in threads. */
static void same_gpu(void)
{
	ncclComm_t comm[2] = {NULL, NULL};
	ncclUniqueId id;

	NC(ncclGetUniqueId(&id));
	CHECK(cudaSetDevice(0));
	NC(ncclGroupStart());
	NC(ncclCommInitRank(&comm[0], 2, id, 0));
	NC(ncclCommInitRank(&comm[1], 2, id, 1));
	NC_IS(ncclGroupEnd(), ncclInvalidUsage);
}

static void wrong_operations(struct team *t)
{
	struct member *m = &t->member[0];
	ncclRedOp_t op = (ncclRedOp_t)33, own;
	float two = 2;
	char *p = m->in + GUARD;

	NC_IS(ncclAllReduce(p, p, 1, (ncclDataType_t)99, ncclSum, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclAllReduce(p, p, 1, (ncclDataType_t)-1, ncclSum, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclAllReduce(p, p, 1, ncclFloat32, (ncclRedOp_t)-1, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclAllReduce(p, p, 1, ncclFloat32, op, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclReduce(p, p, 1, ncclFloat32, ncclSum, t->ranks, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclReduce(p, p, 1, ncclFloat32, ncclSum, -1, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclBroadcast(p, p, 1, ncclFloat32, t->ranks, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclSend(p, 1, ncclFloat32, t->ranks, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclRecv(p, 1, ncclFloat32, -1, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclCommCount(m->comm, NULL), ncclInvalidArgument);
	NC_IS(ncclCommGetAsyncError(m->comm, NULL), ncclInvalidArgument);
	NC_IS(ncclRedOpDestroy(ncclSum, m->comm), ncclInvalidArgument);
	NC_IS(ncclRedOpDestroy(op, m->comm), ncclInvalidArgument);
	NC(ncclRedOpCreatePreMulSum(&own, &two, ncclFloat32, ncclScalarHostImmediate, m->comm));
	NC_IS(ncclAllReduce(p, p, 1, ncclFloat64, own, m->comm, m->stream), ncclInvalidArgument);
	NC(ncclRedOpDestroy(own, m->comm));
	NC_IS(ncclAllReduce(p, p, 1, ncclFloat32, own, m->comm, m->stream), ncclInvalidArgument);

	/* No elements: nothing is done. */
	NC(ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, m->comm, m->stream));

	/* In a group the wrong call and the group's end fail, and nothing of it is done. */
	NC(ncclGroupStart());
	NC(ncclAllReduce(p, p, 1, ncclFloat32, ncclSum, m->comm, m->stream));
	NC_IS(ncclBroadcast(p, p, 1, ncclFloat32, 99, m->comm, m->stream), ncclInvalidArgument);
	NC_IS(ncclGroupEnd(), ncclInvalidArgument);
}

static void destroyed(void)
{
	int first = 0, n;
	ncclComm_t comm;

	NC(ncclCommInitAll(&comm, 1, &first));
	NC(ncclCommDestroy(comm));
	NC_IS(ncclCommCount(comm, &n), ncclInvalidArgument);
	NC_IS(ncclCommDestroy(comm), ncclInvalidArgument);
}

int main(void)
{
	struct team t;

	before_any();
	if (is_ours("cudaMalloc"))
		foreign_ids();
	same_gpu();
	t = whole_team(ROOM);
	wrong_operations(&t);
	some_collectives(&t);
	end_team(&t);
	if (is_ours("cudaMalloc"))
		destroyed();
	return verified("wrong calls of %d ranks", t.ranks);
}
