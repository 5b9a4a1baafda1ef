// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What calls cost, as the driver counts it for this session: ioctls, notifications, interrupts, and
 * how often the caller has slept or has found its answer by polling.
 */
#define _GNU_SOURCE /* gettid, sched_setaffinity */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <time.h>

#include "raw.h"

#define CALLS  200
#define HELD   10
#define ROUNDS 6

struct counts {
	long commands, ioctls, kicks, interrupts, waits, spins;
};

/* The file has one line for each session: the process, then names and numbers. */
static struct counts counts(void)
{
	FILE *f = fopen("/sys/kernel/debug/qcuda/sessions", "r");
	struct counts c;
	const struct {
		const char *name;
		long *value;
	} names[] = {
		{"commands", &c.commands},     {"ioctls", &c.ioctls}, {"kicks", &c.kicks},
		{"interrupts", &c.interrupts}, {"waits", &c.waits},   {"spins", &c.spins},
	};
	unsigned int i, found;
	char line[512], *at;

	while (f && fgets(line, sizeof(line), f)) {
		if (strtol(line, NULL, 10) != getpid())
			continue;
		fclose(f);
		for (i = found = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			at = strstr(line, names[i].name);
			found += at && sscanf(at, "%*s %ld", names[i].value) == 1;
		}
		SAME(found, sizeof(names) / sizeof(names[0]));
		return c;
	}
	printf("this session is not counted\n");
	exit(1);
}

static void set_spin(unsigned int us)
{
	FILE *f = fopen("/sys/module/qcuda/parameters/spin_us", "w");

	SAME(f && fprintf(f, "%u\n", us) > 0 && fclose(f) == 0, 1);
}

