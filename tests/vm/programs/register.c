// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Registered memory that is not in chunks: which pages are pinned and for how long, which limit
 * they count against, at which address the GPU has them, and that nothing is left of them, however
 * the program ends.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "raw.h"

#define PAGE  ((size_t)4096)
#define RW    (PROT_READ | PROT_WRITE)
#define ANNEX (QCU_WINDOW_BASE + QCU_WINDOW_SIZE)

static int register_at(int fd, const void *p, size_t len, uint64_t *device)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);
	int status;

	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = len;
	status = raw_submit(fd, &cmd);
	if (!status) {
		/* The fields of the request come back unchanged. */
		SAME(cmd.host_register.buf.addr, (uintptr_t)p);
		SAME(cmd.host_register.buf.len, len);
		*device = cmd.host_register.device;
	}
	return status;
}

static int unregister_at(int fd, const void *p, size_t len)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_UNREGISTER);
	int status;

	cmd.host_unregister.addr = (uintptr_t)p;
	cmd.host_unregister.len = len;
	status = raw_submit(fd, &cmd);
	if (!status)
		SAME(cmd.host_unregister.addr, (uintptr_t)p);
	return status;
}

/* Sets bytes with the GPU, at an address of the GPU. */
static int set_bytes(int fd, uint64_t device, size_t len, int value)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEMSET);

	cmd.memset.dst = device;
	cmd.memset.width = len;
	cmd.memset.height = 1;
	cmd.memset.value = (unsigned int)value;
	cmd.memset.elem = 1;
	cmd.memset.flags = QCU_COPY_SYNC;
	return raw_submit(fd, &cmd);
}

static char *pages(size_t n)
{
	char *p = mmap(NULL, n * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	SAME(p != MAP_FAILED, 1);
	return p;
}

static void in_place(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, 64 * PAGE), at, second;
	char *p = pages(64), got[16];
	long before;

	memset(p, 1, 64 * PAGE);
	SAME(register_at(fd, p + 100, 10 * PAGE, &at), 0);
	SAME(raw_stat("pinned_pages"), 11);
	/* The program's own address, unless the mirror uses that address itself. */
	SAME(at == (uintptr_t)p + 100 || at - ANNEX < QCU_ANNEX_SIZE, 1);
	SAME(set_bytes(fd, at + 5, 3 * PAGE, 7), 0);
	SAME(p[104] * 16 + p[105], 0x17);
	SAME(p[104 + 3 * PAGE] * 16 + p[105 + 3 * PAGE], 0x71);
	/* A page that is registered already gets a second address for the same page. */
	SAME(register_at(fd, p, 100, &second), 0);
	SAME(raw_stat("pinned_pages"), 12);
	SAME(second != (uintptr_t)p, 1);
	SAME(second % PAGE, 0);
	SAME(set_bytes(fd, second, 100, 3), 0);
	SAME(p[99] * 16 + p[100], 0x31);
	/* Copies find the registration by the program's address, and pin nothing. */
	before = raw_stat("pages_bytes");
	SAME(raw_upload(fd, dev, p + 100, 10 * PAGE), 0);
	SAME(raw_upload(fd, dev, p + 7, 90), 0);
	SAME(raw_download(fd, p + 101, dev, 10 * PAGE - 1), 0);
	SAME(raw_stat("pages_bytes"), before);
	SAME(raw_download(fd, got, dev, 16), 0);
	SAME(got[0], 3);
	/* Beyond its end, memory is ordinary memory. */
	SAME(raw_upload(fd, dev, p + 99, 10 * PAGE), 0);
	SAME(raw_stat("pages_bytes") > before, 1);
	SAME(unregister_at(fd, p + 100, 10 * PAGE), 0);
	SAME(raw_stat("pinned_pages"), 1);
	SAME(set_bytes(fd, at, 1, 0), 1);
	SAME(unregister_at(fd, p, 100), 0);
	SAME(raw_stat("pinned_pages"), 0);
	raw_works(fd);
}

