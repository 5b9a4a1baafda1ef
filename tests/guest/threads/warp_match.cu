// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lanes with the same value find one another: __match_any_sync and __match_all_sync with 32 and
 * 64 bits, over the whole warp and over a part of it; ballots and shuffles in a part of a warp.
 */
#include "check.h"

struct result {
	unsigned int any, any_wide, all, all_wide, part, ballot;
	int all_pred, all_wide_pred, shuffled;
};

__global__ void match(const int *key, const long long *wide, result *out)
{
	unsigned int full = 0xffffffffu, odd = 0xaaaaaaaau;
	int lane = threadIdx.x;
	result r = {};

	r.any = __match_any_sync(full, key[lane]);
	r.any_wide = __match_any_sync(full, wide[lane]);
	r.all = __match_all_sync(full, key[lane], &r.all_pred);
	r.all_wide = __match_all_sync(full, wide[lane] >> 40, &r.all_wide_pred);
	if (lane % 2) {
		r.part = __match_any_sync(odd, key[lane]);
		r.ballot = __ballot_sync(odd, key[lane] > 2);
		r.shuffled = __shfl_sync(odd, key[lane], lane ^ 2);
	}
	__syncwarp();
	out[lane] = r;
}

int main(void)
{
	result out[32], *dev;
	long long wide[32], *dev_wide;
	int key[32], *dev_key;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	CHECK(cudaMalloc(&dev_key, sizeof(key)));
	CHECK(cudaMalloc(&dev_wide, sizeof(wide)));
	for (uint32_t round = 0; round < 8; round++) {
		bool same = true;

		for (int i = 0; i < 32; i++) {
			key[i] = round == 3 ? 7 : (int)(scramble(i, round) % 5);
			wide[i] = (5ll << 40) + (scramble(i, round + 9) % 3 << 4) +
				  ((long long)(key[i] & 1) << 33);
			same = same && key[i] == key[0];
		}
		CHECK(cudaMemcpy(dev_key, key, sizeof(key), cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(dev_wide, wide, sizeof(wide), cudaMemcpyHostToDevice));
		match<<<1, 32>>>(dev_key, dev_wide, dev);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 32; i++) {
			unsigned int any = 0, any_wide = 0, ballot = 0;
			const result &r = out[i];

			for (int k = 0; k < 32; k++) {
				any |= (unsigned int)(key[k] == key[i]) << k;
				any_wide |= (unsigned int)(wide[k] == wide[i]) << k;
				ballot |= (unsigned int)(key[k] > 2) << k;
			}
			REQUIRE(r.any == any && r.any_wide == any_wide,
				"round %u, lane %d: %08x and %08x, expected %08x and %08x", round,
				i, r.any, r.any_wide, any, any_wide);
			REQUIRE(r.all == (same ? 0xffffffffu : 0) && !!r.all_pred == same &&
					r.all_wide == 0xffffffffu && r.all_wide_pred,
				"round %u, lane %d: all %08x %d, %08x %d", round, i, r.all,
				r.all_pred, r.all_wide, r.all_wide_pred);
			if (i % 2)
				REQUIRE(r.part == (any & 0xaaaaaaaau) &&
						r.ballot == (ballot & 0xaaaaaaaau) &&
						r.shuffled == key[i ^ 2],
					"round %u, lane %d: %08x, %08x, %d", round, i, r.part,
					r.ballot, r.shuffled);
		}
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_key));
	CHECK(cudaFree(dev_wide));
	return verified("8 warps of keys");
}
