// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What one user may have of shared resources: sessions, and memory that commands have pinned. The
 * device has eight sessions (users.sh), the guest has 1 GiB.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mem.h"

#define SESSIONS 8
#define STREAM	 QCU_ID_FIRST
#define LEN	 (4 * MIB)
#define PAGES	 (LEN / 4096)

static int fd;
static uint64_t dev;

static void parameter(const char *name, int value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/qcuda/parameters/%s", name);
	f = fopen(path, "w");
	SAME(!f, 0);
	fprintf(f, "%d\n", value);
	SAME(fclose(f), 0);
}

/* ---- sessions ---- */

/* Opens as many sessions as possible. Returns how many, and stores the last error in *why. */
static int open_all(int *fds, int *why)
{
	int n;

	for (n = 0; n <= SESSIONS; n++) {
		fds[n] = open("/dev/qcuda", O_RDWR | O_CLOEXEC);
		if (fds[n] < 0)
			break;
	}
	*why = errno;
	return n;
}

/*
 * Opens sessions in a process of an ordinary user. The process holds them until the pipe is closed.
 */
static pid_t ordinary_user(uid_t uid, int expect, int *end)
{
	int ends[2], back[2], fds[SESSIONS + 1], why, status;
	char c;
	pid_t pid;

	SAME(pipe(ends) | pipe(back), 0);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		SAME(setgroups(0, NULL) | setgid(uid) | setuid(uid), 0);
		SAME(open_all(fds, &why), expect);
		SAME(why, EDQUOT);
		/* When one session is closed, another can be opened. */
		close(fds[expect - 1]);
		fds[expect - 1] = open("/dev/qcuda", O_RDWR | O_CLOEXEC);
		SAME(fds[expect - 1] >= 0, 1);
		SAME(write(back[1], "", 1), 1);
		SAME(read(ends[0], &c, 1), 0);
		_exit(0);
	}
	close(ends[0]);
	close(back[1]);
	if (read(back[0], &c, 1) != 1) {
		SAME(waitpid(pid, &status, 0), pid);
		SAME(status, 0);
	}
	close(back[0]);
	*end = ends[1];
	return pid;
}

static void goes(pid_t pid, int end)
{
	int status;

	close(end);
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
	raw_stat_becomes("sessions", 0);
}

/* One user cannot have all sessions. root can have the rest, or all. */
static void sessions(void)
{
	int fds[SESSIONS + 1], why, end, i;
	pid_t pid = ordinary_user(65534, SESSIONS - 1, &end);

	SAME(open_all(fds, &why), 1);
	SAME(why, EBUSY);
	close(fds[0]);
	goes(pid, end);
	SAME(open_all(fds, &why), SESSIONS);
	SAME(why, EBUSY);
	for (i = 0; i < SESSIONS; i++)
		close(fds[i]);
}

/*
 * A user can have as many sessions as the parameter says. The sessions of another user do not
 * count.
 */
static void sessions_by_parameter(void)
{
	int end, other_end;
	pid_t pid, other;

	parameter("user_sessions", 3);
	pid = ordinary_user(65534, 3, &end);
	other = ordinary_user(1000, 3, &other_end);
	SAME(raw_stat("sessions"), 6);
	parameter("user_sessions", 0);
	close(other_end);
	SAME(waitpid(other, NULL, 0), other);
	goes(pid, end);
}

/* ---- pinned pages ---- */

static void start(void)
{
	struct qCUcmd cmd;

	fd = raw_session();
	dev = raw_malloc(fd, 8 * LEN);
	cmd = raw_cmd(QCU_OP_STREAM_CREATE);
	cmd.stream_create.stream = STREAM;
	cmd.stream_create.flags = 1;
	SAME(raw_submit(fd, &cmd), 0);
}

/* The stream does no more work until let_go(). */
static void hold(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_FUNC);

	cmd.host_func.token = 5;
	cmd.host_func.stream = STREAM;
	SAME(raw_submit(fd, &cmd), 0);
}

static void let_go(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_NEXT);

	cmd.host_next.wait = 1;
	SAME(raw_submit(fd, &cmd), 0);
	cmd = raw_cmd(QCU_OP_HOST_NEXT);
	cmd.host_next.done = 5;
	SAME(raw_submit(fd, &cmd), 0);
}

static struct qCUcmd down(char *to, uint32_t stream)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_COPY_D2H);

	cmd.copy_d2h.buf.addr = (uintptr_t)to;
	cmd.copy_d2h.buf.len = LEN;
	cmd.copy_d2h.src = dev;
	cmd.copy_d2h.stream = stream;
	return cmd;
}

