// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds all places of words in a text: one thread per position compares bytes, and an atomic
 * counter stores the hits in the order of their arrival. Words at the very end, overlapping
 * words, and a word that does not occur.
 */
#include <algorithm>
#include <string>
#include <vector>

#include "check.h"

__constant__ char needle[32];

__global__ void search(const char *text, int length, int word, int *found, int *count)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + word <= length;
	     i += gridDim.x * blockDim.x) {
		int k = 0;

		while (k < word && text[i + k] == needle[k])
			k++;
		if (k == word)
			found[atomicAdd(count, 1)] = i;
	}
}

int main(void)
{
	static const char *words[] = {"abab", "a", "bbbbb", "abcabcabc", "ends here", "absent."};
	const int length = 10000;
	std::string text(length, 0);
	int *dev_found, *dev_count, total = 0;
	char *dev_text;

	for (int i = 0; i < length; i++)
		text[i] = 'a' + scramble(i, 16) % (i < length / 2 ? 2 : 3);
	text.replace(300, 9, "abcabcabc");
	text.replace(length - 9, 9, "ends here");
	CHECK(cudaMalloc(&dev_text, length));
	CHECK(cudaMalloc(&dev_found, length * sizeof(int)));
	CHECK(cudaMalloc(&dev_count, sizeof(int)));
	CHECK(cudaMemcpy(dev_text, text.data(), length, cudaMemcpyHostToDevice));
	for (const char *word : words) {
		std::vector<int> want, got(length);
		int count;

		for (size_t at = text.find(word); at != std::string::npos;
		     at = text.find(word, at + 1))
			want.push_back((int)at);
		CHECK(cudaMemcpyToSymbol(needle, word, strlen(word)));
		CHECK(cudaMemset(dev_count, 0, sizeof(int)));
		search<<<4, 256>>>(dev_text, length, (int)strlen(word), dev_found, dev_count);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(&count, dev_count, sizeof(int), cudaMemcpyDeviceToHost));
		REQUIRE(count == (int)want.size(), "\"%s\": %d places, expected %zu", word, count,
			want.size());
		CHECK(cudaMemcpy(got.data(), dev_found, count * sizeof(int),
				 cudaMemcpyDeviceToHost));
		std::sort(got.begin(), got.begin() + count);
		REQUIRE(std::equal(want.begin(), want.end(), got.begin()), "\"%s\": wrong places",
			word);
		total += count;
	}
	CHECK(cudaFree(dev_text));
	CHECK(cudaFree(dev_found));
	CHECK(cudaFree(dev_count));
	return verified("%d places of %zu words", total, sizeof(words) / sizeof(words[0]));
}
