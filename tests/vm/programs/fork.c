// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fork() of a process that has chunks. The child has the content as of the fork. Neither process
 * sees what the other does later: whichever touches a chunk first, whether or not the GPU uses the
 * chunk, and in every generation. A child that executes another program, or that shares its
 * parent's memory, costs no copy. If there is no memory for a copy, the child gets SIGBUS and no
 * other process notices.
 */
#define _GNU_SOURCE /* mremap, vfork */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/sysinfo.h>

#include "raw.h"

#define CHUNK (4 * MIB)

static void fill(char *p, size_t len, int seed)
{
	uint64_t *word = (uint64_t *)p;
	size_t i;

	for (i = 0; i < len / 8; i++)
		word[i] = (uint64_t)seed * 0x9e3779b97f4a7c15ull + i;
}

static void check(const char *p, size_t len, int seed)
{
	const uint64_t *word = (const uint64_t *)p;
	size_t i;

	for (i = 0; i < len / 8; i++)
		if (word[i] != (uint64_t)seed * 0x9e3779b97f4a7c15ull + i)
			SAME(word[i], (uint64_t)seed * 0x9e3779b97f4a7c15ull + i);
}

static void registered(int fd, char *p, size_t len)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);

	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = len;
	SAME(raw_submit(fd, &cmd), 0);
}

/* Two processes take turns: each step of one waits for a byte from the other. */
static int to_child[2], to_parent[2];

static void turns(void)
{
	SAME(pipe(to_child) | pipe(to_parent), 0);
}

static void go(const int ends[2])
{
	SAME(write(ends[1], "", 1), 1);
}

static void await(const int ends[2])
{
	char c;

	SAME(read(ends[0], &c, 1), 1);
}

static void joined(pid_t pid)
{
	int status;

	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
}

static void joined_by(pid_t pid, int signal_nr)
{
	int status;

	SAME(waitpid(pid, &status, 0), pid);
	SAME(WIFSIGNALED(status) ? WTERMSIG(status) : -status, signal_nr);
}

/* Chunk 0 is touched, 1 uploaded, 2 downloaded to, 3 registered, 4 never touched. */
#define KINDS 5

static char *all_kinds(int fd, uint64_t dev)
{
	char *p = raw_chunks(fd, 0, KINDS * CHUNK);
	int i;

	for (i = 0; i < 4; i++)
		fill(p + i * CHUNK, CHUNK, i);
	SAME(raw_upload(fd, dev, p + CHUNK, CHUNK), 0);
	SAME(raw_upload(fd, dev, p + 2 * CHUNK, CHUNK), 0);
	SAME(raw_download(fd, p + 2 * CHUNK, dev, CHUNK), 0);
	registered(fd, p + 3 * CHUNK, CHUNK);
	return p;
}

static void all_unchanged(const char *p, int seed)
{
	size_t i;

	for (i = 0; i < 4; i++)
		check(p + i * CHUNK, CHUNK, seed + (int)i);
	for (i = 0; i < CHUNK; i += 8)
		if (*(const uint64_t *)(p + 4 * CHUNK + i))
			SAME(p[4 * CHUNK + i], 0);
}

static void child_reads_first(void)
{
	int fd = raw_session(), i;
	uint64_t dev = raw_malloc(fd, CHUNK);
	char *p = all_kinds(fd, dev);
	pid_t pid;

	turns();
	pid = fork();
	if (!pid) {
		all_unchanged(p, 0);
		for (i = 0; i < KINDS; i++)
			fill(p + i * CHUNK, CHUNK, 100 + i);
		go(to_parent);
		await(to_child);
		for (i = 0; i < KINDS; i++)
			check(p + i * CHUNK, CHUNK, 100 + i);
		_exit(0);
	}
	await(to_parent);
	all_unchanged(p, 0);
	for (i = 0; i < KINDS; i++)
		fill(p + i * CHUNK, CHUNK, 200 + i);
	/* The GPU still has the same pages as the parent. */
	SAME(raw_upload(fd, dev, p + 3 * CHUNK, CHUNK), 0);
	SAME(raw_download(fd, p, dev, CHUNK), 0);
	check(p, CHUNK, 203);
	go(to_child);
	joined(pid);
	SAME(munmap(p, KINDS * CHUNK), 0);
	raw_works(fd);
}