/* a <= b; otherwise prints both values and exits. */
#define AT_MOST(a, b)                                                                            \
	do {                                                                                     \
		long a_ = (a), b_ = (b);                                                         \
		if (a_ > b_) {                                                                   \
			printf("%s:%d: %s is %ld, more than %s = %ld\n", __FILE__, __LINE__, #a, \
			       a_, #b, b_);                                                      \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

static struct counts calls(int fd, unsigned int n)
{
	struct counts a = counts(), b;
	unsigned int i;

	for (i = 0; i < n; i++)
		raw_works(fd);
	b = counts();
	b.commands -= a.commands;
	b.ioctls -= a.ioctls;
	b.kicks -= a.kicks;
	b.interrupts -= a.interrupts;
	b.waits -= a.waits;
	b.spins -= a.spins;
	printf("%u calls: %ld commands, %ld ioctls, %ld kicks, %ld interrupts, %ld waits, %ld "
	       "spins\n",
	       n, b.commands, b.ioctls, b.kicks, b.interrupts, b.waits, b.spins);
	SAME(b.commands, n);
	SAME(b.ioctls, n);
	AT_MOST(b.kicks, n);
	AT_MOST(b.interrupts, n);
	/* Some commands are answered between the kick and the wait. */
	AT_MOST(b.waits + b.spins, n);
	/* Only a caller that sleeps needs an interrupt. */
	AT_MOST(b.interrupts, n - b.spins + 1);
	return b;
}

static void run_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	SAME(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Not on the processor of whoever ends the wait: a caller that has to give way polls no longer. */
static void *sync_stream(void *arg)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_STREAM_SYNC);

	run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	cmd.tid = 2;
	SAME(raw_submit(*(int *)arg, &cmd), 0);
	return NULL;
}

/*
 * Calls that cannot be answered before we say so: each waits for a stream, and the stream for a
 * function of the program, which has begun and ends once the call sleeps (`sleeps`), or has had
 * some time to poll. Returns how many found their answer by polling.
 */
static long held_calls(int fd, bool sleeps)
{
	struct counts first = counts(), before, now;
	struct qCUcmd cmd;
	pthread_t t;
	__u64 i;

	run_on(0);
	for (i = 1; i <= HELD; i++) {
		cmd = raw_cmd(QCU_OP_HOST_FUNC);
		cmd.host_func.token = i;
		cmd.flags = QCU_F_POSTED;
		SAME(raw_submit(fd, &cmd), 0);
		cmd = raw_cmd(QCU_OP_HOST_NEXT);
		cmd.host_next.wait = 1;
		SAME(raw_submit(fd, &cmd), 0);
		SAME(cmd.host_next.token, i);

		before = counts();
		SAME(pthread_create(&t, NULL, sync_stream, &fd), 0);
		do {
			usleep(sleeps ? 1000 : 20000);
			now = counts();
		} while (sleeps ? now.waits == before.waits : now.ioctls == before.ioctls);
		SAME(now.spins, before.spins);
		cmd = raw_cmd(QCU_OP_HOST_NEXT);
		cmd.host_next.done = i;
		SAME(raw_submit(fd, &cmd), 0);
		SAME(pthread_join(t, NULL), 0);
	}
	return counts().spins - first.spins;
}

/* No polling: at most one notification, one interrupt and one sleep for each call. */
static void sleeping(void)
{
	int fd = raw_session();
	struct counts c;

	set_spin(0);
	c = calls(fd, CALLS);
	SAME(c.spins, 0);
	SAME(held_calls(fd, true), 0);
}

/* The caller polls for long enough: most calls do not sleep, and need no interrupt. */
static void spinning(void)
{
	int fd = raw_session();
	struct counts c;

	set_spin(1000000);
	raw_works(fd);
	c = calls(fd, CALLS);
	if (sysconf(_SC_NPROCESSORS_ONLN) == 1)
		SAME(c.spins, 0);
	else
		AT_MOST(1, held_calls(fd, false));
	set_spin(2000);
}

static void ask(int fd, __u32 how)
{
	struct qcu_waiting waiting = {.how = how};

	SAME(ioctl(fd, QCU_IOC_WAITING, &waiting), 0);
}

/* The session's own setting takes precedence over the module's parameter. */
static void asked(void)
{
	struct qcu_waiting bad[] = {{.how = QCU_WAIT_SLEEP + 1}, {.rsvd = 1}};
	int fd = raw_session();
	struct counts c;

	FAILS(ioctl(fd, QCU_IOC_WAITING, &bad[0]), EINVAL);
	FAILS(ioctl(fd, QCU_IOC_WAITING, &bad[1]), EINVAL);
	FAILS(ioctl(fd, QCU_IOC_WAITING, NULL), EFAULT);

	set_spin(1000000);
	ask(fd, QCU_WAIT_SLEEP);
	SAME(held_calls(fd, true), 0);
	set_spin(0);
	ask(fd, QCU_WAIT_LOOK);
	c = calls(fd, CALLS);
	if (sysconf(_SC_NPROCESSORS_ONLN) == 1) {
		SAME(c.spins, 0);
	} else {
		SAME(c.waits, 0);
		AT_MOST(1, held_calls(fd, false));
	}
	ask(fd, QCU_WAIT_ADAPT);
	c = calls(fd, CALLS);
	SAME(c.spins, 0);
	set_spin(2000);
}

static void *thread(void *arg)
{
	int fd = *(int *)arg, i;

	for (i = 0; i < CALLS; i++) {
		struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);

		cmd.tid = (__u32)gettid();
		SAME(raw_submit(fd, &cmd), 0);
	}
	return NULL;
}

static void post(int fd, struct qCUcmd cmd, unsigned int n)
{
	cmd.flags = QCU_F_POSTED;
	while (n--)
		SAME(raw_submit(fd, &cmd), 0);
}

/* Never more at once than the ring has room for: then nobody waits. */
static void post_many(int fd, struct qCUcmd cmd)
{
	struct counts a, b;
	long interrupts = 0, kicks = 0;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		a = counts();
		post(fd, cmd, CALLS / 2);
		b = counts();
		SAME(b.commands - a.commands, CALLS / 2);
		SAME(b.waits - a.waits, 0);
		SAME(b.spins - a.spins, 0);
		kicks += b.kicks - a.kicks;
		interrupts += b.interrupts - a.interrupts;
		raw_works(fd);
	}
	printf("posted: %ld kicks, %ld interrupts\n", kicks, interrupts);
	AT_MOST(interrupts, ROUNDS);
}

