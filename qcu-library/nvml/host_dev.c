// SPDX-License-Identifier: LGPL-2.1-or-later
/* NVML's session in a guest: an open file of /dev/qcuda. */
#include "qcu-library/nvml/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int fd = -1;

int qcul_nvml_host_open(void)
{
	struct qcu_hello hello = {.library_version = QCU_WIRE_VERSION};
	int file = open("/dev/qcuda", O_RDWR | O_CLOEXEC), err;

	if (file < 0)
		return -errno;
	if (ioctl(file, QCU_IOC_HELLO, &hello) < 0) {
		err = errno;
		close(file);
		return -err;
	}
	fd = file;
	return 0;
}

void qcul_nvml_host_close(void)
{
	if (fd >= 0)
		close(fd);
	fd = -1;
}

int qcul_nvml_host_send(struct qCUcmd *cmd)
{
	struct qcu_submit submit = {.cmds = (uint64_t)(uintptr_t)cmd, .count = 1};
	int n;

	do {
		n = ioctl(fd, QCU_IOC_SUBMIT, &submit);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 1 ? 0 : -EIO;
}
