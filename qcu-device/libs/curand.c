// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The generators of cuRAND in the mirror. The command that creates one contains its type. And the
 * tables of Sobol's sequences, which are constants in the library.
 */
#include <string.h>

#include "qcu-device/libs/curand.h"

/*
 * These continue at any number. Seen with NVIDIA's generators of the host, and not with those of a
 * GPU: only the software GPU's, which are ours, are taken for granted.
 */
static bool counts_on_host(const struct be_ops *ops, uint64_t type)
{
	(void)ops;
	return type == CURAND_RNG_PSEUDO_DEFAULT || type == CURAND_RNG_PSEUDO_XORWOW ||
	       type == CURAND_RNG_PSEUDO_PHILOX4_32_10;
}

static bool counts_on_gpu(const struct be_ops *ops, uint64_t type)
{
	return ops->numbers_ours && counts_on_host(ops, type);
}

const struct lib_kind lib_curand_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CURAND_GENERATOR] =
		{
			.numbered = true,
			.create = "curandCreateGenerator",
			.destroy = "curandDestroyGenerator",
			.stream = "curandSetStream",
			.kept = true,
			.counts = counts_on_gpu,
		},
	[QCU_LIB_CURAND_HOST] =
		{
			.numbered = true,
			.create = "curandCreateGeneratorHost",
			.destroy = "curandDestroyGenerator",
			.kept = true,
			.counts = counts_on_host,
		},
};

/*
 * Sends a whole table. Its size is a fact of the library, for all sets. A function that takes the
 * table alone does not see the second argument.
 */
static int send_table(struct lib_call *c, uint64_t size)
{
	int (*ask)(void **table, int set) = NULL;
	int set = (int)lib_value(c), status;
	uint64_t len;
	void *to = lib_out(c, &len), *table = NULL;

	lib_sized(c, to, len, size);
	if (!to)
		c->bad = true;
	if (!lib_ready(c))
		return 0;
	*(void **)&ask = c->fn;
	status = ask(&table, set);
	if (!status)
		memcpy(to, table, size);
	return status;
}

int lib_do_curandGetDirectionVectors32(struct lib_call *c)
{
	return send_table(c, QCU_CURAND_VECTORS_32);
}

int lib_do_curandGetDirectionVectors64(struct lib_call *c)
{
	return send_table(c, QCU_CURAND_VECTORS_64);
}

int lib_do_curandGetScrambleConstants32(struct lib_call *c)
{
	return send_table(c, QCU_CURAND_CONSTANTS_32);
}

int lib_do_curandGetScrambleConstants64(struct lib_call *c)
{
	return send_table(c, QCU_CURAND_CONSTANTS_64);
}