/* Posts a copy into ordinary memory that waits for the stream. No caller waits for the copy. */
static int post(char *to)
{
	struct qCUcmd cmd = down(to, STREAM);

	cmd.flags = QCU_F_POSTED;
	return raw_submit(fd, &cmd);
}

static char *memory;
static atomic_bool returned;
static int result;

static void *post_third(void *unused)
{
	(void)unused;
	result = post(memory + 2 * LEN);
	returned = true;
	return NULL;
}

/* One percent of 1 GiB is enough for two and a half of our copies. */
static void two_wait(void)
{
	parameter("pin_percent", 1);
	memory = mem_anonymous(8 * LEN);
	start();
	hold();
	SAME(post(memory), 0);
	SAME(post(memory + LEN), 0);
	SAME(raw_stat("pinned_pages"), 2 * PAGES);
}

/* A copy that finds no room waits until earlier copies have ended. */
static void pins(void)
{
	long waits = raw_stat("pin_waits");
	pthread_t thread;

	two_wait();
	/* Only the pins keep these pages: the driver alone sees that they are in use. */
	SAME(munmap(memory, LEN), 0);
	SAME(pthread_create(&thread, NULL, post_third, NULL), 0);
	raw_stat_becomes("pin_waits", waits + 1);
	usleep(100000);
	SAME(returned, false);
	SAME(raw_stat("pinned_pages"), 2 * PAGES);
	let_go();
	SAME(pthread_join(thread, NULL), 0);
	SAME(result, 0);
	raw_stat_becomes("pinned_pages", 0);
	raw_works(fd);
	parameter("pin_percent", 50);
}

/* A single copy may be larger than the limit. The records of one call wait for one another. */
static void alone(void)
{
	struct qCUcmd cmds[6];
	struct qcu_submit s = {.cmds = (uintptr_t)cmds, .count = 6};
	int i;

	parameter("pin_percent", 1);
	start();
	memory = mem_anonymous(8 * LEN);
	SAME(raw_upload(fd, dev, memory, 8 * LEN), 0);
	for (i = 0; i < 6; i++)
		cmds[i] = down(memory + i * LEN, 0);
	SAME(ioctl(fd, QCU_IOC_SUBMIT, &s), 6);
	for (i = 0; i < 6; i++)
		SAME(cmds[i].status, 0);
	SAME(raw_stat("pinned_pages"), 0);
	parameter("pin_percent", 50);
}

/*
 * A copy does not wait for ever: the program that needs the memory may be the one that must run the
 * host function.
 */
static void no_room(void)
{
	two_wait();
	parameter("timeout", 1);
	SAME(post(memory + 2 * LEN), -ENOMEM);
	parameter("timeout", 30);
	SAME(raw_stat("pinned_pages"), 2 * PAGES);
	let_go();
	raw_stat_becomes("pinned_pages", 0);
	SAME(post(memory + 2 * LEN), 0);
	raw_stat_becomes("pinned_pages", 0);
	parameter("pin_percent", 50);
}

/* Another program of the same user has the room. The program that waits for the room is killed. */
static void killed(void)
{
	long waits = raw_stat("pin_waits");
	int status;
	pid_t pid;

	two_wait();
	pid = fork();
	if (!pid) {
		close(fd);
		start();
		post(memory + 2 * LEN);
		_exit(0);
	}
	raw_stat_becomes("pin_waits", waits + 1);
	SAME(kill(pid, SIGKILL), 0);
	SAME(waitpid(pid, &status, 0), pid);
	SAME(WIFSIGNALED(status), 1);
	raw_stat_becomes("sessions", 1);
	SAME(raw_stat("pinned_pages"), 2 * PAGES);
	close(fd);
	raw_stat_becomes("pinned_pages", 0);
	parameter("pin_percent", 50);
}

static long killed_by_kernel(void)
{
	FILE *f = fopen("/proc/vmstat", "r");
	char key[64];
	long value;

	SAME(!f, 0);
	while (fscanf(f, "%63s %ld", key, &value) == 2 && strcmp(key, "oom_kill"))
		;
	fclose(f);
	return value;
}

/*
 * A copy needs more kernel memory than there is: the caller gets an error, and no process is
 * killed.
 */
static void kernel_copy(void)
{
	const size_t len = 2048 * MIB;
	long before = killed_by_kernel();
	char *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	SAME(p != MAP_FAILED, 1);
	start();
	parameter("kernel_copy", 1);
	SAME(raw_download(fd, p, dev, len), -ENOMEM);
	parameter("kernel_copy", 0);
	SAME(killed_by_kernel(), before);
	raw_works(fd);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"sessions", sessions},
		{"sessions_by_parameter", sessions_by_parameter},
		{"pins", pins},
		{"alone", alone},
		{"no_room", no_room},
		{"killed", killed},
		{"kernel_copy", kernel_copy},
		{NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}
