// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random use of /dev/qcuda by short-lived processes ("lives"): any ioctl, any record, mappings that
 * several threads make, change and unmap at once, children that inherit all of it, and death at any
 * moment. A call must return; nothing more is expected of it. The result is in the kernel's log, in
 * what is left behind, and in whether the next program works.
 *
 * ioctl_fuzz SEED LIVES [SECONDS]
 *
 * ends after LIVES lives, or after SECONDS seconds if given. What one life does depends on the
 * seed, on the life's number, and on how its threads are scheduled.
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "raw.h"

#define PLACES	32
#define FDS	6
#define THREADS 4
#define SPACE	(64 * MIB) /* of the window, for mappings */
#define ALIVE	400	   /* ms at most */

/* The threads of a life share this, and change it without a lock. */
static struct {
	char *at;
	size_t len;
} place[PLACES];
static int fds[FDS];

static __thread uint64_t state;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(any() >> 33) % n;
}

static bool one_in(unsigned int n)
{
	return below(n) == 0;
}

/* A thread that causes a fault ends. */
static void fault(int sig)
{
	(void)sig;
	syscall(SYS_exit, 0);
}

/* ---- numbers ---- */

static size_t any_len(void)
{
	static const uint64_t lens[] = {
		0,	  1,	    7,		64,	    4095,	4096,	    4097,
		16 << 10, 64 << 10, 65537,	512 << 10,  1 << 20,	3 << 20,    4 << 20,
		5 << 20,  16 << 20, 1ull << 32, 1ull << 40, 1ull << 47, 1ull << 63, ~0ull,
	};

	/* Most of the time a length that a mapping may have. */
	return one_in(8) ? lens[below(sizeof(lens) / sizeof(lens[0]))] : lens[below(14)];
}

static uint64_t any_addr(void)
{
	static const uint64_t addrs[] = {
		0,
		1,
		4096,
		QCU_WINDOW_BASE,
		QCU_WINDOW_BASE + QCU_WINDOW_SIZE - 4096,
		QCU_WINDOW_BASE + QCU_WINDOW_SIZE,
		0x7ffffffff000ull,
		0x7fffffffefffull,
		0x800000000000ull,
		0xffff888000000000ull,
		0xffffffff81000000ull,
		-4096ull,
		-1ull,
	};
	unsigned int i = below(PLACES);
	char here;

	if (one_in(16))
		return addrs[below(sizeof(addrs) / sizeof(addrs[0]))];
	if (one_in(16))
		return (uintptr_t)&here;
	return (uintptr_t)place[i].at + (one_in(2) ? 0 : below((unsigned int)place[i].len + 1));
}

/* ---- ioctls ---- */

static struct qCUcmd any_record(void)
{
	const struct qcu_rule *rule;
	struct qCUcmd cmd;
	unsigned int i;

	memset(&cmd, 0, sizeof(cmd));
	do
		cmd.op = (__u16)below(QCU_OP_COUNT);
	while (!(rule = qcu_rule(cmd.op)) && !one_in(32));
	cmd.tid = one_in(64) ? 0 : 1 + below(3);
	cmd.seq = (uint32_t)any();
	cmd.device = one_in(32) ? (__u8)any() : 0;
	if (rule && rule->who == QCU_WHO_POST && one_in(2))
		cmd.flags = QCU_F_POSTED;
	if (one_in(64))
		cmd.flags = (__u8)any();
	for (i = 0; i < QCU_BODY / 4; i++)
		cmd.words[i] = one_in(8) ? (uint32_t)any() : below(5);
	for (i = 0; i < QCU_BODY / 8; i++)
		if (one_in(3))
			memcpy(cmd.body + i * 8, &(uint64_t){one_in(2) ? any_addr() : any_len()},
			       8);
	if (rule && rule->buffer != QCU_BUFFER_NONE && !one_in(8)) {
		i = below(PLACES);
		cmd.buf.addr = any_addr();
		cmd.buf.len = any_len();
	}
	for (i = rule ? rule->in : 0; rule && i < QCU_BODY && !one_in(512); i++)
		cmd.body[i] = 0;
	/*
	 * A host function that nobody runs blocks its stream. A call that waits for it does not
	 * return.
	 */
	if (cmd.op == QCU_OP_HOST_NEXT && !one_in(64))
		cmd.host_next.wait = 0;
	return cmd;
}