static void refused(void)
{
	int fd = raw_session();
	char *p = pages(16),
	     *r = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at;

	SAME(register_at(fd, p, 0, &at), -EINVAL);
	SAME(register_at(fd, p, -(uint64_t)(uintptr_t)p, &at), -EFAULT);
	SAME(register_at(fd, (char *)-PAGE, 2 * PAGE, &at), -EFAULT);
	/* The end, rounded up to pages, would be 0. */
	SAME(register_at(fd, (char *)-PAGE, 1, &at), -EFAULT);
	SAME(register_at(fd, (char *)-PAGE, PAGE - 1, &at), -EFAULT);
	SAME(register_at(fd, (char *)-2, 1, &at), -EFAULT);
	SAME(register_at(fd, (char *)0xffff888000000000, PAGE, &at), -EFAULT);
	SAME(register_at(fd, NULL, PAGE, &at), -EFAULT);
	SAME(register_at(fd, p, (size_t)1 << 60, &at), -EFAULT);
	SAME(register_at(fd, (char *)(16 * PAGE), (size_t)1 << 40, &at), -EINVAL);
	SAME(register_at(fd, r, PAGE, &at), -EFAULT);
	SAME(munmap(p + 8 * PAGE, 8 * PAGE), 0);
	SAME(register_at(fd, p, 9 * PAGE, &at), -EFAULT);
	SAME(raw_stat("pinned_pages"), 0);
	SAME(raw_stat("groups"), 0);

	SAME(unregister_at(fd, p, PAGE), 713);
	SAME(register_at(fd, p, 2 * PAGE, &at), 0);
	SAME(register_at(fd, p, 2 * PAGE, &at), -EEXIST);
	SAME(register_at(fd, p + 2 * PAGE - 1, 2 * PAGE, &at), -EEXIST);
	SAME(unregister_at(fd, p, PAGE), -EINVAL);
	SAME(unregister_at(fd, p + 1, 2 * PAGE), -EINVAL);
	SAME(raw_stat("pinned_pages"), 2);
	SAME(unregister_at(fd, p, 2 * PAGE), 0);
	SAME(unregister_at(fd, p, 2 * PAGE), 713);
	raw_works(fd);
}

/* Chunks need no pins. Memory that is only partly in chunks cannot be registered. */
static void chunks(void)
{
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, MIB);
	uint64_t at;

	SAME(register_at(fd, p + 5, 1000, &at), 0);
	SAME(at, (uintptr_t)p + 5);
	SAME(raw_stat("pinned_pages"), 0);
	SAME(set_bytes(fd, at, 1000, 9), 0);
	SAME(p[4] * 16 + p[1004], 0x09);
	SAME(unregister_at(fd, p + 5, 1000), 0);
	SAME(register_at(fd, p + MIB - PAGE, 2 * PAGE, &at), -EFAULT);
	SAME(munmap(p, MIB), 0);
	raw_works(fd);
}

static void of_a_shared_file(void)
{
	int fd = raw_session(), file;
	uint64_t at;
	char *p, got[8];

	file = open("/tmp/register", O_RDWR | O_CREAT | O_TRUNC, 0600);
	SAME(file >= 0, 1);
	SAME(ftruncate(file, 8 * PAGE), 0);
	p = mmap(NULL, 8 * PAGE, RW, MAP_SHARED, file, 0);
	SAME(p != MAP_FAILED, 1);
	SAME(register_at(fd, p, 8 * PAGE, &at), 0);
	SAME(set_bytes(fd, at, 8 * PAGE, 0x55), 0);
	SAME(pread(file, got, 8, 5 * PAGE), 8);
	SAME(got[3], 0x55);
	SAME(unregister_at(fd, p, 8 * PAGE), 0);
	SAME(munmap(p, 8 * PAGE), 0);
	close(file);
	SAME(unlink("/tmp/register"), 0);
}

