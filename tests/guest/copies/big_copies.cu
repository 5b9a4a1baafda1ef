// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies at odd sizes and addresses from and to every kind of host memory that a program has:
 * malloc, pinned, the stack, static data, anonymous mappings, a private and a shared file
 * mapping, read-only text. Guard bytes around each target must not change.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define MAX   ((size_t)(4 << 20) + 65536)
#define GUARD 64

static unsigned char in_static[1 << 20], reference[MAX];
static unsigned char *dev;
static uint32_t rounds;

static const size_t sizes[] = {
	1, 3, 4095, 4097, 65537, 69999, (1 << 20) + 13, (4 << 20) - 1, (4 << 20) + 1};
static const size_t offsets[] = {0, 1, 7, 4095};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Uses a piece of host memory as the target of a download, with guard bytes. */
static void download(unsigned char *host, size_t len, const char *kind)
{
	size_t at;

	memset(host, 0xc3, len + 2 * GUARD);
	CHECK(cudaMemcpy(host + GUARD, dev + 5, len, cudaMemcpyDeviceToHost));
	at = first_difference(host + GUARD, reference, len);
	REQUIRE(at == len, "%zu bytes down to %s: byte %zu is wrong", len, kind, at);
	for (at = 0; at < GUARD; at++)
		REQUIRE(host[at] == 0xc3 && host[GUARD + len + at] == 0xc3,
			"%zu bytes down to %s: a byte beside them changed", len, kind);
}

/*
 * Uses it as the source of an upload. The bytes come back through memory that is known to be
 * good.
 */
static void upload(const unsigned char *host, size_t len, const char *kind)
{
	size_t at;

	CHECK(cudaMemset(dev, 0, len + 16));
	CHECK(cudaMemcpy(dev + 5, host, len, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(reference, dev + 5, len, cudaMemcpyDeviceToHost));
	at = first_difference(host, reference, len);
	REQUIRE(at == len, "%zu bytes up from %s: byte %zu is wrong", len, kind, at);
	rounds++;
}

static void both_ways(unsigned char *host, size_t room, const char *kind)
{
	for (size_t s = 0; s < COUNT(sizes); s++) {
		for (size_t o = 0; o < COUNT(offsets); o++) {
			unsigned char *p = host + offsets[o];

			if (offsets[o] + sizes[s] + 2 * GUARD > room || (o && sizes[s] > 1 << 20))
				continue;
			fill_words(reference, sizes[s], ++rounds);
			memcpy(p, reference, sizes[s]);
			upload(p, sizes[s], kind);
			fill_words(reference, sizes[s], ++rounds);
			CHECK(cudaMemcpy(dev + 5, reference, sizes[s], cudaMemcpyHostToDevice));
			download(p, sizes[s], kind);
		}
	}
}

static void on_stack(void)
{
	unsigned char local[200000];

	both_ways(local, sizeof(local), "the stack");
}

int main(void)
{
	unsigned char *host;
	char name[] = "/tmp/big_copies.XXXXXX";
	int fd;

	CHECK(cudaMalloc(&dev, MAX));

	host = (unsigned char *)malloc(MAX);
	REQUIRE(host, "out of memory");
	both_ways(host, MAX, "malloc");
	free(host);

	CHECK(cudaMallocHost(&host, MAX));
	both_ways(host, MAX, "pinned memory");
	CHECK(cudaFreeHost(host));

	on_stack();
	both_ways(in_static, sizeof(in_static), "static data");

	host = (unsigned char *)mmap(NULL, MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				     -1, 0);
	REQUIRE(host != MAP_FAILED, "mmap");
	/* Untouched memory: zeros in the upload, fresh pages in the download. */
	upload(host, 1 << 20, "untouched memory");
	download(host + (2 << 20), (1 << 20) - 999, "untouched memory");
	both_ways(host, MAX, "an anonymous mapping");
	munmap(host, MAX);

	fd = mkstemp(name);
	REQUIRE(fd >= 0 && !unlink(name) && !ftruncate(fd, MAX), "no file in /tmp");
	host = (unsigned char *)mmap(NULL, MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(host != MAP_FAILED, "mmap of a file");
	both_ways(host, 1 << 20, "a shared file mapping");
	/* The bytes of a download are in the file. */
	memset(reference, 0x77, 5000);
	CHECK(cudaMemcpy(dev + 5, reference, 5000, cudaMemcpyHostToDevice));
	download(host + 100, 5000, "a shared file mapping");
	REQUIRE(pread(fd, in_static, 5000, 100 + GUARD) == 5000, "pread");
	REQUIRE(!memcmp(in_static, reference, 5000), "the file differs");
	munmap(host, MAX);
	host = (unsigned char *)mmap(NULL, MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	REQUIRE(host != MAP_FAILED, "mmap of a file");
	both_ways(host, 1 << 20, "a private file mapping");
	munmap(host, MAX);
	close(fd);

	fd = open("/proc/self/exe", O_RDONLY);
	REQUIRE(fd >= 0, "/proc/self/exe");
	host = (unsigned char *)mmap(NULL, 16384, PROT_READ, MAP_PRIVATE, fd, 0);
	REQUIRE(host != MAP_FAILED, "mmap of the program");
	upload(host + 1, 16000, "a read-only file mapping");
	munmap(host, 16384);
	close(fd);

	CHECK(cudaFree(dev));
	return verified("%u copies, at odd sizes and addresses, nothing beside them touched",
			rounds);
}