static void submit(void)
{
	struct qCUcmd cmds[QCU_SUBMIT_MAX];
	struct qcu_submit s = {.cmds = (uintptr_t)cmds};
	unsigned int i;

	s.count = one_in(4) ? 1 + below(QCU_SUBMIT_MAX) : 1 + below(3);
	for (i = 0; i < s.count; i++)
		cmds[i] = any_record();
	if (one_in(64))
		s.cmds = any_addr();
	if (one_in(64))
		s.count = (uint32_t)any();
	if (one_in(64))
		s.late = (int32_t)any();
	ioctl(fds[below(FDS)], QCU_IOC_SUBMIT, &s);
}

/* A correct copy, from or to a part of the memory. */
static void copy(void)
{
	unsigned int i = below(PLACES);
	struct qCUcmd cmds[4];
	struct qcu_submit s = {.cmds = (uintptr_t)cmds, .count = 1 + below(4)};
	int fd = fds[below(FDS)];
	unsigned int k;
	uint64_t dev;

	cmds[0] = raw_cmd(QCU_OP_MALLOC);
	cmds[0].malloc.size = 4 * MIB;
	if (raw_submit(fd, &cmds[0]))
		return;
	dev = cmds[0].malloc.ptr;
	for (k = 0; k < s.count; k++) {
		cmds[k] = raw_cmd(one_in(2) ? QCU_OP_COPY_H2D : QCU_OP_COPY_D2H);
		cmds[k].copy_h2d.buf.addr = (uintptr_t)place[i].at;
		cmds[k].copy_h2d.buf.len = below((unsigned int)(4 * MIB)) + 1;
		cmds[k].copy_h2d.dst = dev;
		cmds[k].flags = one_in(2) ? QCU_F_POSTED : 0;
		cmds[k].copy_h2d.flags = below(4);
	}
	ioctl(fd, QCU_IOC_SUBMIT, &s);
	cmds[0] = raw_cmd(QCU_OP_FREE);
	cmds[0].free.ptr = dev;
	raw_submit(fd, &cmds[0]);
}

static void pin(void)
{
	unsigned int i = below(PLACES);
	bool in = one_in(2);
	struct qCUcmd cmd = raw_cmd(in ? QCU_OP_HOST_REGISTER : QCU_OP_HOST_UNREGISTER);

	cmd.host_unregister.addr = (uintptr_t)place[i].at + (one_in(2) ? 0 : below(8192));
	cmd.host_unregister.len = one_in(2) ? place[i].len : below((unsigned int)place[i].len + 1);
	raw_submit(fds[below(FDS)], &cmd);
}

static void hello(void)
{
	struct qcu_hello h = {.library_version = one_in(32) ? below(4) : QCU_WIRE_VERSION};

	h.rsvd[below(3)] = one_in(32);
	ioctl(fds[below(FDS)], QCU_IOC_HELLO, &h);
}

static void settings(void)
{
	struct qcu_chunk_size size = {.bytes = one_in(4) ? (uint32_t)any() : 1u << below(32)};
	struct qcu_waiting waiting = {.how = below(4), .rsvd = one_in(16)};

	if (one_in(2))
		ioctl(fds[below(FDS)], QCU_IOC_CHUNK, &size);
	else
		ioctl(fds[below(FDS)], QCU_IOC_WAITING, &waiting);
}

static void any_ioctl(void)
{
	static const unsigned long known[] = {QCU_IOC_HELLO, QCU_IOC_SUBMIT, QCU_IOC_CHUNK,
					      QCU_IOC_WAITING};
	uint64_t room[64];
	unsigned int i;

	for (i = 0; i < 64; i++)
		room[i] = one_in(2) ? any() : below(16);
	ioctl(fds[below(FDS)], one_in(4) ? (unsigned long)any() : known[below(4)],
	      one_in(2) ? (unsigned long)any_addr() : (unsigned long)(uintptr_t)room);
}

static void reopen(void)
{
	unsigned int i = below(FDS);
	int old = fds[i];

	if (one_in(3)) {
		fds[i] = dup(fds[below(FDS)]);
	} else {
		fds[i] = open("/dev/qcuda", O_RDWR | (one_in(2) ? O_CLOEXEC : 0));
		hello();
	}
	if (old >= 0)
		close(old);
}

/* ---- memory ---- */

