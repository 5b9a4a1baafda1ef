// SPDX-License-Identifier: GPL-2.0-or-later
/* The keeper (keeper.h). */
#define _GNU_SOURCE /* memfd_create, pipe2, close_range, _Fork */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/send_files.h"
#include "qcu-device/turns/keeper.h"

#define RETRY_MS 200 /* how often a broker that is gone is looked for */
#define START_IN 5   /* one is started at every so manyth look */
#define WAIT_MS	 50
#define WAITS	 100 /* for answers, when the VM begins */

struct kept_vm {
	struct turns_hello hello;
	const char *folder, *program;
	struct keeper_gpu gpu[TURNS_GPUS];
	unsigned int gpus;
	int told;    /* a broker's refusal goes there */
	int file[3]; /* what the brokers get */
	int sock[TURNS_GPUS];
	unsigned int looks[TURNS_GPUS];
	struct turns_orders *orders;
};

bool turns_address(struct sockaddr_un *addr, const char *folder, const char *gpu)
{
	int n = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s.share", folder, gpu);

	addr->sun_family = AF_UNIX;
	errno = ENAMETOOLONG;
	return n >= 0 && (size_t)n < sizeof(addr->sun_path);
}

int turns_connect(const char *folder, const char *gpu)
{
	struct sockaddr_un addr;
	int fd;

	if (!turns_address(&addr, folder, gpu))
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Without a broker nobody gives orders, so everybody may go on. */
static void free_orders(struct turns_orders *o)
{
	uint32_t measured = atomic_load(&o->measured);
	unsigned int k;

	atomic_store(&o->measured, measured + (measured & 1));
	syscall(SYS_futex, &o->measured, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	/* Who waits for room hears of the next broker, or of none in time. */
	for (k = 0; k < TURNS_KINDS; k++) {
		atomic_store(&o->order[k], TURNS_FREE);
		syscall(SYS_futex, &o->order[k], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
}

/*
 * The broker is nobody's child, and keeps none of our files: who waits for the end of our output
 * would wait for the broker's.
 */
static void start_broker(const struct kept_vm *p, unsigned int gpu)
{
	pid_t pid = _Fork();
	int null;

	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid)
		return;
	if (setsid() < 0 || _Fork())
		_exit(0);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    close_range(3, ~0u, 0))
		_exit(1);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	execl(p->program, "qcu-share", "--folder", p->folder, "--gpu", p->gpu[gpu].name, "--idle",
	      "30", (char *)NULL);
	_exit(1);
}

/* Of a GPU for the store its broker hears that no memory leaves, and how much there will be. */
static struct turns_hello hello_to(const struct kept_vm *p, unsigned int gpu)
{
	struct turns_hello h = p->hello;

	h.gpu = gpu;
	h.memory = p->gpu[gpu].memory;
	if (p->gpu[gpu].store) {
		h.stays = 1;
		h.resident = p->gpu[gpu].store;
		h.swap = h.stores = 0;
	}
	return h;
}

static void find_broker(struct kept_vm *p, unsigned int gpu)
{
	const struct turns_hello hello = hello_to(p, gpu);
	int sock = turns_connect(p->folder, p->gpu[gpu].name);

	if (sock < 0) {
		if (p->program && p->looks[gpu]++ % START_IN == 0)
			start_broker(p, gpu);
		return;
	}
	p->looks[gpu] = 0;
	if (send_files(sock, &hello, sizeof(hello), p->file, 3, MSG_NOSIGNAL) == sizeof(hello))
		p->sock[gpu] = sock;
	else
		close(sock);
}

/* It is gone, or does not want us. Then it may have said why. */
static void lose_broker(struct kept_vm *p, unsigned int gpu)
{
	char why[TURNS_WHY];
	ssize_t n = recv(p->sock[gpu], why, sizeof(why), MSG_DONTWAIT);

	if (n > 0)
		(void)!write(p->told, why, (size_t)n);
	close(p->sock[gpu]);
	p->sock[gpu] = -1;
	free_orders(&p->orders[gpu]);
}

/* Keeps these files, from number 3 on, and closes all others. */
static void keep_files(int **fd, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		*fd[i] = fcntl(*fd[i], F_DUPFD_CLOEXEC, 3 + (int)n);
	for (i = 0; i < n; i++)
		*fd[i] = dup3(*fd[i], 3 + (int)i, O_CLOEXEC);
	close_range(3 + n, ~0u, 0);
}

static void __attribute__((noreturn)) live_as_keeper(struct kept_vm *p, int life)
{
	int *files[] = {&p->file[0], &p->file[1], &p->file[2], &life, &p->told};
	struct pollfd fd[TURNS_GPUS + 1];
	bool missing;
	unsigned int i;

	keep_files(files, 5);

	prctl(PR_SET_NAME, "qcu-keeper");
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGINT, SIG_IGN); /* the VM's end is this process's end, and nothing else */
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		missing = false;
		for (i = 0; i < p->gpus; i++) {
			if (p->sock[i] < 0)
				find_broker(p, i);
			missing |= p->sock[i] < 0;
			fd[i] = (struct pollfd){.fd = p->sock[i], .events = POLLIN};
		}
		fd[i] = (struct pollfd){.fd = life};
		if (poll(fd, p->gpus + 1, missing ? RETRY_MS : -1) < 0)
			continue;
		if (fd[i].revents)
			_exit(0);
		for (i = 0; i < p->gpus; i++) {
			if (p->sock[i] < 0 || !fd[i].revents)
				continue;
			lose_broker(p, i);
			usleep(RETRY_MS * 100);
		}
	}
}

