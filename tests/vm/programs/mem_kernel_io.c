// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks are ordinary pages. The kernel accesses a process's memory for files, pipes and other
 * processes. It accesses chunks in the same way, and the device sees the result. QCU_TEST_FILE
 * names a file that can be read past the page cache. QCU_TEST_DIR names a folder where the test may
 * write one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "mem.h"

#define LEN (3 * MIB)

static const char *env(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		printf("%s is not set\n", name);
	SAME(!value, 0);
	return value;
}

static void read_all(int file, char *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(file, to + done, len - done);

		SAME(n > 0, 1);
		done += (size_t)n;
	}
}

/* Checks that the device has these bytes at dev. */
static void device_has(int fd, uint64_t dev, const char *want, size_t len)
{
	char *got = mem_anonymous(len);

	SAME(raw_download(fd, got, dev, len), 0);
	SAME(mem_differs(got, want, len), len);
	munmap(got, len);
}

static void direct_read(void)
{
	int fd = raw_session(), file = open(env("QCU_TEST_FILE"), O_RDONLY | O_DIRECT);
	char *p = raw_chunks(fd, 0, LEN + 4096), *want = mem_anonymous(LEN);
	uint64_t dev = raw_malloc(fd, LEN);

	SAME(file < 0, 0);
	/* Reads into pages that nothing has touched, then into pages that the device has. */
	read_all(file, p, LEN);
	close(file);
	file = open(env("QCU_TEST_FILE"), O_RDONLY);
	read_all(file, want, LEN);
	SAME(mem_differs(p, want, LEN), LEN);
	SAME(raw_upload(fd, dev, p, LEN), 0);
	device_has(fd, dev, want, LEN);
	memset(p, 0, LEN);
	SAME(raw_upload(fd, dev, p, LEN), 0);
	close(file);
	file = open(env("QCU_TEST_FILE"), O_RDONLY | O_DIRECT);
	read_all(file, p, LEN);
	SAME(raw_upload(fd, dev, p, LEN), 0);
	device_has(fd, dev, want, LEN);
	close(file);
}

static void direct_write(void)
{
	int fd = raw_session(), file;
	char *p = raw_chunks(fd, 0, LEN), *got = mem_anonymous(LEN), *want = mem_anonymous(LEN);
	uint64_t dev = raw_malloc(fd, LEN);
	char name[256];
	size_t done = 0;

	snprintf(name, sizeof(name), "%s/written", env("QCU_TEST_DIR"));
	file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	SAME(file < 0, 0);
	/* The bytes written to the file come from the device. */
	mem_fill(want, LEN, 5);
	SAME(raw_upload(fd, dev, want, LEN), 0);
	SAME(raw_download(fd, p, dev, LEN), 0);
	while (done < LEN) {
		ssize_t n = write(file, p + done, LEN - done);

		SAME(n > 0, 1);
		done += (size_t)n;
	}
	close(file);
	file = open(name, O_RDONLY);
	read_all(file, got, LEN);
	SAME(mem_differs(got, want, LEN), LEN);
	close(file);
	unlink(name);
}

/* The pipe holds the pages themselves: what the device writes into them comes out of the pipe. */
static void spliced(void)
{
	int fd = raw_session(), ends[2];
	char *p = raw_chunks(fd, 0, MIB), *want = mem_anonymous(MIB), *got = mem_anonymous(MIB);
	uint64_t dev = raw_malloc(fd, MIB);
	struct iovec part = {.iov_base = p + 4096, .iov_len = 60 << 10};

	mem_fill(p, MIB, 1);
	mem_fill(want, MIB, 2);
	SAME(raw_upload(fd, dev, want, MIB), 0);
	SAME(pipe(ends), 0);
	SAME(vmsplice(ends[1], &part, 1, 0), part.iov_len);
	SAME(raw_download(fd, p, dev, MIB), 0);
	read_all(ends[0], got, part.iov_len);
	SAME(mem_differs(got, want + 4096, part.iov_len), part.iov_len);
	/* The pages stay valid for the pipe when the mapping goes. */
	SAME(vmsplice(ends[1], &part, 1, 0), part.iov_len);
	SAME(munmap(p, MIB), 0);
	read_all(ends[0], got, part.iov_len);
	SAME(mem_differs(got, want + 4096, part.iov_len), part.iov_len);
}

