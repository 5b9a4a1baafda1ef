// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of the program that is no chunk: what the driver does with it, for the loopback transport.
 */
#define _GNU_SOURCE /* process_vm_readv */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/transport/user_memory.h"

/* Up to so many pages are looked at one by one. */
#define FEW 4

/*
 * Linux reads the mask before it refuses this way to change it, unless its address is NULL. For one
 * page, this takes a seventh of mincore's time.
 */
static bool readable(uint64_t page)
{
	int was = errno;
	bool bad = syscall(SYS_rt_sigprocmask, -1, page + 8, NULL, 8) && errno == EFAULT;

	errno = was;
	return !bad;
}

static bool few_pages(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return len <= FEW * page - (addr & (page - 1));
}

int user_mapped(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);
	unsigned char *vec;
	int rc = 0;

	if (few_pages(addr, len)) {
		for (; start < addr + len && !rc; start += page)
			rc = readable(start) ? 0 : -EFAULT;
		return rc;
	}
	vec = malloc((addr + len - start + page - 1) / page);
	if (!vec)
		return -ENOMEM;
	if (mincore((void *)(uintptr_t)start, addr + len - start, vec) < 0)
		rc = -EFAULT;
	free(vec);
	return rc;
}

int user_writable(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);

	if (madvise((void *)(uintptr_t)start, addr + len - start, MADV_POPULATE_WRITE) == 0)
		return 0;
	return errno == ENOMEM ? -ENOMEM : -EFAULT;
}

int user_copy(pid_t owner, void *to, uint64_t addr, size_t len)
{
	struct iovec here = {to, len}, there = {(void *)(uintptr_t)addr, len};
	ssize_t n;

	if (!few_pages(addr, len)) {
		n = process_vm_readv(owner, &here, 1, &there, 1, 0);
		if (n >= 0 || errno == EFAULT)
			return (size_t)n == len ? 0 : -EFAULT;
	}
	/* There is little to look at, or the container does not permit process_vm_readv. */
	if (user_mapped(addr, len))
		return -EFAULT;
	memcpy(to, (const void *)(uintptr_t)addr, len);
	return 0;
}
