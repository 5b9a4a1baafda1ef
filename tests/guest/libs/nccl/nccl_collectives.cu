// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every collective with every type, operator and several sizes, also with buffers that are not aligned, in one process
 * with all GPUs.
 */
#include "collectives.h"

#define ROOM (1 << 21)

static const struct reduction reductions[] = {
	{ncclSum, 1, 1, false},	  {ncclProd, 1, 1, false}, {ncclMax, 1, 1, false},   {ncclMin, 1, 1, false},
	{ncclAvg, 1, 1, false}, /* factor: see main() */
	{SCALED, 1, 2, false}, {SCALED, 1, 3, true},
};

static void every_type(struct team *t)
{
	for (int type = 0; type < TYPES; type++)
		for (size_t r = 0; r < sizeof(reductions) / sizeof(reductions[0]); r++) {
			struct reduction how = reductions[r];
			ncclDataType_t ty = (ncclDataType_t)type;

			/* So that the average is a whole number. */
			if (how.op == ncclAvg)
				how.factor = t->ranks;
			all_reduce(t, ty, 50, 0, r % 2, &how);
			all_reduce(t, ty, 1, type_size[type], false, &how);
			reduce_to(t, (int)r % t->ranks, ty, 37, 0, &how);
			reduce_scatter(t, ty, 21, 0, &how);
		}
}

static void every_size(struct team *t)
{
	static const size_t sizes[] = {1, 3, 4, 5, 1023, 20000, 33333};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t offset = 0; offset < 20; offset += 4) {
			size_t n = sizes[i];
			int root = (int)(n + offset) % t->ranks;

			if (n > 2000 && offset > 4)
				continue;
			all_reduce(t, ncclFloat32, n, offset, offset % 8, &reductions[0]);
			reduce_to(t, root, ncclInt32, n, offset, &reductions[2]);
			reduce_scatter(t, ncclUint32, n, offset, &reductions[0]);
			broadcast(t, root, ncclUint8, n, offset / 4, offset % 8);
			all_gather(t, ncclInt8, n, offset / 4);
#if NCCL_VERSION_CODE >= 22800
			all_to_all(t, ncclFloat32, n, offset);
			gather_and_scatter(t, root, ncclUint8, n, offset / 4);
#endif
		}
}

/* More than is ever on its way at a time. */
static void large(struct team *t)
{
	all_reduce(t, ncclFloat32, ROOM / 4, 0, false, &reductions[0]);
	all_reduce(t, ncclBfloat16, ROOM / 2 - 1, 2, true, &reductions[0]);
	all_reduce(t, ncclFloat64, ROOM / 8, 0, false, &reductions[5]);
	reduce_to(t, t->ranks - 1, ncclUint32, ROOM / 4, 0, &reductions[3]);
	reduce_scatter(t, ncclFloat16, ROOM / 2 / (size_t)t->ranks, 0, &reductions[0]);
	broadcast(t, 0, ncclUint64, ROOM / 8, 0, false);
	all_gather(t, ncclInt32, ROOM / 4 / (size_t)t->ranks, 0);
}

int main(void)
{
	struct team t = whole_team(ROOM);

	every_type(&t);
	every_size(&t);
	large(&t);
	end_team(&t);

	/* With few channels each of them has much to do. */
	setenv("NCCL_MAX_NCHANNELS", "2", 1);
	t = whole_team(ROOM);
	large(&t);
	end_team(&t);
	return verified("all collectives, types and operators, with %d GPUs", t.ranks);
}