static void other_process(void)
{
	int fd = raw_session(), status;
	char *p = raw_chunks(fd, 0, LEN), *want = mem_anonymous(LEN);
	uint64_t dev = raw_malloc(fd, LEN);
	pid_t child, parent = getpid();

	mem_fill(p, LEN, 1);
	mem_fill(want, LEN, 2);
	child = fork();
	if (!child) {
		char *got = mem_anonymous(LEN), *mine = mem_anonymous(LEN);
		struct iovec here = {.iov_base = got, .iov_len = LEN};
		struct iovec there = {.iov_base = p, .iov_len = LEN};

		mem_fill(mine, LEN, 1);
		SAME(process_vm_readv(parent, &here, 1, &there, 1, 0), LEN);
		SAME(mem_differs(got, mine, LEN), LEN);
		here.iov_base = want;
		SAME(process_vm_writev(parent, &here, 1, &there, 1, 0), LEN);
		_exit(0);
	}
	SAME(waitpid(child, &status, 0), child);
	SAME(status, 0);
	SAME(raw_upload(fd, dev, p, LEN), 0);
	device_has(fd, dev, want, LEN);
}

/* Returns the number in a file of /proc behind this word, in the part that begins with `part`. */
static unsigned long number_in(const char *file, const char *part, const char *word)
{
	FILE *f = fopen(file, "r");
	bool inside = false;
	unsigned long n = 0;
	char line[256];

	SAME(!f, 0);
	while (fgets(line, sizeof(line), f)) {
		inside |= !strncmp(line, part, strlen(part));
		if (inside && !strncmp(line, word, strlen(word)))
			break;
	}
	SAME(sscanf(line + strlen(word), "%lu", &n), 1);
	fclose(f);
	return n;
}

static unsigned long huge_kib(const char *p)
{
	char part[32];

	snprintf(part, sizeof(part), "%lx-", (unsigned long)p);
	return number_in("/proc/self/smaps", part, "FilePmdMapped:");
}

static unsigned long resident_kib(void)
{
	return number_in("/proc/self/status", "", "RssFile:");
}

/* Whole 2 MiB at such an address are one huge page. The driver uses none with Linux 6.12 and later.
 */
static void huge_pages(void)
{
	int fd = raw_session(), major, minor;
	char *want = mem_anonymous(7 * MIB), *p = raw_chunks(fd, 0, 7 * MIB);
	char *beside = raw_chunks(fd, 16 * MIB + 4096, 7 * MIB);
	uint64_t dev = raw_malloc(fd, 7 * MIB);
	unsigned long before, huge;
	struct utsname kernel;

	SAME(uname(&kernel), 0);
	SAME(sscanf(kernel.release, "%d.%d", &major, &minor), 2);
	huge = major > 6 || (major == 6 && minor >= 12) ? 0 : 2048;
	mem_fill(want, 7 * MIB, 1);
	before = resident_kib();
	SAME(p[6 * MIB], 0);
	SAME(huge_kib(p), 0);
	memcpy(p, want, 7 * MIB);
	SAME(huge_kib(p), 3 * huge);
	SAME((resident_kib() - before) / 1024, 7);
	memcpy(beside, want, 7 * MIB);
	SAME(huge_kib(beside), 0);
	SAME((resident_kib() - before) / 1024, 14);

	/* The entry goes, and the pages stay. A part can be written when the whole could only be
	 * read. */
	SAME(madvise(p + 2 * MIB, 4096, MADV_DONTNEED), 0);
	SAME(huge_kib(p), 2 * huge);
	SAME(mem_differs(p, want, 7 * MIB), 7 * MIB);
	SAME(mprotect(p, 7 * MIB, PROT_READ), 0);
	SAME(mem_differs(p, want, 7 * MIB), 7 * MIB);
	SAME(mprotect(p, 7 * MIB, RW), 0);
	mem_fill(want + MIB, 4 * MIB, 2);
	memcpy(p + MIB, want + MIB, 4 * MIB);
	SAME(huge_kib(p), 3 * huge);
	SAME(raw_upload(fd, dev, p, 7 * MIB), 0);
	device_has(fd, dev, want, 7 * MIB);
	device_has(fd, dev, p, 7 * MIB);
	SAME(munmap(beside, 7 * MIB), 0);
	SAME(munmap(p, 7 * MIB), 0);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"direct_read", direct_read}, {"direct_write", direct_write},
		{"spliced", spliced},	      {"other_process", other_process},
		{"huge_pages", huge_pages},   {0},
	};

	return raw_main(argc, argv, cases);
}
