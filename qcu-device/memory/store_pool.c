// SPDX-License-Identifier: GPL-2.0-or-later
/* The files for device memory that has left (store_pool.h). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/memory/store_file.h"
#include "qcu-device/memory/store_pool.h"

static struct {
	int fd; /* -1: it could not be emptied */
	bool taken;
	dev_t dev;
	ino_t ino;
} pool[STORE_POOL_MAX];

static unsigned int files; /* how many there are */

const char *store_pool_begin(const char *folder, unsigned int mirrors)
{
	struct stat st;
	int fd;

	while (files < mirrors && files < STORE_POOL_MAX) {
		fd = store_file_open(folder);
		if (fd < 0 && errno == EOPNOTSUPP)
			return "its file system has no files without a name (O_TMPFILE)";
		if (fd < 0)
			return strerror(errno);
		if (fstat(fd, &st)) {
			close(fd);
			return strerror(errno);
		}
		pool[files].fd = fd;
		pool[files].taken = false;
		pool[files].dev = st.st_dev;
		pool[files++].ino = st.st_ino;
	}
	return NULL;
}

int store_pool_take(void)
{
	unsigned int i;

	for (i = 0; i < files; i++)
		if (!pool[i].taken && pool[i].fd >= 0) {
			pool[i].taken = true;
			return pool[i].fd;
		}
	if (files)
		complain("there are fewer files of --swap-file than mirrors");
	return -1;
}

void store_pool_give_back(int fd)
{
	unsigned int i;

	for (i = 0; fd >= 0 && i < files && pool[i].fd != fd; i++)
		;
	if (fd < 0 || i == files)
		return;
	pool[i].taken = false;
	if (!ftruncate(fd, 0))
		return;
	/* Nobody gets what another program has left there. */
	complain("a file of --swap-file cannot be emptied: %s", strerror(errno));
	close(fd);
	pool[i].fd = -1;
}

bool store_pool_has(int fd)
{
	struct stat st;
	unsigned int i;

	if (!files)
		return false;
	if (fstat(fd, &st))
		return true;
	for (i = 0; i < files; i++)
		if (pool[i].dev == st.st_dev && pool[i].ino == st.st_ino)
			return true;
	return false;
}

void store_pool_end(void)
{
	while (files)
		if (pool[--files].fd >= 0)
			close(pool[files].fd);
}
