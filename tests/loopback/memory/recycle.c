// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Freed pinned memory is kept for the next allocation of its size. This takes no command except the
 * one that waits for the GPU, if there is work. The amount kept is bounded. While a block is free,
 * it is not known as any kind of memory. Blocks are unmapped when they must be.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>

#include "tests/loopback/check.h"

#define MIB ((size_t)1 << 20)

/* Waits for blocks beyond `most` to be unmapped. Returns how many blocks are still mapped. */
static unsigned int kept_of(char *const *p, unsigned int count, unsigned int most)
{
	unsigned int kept = UINT_MAX, ms, i;

	for (ms = 0; kept > most && ms < 30000; ms++) {
		if (ms)
			usleep(1000);
		for (kept = 0, i = 0; i < count; i++)
			kept += mapped(p[i]);
	}
	return kept;
}

/* Counts the commands in the traced part of the program: all of them, or those of one name. */
static unsigned int commands(FILE *trace, const char *name)
{
	char line[512];
	unsigned int n = 0;

	while (fgets(line, sizeof(line), trace))
		n += strstr(line, " seq ") && (!name || strstr(line, name));
	return n;
}

static void same_block_again(void)
{
	struct cudaPointerAttributes attr;
	char *p, *again, *dev, back[64];
	size_t len;

	OK(cudaMalloc((void **)&dev, 64));
	for (len = 5000; len <= 16 * MIB; len *= 7) {
		OK(cudaMallocHost((void **)&p, len));
		REQUIRE(!p[0] && !p[len - 1], "fresh memory is not zero");
		fill(p, len, 1);
		OK(cudaFreeHost(p));
		/* A free block is not pinned memory, and cannot be freed again. */
		OK(cudaPointerGetAttributes(&attr, p));
		REQUIRE(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
		REFUSED(cudaFreeHost(p), cudaErrorInvalidValue);
		OK(cudaHostAlloc((void **)&again, len, cudaHostAllocMapped));
		REQUIRE(again == p, "%p is not %p again", again, p);
		REQUIRE(len > MIB || !again[len / 2], "a small block is not clear");
		OK(cudaPointerGetAttributes(&attr, again + len - 1));
		REQUIRE(attr.type == cudaMemoryTypeHost, "type %d", attr.type);
		fill(again, len, 2);
		OK(cudaMemcpyAsync(dev, again + len - 64, 64, cudaMemcpyHostToDevice, 0));
		OK(cudaMemcpy(back, dev, 64, cudaMemcpyDeviceToHost));
		REQUIRE(!memcmp(back, again + len - 64, 64), "the copy is wrong");
		OK(cudaFreeHost(again));
	}
	OK(cudaFree(dev));
}

/* Managed memory is not recycled, and does not get blocks that were pinned memory. */
static void managed_is_its_own(void)
{
	char *p, *q;

	OK(cudaMallocManaged((void **)&p, 3 * MIB, cudaMemAttachGlobal));
	OK(cudaFree(p));
	REQUIRE(goes_back(p), "freed managed memory is still there");
	OK(cudaMallocHost((void **)&p, 3 * MIB));
	fill(p, 3 * MIB, 3);
	OK(cudaFreeHost(p));
	OK(cudaMallocManaged((void **)&q, 3 * MIB, cudaMemAttachGlobal));
	REQUIRE(!q[0] && !q[MIB] && !q[3 * MIB - 1], "managed memory is not fresh");
	OK(cudaFree(q));
}

static void what_is_kept_is_bounded(void)
{
	char *p[40], *large;
	unsigned int kept, i;

	for (i = 0; i < 40; i++) {
		OK(cudaMallocHost((void **)&p[i], 2 * MIB));
		p[i][0] = 1;
	}
	for (i = 0; i < 40; i++)
		OK(cudaFreeHost(p[i]));
	kept = kept_of(p, 40, 16);
	REQUIRE(kept > 0 && kept <= 16, "%u blocks of 2 MiB are kept", kept);
	REQUIRE(mapped(p[39]), "the youngest is not among them");
	/* A block that is larger than the bound does not push out the others. */
	OK(cudaMallocHost((void **)&large, 40 * MIB));
	OK(cudaFreeHost(large));
	REQUIRE(goes_back(large) && mapped(p[39]), "a block beyond the bound is kept");
	/* A reset of the device unmaps all blocks. */
	OK(cudaDeviceReset());
	for (i = 0; i < 40; i++)
		REQUIRE(goes_back(p[i]), "block %u outlives a reset", i);
}

static void many_small_ones(void)
{
	static char *p[200];
	unsigned int kept, i;

	/* Larger than a block of a slab, and together smaller than what may be kept. */
	for (i = 0; i < 200; i++)
		OK(cudaMallocHost((void **)&p[i], MIB / 4 + 4096));
	for (i = 0; i < 200; i++)
		OK(cudaFreeHost(p[i]));
	kept = kept_of(p, 200, 64);
	REQUIRE(kept > 0 && kept <= 64, "%u blocks are kept", kept);
}

static bool slab_apart(char *const *p, size_t i, size_t j, size_t len)
{
	return p[i] + len <= p[j] || p[j] + len <= p[i];
}

/* Small blocks lie in slabs. They are as separate as others, and as zero. */
static void slabs(void)
{
	enum { BLOCKS = 300 };
	static char *p[BLOCKS];
	struct cudaPointerAttributes attr;
	char *dev, *back = malloc(BLOCKS * 256);
	unsigned int round;
	size_t i, j;
	int status;
	pid_t pid;

	REQUIRE(back, "out of memory");
	OK(cudaMalloc((void **)&dev, BLOCKS * 256));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < BLOCKS; i++) {
			size_t len = 1 + i * 877 % (MIB / 4);

			OK(cudaMallocHost((void **)&p[i], len));
			REQUIRE(((uintptr_t)p[i] & 4095) == 0, "%p", p[i]);
			REQUIRE(!p[i][0] && !p[i][len / 2] && !p[i][len - 1], "block %zu", i);
			memset(p[i], (int)i + 1, len);
			OK(cudaPointerGetAttributes(&attr, p[i] + len - 1));
			REQUIRE(attr.type == cudaMemoryTypeHost, "type %d", attr.type);
			for (j = 0; j < i; j++)
				REQUIRE(slab_apart(p, i, j, 1 + (i < j ? i : j) * 877 % (MIB / 4)),
					"%zu and %zu", i, j);
			OK(cudaMemcpyAsync(dev + i * 256, p[i], len < 256 ? len : 256,
					   cudaMemcpyHostToDevice, 0));
		}
		/* A part of a slab is pinned memory only while it is allocated. */
		OK(cudaFreeHost(p[7]));
		OK(cudaPointerGetAttributes(&attr, p[7]));
		REQUIRE(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
		REFUSED(cudaFreeHost(p[7]), cudaErrorInvalidValue);
		REFUSED(cudaFreeHost(p[8] + 4096), cudaErrorInvalidValue);
		OK(cudaMallocHost((void **)&p[7], 4096));
		OK(cudaMemcpy(back, dev, BLOCKS * 256, cudaMemcpyDeviceToHost));
		for (i = 8; i < 298; i++)
			REQUIRE(back[i * 256] == (char)(i + 1) &&
					back[i * 256 + 255] == (char)(i + 1),
				"block %zu", i);
		pid = fork();
		REQUIRE(pid >= 0, "no child: %s", strerror(errno));
		if (!pid) {
			/* In the child they are ordinary memory, and can be freed. */
			char *mine;

			for (i = 8; i < BLOCKS; i++)
				REQUIRE(p[i][0] == (char)(i + 1), "block %zu in the child", i);
			OK(cudaMallocHost((void **)&mine, 100));
			for (i = 0; i < BLOCKS; i++)
				REQUIRE(slab_apart((char *[]){mine, p[i]}, 0, 1, 100), "%zu", i);
			for (i = 0; i < BLOCKS; i++)
				OK(cudaFreeHost(p[i]));
			REQUIRE(goes_back(p[100]), "the child keeps the parent's slab");
			OK(cudaFreeHost(mine));
			_exit(0);
		}
		REQUIRE(waitpid(pid, &status, 0) == pid && status == 0, "status %#x", status);
		for (i = 0; i < BLOCKS; i++)
			OK(cudaFreeHost(p[round & 1 ? i : BLOCKS - 1 - i]));
		REQUIRE(goes_back(p[BLOCKS - 1]) || goes_back(p[0]), "all slabs are kept");
	}
	OK(cudaFree(dev));
	/* A reset gives back the last slab, too. */
	OK(cudaMallocHost((void **)&p[0], 100));
	OK(cudaFreeHost(p[0]));
	REQUIRE(mapped(p[0]), "no slab is kept");
	OK(cudaDeviceReset());
	REQUIRE(goes_back(p[0]), "the slab outlives a reset");
	free(back);
}