/* A memory file whose size stays. */
static int make_file(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, (off_t)size) ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_for_reading(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Until each broker has looked at this VM, or one has refused it. Returns why, or NULL. */
static const char *wait_for_brokers(const struct turns_orders *o, unsigned int gpus, int told)
{
	static char why[TURNS_WHY + 1];
	struct pollfd fd = {.fd = told, .events = POLLIN};
	unsigned int waits, i;
	ssize_t n;

	for (waits = 0; waits < WAITS; waits++) {
		for (i = 0; i < gpus && atomic_load(&o[i].looks); i++)
			;
		if (i == gpus)
			return NULL;
		if (poll(&fd, 1, WAIT_MS) <= 0)
			continue;
		n = read(told, why, TURNS_WHY);
		why[n > 0 ? n : 0] = '\0';
		return n > 0 ? why : "the keeper has ended";
	}
	/* It hears of a broker that comes later. */
	return NULL;
}

const char *keeper_start(struct keeper *k, const struct turns_hello *hello, const char *folder,
			 const struct keeper_gpu *gpu, unsigned int gpus, const char *program)
{
	static struct kept_vm p;
	int life[2] = {-1, -1}, told[2] = {-1, -1};
	const char *why = NULL;
	bool guaranteed = hello->resident;
	unsigned int i;
	pid_t pid = -1;
	void *orders;

	p = (struct kept_vm){.hello = *hello, .folder = folder, .program = program, .gpus = gpus};
	for (i = 0; i < gpus; i++) {
		p.gpu[i] = gpu[i];
		guaranteed |= !!gpu[i].store;
		p.sock[i] = -1;
	}
	*k = (struct keeper){.orders = -1, .reports = -1, .bell = -1, .life = -1};
	p.file[0] = make_file("qcu-orders", TURNS_ORDERS_BYTES);
	p.file[1] = k->reports = make_file("qcu-reports", TURNS_REPORTS_BYTES);
	p.file[2] = k->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->orders = p.file[0] < 0 ? -1 : open_for_reading(p.file[0]);
	orders = p.file[0] < 0 ? MAP_FAILED
			       : mmap(NULL, TURNS_ORDERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				      p.file[0], 0);
	p.orders = orders;
	if (orders != MAP_FAILED && k->orders >= 0 && k->reports >= 0 && k->bell >= 0 &&
	    !pipe2(life, O_CLOEXEC) && !pipe2(told, O_CLOEXEC)) {
		p.told = told[1];
		pid = _Fork();
		if (!pid)
			live_as_keeper(&p, life[0]);
	}
	if (pid < 0)
		why = strerror(errno);
	close(told[1]);
	if (!why && guaranteed)
		why = wait_for_brokers(p.orders, gpus, told[0]);
	close(told[0]);
	if (orders != MAP_FAILED)
		munmap(orders, TURNS_ORDERS_BYTES);
	close(p.file[0]);
	close(life[0]);
	k->life = life[1];
	k->on = !why;
	k->gpus = gpus;
	return why;
}

bool turns_map(struct turns_view *v, unsigned int gpus, int orders, int reports, int bell)
{
	void *o = mmap(NULL, TURNS_ORDERS_BYTES, PROT_READ, MAP_SHARED, orders, 0);
	void *r = mmap(NULL, TURNS_REPORTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, reports, 0);

	if (o == MAP_FAILED || r == MAP_FAILED)
		return false;
	*v = (struct turns_view){.orders = o, .gpus = gpus, .reports = r, .bell = bell};
	return true;
}

void turns_session_ended(const struct turns_view *v, unsigned int session)
{
	unsigned int i;

	for (i = 0; i < v->gpus; i++)
		memset(turns_report(v, i, session), 0, TURNS_PAGE);
}
