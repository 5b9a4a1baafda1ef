/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that serves as guest RAM, shared as QEMU shares it. */
#ifndef TEST_DEVICE_MEMFD_H
#define TEST_DEVICE_MEMFD_H

#include <sys/mman.h>
#include <unistd.h>

/* Returns NULL if there is no memory. */
static inline void *memfd_ram(size_t bytes)
{
	int fd = memfd_create("ram", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, (off_t)bytes))
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

#endif
