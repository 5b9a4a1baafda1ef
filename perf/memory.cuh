/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kinds of host memory that a program may copy from and to. In a guest some of them are chunks
 * (malloc, pinned, managed). For the others, the guest pins the pages for each copy.
 */
#ifndef PERF_MEMORY_CUH
#define PERF_MEMORY_CUH

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/bench.h"

enum kind { PAGEABLE, PINNED, REGISTERED, MANAGED, STATIC, STACK, FILE_MAP };
static const char *const kind_name[] = {"pageable", "pinned", "registered", "managed",
					"static",   "stack",  "file"};

#define STATIC_BYTES (64 << 20)
static char static_memory[STATIC_BYTES] __attribute__((aligned(4096)));
static char file_name[] = "/tmp/qcu-perf.XXXXXX";

/* Returns NULL if there is no such memory here; the reason has been printed. */
static char *get(enum kind kind, uint64_t bytes)
{
	cudaError_t ret = cudaSuccess;
	void *p = NULL;
	int fd;

	switch (kind) {
	case PAGEABLE:
		p = malloc(bytes);
		break;
	case PINNED:
		ret = cudaMallocHost(&p, bytes);
		break;
	case REGISTERED:
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
		memset(p, 1, bytes);
		ret = cudaHostRegister(p, bytes, cudaHostRegisterDefault);
		if (ret != cudaSuccess)
			munmap(p, bytes);
		break;
	case MANAGED:
		ret = cudaMallocManaged(&p, bytes, cudaMemAttachGlobal);
		break;
	case STATIC:
		p = static_memory;
		break;
	case STACK: /* the thread's own stack is in such memory, too */
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		break;
	case FILE_MAP:
		fd = mkstemp(file_name);
		REQUIRE(fd >= 0, "%s cannot be made", file_name);
		unlink(file_name);
		memcpy(file_name + sizeof(file_name) - 7, "XXXXXX", 6);
		REQUIRE(!ftruncate(fd, (off_t)bytes), "no room for a file of %llu bytes",
			(unsigned long long)bytes);
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		break;
	}
	if (ret != cudaSuccess) {
		cudaGetLastError();
		bench_skip(kind_name[kind], cudaGetErrorName(ret));
		return NULL;
	}
	REQUIRE(p && p != MAP_FAILED, "out of memory");
	return (char *)p;
}

static void put(enum kind kind, char *p, uint64_t bytes)
{
	switch (kind) {
	case PAGEABLE:
		free(p);
		break;
	case PINNED:
		CHECK(cudaFreeHost(p));
		break;
	case REGISTERED:
		CHECK(cudaHostUnregister(p));
		munmap(p, bytes);
		break;
	case MANAGED:
		CHECK(cudaFree(p));
		break;
	case STATIC:
		break;
	case STACK:
	case FILE_MAP:
		munmap(p, bytes);
		break;
	}
}

#endif