static void child_has_none_of_it(void)
{
	char *p, *q;
	int status;
	pid_t pid;

	OK(cudaMallocHost((void **)&p, 5 * MIB));
	fill(p, 5 * MIB, 4);
	OK(cudaFreeHost(p));
	pid = fork();
	REQUIRE(pid >= 0, "no child: %s", strerror(errno));
	if (!pid) {
		REQUIRE(!mapped(p), "the child has it");
		OK(cudaMallocHost((void **)&q, 5 * MIB));
		REQUIRE(!q[0] && !q[2 * MIB], "the child got what the parent wrote");
		OK(cudaFreeHost(q));
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
		"the child ended with %#x", status);
	OK(cudaMallocHost((void **)&q, 5 * MIB));
	REQUIRE(q == p, "the parent has lost it");
	OK(cudaFreeHost(q));
}

/* Runs as a separate, traced program: counts what it costs to get and free a block. */
#define SMALL 1000u

static int traced(void)
{
	static char *small[SMALL];
	unsigned int i;
	char *p, *dev;

	OK(cudaMalloc((void **)&dev, 4));
	OK(cudaMallocHost((void **)&p, 8 * MIB));
	OK(cudaFreeHost(p));
	fprintf(stderr, "begin\n");
	for (i = 0; i < 10; i++) {
		OK(cudaMallocHost((void **)&p, 8 * MIB));
		OK(cudaMemsetAsync(dev, 0, 4, 0));
		OK(cudaFreeHost(p));
	}
	for (i = 0; i < 1000; i++) {
		OK(cudaMallocHost((void **)&p, 8 * MIB));
		OK(cudaFreeHost(p));
	}
	fprintf(stderr, "small\n");
	for (i = 0; i < SMALL; i++)
		OK(cudaMallocHost((void **)&small[i], 64 << 10));
	fprintf(stderr, "end\n");
	return 0;
}

