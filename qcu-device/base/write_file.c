// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements write_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/base/write_file.h"

bool write_file(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC), err;
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	err = errno;
	if (fd >= 0)
		close(fd);
	errno = err;
	return ok;
}
