// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two tables filled in the order of their dependencies: the knapsack row by row with one launch
 * per item, and the edit distance of word pairs along anti-diagonals with one block per pair.
 */
#include <algorithm>
#include <string>
#include <vector>

#include "check.h"

#define ROOM  400
#define ITEMS 25
#define WORD  40

__global__ void knapsack_row(const int *before, int *after, int weight, int value)
{
	int w = blockIdx.x * blockDim.x + threadIdx.x;

	if (w <= ROOM)
		after[w] = max(before[w], w >= weight ? before[w - weight] + value : 0);
}

__global__ void edit_distance(const char (*a)[WORD], const char (*b)[WORD], int *out)
{
	__shared__ int table[WORD][WORD];
	const char *x = a[blockIdx.x], *y = b[blockIdx.x];
	int n = 0, m = 0, i = threadIdx.x;

	while (x[n])
		n++;
	while (y[m])
		m++;
	for (int sum = 0; sum <= n + m; sum++) {
		int k = sum - i;

		if (i <= n && k >= 0 && k <= m) {
			if (i == 0 || k == 0)
				table[i][k] = sum;
			else
				table[i][k] = min(min(table[i - 1][k], table[i][k - 1]) + 1,
						  table[i - 1][k - 1] + (x[i - 1] != y[k - 1]));
		}
		__syncthreads();
	}
	if (i == 0)
		out[blockIdx.x] = table[n][m];
}

static void knapsack(void)
{
	std::vector<int> want(ROOM + 1, 0), got(ROOM + 1);
	int *dev[2];

	for (int k = 0; k < 2; k++) {
		CHECK(cudaMalloc(&dev[k], (ROOM + 1) * 4));
		CHECK(cudaMemset(dev[k], 0, (ROOM + 1) * 4));
	}
	for (int i = 0; i < ITEMS; i++) {
		int weight = 1 + scramble(i, 30) % 60, value = scramble(i, 31) % 1000;

		knapsack_row<<<(ROOM + 128) / 128, 128>>>(dev[i % 2], dev[1 - i % 2], weight,
							  value);
		for (int w = ROOM; w >= weight; w--)
			want[w] = std::max(want[w], want[w - weight] + value);
	}
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got.data(), dev[ITEMS % 2], (ROOM + 1) * 4, cudaMemcpyDeviceToHost));
	for (int w = 0; w <= ROOM; w++)
		REQUIRE(got[w] == want[w], "room %d: %d, expected %d", w, got[w], want[w]);
	CHECK(cudaFree(dev[0]));
	CHECK(cudaFree(dev[1]));
}

static int distance(const std::string &a, const std::string &b)
{
	std::vector<int> row(b.size() + 1);

	for (size_t k = 0; k <= b.size(); k++)
		row[k] = (int)k;
	for (size_t i = 1; i <= a.size(); i++) {
		int corner = row[0]++;

		for (size_t k = 1; k <= b.size(); k++) {
			int up = row[k];

			row[k] = std::min(std::min(up, row[k - 1]) + 1,
					  corner + (a[i - 1] != b[k - 1]));
			corner = up;
		}
	}
	return row[b.size()];
}

int main(void)
{
	static char word[2][20][WORD] = {{"kitten", "", "same", "saturday"},
					 {"sitting", "abc", "same", "sunday"}};
	static const int known[] = {3, 3, 0, 3};
	char(*dev)[WORD];
	int got[20], *dev_out;

	knapsack();
	for (int i = 4; i < 20; i++)
		for (int side = 0; side < 2; side++)
			for (uint32_t k = 0; k < scramble(i, side) % WORD; k++)
				word[side][i][k] = 'a' + scramble(k, 10 * i + side) % 3;
	CHECK(cudaMalloc(&dev, sizeof(word)));
	CHECK(cudaMalloc(&dev_out, sizeof(got)));
	CHECK(cudaMemcpy(dev, word, sizeof(word), cudaMemcpyHostToDevice));
	edit_distance<<<20, 64>>>(dev, dev + 20, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, dev_out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 20; i++) {
		int want = i < 4 ? known[i] : distance(word[0][i], word[1][i]);

		REQUIRE(got[i] == want, "\"%s\" to \"%s\": %d, expected %d", word[0][i], word[1][i],
			got[i], want);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("a knapsack of %d items and 20 edit distances", ITEMS);
}