static void parent_writes_first(void)
{
	int fd = raw_session(), i;
	uint64_t dev = raw_malloc(fd, CHUNK);
	char *p = all_kinds(fd, dev);
	pid_t pid;

	turns();
	pid = fork();
	if (!pid) {
		await(to_child);
		all_unchanged(p, 0);
		_exit(0);
	}
	for (i = 0; i < KINDS; i++)
		fill(p + i * CHUNK, CHUNK, 200 + i);
	go(to_child);
	joined(pid);
	for (i = 0; i < KINDS; i++)
		check(p + i * CHUNK, CHUNK, 200 + i);
	raw_works(fd);
}

/*
 * The first writes after the fork are not the parent's CPU's, but the GPU's: copies from the device
 * and a memset.
 */
static void device_writes_first(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, CHUNK);
	char *p = all_kinds(fd, dev), *q;
	struct qCUcmd set = raw_cmd(QCU_OP_MEMSET);
	pid_t pid;

	turns();
	set.memset.dst = (uintptr_t)p + 3 * CHUNK;
	set.memset.width = CHUNK;
	set.memset.height = 1;
	set.memset.value = 0x77;
	set.memset.elem = 1;
	set.memset.flags = QCU_COPY_SYNC;
	q = raw_chunks(fd, 64 * MIB, CHUNK);
	fill(q, CHUNK, 50);
	SAME(raw_upload(fd, dev, q, CHUNK), 0);
	pid = fork();
	if (!pid) {
		await(to_child);
		all_unchanged(p, 0);
		_exit(0);
	}
	SAME(raw_download(fd, p, dev, CHUNK), 0);
	SAME(raw_download(fd, p + CHUNK, dev, CHUNK), 0);
	SAME(raw_download(fd, p + 2 * CHUNK + 4096, dev, 8192), 0);
	SAME(raw_submit(fd, &set), 0);
	SAME(raw_download(fd, p + 4 * CHUNK, dev, CHUNK), 0);
	go(to_child);
	joined(pid);
	check(p, CHUNK, 50);
	check(p + CHUNK, CHUNK, 50);
	check(p + 2 * CHUNK + 4096, 8192, 50);
	SAME(p[3 * CHUNK + 12345], 0x77);
	check(p + 4 * CHUNK, CHUNK, 50);
}

/* Forks while other threads copy from the device: all bytes of a copy arrive, and none are lost. */
struct copier {
	int fd;
	uint64_t dev;
	char *to;
	atomic_bool stop;
	atomic_uint rounds;
};

static void *copy_on(void *arg)
{
	struct copier *c = arg;

	for (; !atomic_load(&c->stop) || c->rounds < 3; c->rounds++) {
		memset(c->to, 0, CHUNK / 4);
		SAME(raw_download(c->fd, c->to, c->dev, CHUNK / 4), 0);
		check(c->to, CHUNK / 4, 9);
	}
	return NULL;
}

static void copies_in_flight(void)
{
	struct copier c[2] = {0};
	pthread_t thread[2];
	int fd = raw_session(), i;
	char *p = raw_chunks(fd, 0, 4 * CHUNK);
	uint64_t dev = raw_malloc(fd, CHUNK);

	fill(p, CHUNK, 9);
	fill(p + 3 * CHUNK, CHUNK, 10);
	SAME(raw_upload(fd, dev, p, CHUNK), 0);
	for (i = 0; i < 2; i++) {
		c[i].fd = fd;
		c[i].dev = dev;
		c[i].to = p + (i + 1) * CHUNK;
		SAME(pthread_create(&thread[i], NULL, copy_on, &c[i]), 0);
	}
	for (i = 0; i < 30; i++) {
		pid_t pid = fork();

		if (!pid) {
			check(p, CHUNK, 9);
			check(p + 3 * CHUNK, CHUNK, 10);
			p[CHUNK] = p[2 * CHUNK] = 1;
			_exit(0);
		}
		joined(pid);
	}
	for (i = 0; i < 2; i++) {
		atomic_store(&c[i].stop, true);
		pthread_join(thread[i], NULL);
	}
	raw_works(fd);
}

/* Threads of the parent write all the time: the child's memory does not change. */
static void *write_on(void *arg)
{
	struct copier *c = arg;
	uint64_t n;

	for (n = 1; !atomic_load(&c->stop); n++) {
		size_t i;

		for (i = 0; i < 2 * CHUNK; i += 65536)
			*(volatile uint64_t *)(c->to + i) = n;
	}
	return NULL;
}

static uint64_t sum(const char *p, size_t len)
{
	uint64_t s = 0;
	size_t i;

	for (i = 0; i < len; i += 65536)
		s = s * 31 + *(const uint64_t *)(p + i);
	return s;
}

