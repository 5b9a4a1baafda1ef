// SPDX-License-Identifier: GPL-2.0-or-later
/* The process that asks NVML (memwatch.h): its life, and its question. */
#define _GNU_SOURCE /* close_range */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/host/memwatch.h"

#define EACH_MS 1000
#define GPUS	64u

/* NVML's own names for these begin with nvml. */
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

static int to_process = -1; /* the main process's end */

/* Returns why there is no NVML, or NULL. */
static const char *load(void **devices, unsigned int *count)
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

static const char *ask(void **devices, unsigned int count, struct memwatch_report *r)
{
	static struct process_info infos[MEMWATCH_USES];
	unsigned int gpu, i, n;
	int rc;

	r->count = 0;
	for (gpu = 0; gpu < count; gpu++) {
		n = MEMWATCH_USES - r->count;
		rc = nvml.processes(devices[gpu], &n, infos);
		if (rc == TOO_SMALL)
			return "there are more processes on the GPUs than can be watched";
		if (rc)
			return "NVML does not say what a GPU's processes use";
		for (i = 0; i < n && r->count < MEMWATCH_USES; i++)
			if (infos[i].used != NO_VALUE)
				r->use[r->count++] = (struct memwatch_use){
					.pid = infos[i].pid, .gpu = gpu, .bytes = infos[i].used};
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

static void __attribute__((noreturn)) live(int from_main, const struct jail *jail)
{
	static struct memwatch_report report;
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
	why = load(devices, &count);
	if (!why && !jail_memwatch(jail))
		why = "the process that would watch cannot be confined";
	while (!why && wait_to_be_asked(from_main)) {
		why = ask(devices, count, &report);
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

void memwatch_start(const struct device_options *opt)
{
	struct limits l = opt->limits;
	int ends[2];
	pid_t pid;

	limits_default(&l);
	if (!opt->plugin || l.session[LIMIT_LIBRARY_MEMORY] == LIMIT_NONE ||
	    (l.session[LIMIT_DEVICE_MEMORY] == LIMIT_NONE &&
	     l.vm[LIMIT_DEVICE_MEMORY] == LIMIT_NONE))
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		fprintf(stderr, "qcu-device: device memory is not watched: %s\n", strerror(errno));
		return;
	}
	pid = fork();
	if (!pid)
		live(ends[1], &opt->jail);
	close(ends[1]);
	if (pid < 0) {
		fprintf(stderr, "qcu-device: device memory is not watched: %s\n", strerror(errno));
		close(ends[0]);
		return;
	}
	to_process = ends[0];
}

int memwatch_socket(void)
{
	return to_process;
}

void memwatch_stop(void)
{
	if (to_process >= 0)
		close(to_process);
	to_process = -1;
}
