// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The output of kernels comes out of this program's stdout at the next synchronisation, in order
 * with the program's own output. The test redirects stdout to a file for a while to compare it.
 */
#include <algorithm>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

__global__ void talk(int n)
{
	unsigned int t = blockIdx.x * blockDim.x + threadIdx.x;

	if (t < (unsigned int)n)
		printf("thread %2u: %d %x %lld %5.2f %s %c 100%%\n", t, -(int)t, t * 4099,
		       (long long)t << 33, t * 0.25, t & 1 ? "odd" : "even", 'a' + t % 26);
}

__global__ void once(const char *what)
{
	printf("%s\n", what);
}

__global__ void plain(void)
{
	printf("no arguments\n");
}

static std::vector<std::string> lines_of(int fd)
{
	std::vector<std::string> lines;
	std::string text(lseek(fd, 0, SEEK_END), 0);
	size_t at = 0, end;

	REQUIRE(pread(fd, &text[0], text.size(), 0) == (ssize_t)text.size(), "short read");
	while ((end = text.find('\n', at)) != std::string::npos) {
		lines.push_back(text.substr(at, end - at));
		at = end + 1;
	}
	REQUIRE(at == text.size(), "the output does not end with a newline");
	return lines;
}

int main(void)
{
	const int threads = 200;
	std::vector<std::string> got, want;
	char line[200], *text;
	int out, file;

	CHECK(cudaFree(0));
	file = memfd_create("stdout", 0);
	out = dup(1);
	REQUIRE(file >= 0 && out >= 0 && dup2(file, 1) == 1, "no file");

	printf("before\n");
	fflush(stdout);
	plain<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	printf("between\n");
	fflush(stdout);
	talk<<<(threads + 31) / 32, 32>>>(threads);
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	CHECK(cudaMalloc(&text, 16));
	CHECK(cudaMemcpy(text, "from memory", 12, cudaMemcpyHostToDevice));
	once<<<1, 1>>>(text);
	CHECK(cudaDeviceSynchronize());
	printf("after\n");
	fflush(stdout);
	dup2(out, 1);

	got = lines_of(file);
	REQUIRE(got.size() == (size_t)threads + 5, "%zu lines", got.size());
	REQUIRE(got[0] == "before" && got[1] == "no arguments" && got[2] == "between",
		"\"%s\", \"%s\", \"%s\"", got[0].c_str(), got[1].c_str(), got[2].c_str());
	REQUIRE(got[threads + 3] == "from memory" && got[threads + 4] == "after", "\"%s\", \"%s\"",
		got[threads + 3].c_str(), got[threads + 4].c_str());

	for (int t = 0; t < threads; t++) {
		snprintf(line, sizeof(line), "thread %2u: %d %x %lld %5.2f %s %c 100%%", t, -t,
			 t * 4099, (long long)t << 33, t * 0.25, t & 1 ? "odd" : "even",
			 'a' + t % 26);
		want.push_back(line);
	}
	/* Threads print in any order. */
	std::sort(got.begin() + 3, got.begin() + 3 + threads);
	std::sort(want.begin(), want.end());
	for (int t = 0; t < threads; t++)
		REQUIRE(got[3 + t] == want[t], "\"%s\", expected \"%s\"", got[3 + t].c_str(),
			want[t].c_str());
	CHECK(cudaFree(text));
	return verified("%zu lines printed by kernels", got.size() - 3);
}
