// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes transfers of all kinds without a pause, in two threads, until it is killed. Prints "ready"
 * when the first transfers are done. With the argument "free" it only prints how much device memory
 * is free.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "mem.h"

#define BUF  (2 * MIB)
#define AREA (8 * MIB)

static int fd;

static uint32_t next(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

static void *hammer(void *arg)
{
	uint32_t id = (uint32_t)(uintptr_t)arg, x = id * 77 + (uint32_t)getpid(), i;
	char *anon = mem_scattered(BUF), *huge = mem_huge(BUF);
	uint64_t dev = raw_malloc(fd, BUF);

	for (i = 0;; i++) {
		char *chunks = raw_chunks(fd, (id * 4 + i % 3) * AREA, BUF);
		int n;

		for (n = 0; n < 8; n++) {
			int op = next(&x) & 1 ? QCU_OP_COPY_H2D : QCU_OP_COPY_D2H;
			char *host = next(&x) & 1 ? chunks : next(&x) & 1 ? anon : huge;
			size_t off = next(&x) % 5000, len = next(&x) % (BUF - 5000);
			struct qCUcmd cmd = raw_cmd(op);

			cmd.tid = id;
			cmd.copy_h2d.buf.addr = (uintptr_t)host + off;
			cmd.copy_h2d.buf.len = len;
			cmd.copy_h2d.dst = dev;
			cmd.copy_h2d.flags = next(&x) & 1 ? QCU_COPY_QUEUED : 0;
			SAME(raw_submit(fd, &cmd), 0);
		}
		if (!i && id == 1)
			puts("ready");
		SAME(munmap(chunks, BUF), 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);
	pthread_t thread;

	setvbuf(stdout, NULL, _IONBF, 0);
	fd = raw_session();
	if (argc == 2 && !strcmp(argv[1], "free")) {
		SAME(raw_submit(fd, &cmd), 0);
		printf("%llu\n", (unsigned long long)cmd.mem_info.free);
		return 0;
	}
	SAME(pthread_create(&thread, NULL, hammer, (void *)2), 0);
	hammer((void *)1);
	return 1;
}