static void map(void)
{
	static const size_t lens[] = {4096, 8192, 64 << 10, 65537, 1 << 20, 4 << 20, 6 << 20};
	size_t len = lens[below(7)];
	int prot = one_in(8) ? (int)below(8) : PROT_READ | PROT_WRITE;
	unsigned int i = below(PLACES);
	int flags = one_in(16) ? MAP_PRIVATE : MAP_SHARED;
	char *at = WINDOW + below(SPACE / 4096) * 4096ul, *p;

	flags |= one_in(4) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	if (one_in(8))
		flags |= MAP_POPULATE;
	if (one_in(8)) {
		at = NULL;
		flags &= ~(MAP_FIXED | MAP_FIXED_NOREPLACE);
	}
	if (one_in(3))
		p = mmap(at, len, prot, (flags & ~MAP_SHARED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		p = mmap(at, len, prot, flags, fds[below(FDS)],
			 one_in(16) ? (off_t)(below(16) * 4096) : 0);
	if (p == MAP_FAILED)
		return;
	place[i].at = p;
	place[i].len = len;
}

static void unmap(void)
{
	unsigned int i = below(PLACES);
	char *at = place[i].at;

	if (!place[i].len)
		return;
	if (one_in(4))
		at += below((unsigned int)place[i].len) & ~4095u;
	munmap(at, one_in(4) ? 4096 : place[i].len);
}

static void change(void)
{
	static const int advice[] = {
		MADV_NORMAL,
		MADV_DONTNEED,
		MADV_FREE,
		MADV_REMOVE,
		MADV_DONTFORK,
		MADV_DOFORK,
		MADV_COLD,
		MADV_PAGEOUT,
		MADV_HUGEPAGE,
		MADV_MERGEABLE,
		MADV_WIPEONFORK,
		19,
		MADV_WILLNEED,
		MADV_NOHUGEPAGE,
		22,
		23,
		25,
	};
	unsigned int i = below(PLACES);
	size_t len = place[i].len;
	char *at = place[i].at;

	if (!len)
		return;
	switch (below(8)) {
	case 0:
		mprotect(at, len, (int)below(8));
		break;
	case 1:
		mprotect(at, 4096, PROT_READ);
		break;
	case 2:
		madvise(at, len, advice[below(sizeof(advice) / sizeof(advice[0]))]);
		break;
	case 3:
		mremap(at, one_in(4) ? 0 : len, one_in(2) ? len : 4096,
		       (int)below(2) * MREMAP_MAYMOVE);
		break;
	case 4:
		mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | (int)below(2) * 4,
		       WINDOW + below(SPACE / 4096) * 4096ul);
		break;
	case 5:
		if (one_in(2))
			mlock(at, len);
		else
			munlock(at, len);
		break;
	case 6:
		syscall(SYS_remap_file_pages, at, 4096, 0, below(4), 0);
		break;
	default:
		syscall(SYS_mbind, at, len, below(5), &(unsigned long){1}, 64, below(8));
	}
}

static void touch(void)
{
	unsigned int i = below(PLACES);
	size_t len = place[i].len, at;
	char *p = place[i].at;

	for (at = 0; at < len; at += 4096)
		if (one_in(2))
			p[at]++;
}

/* The kernel's own accesses to the memory. */
static void around(void)
{
	unsigned int i = below(PLACES);
	struct iovec here = {place[i].at, place[i].len}, there;
	static char room[64 << 10];
	int ends[2], mem;

	switch (below(4)) {
	case 0:
		mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (one_in(2))
			pwrite(mem, room, below(sizeof(room)), (off_t)(uintptr_t)here.iov_base);
		else
			pread(mem, room, below(sizeof(room)), (off_t)(uintptr_t)here.iov_base);
		close(mem);
		break;
	case 1:
		there.iov_base = room;
		there.iov_len = sizeof(room);
		process_vm_readv(getpid(), &there, 1, &here, 1, 0);
		break;
	case 2:
		if (pipe(ends))
			break;
		here.iov_len = below(64 << 10);
		vmsplice(ends[1], &here, 1, SPLICE_F_NONBLOCK);
		unmap();
		close(ends[0]);
		close(ends[1]);
		break;
	default: {
		struct io_uring_params params = {0};
		int ring = (int)syscall(SYS_io_uring_setup, 4, &params);

		if (ring < 0)
			break;
		syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &here, 1);
		unmap();
		close(ring);
	}
	}
}

