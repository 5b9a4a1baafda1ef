// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of the program that is no chunk: what the driver does with it, for the loopback transport.
 */
#define _GNU_SOURCE /* process_vm_readv */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/transport/user_memory.h"

int user_mapped(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);
	unsigned char few[16], *vec = few;
	size_t pages;
	int rc = 0;

	pages = (addr + len - start + page - 1) / page;
	if (pages > sizeof(few))
		vec = malloc(pages);
	if (!vec)
		return -ENOMEM;
	if (mincore((void *)(uintptr_t)start, addr + len - start, vec) < 0)
		rc = -EFAULT;
	if (vec != few)
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
	ssize_t n = process_vm_readv(owner, &here, 1, &there, 1, 0);

	if (n >= 0 || errno == EFAULT)
		return (size_t)n == len ? 0 : -EFAULT;
	/* Some containers do not permit process_vm_readv. */
	if (user_mapped(addr, len))
		return -EFAULT;
	memcpy(to, (const void *)(uintptr_t)addr, len);
	return 0;
}
