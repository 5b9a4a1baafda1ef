// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into programs that do not use CUDA. It prints a line on stderr when a program opens
 * /dev/qcuda. With TEST_ARM set, it registers a fat binary before main(), as a CUDA program does.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

__attribute__((weak)) void **__cudaRegisterFatBinary(void *data);

PUBLIC int open(const char *path, int flags, ...)
{
	static const char said[] = "spy: open /dev/qcuda\n";
	int mode = 0;

	if (flags & O_CREAT) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, int);
		va_end(ap);
	}
	if (!strcmp(path, "/dev/qcuda") &&
	    write(STDERR_FILENO, said, sizeof(said) - 1) != sizeof(said) - 1)
		abort();
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

__attribute__((constructor)) static void arm(void)
{
	static struct {
		int magic, version;
		const void *data;
		void *unused;
	} empty;

	if (getenv("TEST_ARM") && __cudaRegisterFatBinary)
		__cudaRegisterFatBinary(&empty);
}
