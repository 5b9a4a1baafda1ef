// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies of ordinary memory whose pages are scattered over the machine's memory. The pages are
 * first touched in an order that jumps, so that neighbours in the program are not neighbours in
 * memory. There are more pages than one command can name, and the copies begin and end in the
 * middle of a page.
 */
#include <sys/mman.h>

#include "check.h"

#define PAGE   4096
#define PAGES  (18 << 10) /* 72 MiB */
#define STRIDE 977	  /* a prime that does not divide PAGES */

static unsigned char *scattered(void)
{
	unsigned char *p = (unsigned char *)mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t page = 0;

	REQUIRE(p != MAP_FAILED, "out of memory");
	(void)madvise(p, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++) {
		p[page * PAGE] = 1;
		page = (page + STRIDE) % PAGES;
	}
	return p;
}

int main(void)
{
	const size_t bytes = (size_t)PAGES * PAGE - 600;
	unsigned char *p = scattered(), *q = scattered(), *dev;
	size_t at;

	fill_words(p, bytes + 600, 3);
	CHECK(cudaMalloc(&dev, bytes));
	CHECK(cudaMemcpy(dev, p + 300, bytes, cudaMemcpyHostToDevice));
	memset(q, 0x5a, bytes + 600);
	CHECK(cudaMemcpy(q + 101, dev, bytes, cudaMemcpyDeviceToHost));
	at = first_difference(p + 300, q + 101, bytes);
	REQUIRE(at == bytes, "byte %zu", at);
	REQUIRE(q[100] == 0x5a && q[101 + bytes] == 0x5a, "a byte beside them changed");
	CHECK(cudaFree(dev));
	munmap(p, (size_t)PAGES * PAGE);
	munmap(q, (size_t)PAGES * PAGE);
	return verified("%zu MiB in %d scattered pages, up and down", bytes >> 20, PAGES);
}
