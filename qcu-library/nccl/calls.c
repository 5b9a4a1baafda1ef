// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public functions that move and reduce data, and their operators. They check their arguments.
 */
#include <string.h>

#include "qcu-library/nccl/group.h"

static ncclResult_t set_op(struct qccl_task *t, ncclRedOp_t op)
{
	static const enum qccl_op plain[] = {QCCL_SUM, QCCL_PROD, QCCL_MAX, QCCL_MIN, QCCL_SUM};
	const struct qccl_user_op *u;

	if ((int)op < 0 || (int)op >= ncclNumOps + QCCL_USER_OPS)
		return qccl_fail(ncclInvalidArgument, "operator %d", (int)op);
	if (op < ncclNumOps) {
		t->op = plain[op];
		t->average = op == ncclAvg;
		return ncclSuccess;
	}
	u = &t->comm->op[op - ncclNumOps];
	if (!u->used)
		return qccl_fail(ncclInvalidArgument,
				 "operator %d of this communicator does not exist", (int)op);
	if (u->type != t->type)
		return qccl_fail(ncclInvalidArgument, "the operator was made for another type");
	t->op = QCCL_SCALED;
	t->scalar = u->scalar;
	t->scalar_is_address = u->is_address;
	return ncclSuccess;
}

/* `has_in`, `has_out`: which pointers this rank uses. op < 0: none. */
static ncclResult_t check_task(struct qccl_task *t, bool has_in, bool has_out, int op)
{
	ncclResult_t res = qccl_check(t->comm);
	size_t size = qccl_size_of(t->type);

	if (res)
		return res;
	if (!size)
		return qccl_fail(ncclInvalidArgument, "type %d", (int)t->type);
	if (t->root < 0 || t->root >= t->comm->ranks)
		return qccl_fail(ncclInvalidArgument, "rank %d of %d", t->root, t->comm->ranks);
	if (op >= 0) {
		res = set_op(t, (ncclRedOp_t)op);
		if (res)
			return res;
		if (t->type >= ncclFloat8e4m3)
			return qccl_refuse(
				ncclInvalidUsage,
				"reductions of 8-bit floating-point types are not supported");
	}
	if (t->count && ((has_in && !t->in) || (has_out && !t->out)))
		return qccl_fail(ncclInvalidArgument, "a pointer is NULL");
	if (t->count > SIZE_MAX / size / (size_t)t->comm->ranks)
		return qccl_fail(ncclInvalidArgument, "too many elements");
	if (t->comm->revoked)
		return qccl_fail(ncclInvalidUsage, "the communicator was revoked");
	res = qccl_state(t->comm);
	if (res == ncclRemoteError)
		return qccl_fail(res, "a rank of another machine has ended");
	if (res)
		return qccl_fail(ncclInvalidUsage, "the communicator is not ready");
	return ncclSuccess;
}

static ncclResult_t enter(struct qccl_task *t, bool has_in, bool has_out, int op)
{
	ncclResult_t res = check_task(t, has_in, has_out, op);

	if (res || !t->count)
		return qccl_group_fail(res);
	return qccl_group_task(t);
}

#define TASK(what, rank, from, to)                                                               \
	{                                                                                        \
		.call = what, .comm = comm, .in = from, .out = to, .count = count, .type = type, \
		.root = rank, .stream = stream                                                   \
	}

static bool is_root(ncclComm_t comm, int root)
{
	return !qccl_check(comm) && comm->rank == root;
}

/* An operator is an enum, which may be unsigned: a wrong one must not look like none. */
static int op_number(ncclRedOp_t op)
{
	return (int)op < 0 ? INT_MAX : (int)op;
}

QCCL_PUBLIC ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
				       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_ALL_REDUCE, 0, in, out);

	return enter(&t, true, true, op_number(op));
}

QCCL_PUBLIC ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
				    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_REDUCE, root, in, out);

	return enter(&t, true, is_root(comm, root), op_number(op));
}

QCCL_PUBLIC ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count,
					   ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
					   cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_REDUCE_SCATTER, 0, in, out);

	return enter(&t, true, true, op_number(op));
}

QCCL_PUBLIC ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type,
				       int root, ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_BROADCAST, root, in, out);

	return enter(&t, is_root(comm, root), true, -1);
}

QCCL_PUBLIC ncclResult_t ncclBcast(void *data, size_t count, ncclDataType_t type, int root,
				   ncclComm_t comm, cudaStream_t stream)
{
	return ncclBroadcast(data, data, count, type, root, comm, stream);
}

QCCL_PUBLIC ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
				       ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_ALL_GATHER, 0, in, out);

	return enter(&t, true, true, -1);
}

QCCL_PUBLIC ncclResult_t ncclAlltoAll(const void *in, void *out, size_t count, ncclDataType_t type,
				      ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_ALL_TO_ALL, 0, in, out);

	return enter(&t, true, true, -1);
}

QCCL_PUBLIC ncclResult_t ncclGather(const void *in, void *out, size_t count, ncclDataType_t type,
				    int root, ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_GATHER, root, in, out);

	return enter(&t, true, is_root(comm, root), -1);
}

QCCL_PUBLIC ncclResult_t ncclScatter(const void *in, void *out, size_t count, ncclDataType_t type,
				     int root, ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_SCATTER, root, in, out);

	return enter(&t, is_root(comm, root), true, -1);
}

QCCL_PUBLIC ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer,
				  ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_SEND, peer, in, NULL);

	return enter(&t, true, false, -1);
}

QCCL_PUBLIC ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer,
				  ncclComm_t comm, cudaStream_t stream)
{
	struct qccl_task t = TASK(QCCL_CALL_RECEIVE, peer, NULL, out);

	return enter(&t, false, true, -1);
}

QCCL_PUBLIC ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
						  ncclDataType_t type,
						  ncclScalarResidence_t residence, ncclComm_t comm)
{
	ncclResult_t res = qccl_check(comm);
	size_t size = qccl_size_of(type);
	struct qccl_user_op *u;
	int i;

	if (res)
		return res;
	if (!op || !scalar || !size)
		return qccl_fail(ncclInvalidArgument,
				 "ncclRedOpCreatePreMulSum: type %d, or a pointer is NULL",
				 (int)type);
	if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
		return qccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: residence %d",
				 (int)residence);
	for (i = 0; i < QCCL_USER_OPS && comm->op[i].used; i++)
		;
	if (i == QCCL_USER_OPS)
		return qccl_refuse(ncclInvalidUsage, "more than %d operators of a communicator",
				   QCCL_USER_OPS);
	u = &comm->op[i];
	u->used = true;
	u->type = type;
	u->is_address = residence == ncclScalarDevice;
	u->scalar = (uint64_t)(uintptr_t)scalar;
	if (!u->is_address) {
		u->scalar = 0;
		memcpy(&u->scalar, scalar, size);
	}
	*op = (ncclRedOp_t)(ncclNumOps + i);
	return ncclSuccess;
}

QCCL_PUBLIC ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	ncclResult_t res = qccl_check(comm);
	int i = (int)op - ncclNumOps;

	if (res)
		return res;
	if (i < 0 || i >= QCCL_USER_OPS || !comm->op[i].used)
		return qccl_fail(ncclInvalidArgument,
				 "operator %d is none of this communicator's own", (int)op);
	comm->op[i].used = false;
	return ncclSuccess;
}