static void writers_in_parent(void)
{
	int fd = raw_session(), i;
	struct copier c = {.fd = fd, .to = raw_chunks(fd, 0, 2 * CHUNK)};
	pthread_t thread;

	SAME(pthread_create(&thread, NULL, write_on, &c), 0);
	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			uint64_t before = sum(c.to, 2 * CHUNK);

			usleep(2000);
			SAME(sum(c.to, 2 * CHUNK), before);
			_exit(0);
		}
		joined(pid);
	}
	atomic_store(&c.stop, true);
	pthread_join(thread, NULL);
}

static void generations(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, CHUNK);
	char *p = all_kinds(fd, dev);
	pid_t pid = fork(), next;

	if (!pid) {
		fill(p, CHUNK, 1000);
		next = fork();
		if (!next) {
			check(p, CHUNK, 1000);
			check(p + CHUNK, CHUNK, 1);
			fill(p, CHUNK, 2000);
			fill(p + 4 * CHUNK, CHUNK, 2000);
			next = fork();
			if (!next) {
				check(p, CHUNK, 2000);
				check(p + 3 * CHUNK, CHUNK, 3);
				check(p + 4 * CHUNK, CHUNK, 2000);
				fill(p, KINDS * CHUNK, 3000);
				_exit(0);
			}
			joined(next);
			check(p, CHUNK, 2000);
			check(p + 2 * CHUNK, CHUNK, 2);
			_exit(0);
		}
		joined(next);
		check(p, CHUNK, 1000);
		check(p + CHUNK, CHUNK, 1);
		SAME(p[4 * CHUNK], 0);
		_exit(0);
	}
	joined(pid);
	all_unchanged(p, 0);
}

/* Several children of one parent. The parent ends before them. */
static void orphans(void)
{
	int ends[2], i;
	char c;
	pid_t pid;

	SAME(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		int fd = raw_session();
		char *p = all_kinds(fd, raw_malloc(fd, CHUNK));

		close(ends[0]);
		for (i = 0; i < 3; i++) {
			if (fork())
				continue;
			/*
			 * The parent's session must end with the parent, so the child must not keep
			 * the file open.
			 */
			close(fd);
			raw_stat_becomes("sessions", 0);
			fill(p + i * CHUNK, CHUNK, 77);
			check(p + 3 * CHUNK, CHUNK, 3);
			check(p + (i + 1) * CHUNK, CHUNK, i + 1);
			SAME(write(ends[1], "k", 1), 1);
			_exit(0);
		}
		kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	joined_by(pid, SIGKILL);
	for (i = 0; i < 3; i++)
		SAME(read(ends[0], &c, 1), 1);
	SAME(read(ends[0], &c, 1), 0);
}

/*
 * The child opens a session of its own. To this session, the inherited memory is ordinary memory.
 */
static void child_has_session(void)
{
	int fd = raw_session();
	char *p = all_kinds(fd, raw_malloc(fd, CHUNK)), *q;
	pid_t pid = fork();

	if (!pid) {
		uint64_t dev;

		close(fd);
		fd = raw_session();
		dev = raw_malloc(fd, 2 * CHUNK);
		SAME(raw_upload(fd, dev, p + CHUNK - 100, 2 * CHUNK), 0);
		q = raw_chunks(fd, 64 * MIB, 2 * CHUNK);
		SAME(raw_download(fd, q, dev, 2 * CHUNK), 0);
		SAME(memcmp(p + CHUNK - 100, q, 2 * CHUNK), 0);
		fill(q, CHUNK, 5);
		SAME(raw_upload(fd, dev, q, CHUNK), 0);
		SAME(raw_download(fd, p + 3 * CHUNK, dev, CHUNK), 0);
		check(p + 3 * CHUNK, CHUNK, 5);
		/* After munmap, the addresses are free for chunks again. */
		SAME(munmap(p, KINDS * CHUNK), 0);
		p = raw_chunks(fd, 0, CHUNK);
		SAME(p[0], 0);
		_exit(0);
	}
	joined(pid);
	all_unchanged(p, 0);
}

/* A counter of the driver's own: how many pages forks have copied so far. */
static long copied(void)
{
	return raw_stat("fork_copied_pages");
}

static pid_t vforked(char *const *args, char *const *env)
{
	pid_t pid = vfork();

	if (!pid) {
		execve("/proc/self/exe", args, env);
		_exit(1);
	}
	return pid;
}

static void nothing_copied(void)
{
	static char *const args[] = {(char *)"fork", (char *)"--list", NULL};
	static char *const env[] = {NULL};
	int fd = raw_session(), i;
	char *p = raw_chunks(fd, 0, 16 * CHUNK);
	long before, chunks;
	pid_t pid;

	for (i = 0; i < 16; i++)
		p[i * CHUNK] = 1;
	SAME(raw_upload(fd, raw_malloc(fd, 16 * CHUNK), p, 16 * CHUNK), 0);
	registered(fd, p, CHUNK);
	before = copied();
	chunks = raw_stat("chunk_pages");
	joined(vforked(args, env));
	SAME(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, env), 0);
	joined(pid);
	SAME(copied(), before);
	SAME(raw_stat("snapshots"), 0);
	/* fork and exec: copies only the chunks that the GPU may write at any moment. */
	pid = fork();
	if (!pid) {
		execve("/proc/self/exe", args, env);
		_exit(1);
	}
	joined(pid);
	SAME(copied(), before + (long)(CHUNK / 4096));
	SAME(raw_stat("chunk_pages"), chunks);
	SAME(raw_stat("snapshots"), 0);
	/* Only the chunks that the child touches are copied, in addition to those. */
	pid = fork();
	if (!pid) {
		p[2 * CHUNK] = p[7 * CHUNK] = 3;
		SAME(raw_stat("chunk_pages"), chunks + 3 * (long)(CHUNK / 4096));
		_exit(0);
	}
	joined(pid);
	/* The chunks are no longer shared: the parent writes them in place. */
	before = copied();
	for (i = 0; i < 16; i++)
		p[i * CHUNK]++;
	SAME(copied(), before);
	SAME(raw_stat("chunk_pages"), chunks);
}