/*
 * Special memory: pages that this program provides when it likes, pages that it never provides, and
 * pages that go away while they are used.
 */
static void strange(void)
{
	unsigned int i = below(PLACES);
	int file;

	if (one_in(8)) {
		struct uffdio_api api = {.api = UFFD_API};
		struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

		file = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
		reg.range.start = (uintptr_t)place[i].at & ~4095ull;
		reg.range.len = (place[i].len + 4095) & ~4095ull;
		if (file >= 0 && !ioctl(file, UFFDIO_API, &api))
			ioctl(file, UFFDIO_REGISTER, &reg);
		usleep(below(20000));
		close(file);
		return;
	}
	file = (int)syscall(SYS_memfd_create, "fuzz", 2u /* seals */ | (one_in(8) ? 4u : 0));
	if (file < 0 || ftruncate(file, 4 << 20)) {
		close(file);
		return;
	}
	place[i].at = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	place[i].len = place[i].at == MAP_FAILED ? 0 : 4 << 20;
	copy();
	pin();
	if (one_in(2))
		ftruncate(file, 4096);
	fcntl(file, F_ADD_SEALS, 1 << below(5));
	copy();
	close(file);
}

static void steps(unsigned int n);

/* A child inherits all of it, too, and may open a session of its own. */
static void child(void)
{
	unsigned int dies = below(4);
	pid_t pid = one_in(4) ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();

	if (pid < 0)
		return;
	if (!pid) {
		alarm(1);
		if (one_in(2))
			reopen();
		steps(20);
		if (one_in(8))
			execl("/bin/true", "true", NULL);
		_exit(0);
	}
	if (!dies) {
		usleep(below(5000));
		kill(pid, SIGKILL);
	}
	waitpid(pid, NULL, dies == 1 ? WNOHANG : 0);
}

static void steps(unsigned int n)
{
	while (n--) {
		unsigned int what = below(100);

		if (what < 25)
			submit();
		else if (what < 40)
			copy();
		else if (what < 52)
			pin();
		else if (what < 64)
			map();
		else if (what < 72)
			unmap();
		else if (what < 80)
			change();
		else if (what < 88)
			touch();
		else if (what < 91)
			around();
		else if (what < 93)
			strange();
		else if (what < 95)
			settings();
		else if (what < 97)
			any_ioctl();
		else if (what < 99)
			reopen();
		else if (one_in(3))
			child();
		else
			hello();
	}
}

static void *thread(void *seed)
{
	state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15ull | 1;
	steps(1000000);
	return NULL;
}

/* Lives until it is killed, or until all its threads have ended after a fault. */
static void life(uint64_t seed)
{
	unsigned int i, n;
	pthread_t threads[THREADS];

	state = seed * 0x9e3779b97f4a7c15ull | 1;
	signal(SIGSEGV, fault);
	signal(SIGBUS, fault);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < FDS; i++)
		fds[i] = -1;
	fds[0] = raw_session();
	fds[1] = dup(fds[0]);
	fds[2] = fds[0];
	if (one_in(2))
		fds[3] = raw_open();
	for (i = 0; i < PLACES; i++)
		map();
	n = 1 + below(THREADS);
	for (i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)(seed * 8 + i)))
			_exit(0);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	unsigned long lives = argc > 2 ? strtoul(argv[2], NULL, 10) : 40, seed, n;
	uint64_t began = now_ms(), seconds = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	int status, fd;
	pid_t pid;

	setvbuf(stdout, NULL, _IONBF, 0);
	seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	for (n = 0; seconds ? now_ms() - began < seconds * 1000 : n < lives; n++) {
		pid = fork();
		if (!pid) {
			setpgid(0, 0);
			life(seed * 1000003 + n);
		}
		state = (seed * 1000003 + n) | 1;
		any();
		usleep(below(ALIVE * 1000));
		setpgid(pid, pid);
		kill(-pid, SIGKILL);
		SAME(waitpid(pid, &status, 0), pid);
		/* A correct program must work beside a life and after it. */
		if (n % 4 == 3) {
			fd = raw_session();
			raw_works(fd);
			close(fd);
		}
	}
	printf("seed %lu: %lu lives, %ld commands\n", seed, n, raw_stat("commands"));
	return 0;
}