static void what_it_costs(char *self)
{
	char line[512], name[] = "/tmp/qcu-recycle-XXXXXX";
	int fd = mkstemp(name), status;
	long begin = 0, small = 0, end = 0;
	unsigned int all, syncs, sets;
	FILE *f;
	pid_t pid;

	REQUIRE(fd >= 0, "no file: %s", strerror(errno));
	unlink(name);
	pid = fork();
	if (!pid) {
		dup2(fd, 2);
		setenv("QCU_TRACE", "1", 1);
		execl(self, self, "traced", NULL);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0, "status %#x", status);
	f = fdopen(fd, "r");
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strcmp(line, "begin\n"))
			begin = ftell(f);
		if (!strcmp(line, "small\n"))
			small = ftell(f);
		if (!strcmp(line, "end\n"))
			end = ftell(f);
	}
	REQUIRE(begin && small > begin && end > small, "no trace");
	REQUIRE(ftruncate(fd, end) == 0, "%s", strerror(errno));
	fseek(f, small, SEEK_SET);
	all = commands(f, NULL);
	/* 32 blocks of 64 KiB share a mapping and a registration. */
	REQUIRE(all >= 2 * SMALL / 32 && all <= 2 * (SMALL / 32 + 1), "%u commands", all);
	REQUIRE(ftruncate(fd, small) == 0, "%s", strerror(errno));
	fseek(f, begin, SEEK_SET);
	all = commands(f, NULL);
	fseek(f, begin, SEEK_SET);
	syncs = commands(f, "DEVICE_SYNC");
	fseek(f, begin, SEEK_SET);
	sets = commands(f, "MEMSET");
	fclose(f);
	/* Without work, the library asks only when the mirror has been silent for 100 ms. */
	REQUIRE(sets == 10 && all == sets + syncs && syncs >= 10 && syncs < 50,
		"%u commands, %u of them MEMSET, %u DEVICE_SYNC", all, sets, syncs);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return traced();
	setenv("QCU_PINNED_CACHE", "32M", 1);
	same_block_again();
	managed_is_its_own();
	what_is_kept_is_bounded();
	many_small_ones();
	slabs();
	child_has_none_of_it();
	what_it_costs(argv[0]);
	return 0;
}