static void *upload_on(void *arg)
{
	struct copier *c = arg;

	for (; !atomic_load(&c->stop); c->rounds++)
		SAME(raw_upload(c->fd, c->dev, c->to, 4 * CHUNK), 0);
	return NULL;
}

/* While the device only reads chunks, a fork copies nothing. */
static void reads_in_flight(void)
{
	static char *const args[] = {(char *)"fork", (char *)"--list", NULL};
	static char *const env[] = {NULL};
	struct copier c = {.fd = raw_session(), .to = WINDOW};
	pthread_t thread[2];
	long before;
	int i;

	fill(raw_chunks(c.fd, 0, 4 * CHUNK), 4 * CHUNK, 3);
	c.dev = raw_malloc(c.fd, 4 * CHUNK);
	before = copied();
	for (i = 0; i < 2; i++)
		SAME(pthread_create(&thread[i], NULL, upload_on, &c), 0);
	/* On a busy machine the uploads may take longer than ten forks. */
	for (i = 0; i < 10 || c.rounds <= 5; i++) {
		pid_t pid = fork();

		if (!pid) {
			execve("/proc/self/exe", args, env);
			_exit(1);
		}
		joined(pid);
	}
	SAME(copied(), before);
	atomic_store(&c.stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	check(c.to, 4 * CHUNK, 3);
}

static void advice(void)
{
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, 2 * CHUNK);
	pid_t pid;

	fill(p, 2 * CHUNK, 1);
	SAME(madvise(p, 2 * CHUNK, MADV_DONTFORK), 0);
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		p[0] = 2;
		_exit(0);
	}
	joined_by(pid, SIGSEGV);
	SAME(madvise(p, 2 * CHUNK, MADV_DOFORK), 0);
	SAME(madvise(p, 2 * CHUNK, MADV_KEEPONFORK), 0);
	registered(fd, p, CHUNK);
	pid = fork();
	if (!pid) {
		check(p, 2 * CHUNK, 1);
		fill(p, 2 * CHUNK, 2);
		_exit(0);
	}
	joined(pid);
	check(p, 2 * CHUNK, 1);
}