/*
 * Needs more segments than one command can carry: when two mappings are touched in turns, few or no
 * pages of either are side by side.
 */
static void scattered(void)
{
	const size_t n = 160 * MIB / PAGE;
	char *p = pages(n), *q = pages(n);
	int fd = raw_session();
	uint64_t at, dev = raw_malloc(fd, n * PAGE);
	size_t i;

	SAME(madvise(p, n * PAGE, MADV_NOHUGEPAGE), 0);
	SAME(madvise(q, n * PAGE, MADV_NOHUGEPAGE), 0);
	for (i = 0; i < n; i++) {
		*(uint32_t *)(p + i * PAGE) = (uint32_t)i;
		q[i * PAGE] = 1;
	}
	SAME(register_at(fd, p, n * PAGE, &at), 0);
	SAME(raw_stat("maps") > 1, 1);
	SAME(munmap(q, n * PAGE), 0);
	SAME(raw_upload(fd, dev, p, n * PAGE), 0);
	memset(p, 0, n * PAGE);
	SAME(raw_download(fd, p, dev, n * PAGE), 0);
	for (i = 0; i < n; i++)
		if (*(uint32_t *)(p + i * PAGE) != i)
			SAME(*(uint32_t *)(p + i * PAGE), i);
	SAME(set_bytes(fd, at, n * PAGE, 1), 0);
	SAME(p[n * PAGE - 1] + p[n / 2 * PAGE + 5], 2);
	SAME(unregister_at(fd, p, n * PAGE), 0);
	SAME(raw_stat("pinned_pages"), 0);
}

