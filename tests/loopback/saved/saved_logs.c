// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a compiler has said is gone from the mirror when the program has it: after that the session
 * can be saved.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/loopback/check.h"

static const char bad[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .entry k()\n{\nmov.u32 %a, %b;\nret;\n}\n";

/* Reads the first line of the file. False: there is none yet. */
static bool has_line(const char *file, char *line, size_t room)
{
	int fd = open(file, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, line, room - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = '\0';
	return n > 0;
}

int main(void)
{
	enum cudaJitOption options[] = {cudaJitInfoLogBuffer, cudaJitInfoLogBufferSizeBytes,
					cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
	char folder[] = "/tmp/qcu-saved-XXXXXX", when[64], saved[64], info[200], log[200],
	     line[200];
	void *values[] = {info, (void *)sizeof(info), log, (void *)sizeof(log)};
	cudaLibrary_t library;
	cudaError_t err;
	unsigned int i;
	bool any = false;
	void *p;

	REQUIRE(mkdtemp(folder), "no folder");
	snprintf(when, sizeof(when), "%s/when", folder);
	snprintf(saved, sizeof(saved), "%s/saved", folder);
	setenv("QCU_LOOPBACK_SAVE", "1:1", 1);
	setenv("QCU_LOOPBACK_SAVED", saved, 1);
	setenv("QCU_LOOPBACK_SAVE_WHEN", when, 1);
	err = cudaLibraryLoadData(&library, bad, options, values, 4, NULL, NULL, 0);
	REQUIRE(err == cudaErrorInvalidPtx, "%s", cudaGetErrorName(err));
	(void)cudaGetLastError();
	REQUIRE(strstr(log, "line 6"), "the compiler says: %s", log);
	close(open(when, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	/* Each command is the moment with a chance of one half. */
	for (i = 0; i < 1000 && !any; i++) {
		OK(cudaMalloc(&p, 4096));
		OK(cudaFree(p));
		any = has_line(saved, line, sizeof(line));
	}
	unlink(when);
	unlink(saved);
	rmdir(folder);
	REQUIRE(any, "nothing was tried");
	REQUIRE(!strncmp(line, "saved", 5), "%s", line);
	printf("saved after an error of the compiler\n");
	return 0;
}