/* The child can unmap, protect and move pieces of the inherited memory, as with any memory. */
static void pieces(void)
{
	int fd = raw_session(), file;
	char *p = raw_chunks(fd, 0, 4 * CHUNK), *q, got[4096];
	pid_t pid, next;

	fill(p, 4 * CHUNK, 6);
	pid = fork();
	if (!pid) {
		SAME(munmap(p + CHUNK - 4096, 8192), 0);
		SAME(mprotect(p + 2 * CHUNK, 4096, PROT_READ), 0);
		SAME(((uint64_t *)p)[5], 6 * 0x9e3779b97f4a7c15ull + 5);
		q = mremap(p + 3 * CHUNK, CHUNK, CHUNK, MREMAP_MAYMOVE | MREMAP_FIXED,
			   WINDOW + 512 * MIB);
		SAME(q != MAP_FAILED, 1);
		SAME(((uint64_t *)q)[1], ((uint64_t *)p)[3 * CHUNK / 8 - 1] + 2);
		next = fork();
		if (!next) {
			SAME(((uint64_t *)q)[100],
			     ((uint64_t *)(p + 2 * CHUNK))[0] + CHUNK / 8 + 100);
			q[CHUNK - 1] = 1;
			file = open("/tmp/fork", O_RDWR | O_CREAT | O_TRUNC, 0600);
			SAME(write(file, q, 4096), 4096);
			SAME(pread(file, p, 4096, 0), 4096);
			SAME(pread(file, got, 4096, 0), 4096);
			SAME(memcmp(p, got, 4096), 0);
			_exit(unlink("/tmp/fork"));
		}
		joined(next);
		SAME(madvise(p, CHUNK - 4096, MADV_DONTNEED), 0);
		check(p, CHUNK - 4096, 6);
		p[CHUNK - 4096] = 1;
		_exit(0);
	}
	joined_by(pid, SIGSEGV);
	check(p, 4 * CHUNK, 6);
}

/*
 * There is memory for a copy of half the chunks only. The missing copy kills the child, and only
 * the child.
 */
static void no_memory(bool by_gpu, bool parent_first)
{
	struct sysinfo info;
	int fd = raw_session();
	size_t len, i;
	uint64_t dev = raw_malloc(fd, MIB);
	char *p;
	pid_t pid;

	SAME(sysinfo(&info), 0);
	len = info.freeram * info.mem_unit / 3 * 2 / CHUNK * CHUNK;
	p = raw_chunks(fd, 0, len);
	for (i = 0; i < len; i += CHUNK)
		p[i] = 1;
	if (by_gpu)
		registered(fd, p, len);
	turns();
	pid = fork();
	if (!pid) {
		signal(SIGBUS, SIG_DFL);
		if (parent_first)
			await(to_child);
		for (i = 0; i < len; i += CHUNK)
			SAME(p[i]++, 1);
		_exit(0);
	}
	if (parent_first) {
		for (i = 0; i < len; i += CHUNK)
			p[i] = 2;
		go(to_child);
	}
	joined_by(pid, SIGBUS);
	for (i = 0; i < len; i += CHUNK)
		SAME(p[i], parent_first ? 2 : 1);
	SAME(raw_upload(fd, dev, p, MIB), 0);
	SAME(munmap(p, len), 0);
	raw_works(fd);
}

static void no_memory_in_child(void)
{
	no_memory(false, false);
}

static void no_memory_in_parent(void)
{
	no_memory(false, true);
}

static void no_memory_at_fork(void)
{
	no_memory(true, false);
}

/* A mapping outlives its file, as any mapping does. The session ends with the file. */
static void file_closed(void)
{
	int fd = raw_session();
	char *p = all_kinds(fd, raw_malloc(fd, CHUNK));
	pid_t pid;

	close(fd);
	SAME(raw_stat("sessions"), 0);
	all_unchanged(p, 0);
	pid = fork();
	if (!pid) {
		all_unchanged(p, 0);
		fill(p, KINDS * CHUNK, 4);
		_exit(0);
	}
	joined(pid);
	all_unchanged(p, 0);
	fd = raw_session();
	SAME(raw_upload(fd, raw_malloc(fd, CHUNK), p, CHUNK), 0);
	SAME(munmap(p, KINDS * CHUNK), 0);
	SAME(raw_stat("chunk_pages"), 0);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"child_reads_first", child_reads_first},
		{"parent_writes_first", parent_writes_first},
		{"device_writes_first", device_writes_first},
		{"copies_in_flight", copies_in_flight},
		{"writers_in_parent", writers_in_parent},
		{"generations", generations},
		{"orphans", orphans},
		{"child_has_session", child_has_session},
		{"nothing_copied", nothing_copied},
		{"reads_in_flight", reads_in_flight},
		{"advice", advice},
		{"pieces", pieces},
		{"no_memory_in_child", no_memory_in_child},
		{"no_memory_in_parent", no_memory_in_parent},
		{"no_memory_at_fork", no_memory_at_fork},
		{"file_closed", file_closed},
		{NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}
