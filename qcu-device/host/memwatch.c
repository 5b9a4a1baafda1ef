// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What each process uses of each GPU's memory, as the driver counts it. A mirror counts what it
 * allocates for the guest, but not what libraries and kernels take, and a mirror that has been
 * broken into counts nothing. So a process outside of all mirrors asks NVML, if a limit on device
 * memory is set. It reads nothing that a guest or a mirror has written.
 *
 * The main process ends a session that uses more of a GPU than its limit and the allowance
 * (library-memory) together, or, if all sessions of the VM use too much, the one that uses most
 * beyond what it is charged for. As long as there are sessions, it asks for the next numbers when
 * it has heard the last, so it needs no timer.
 */
#define _GNU_SOURCE /* close_range */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/vhost.h"

#define EACH_MS	    1000
#define GPUS	    64u
#define GENERATIONS 4 /* a mirror is the child of a process that the main process knows */

#define USES 512u

struct report {
	uint32_t count;	  /* of uses; 0 with a text: nothing is watched any more */
	char failed[100]; /* why, or empty */
	struct use {
		uint32_t pid[GENERATIONS]; /* of the process, its parent, and so on; or 0 */
		uint32_t gpu;		   /* as NVML counts */
		uint64_t bytes;
	} use[USES];
};

/* Of NVML, whose header is not needed to build this. */
#define NO_VALUE  UINT64_MAX
#define TOO_SMALL 7 /* NVML_ERROR_INSUFFICIENT_SIZE */

struct process_info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static struct {
	int (*init)(void);
	int (*count)(unsigned int *count);
	int (*device)(unsigned int index, void **device);
	int (*processes)(void *device, unsigned int *count, struct process_info *infos);
} nvml;

/* The main process's end: each byte asks for a report, which comes a second later. */
static int to_process = -1;
static bool asked;

/* ---- the process ---- */

/* Returns why there is no NVML, or NULL. */
static const char *load_nvml(void **devices, unsigned int *count)
{
	static const char *const names[] = {"nvmlInit_v2", "nvmlDeviceGetCount_v2",
					    "nvmlDeviceGetHandleByIndex_v2",
					    "nvmlDeviceGetComputeRunningProcesses_v3"};
	void **const to[] = {(void **)&nvml.init, (void **)&nvml.count, (void **)&nvml.device,
			     (void **)&nvml.processes};
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	unsigned int i;

	if (!lib)
		return "there is no libnvidia-ml.so.1";
	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		*to[i] = dlsym(lib, names[i]);
		if (!*to[i])
			return "libnvidia-ml.so.1 lacks a function";
	}
	if (nvml.init() || nvml.count(count))
		return "NVML does not start";
	if (*count > GPUS)
		*count = GPUS;
	for (i = 0; i < *count; i++)
		if (nvml.device(i, &devices[i]))
			return "NVML does not name a GPU";
	return NULL;
}

/* A mirror's parent is the first process of its namespace, which the main process knows. */
static uint32_t parent_of(uint32_t pid)
{
	char path[40], line[256];
	unsigned int parent = 0;
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* The name, in parentheses, may have any bytes. */
	at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (!at || sscanf(at, ") %*c %u", &parent) != 1)
		parent = 0;
	fclose(f);
	return parent;
}

static void add_use(struct report *r, uint32_t pid, uint32_t gpu, uint64_t bytes)
{
	struct use *u = &r->use[r->count++];
	unsigned int i;

	memset(u, 0, sizeof(*u));
	u->gpu = gpu;
	u->bytes = bytes;
	for (i = 0; i < GENERATIONS && pid > 1; i++) {
		u->pid[i] = pid;
		pid = parent_of(pid);
	}
}

static const char *ask_nvml(void **devices, unsigned int count, struct report *r)
{
	static struct process_info infos[USES];
	unsigned int gpu, i, n;
	int rc;

	r->count = 0;
	for (gpu = 0; gpu < count; gpu++) {
		n = USES - r->count;
		rc = nvml.processes(devices[gpu], &n, infos);
		if (rc == TOO_SMALL)
			return "there are more processes on the GPUs than can be watched";
		if (rc)
			return "NVML does not say what a GPU's processes use";
		for (i = 0; i < n && r->count < USES; i++)
			if (infos[i].used != NO_VALUE)
				add_use(r, infos[i].pid, gpu, infos[i].used);
	}
	return NULL;
}

/* Waits for a question, and then for a second. False: the main process has ended. */
static bool wait_to_be_asked(int from_main)
{
	struct pollfd p = {.fd = from_main, .events = POLLIN};
	char byte;
	int rc;

	if (recv(from_main, &byte, 1, 0) != 1)
		return false;
	do {
		rc = poll(&p, 1, EACH_MS);
	} while (rc < 0 && errno == EINTR);
	return !rc;
}