/* Runs in a child of an ordinary user, who may lock 64 KiB. */
static void locked_limit(void)
{
	const struct rlimit limit = {65536, 65536};
	int fd = raw_session(), status, i;
	char *p = pages(64);
	uint64_t at;
	pid_t pid;

	SAME(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	/* root may lock any amount. */
	SAME(register_at(fd, p, 64 * PAGE, &at), 0);
	SAME(unregister_at(fd, p, 64 * PAGE), 0);
	close(fd);
	pid = fork();
	if (!pid) {
		SAME(setgroups(0, NULL) | setgid(65534) | setuid(65534), 0);
		fd = raw_session();
		SAME(register_at(fd, p, 17 * PAGE, &at), -ENOMEM);
		SAME(register_at(fd, p + 1, 16 * PAGE, &at), -ENOMEM);
		for (i = 0; i < 20; i++) {
			SAME(register_at(fd, p, 16 * PAGE, &at), 0);
			SAME(register_at(fd, p + 32 * PAGE, 1, &at), -ENOMEM);
			SAME(unregister_at(fd, p, 16 * PAGE), 0);
		}
		SAME(register_at(fd, p, 8 * PAGE, &at), 0);
		SAME(register_at(fd, p + 8 * PAGE, 8 * PAGE, &at), 0);
		SAME(register_at(fd, p + 16 * PAGE, 1, &at), -ENOMEM);
		/* Neither a failed registration nor a closed session counts against the limit. */
		SAME(munmap(p + 40 * PAGE, PAGE), 0);
		SAME(unregister_at(fd, p, 8 * PAGE), 0);
		SAME(register_at(fd, p + 39 * PAGE, 2 * PAGE, &at), -EFAULT);
		SAME(register_at(fd, p, 8 * PAGE, &at), 0);
		close(fd);
		fd = raw_session();
		SAME(register_at(fd, p, 16 * PAGE, &at), 0);
		_exit(0);
	}
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
}

/*
 * The registration keeps the pages when their mapping goes. When the registration ends, the pages
 * are free.
 */
static void unmapped(void)
{
	int fd = raw_session();
	char *p = pages(256);
	uint64_t at;

	memset(p, 1, 256 * PAGE);
	SAME(register_at(fd, p, 256 * PAGE, &at), 0);
	SAME(munmap(p, 256 * PAGE), 0);
	SAME(raw_stat("pinned_pages"), 256);
	SAME(set_bytes(fd, at, 256 * PAGE, 2), 0);
	SAME(unregister_at(fd, p, 256 * PAGE), 0);
	SAME(raw_stat("pinned_pages"), 0);
	p = pages(256);
	SAME(register_at(fd, p, 256 * PAGE, &at), 0);
	SAME(munmap(p, 256 * PAGE), 0);
	close(fd);
	SAME(raw_stat("pinned_pages"), 0);
}

static void many(void)
{
	int fd = raw_session(), round, i;
	char *p = pages(64);
	uint64_t at, highest = 0;

	for (round = 0; round < 8; round++) {
		for (i = 0; i < 100; i++) {
			SAME(register_at(fd, p + i * 1000, 1000, &at), 0);
			SAME(set_bytes(fd, at, 1000, i), 0);
			if (at - ANNEX < QCU_ANNEX_SIZE && at > highest)
				highest = at;
		}
		for (i = 0; i < 100; i++) {
			SAME(p[i * 1000] == i && p[i * 1000 + 999] == i, 1);
			SAME(unregister_at(fd, p + ((i * 37) % 100) * 1000, 1000), 0);
		}
		SAME(raw_stat("pinned_pages"), 0);
	}
	/* Addresses are used again. */
	SAME(highest >= ANNEX && highest < ANNEX + 200 * PAGE, 1);
}

/*
 * Many registrations of the same few pages. All but a few of them are in the annex. Finding a place
 * takes few steps, however many registrations there are.
 */
static void places(void)
{
	const int n = 600, each = 40, step = 100;
	int fd = raw_session(), i;
	char *p = pages((size_t)n / each);
	uint64_t at, first = 0;
	long steps = raw_stat("place_steps");

	for (i = 0; i < n; i++) {
		SAME(register_at(fd, p + i / each * PAGE + i % each * step, step, &at), 0);
		if (i == 1)
			first = at;
	}
	steps = raw_stat("place_steps") - steps;
	printf("%ld steps for %d places\n", steps, n);
	SAME(steps > 0 && steps < n * 40, 1);
	/* When a registration ends, its place can be used again at once. */
	for (i = 1; i < n; i += 2)
		SAME(unregister_at(fd, p + i / each * PAGE + i % each * step, step), 0);
	steps = raw_stat("place_steps");
	for (i = 1; i < n; i += 2) {
		SAME(register_at(fd, p + i / each * PAGE + i % each * step, step, &at), 0);
		SAME(at - ANNEX < (uint64_t)n * PAGE || at < ANNEX, 1);
		if (i == 1)
			SAME(at, first);
	}
	SAME(raw_stat("place_steps") - steps < n * 20, 1);
	SAME(set_bytes(fd, at, step, 5), 0);
	SAME(p[(n - 1) / each * PAGE + (n - 1) % each * step], 5);
}

struct worker {
	int fd;
	uint64_t dev;
	char *p;
	atomic_bool stop;
};

static void *copy_on(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&w->stop)) {
		SAME(raw_upload(w->fd, w->dev, w->p, 64 * PAGE), 0);
		SAME(raw_download(w->fd, w->p + 64 * PAGE, w->dev, 64 * PAGE), 0);
	}
	return NULL;
}

/*
 * Other threads copy from and to the memory all the time. For them it makes no difference whether
 * the memory is registered.
 */
