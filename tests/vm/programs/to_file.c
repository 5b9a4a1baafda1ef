// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Has the device write into a file's pages in the guest's page cache, which stay when the program
 * has ended. A VM that moves must take along what the device wrote there.
 *
 *	to_file zero FILE	makes the file, of zeros, in memory
 *	to_file put FILE N	the device writes pattern N into it
 *	to_file check FILE N	it has pattern N
 */
#include "mem.h"

#define LEN (2 * MIB)

static char *map(const char *name)
{
	int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char *p;

	SAME(file < 0, 0);
	SAME(ftruncate(file, LEN), 0);
	p = mmap(NULL, LEN, RW, MAP_SHARED, file, 0);
	SAME(p == MAP_FAILED, 0);
	close(file);
	return p;
}

int main(int argc, char **argv)
{
	char *p = argc > 2 ? map(argv[2]) : NULL, *want = mem_anonymous(LEN);
	uint64_t dev;
	int fd;

	if (argc > 3)
		mem_fill(want, LEN, (uint64_t)atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "zero")) {
		memset(p, 0, LEN);
	} else if (argc == 4 && !strcmp(argv[1], "check")) {
		SAME(mem_differs(p, want, LEN), LEN);
	} else if (argc == 4 && !strcmp(argv[1], "put")) {
		fd = raw_session();
		dev = raw_malloc(fd, LEN);
		SAME(raw_upload(fd, dev, want, LEN), 0);
		SAME(raw_download(fd, p, dev, LEN), 0);
	} else {
		return 2;
	}
	return 0;
}