static void __attribute__((noreturn)) watch_for_main(int from_main, const struct jail *jail)
{
	static struct report report;
	void *devices[GPUS];
	unsigned int count = 0;
	const char *why;
	int null = open("/dev/null", O_RDWR);
	int i;

	for (i = 0; i < 3; i++)
		dup2(null, i);
	/* No file of the main process may stay open here: least of all its socket to QEMU. */
	from_main = dup2(from_main, 3);
	close_range(4, ~0u, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	prctl(PR_SET_NAME, "qcu-memwatch");
	why = load_nvml(devices, &count);
	if (!why && !jail_memwatch(jail))
		why = "the process that would watch cannot be confined";
	while (!why && wait_to_be_asked(from_main)) {
		why = ask_nvml(devices, count, &report);
		if (!why && send(from_main, &report, sizeof(report), MSG_NOSIGNAL) < 0)
			_exit(0);
	}
	if (why) {
		report.count = 0;
		snprintf(report.failed, sizeof(report.failed), "%s", why);
		send(from_main, &report, sizeof(report), MSG_NOSIGNAL);
	}
	_exit(0);
}

/* ---- the main process ---- */

const char *memwatch_start(const struct device_options *opt)
{
	struct limits l = opt->limits;
	int ends[2];
	pid_t pid;

	limits_default(&l);
	if (!opt->plugin || l.session[LIMIT_LIBRARY_MEMORY] == LIMIT_NONE ||
	    (l.session[LIMIT_DEVICE_MEMORY] == LIMIT_NONE &&
	     l.vm[LIMIT_DEVICE_MEMORY] == LIMIT_NONE))
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return strerror(errno);
	pid = fork();
	if (!pid)
		watch_for_main(ends[1], &opt->jail);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return strerror(errno);
	}
	to_process = ends[0];
	return NULL;
}

void memwatch_stop(void)
{
	if (to_process >= 0)
		close(to_process);
	to_process = -1;
}

/* Returns the live session whose mirror this process is, or descends from. 0: there is none. */
static unsigned int session_of(const struct device *d, const struct use *u)
{
	unsigned int i, q;

	for (i = 0; i < GENERATIONS && u->pid[i]; i++)
		for (q = 1; q <= d->opt->sessions; q++)
			if (d->session[q].state == SESSION_LIVE &&
			    (uint32_t)d->session[q].mirror.pid == u->pid[i])
				return q;
	return 0;
}

static uint64_t excess_over(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t charged_to(const struct device *d, unsigned int queue)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < USAGE_DEVICES; i++)
		sum += atomic_load(&d->usage->sessions[queue].memory[i]);
	return sum;
}

static void kill_session_over_limit(struct device *d, unsigned int queue, uint64_t bytes,
				    enum limit what, uint64_t limit, const char *whose)
{
	char text[160], used[32], most[32];

	snprintf(text, sizeof(text),
		 "ended, because %s more memory of a GPU than it may: %s, and %s is %s%s",
		 *whose ? "the VM uses" : "it uses",
		 limit_text(what, bytes >> 20 << 20, used, sizeof(used)), limit_name(what), whose,
		 limit_text(what, limit, most, sizeof(most)));
	sessions_kill(d, queue, text);
}

/* What the sessions use of one GPU, and of all. */
struct sums {
	uint64_t on_gpu[QCU_MAX_SESSIONS + 1], on_all[QCU_MAX_SESSIONS + 1];
};

static void add_up(const struct device *d, const struct report *r, uint32_t gpu, struct sums *s)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < r->count; i++) {
		unsigned int q = session_of(d, &r->use[i]);

		s->on_all[q] += r->use[i].bytes;
		if (r->use[i].gpu == gpu)
			s->on_gpu[q] += r->use[i].bytes;
	}
}

/* One GPU. One session at most: what the others use is looked at again a second later. */
static void judge_gpu(struct device *d, const struct report *r, uint32_t gpu)
{
	struct limits l = d->opt->limits;
	uint64_t allowance, sum = 0, excess, most = 0;
	unsigned int q, worst = 0;
	struct sums s;

	limits_default(&l);
	allowance = l.session[LIMIT_LIBRARY_MEMORY];
	add_up(d, r, gpu, &s);
	for (q = 1; q <= d->opt->sessions; q++) {
		uint64_t counts = excess_over(s.on_gpu[q], allowance);

		if (counts > l.session[LIMIT_DEVICE_MEMORY]) {
			kill_session_over_limit(d, q, counts, LIMIT_DEVICE_MEMORY,
						l.session[LIMIT_DEVICE_MEMORY], "");
			return;
		}
		sum += counts;
		excess = excess_over(s.on_all[q], charged_to(d, q));
		if (s.on_gpu[q] && (!worst || excess > most)) {
			worst = q;
			most = excess;
		}
	}
	if (worst && sum > l.vm[LIMIT_DEVICE_MEMORY])
		kill_session_over_limit(d, worst, sum, LIMIT_DEVICE_MEMORY,
					l.vm[LIMIT_DEVICE_MEMORY], "its ");
}

static bool any_lives(const struct device *d)
{
	unsigned int q;

	for (q = 1; q <= d->opt->sessions; q++)
		if (d->session[q].state == SESSION_LIVE)
			return true;
	return false;
}

void memwatch_ask(struct device *d)
{
	char byte = 0;

	if (!asked && to_process >= 0 && any_lives(d))
		asked = send(to_process, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void heard(struct device *d, unsigned int queue)
{
	static struct report r;
	ssize_t n = recv(to_process, &r, sizeof(r), MSG_DONTWAIT);
	uint32_t i, gpus = 0;

	(void)queue;
	asked = false;
	r.failed[sizeof(r.failed) - 1] = '\0';
	if (n != (ssize_t)sizeof(r) || *r.failed || r.count > USES) {
		complain("device memory is not watched: %s",
			 n == (ssize_t)sizeof(r) && *r.failed ? r.failed
							      : "the process that asks has ended");
		device_unwatch(d, to_process);
		memwatch_stop();
		return;
	}
	for (i = 0; i < r.count; i++)
		if (r.use[i].gpu >= gpus)
			gpus = r.use[i].gpu + 1;
	for (i = 0; i < gpus; i++)
		judge_gpu(d, &r, i);
}

void memwatch_begin(struct device *d)
{
	if (to_process >= 0)
		device_watch(d, to_process, heard, 0);
}