static void under_copies(void)
{
	struct worker w = {.fd = raw_session(), .p = pages(128)};
	pthread_t thread[3];
	uint64_t at;
	int i;

	memset(w.p, 0x66, 128 * PAGE);
	w.dev = raw_malloc(w.fd, 64 * PAGE);
	for (i = 0; i < 3; i++)
		SAME(pthread_create(&thread[i], NULL, copy_on, &w), 0);
	for (i = 0; i < 60; i++) {
		SAME(register_at(w.fd, w.p, 128 * PAGE, &at), 0);
		usleep(1000);
		SAME(unregister_at(w.fd, w.p, 128 * PAGE), 0);
	}
	atomic_store(&w.stop, true);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < (int)(128 * PAGE); i++)
		if (w.p[i] != 0x66)
			SAME(w.p[i], 0x66);
}

/* After a fork, the parent keeps the pages that the GPU has. */
static void forked(void)
{
	int fd = raw_session(), status, ends[2];
	char *p = pages(16), c;
	uint64_t at;
	pid_t pid;

	SAME(pipe(ends), 0);
	memset(p, 1, 16 * PAGE);
	SAME(register_at(fd, p, 16 * PAGE, &at), 0);
	pid = fork();
	if (!pid) {
		SAME(read(ends[0], &c, 1), 1);
		SAME(p[0] + p[15 * PAGE], 2);
		memset(p, 9, 16 * PAGE);
		_exit(0);
	}
	memset(p, 2, PAGE);
	SAME(set_bytes(fd, at + PAGE, 15 * PAGE, 3), 0);
	SAME(p[0] * 16 + p[PAGE], 0x23);
	SAME(write(ends[1], "", 1), 1);
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
	SAME(set_bytes(fd, at, PAGE, 4), 0);
	SAME(p[0] * 16 + p[PAGE], 0x43);
}

/* Memory that a child inherits from chunks is in the window, but it is ordinary memory. */
static void inherited(void)
{
	int fd = raw_session(), status;
	char *p = raw_chunks(fd, 0, MIB);
	uint64_t at;
	pid_t pid;

	memset(p, 1, MIB);
	pid = fork();
	if (!pid) {
		close(fd);
		fd = raw_session();
		SAME(register_at(fd, p + 10, 10 * PAGE, &at), 0);
		SAME(set_bytes(fd, at, 10 * PAGE, 2), 0);
		SAME(p[9] * 256 + p[10] * 16 + p[10 * PAGE + 10], 0x121);
		_exit(0);
	}
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
	SAME(p[10], 1);
}

static void *churn(void *arg)
{
	struct worker *w = arg;
	uint64_t at;

	for (;;) {
		if (register_at(w->fd, w->p, 128 * PAGE, &at))
			return NULL;
		unregister_at(w->fd, w->p, 128 * PAGE);
	}
}

/* The process is killed at random moments. */
static void killed(void)
{
	int round, status;

	for (round = 0; round < 30; round++) {
		pid_t pid = fork();

		if (!pid) {
			struct worker w = {.fd = raw_session(), .p = pages(128)};
			char *held = pages(512);
			pthread_t thread[2];
			uint64_t at;

			w.dev = raw_malloc(w.fd, 64 * PAGE);
			SAME(register_at(w.fd, held, 512 * PAGE, &at), 0);
			SAME(pthread_create(&thread[0], NULL, copy_on, &w), 0);
			SAME(pthread_create(&thread[1], NULL, churn, &w), 0);
			pause();
		}
		usleep(20000 + (unsigned int)round * 1777);
		kill(pid, SIGKILL);
		SAME(waitpid(pid, &status, 0), pid);
		SAME(WTERMSIG(status), SIGKILL);
		raw_stat_becomes("groups", 0);
		SAME(raw_stat("pinned_pages"), 0);
	}
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"in_place", in_place},	  {"refused", refused},
		{"chunks", chunks},	  {"of_a_shared_file", of_a_shared_file},
		{"scattered", scattered}, {"locked_limit", locked_limit},
		{"unmapped", unmapped},	  {"many", many},
		{"places", places},	  {"under_copies", under_copies},
		{"forked", forked},	  {"inherited", inherited},
		{"killed", killed},	  {NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}