/* No caller waits for posted commands, and they cause no interrupts. */
static void posted(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEMSET), copy = raw_cmd(QCU_OP_COPY_H2D);
	int fd = raw_session();
	char *page;

	cmd.memset.dst = raw_malloc(fd, 4096);
	cmd.memset.width = 4096;
	cmd.memset.height = 1;
	cmd.memset.elem = 1;
	post_many(fd, cmd);

	/* The same for copies of memory that the mirror has. */
	copy.copy_h2d.buf.addr = (uintptr_t)memset(raw_chunks(fd, 0, 4096), 1, 4096);
	copy.copy_h2d.buf.len = 4096;
	copy.copy_h2d.dst = cmd.memset.dst;
	copy.copy_h2d.flags = QCU_COPY_QUEUED;
	SAME(raw_submit(fd, &copy), 0);
	post_many(fd, copy);
	SAME(munmap(WINDOW, 4096), 0);
	raw_stat_becomes("chunk_pages", 0);
	/*
	 * The driver allocates CLOSE in advance, so one request stays. The request of UNMAP is
	 * freed as soon as UNMAP is answered.
	 */
	raw_stat_becomes("requests", 1);

	/* Ordinary memory of the program is released without another call. */
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SAME(page != MAP_FAILED, 1);
	memset(page, 1, 4096);
	copy.copy_h2d.buf.addr = (uintptr_t)page;
	copy.copy_h2d.flags = 0;
	post(fd, copy, 50);
	raw_stat_becomes("pinned_pages", 0);
	raw_works(fd);
}

static void few_kicks(int fd)
{
	AT_MOST(calls(fd, CALLS).kicks, CALLS / 2);
}

/*
 * The device polls for commands long enough: commands that follow one another closely need no
 * notification.
 */
static void polled(void)
{
	int fd = raw_session();

	set_spin(0);
	raw_works(fd);
	few_kicks(fd);
	set_spin(1000000);
	raw_works(fd);
	few_kicks(fd);
	set_spin(2000);
}

/* Threads on one queue: some sleep while others poll and take the sleepers' answers, too. */
static void threads(void)
{
	int fd = raw_session(), round, i;
	pthread_t t[6];

	for (round = 0; round < 4; round++) {
		set_spin(round % 2 ? 10000 : 100);
		for (i = 0; i < 6; i++)
			SAME(pthread_create(&t[i], NULL, thread, &fd), 0);
		for (i = 0; i < 6; i++)
			SAME(pthread_join(t[i], NULL), 0);
	}
	set_spin(2000);
	calls(fd, 10);
}

#define LONG (48u << 20) /* bytes */

/*
 * Copies that take longer than callers poll. A caller sleeps until shortly before the end of such a
 * copy, and polls then; it counts as the one or the other. The first ones teach it how long they
 * take. In between come calls that take no time.
 */
static void copies(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, LONG);
	char *mem = raw_chunks(fd, 0, LONG);
	struct counts before, after;
	unsigned int i, n = 12;

	set_spin(1);
	SAME(raw_upload(fd, dev, mem, LONG), 0); /* maps the chunks */
	before = counts();
	for (i = 0; i < n; i++) {
		mem[0] = (char)i;
		mem[LONG - 1] = (char)~i;
		SAME(raw_upload(fd, dev, mem, LONG), 0);
		mem[0] = mem[LONG - 1] = 100;
		raw_works(fd);
		SAME(raw_download(fd, mem, dev, LONG), 0);
		SAME(mem[0], (char)i);
		SAME(mem[LONG - 1], (char)~i);
	}
	after = counts();
	set_spin(2000);
	SAME(after.ioctls - before.ioctls, 3 * n);
	AT_MOST(after.kicks - before.kicks, 3 * n);
	AT_MOST(after.waits - before.waits + after.spins - before.spins, 3 * n);
}

/* The totals are the sums of the sessions' counts. */
static void totals(void)
{
	long before = raw_stat("ioctls"), waits = raw_stat("waits") + raw_stat("spins");
	int fd = raw_session();
	struct counts c = calls(fd, CALLS);

	SAME(raw_stat("ioctls") - before, CALLS);
	SAME(raw_stat("waits") + raw_stat("spins") - waits >= c.waits + c.spins, 1);
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

/* Signals do not disturb a call: the call goes on, and the handlers run. */
static void signals(void)
{
	struct sigaction sa = {.sa_handler = tick}; /* no SA_RESTART */
	struct itimerval often = {{0, 2000}, {0, 2000}};
	int fd = raw_session(), i;

	SAME(sigaction(SIGALRM, &sa, NULL), 0);
	SAME(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (i = 0; i < 20 || ticks < 20; i++)
		raw_works(fd);
	often = (struct itimerval){0};
	setitimer(ITIMER_REAL, &often, NULL);
	printf("%d calls, %d signals\n", i, (int)ticks);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"sleeping", sleeping}, {"spinning", spinning},
		{"posted", posted},	{"polled", polled},
		{"threads", threads},	{"totals", totals},
		{"signals", signals},	{"asked", asked},
		{"copies", copies},	{0},
	};

	return raw_main(argc, argv, cases);
}
