// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread's vector of up to 16 bytes is read and written whole. CUB relies on it: its blocks pass
 * a value and its state to one another in one vector. Some blocks write vectors with equal parts,
 * the others read them meanwhile and look for parts that differ.
 */
#include "check.h"

#define ROUNDS 20000
#define BLOCKS 8
#define LANES  32

template <typename V> __global__ void pass_on(V *at, unsigned int *torn)
{
	V *mine = at + threadIdx.x;

	for (unsigned int i = 1; i <= ROUNDS; i++) {
		if (blockIdx.x % 2) {
			V v = {i, i};

			__stcg(mine, v);
		} else {
			V v = __ldcg(mine);

			if (v.x != v.y)
				atomicAdd(torn, 1u);
		}
	}
}

template <typename V> static void test(const char *name)
{
	unsigned int *torn, count;
	V *at;

	CHECK(cudaMalloc(&at, LANES * sizeof(*at)));
	CHECK(cudaMalloc(&torn, sizeof(*torn)));
	CHECK(cudaMemset(at, 0, LANES * sizeof(*at)));
	CHECK(cudaMemset(torn, 0, sizeof(*torn)));
	pass_on<V><<<BLOCKS, LANES>>>(at, torn);
	CHECK(cudaMemcpy(&count, torn, sizeof(count), cudaMemcpyDeviceToHost));
	REQUIRE(count == 0, "%s: %u vectors were torn", name, count);
	CHECK(cudaFree(at));
	CHECK(cudaFree(torn));
}

int main()
{
	test<uint2>("2 x 4 bytes");
	test<ulonglong2>("2 x 8 bytes");
	printf("verified: vectors are read and written whole\n");
	return 0;
}
