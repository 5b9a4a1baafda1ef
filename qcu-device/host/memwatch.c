// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What NVML says. A process outside of all mirrors asks it, and reads nothing that a guest or a
 * mirror has written. There are three reasons to ask:
 *
 * What each process uses of each GPU's memory, as the driver counts it. A mirror counts what it
 * allocates for the guest, but not what libraries and kernels take, and a mirror that has been
 * broken into counts nothing. So NVML is asked if a limit on device memory is set.
 *
 * What the VM's programs may know of the GPUs (base/sensors.h): if --nvml lets them, and while they
 * ask. The numbers of this VM's own work are those of the processes that are its mirrors.
 *
 * How long each session keeps GPUs busy, with --gpu-time: the main process adds up the shares of
 * each second and puts the sum on the board, which no mirror can write.
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
#include "qcu-device/jail/gpus.h"

#define EACH_MS	    1000 /* NVML is asked no more often than that */
#define IDLE_MS	    200	 /* how often the main process looks whether a program asks */
#define GPUS	    64u
#define GENERATIONS 4 /* a mirror is the child of a process that the main process knows */

#define USES 512u

struct report {
	uint32_t count;	  /* of uses; 0 with a text: nothing is watched any more */
	uint32_t asked;	  /* ASK_*: what is in it */
	char failed[100]; /* why, or empty */
	struct use {
		uint32_t pid[GENERATIONS]; /* of the process, its parent, and so on; or 0 */
		uint32_t gpu;		   /* as NVML counts */
		uint64_t bytes;
		uint32_t busy, busy_memory; /* percent */
	} use[USES];
	struct watched_gpu {
		uint64_t bus; /* sensors_bus(); 0: it is none of the VM's, or unknown */
		bool shares;  /* it is known how busy each process keeps it */
		bool store;   /* it is only for the VM's store (--swap-gpu) */
		struct gpu_sensors sensors;
	} gpu[GPUS];
};

/* Bits of a byte that asks for a report. A mirror cannot wake the main process, so it asks for
 * nothing, too. */
#define ASK_NOTHING 1u
#define ASK_MEMORY  2u
#define ASK_SENSORS 4u
#define ASK_TIME    8u

/* Of NVML, whose header is not needed to build this. */
#define NO_VALUE  UINT64_MAX
#define NOT_FOUND 6 /* NVML_ERROR_NOT_FOUND */
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
	/* For a part of a GPU, or one for the store. */
	int (*by_uuid)(const char *uuid, void **device);
	int (*whole)(void *part, void **device);
	int (*index)(void *device, unsigned int *index);
} nvml;

/*
 * The GPUs, and whom to ask for the processes on each: if the VM has a part of a GPU, the part,
 * because NVML does not tell an ordinary user what is on the others.
 */
struct asked_gpus {
	void *device[GPUS], *holder[GPUS];
	unsigned int count;
	unsigned int store; /* that for the store (--swap-gpu); GPUS: there is none */
};

struct pci_info {
	char legacy_id[16];
	unsigned int domain, bus, device, pci_id, subsystem_id;
	char id[32];
};

struct process_rates {
	unsigned int pid;
	unsigned long long when;
	unsigned int sm, memory, encoder, decoder;
};

struct rates {
	unsigned int gpu, memory;
};

/* Those that may be missing: then a value is not known. */
static struct {
	int (*place)(void *device, struct pci_info *info);
	int (*minor)(void *device, unsigned int *minor);
	int (*driver)(char *version, unsigned int length);
	int (*clock)(void *device, unsigned int kind, unsigned int *mhz);
	int (*app_clock)(void *device, unsigned int kind, unsigned int *mhz);
	int (*shares)(void *device, struct process_rates *shares, unsigned int *count,
		      unsigned long long since);
	int (*rates)(void *device, struct rates *rates);
	int (*celsius)(void *device, unsigned int sensor, unsigned int *celsius);
	int (*power)(void *device, unsigned int *milliwatts);
	int (*power_limit)(void *device, unsigned int *milliwatts);
} sensors;

/* The main process's end: each byte asks for a report. */
static int to_process = -1;
static bool asked, watches_memory;

/* ---- the process ---- */

static const char *find_part(struct asked_gpus *a, const char *part)
{
	a->count = 1;
	if (!nvml.by_uuid || !nvml.whole || nvml.by_uuid(part, &a->holder[0]) ||
	    nvml.whole(a->holder[0], &a->device[0]))
		return "NVML does not know the part of the GPU";
	return NULL;
}

static const char *find_store(struct asked_gpus *a, const struct jail_gpus *g)
{
	char name[GPU_NAME_BYTES];
	void *device;

	gpus_name(g, g->devices - 1, name, sizeof(name));
	if (!nvml.by_uuid || !nvml.index || nvml.by_uuid(name, &device) ||
	    nvml.index(device, &a->store) || a->store >= a->count)
		return "NVML does not know the GPU of --swap-gpu";
	return NULL;
}

/* Returns why there is no NVML, or NULL. */
static const char *load_nvml(struct asked_gpus *a, const struct jail_gpus *g)
{
	static const char *const names[] = {"nvmlInit_v2", "nvmlDeviceGetCount_v2",
					    "nvmlDeviceGetHandleByIndex_v2",
					    "nvmlDeviceGetComputeRunningProcesses_v3"};
	void **const to[] = {(void **)&nvml.init, (void **)&nvml.count, (void **)&nvml.device,
			     (void **)&nvml.processes};
	static const struct {
		const char *name;
		void **to;
	} more[] = {
		{"nvmlDeviceGetHandleByUUID", (void **)&nvml.by_uuid},
		{"nvmlDeviceGetIndex", (void **)&nvml.index},
		{"nvmlDeviceGetDeviceHandleFromMigDeviceHandle", (void **)&nvml.whole},
		{"nvmlDeviceGetPciInfo_v3", (void **)&sensors.place},
		{"nvmlDeviceGetMinorNumber", (void **)&sensors.minor},
		{"nvmlSystemGetDriverVersion", (void **)&sensors.driver},
		{"nvmlDeviceGetClockInfo", (void **)&sensors.clock},
		{"nvmlDeviceGetApplicationsClock", (void **)&sensors.app_clock},
		{"nvmlDeviceGetProcessUtilization", (void **)&sensors.shares},
		{"nvmlDeviceGetUtilizationRates", (void **)&sensors.rates},
		{"nvmlDeviceGetTemperature", (void **)&sensors.celsius},
		{"nvmlDeviceGetPowerUsage", (void **)&sensors.power},
		{"nvmlDeviceGetEnforcedPowerLimit", (void **)&sensors.power_limit},
	};
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	unsigned int i;

	if (!lib)
		return "there is no libnvidia-ml.so.1";
	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		*to[i] = dlsym(lib, names[i]);
		if (!*to[i])
			return "libnvidia-ml.so.1 lacks a function";
	}
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		*more[i].to = dlsym(lib, more[i].name);
	if (nvml.init() || nvml.count(&a->count))
		return "NVML does not start";
	if (g->part[0])
		return find_part(a, g->part);
	if (a->count > GPUS)
		a->count = GPUS;
	for (i = 0; i < a->count; i++) {
		if (nvml.device(i, &a->device[i]))
			return "NVML does not name a GPU";
		a->holder[i] = a->device[i];
	}
	return g->store ? find_store(a, g) : NULL;
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

static struct use *add_use(struct report *r, uint32_t pid, uint32_t gpu)
{
	struct use *u = &r->use[r->count++];
	unsigned int i;

	memset(u, 0, sizeof(*u));
	u->gpu = gpu;
	for (i = 0; i < GENERATIONS && pid > 1; i++) {
		u->pid[i] = pid;
		pid = parent_of(pid);
	}
	return u;
}

static const char *ask_nvml(const struct asked_gpus *a, struct report *r)
{
	static struct process_info infos[USES];
	unsigned int gpu, i, n;
	int rc;

	for (gpu = 0; gpu < a->count; gpu++) {
		r->gpu[gpu].store = gpu == a->store;
		n = USES - r->count;
		rc = nvml.processes(a->holder[gpu], &n, infos);
		if (rc == TOO_SMALL)
			return "there are more processes on the GPUs than can be watched";
		if (rc)
			return "NVML does not say what a GPU's processes use";
		for (i = 0; i < n && r->count < USES; i++)
			if (infos[i].used != NO_VALUE)
				add_use(r, infos[i].pid, gpu)->bytes = infos[i].used;
	}
	return NULL;
}

/* The GPU's place, if it is one of the VM's. */
static uint64_t place_of(void *device, const struct jail_gpus *ours)
{
	struct pci_info info = {0};
	unsigned int minor, i;

	if (!sensors.place || sensors.place(device, &info))
		return 0;
	if (ours->known && (!sensors.minor || sensors.minor(device, &minor)))
		return 0;
	for (i = 0; ours->known && i < ours->count; i++)
		if (ours->minor[i] == minor)
			break;
	return ours->known && i == ours->count ? 0
					       : sensors_bus(info.domain, info.bus, info.device);
}

static void learn(struct gpu_sensors *g, enum qcu_sensor what, bool good, uint32_t value)
{
	g->value[what] = good ? value : 0;
	g->known |= (uint32_t)good << what;
}

static void ask_clocks(void *device, struct gpu_sensors *g)
{
	static const struct {
		enum qcu_sensor what;
		unsigned int kind; /* nvmlClockType_t */
		bool app;
	} clocks[] = {{QCU_SENSOR_clock_sm, 1, false},
		      {QCU_SENSOR_clock_memory, 2, false},
		      {QCU_SENSOR_clock_video, 3, false},
		      {QCU_SENSOR_app_sm, 0, true}, /* only of graphics, which is the same */
		      {QCU_SENSOR_app_memory, 2, true}};
	unsigned int i, mhz = 0;
	bool good;

	for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		int (*ask)(void *, unsigned int, unsigned int *) =
			clocks[i].app ? sensors.app_clock : sensors.clock;

		good = ask && !ask(device, clocks[i].kind, &mhz);
		learn(g, clocks[i].what, good, mhz);
	}
}

static void ask_driver(struct gpu_sensors *g)
{
	char text[80] = "";
	unsigned int n[3] = {0};
	bool good = sensors.driver && !sensors.driver(text, sizeof(text) - 1) &&
		    sscanf(text, "%4u.%4u.%4u", &n[0], &n[1], &n[2]) >= 2 && n[0] < 4096 &&
		    n[1] < 1024 && n[2] < 1024;

	learn(g, QCU_SENSOR_driver, good, QCU_DRIVER(n[0], n[1], n[2]));
}

/* What the whole GPU does. */
static void ask_of_all(void *device, struct gpu_sensors *g)
{
	struct rates rates = {0};
	unsigned int n = 0;
	bool good = sensors.rates && !sensors.rates(device, &rates);

	learn(g, QCU_SENSOR_busy, good, rates.gpu);
	learn(g, QCU_SENSOR_busy_memory, good, rates.memory);
	good = sensors.celsius && !sensors.celsius(device, 0, &n);
	learn(g, QCU_SENSOR_celsius, good, n);
	good = sensors.power && !sensors.power(device, &n);
	learn(g, QCU_SENSOR_milliwatts, good, n);
	good = sensors.power_limit && !sensors.power_limit(device, &n);
	learn(g, QCU_SENSOR_power_limit, good, n);
}

/* Several shares of one process would count twice. */
static bool has_later_share(const struct process_rates *shares, unsigned int n, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < n; k++)
		if (shares[k].pid == shares[i].pid && (shares[k].when > shares[i].when ||
						       (shares[k].when == shares[i].when && k > i)))
			return true;
	return false;
}

/* How busy each process has kept the GPU since the last question. */
static bool ask_shares(void *device, uint32_t gpu, struct report *r)
{
	static unsigned long long since[GPUS];
	static struct process_rates shares[USES];
	unsigned int n = USES, i;
	int rc = sensors.shares ? sensors.shares(device, shares, &n, since[gpu]) : -1;

	if (rc == NOT_FOUND)
		return true;
	if (rc)
		return false;
	for (i = 0; i < n && i < USES && r->count < USES; i++) {
		struct use *u;

		if (has_later_share(shares, n < USES ? n : USES, i))
			continue;
		u = add_use(r, shares[i].pid, gpu);

		u->busy = shares[i].sm;
		u->busy_memory = shares[i].memory;
		if (shares[i].when > since[gpu])
			since[gpu] = shares[i].when;
	}
	return true;
}

static void ask_sensors(const struct asked_gpus *a, const struct device_options *opt,
			bool only_time, struct report *r)
{
	unsigned int i;

	for (i = 0; i < a->count; i++) {
		struct watched_gpu *g = &r->gpu[i];

		g->bus = place_of(a->device[i], &opt->jail.gpus);
		if (!g->bus)
			continue;
		g->shares = ask_shares(a->device[i], i, r);
		if (only_time)
			continue;
		ask_clocks(a->device[i], &g->sensors);
		ask_driver(&g->sensors);
		if (opt->sensors == SENSORS_ALL)
			ask_of_all(a->device[i], &g->sensors);
	}
}

/*
 * Waits for a question, and then until a second has passed since NVML was asked. 0: the main
 * process has ended.
 */
static unsigned int wait_to_be_asked(int from_main)
{
	static uint64_t last;
	struct pollfd p = {.fd = from_main, .events = POLLIN};
	uint64_t now, wait = IDLE_MS;
	unsigned char byte;
	int rc;

	if (recv(from_main, &byte, 1, 0) != 1)
		return 0;
	now = sensors_now();
	if (byte != ASK_NOTHING)
		wait = last && now - last < EACH_MS ? EACH_MS - (now - last) : 0;
	do {
		rc = poll(&p, 1, (int)wait);
	} while (rc < 0 && errno == EINTR);
	if (byte != ASK_NOTHING)
		last = sensors_now();
	return rc ? 0 : byte;
}

static void __attribute__((noreturn))
watch_for_main(int from_main, const struct device_options *opt)
{
	static struct report report;
	struct asked_gpus gpus = {.store = GPUS};
	unsigned int what;
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
	why = load_nvml(&gpus, &opt->jail.gpus);
	if (!why && !jail_memwatch(&opt->jail))
		why = "the process that would watch cannot be confined";
	while (!why && (what = wait_to_be_asked(from_main))) {
		memset(&report, 0, sizeof(report));
		report.asked = what;
		if (what & ASK_MEMORY)
			why = ask_nvml(&gpus, &report);
		if (!why && what & (ASK_SENSORS | ASK_TIME))
			ask_sensors(&gpus, opt, !(what & ASK_SENSORS), &report);
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
	watches_memory = l.session[LIMIT_LIBRARY_MEMORY] != LIMIT_NONE &&
			 (l.session[LIMIT_DEVICE_MEMORY] != LIMIT_NONE ||
			  l.vm[LIMIT_DEVICE_MEMORY] != LIMIT_NONE || opt->be.store);
	if (!opt->plugin || (!watches_memory && opt->sensors == SENSORS_NONE && !opt->gpu_time))
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return strerror(errno);
	pid = fork();
	if (!pid)
		watch_for_main(ends[1], opt);
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
	return sum + atomic_load(&d->usage->sessions[queue].used[LIMIT_SWAP_GPU]);
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
	const enum limit what = r->gpu[gpu].store ? LIMIT_SWAP_GPU : LIMIT_DEVICE_MEMORY;
	struct limits l = d->opt->limits;
	uint64_t allowance, sum = 0, excess, most = 0;
	unsigned int q, worst = 0;
	struct sums s;

	limits_default(&l);
	allowance = l.session[LIMIT_LIBRARY_MEMORY];
	add_up(d, r, gpu, &s);
	for (q = 1; q <= d->opt->sessions; q++) {
		uint64_t counts = excess_over(s.on_gpu[q], allowance);

		if (counts > l.session[what]) {
			kill_session_over_limit(d, q, counts, what, l.session[what], "");
			return;
		}
		sum += counts;
		excess = excess_over(s.on_all[q], charged_to(d, q));
		if (s.on_gpu[q] && (!worst || excess > most)) {
			worst = q;
			most = excess;
		}
	}
	if (worst && sum > l.vm[what])
		kill_session_over_limit(d, worst, sum, what, l.vm[what], "its ");
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
	unsigned char byte = ASK_NOTHING;

	if (asked || to_process < 0 || !any_lives(d))
		return;
	if (watches_memory)
		byte |= ASK_MEMORY;
	if (d->opt->sensors != SENSORS_NONE && sensors_wanted(&d->usage->sensors, sensors_now()))
		byte |= ASK_SENSORS;
	if (d->opt->gpu_time)
		byte |= ASK_TIME;
	asked = send(to_process, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void add_share(uint8_t *to, uint32_t percent)
{
	uint32_t sum = *to + (percent < 100 ? percent : 100);

	*to = sum < 100 ? (uint8_t)sum : 100;
}

/* What the processes of each session do on this GPU. */
static void add_shares(const struct device *d, const struct report *r, uint32_t gpu,
		       struct gpu_work *s)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->known = r->gpu[gpu].bus && r->gpu[gpu].shares;
	for (i = 0; s->known && i < r->count; i++) {
		unsigned int q = r->use[i].gpu == gpu ? session_of(d, &r->use[i]) : 0;

		if (!q)
			continue;
		add_share(&s->of[q].of[BUSY_KERNELS], r->use[i].busy);
		add_share(&s->of[q].of[BUSY_COPIES], r->use[i].busy_memory);
	}
}

/* Without --nvml full programs learn what the VM's own sessions do together. */
static void learn_from_shares(const struct gpu_work *s, struct gpu_sensors *g)
{
	uint8_t sum[BUSY_KINDS] = {0};
	unsigned int q, kind;

	for (q = 0; q < BUSY_SESSIONS; q++)
		for (kind = 0; kind < BUSY_KINDS; kind++)
			add_share(&sum[kind], s->of[q].of[kind]);
	learn(g, QCU_SENSOR_busy, s->known, sum[BUSY_KERNELS]);
	learn(g, QCU_SENSOR_busy_memory, s->known, sum[BUSY_COPIES]);
}

static void show_sensors(struct device *d, struct report *r, const struct gpu_work *shares)
{
	struct sensors *s = &d->usage->sensors;
	uint32_t i;

	for (i = 0; i < GPUS; i++) {
		struct watched_gpu *g = &r->gpu[i];

		if (d->opt->sensors != SENSORS_ALL)
			learn_from_shares(&shares[i], &g->sensors);
		sensors_check(&g->sensors, d->opt->sensors);
		sensors_put(s, i, g->bus, &g->sensors, &shares[i]);
	}
	atomic_store(&s->taken, sensors_now());
}

/*
 * A share is of the time since the last report, as far as NVML looks back. What was before the
 * first one is not known.
 */
#define LOOKS_BACK_US 2000000u

static void add_gpu_time(struct device *d, const struct gpu_work *shares)
{
	static uint64_t last;
	uint64_t now = busy_now(), us = last ? now - last : 0, sum;
	unsigned int q, gpu;

	last = now;
	if (us > LOOKS_BACK_US)
		us = LOOKS_BACK_US;
	for (q = 1; q <= d->opt->sessions; q++) {
		for (gpu = 0, sum = 0; gpu < GPUS; gpu++)
			sum += us * shares[gpu].of[q].of[BUSY_KERNELS] / 100;
		board_add_gpu_time(d->board, q, sum);
	}
}

static void heard(struct device *d, unsigned int queue)
{
	static struct report r;
	static struct gpu_work shares[GPUS];
	ssize_t n = recv(to_process, &r, sizeof(r), MSG_DONTWAIT);
	uint32_t i, gpus = 0;

	(void)queue;
	asked = false;
	r.failed[sizeof(r.failed) - 1] = '\0';
	if (n != (ssize_t)sizeof(r) || *r.failed || r.count > USES) {
		/* Without NVML programs learn nothing, as without a GPU. */
		if (watches_memory)
			complain("device memory is not watched: %s",
				 n == (ssize_t)sizeof(r) && *r.failed
					 ? r.failed
					 : "the process that asks has ended");
		if (d->opt->gpu_time)
			complain("GPU time is not counted: NVML is not asked any more");
		device_unwatch(d, to_process);
		memwatch_stop();
		atomic_store(&d->usage->sensors.on, false);
		return;
	}
	for (i = 0; i < GPUS; i++)
		add_shares(d, &r, i, &shares[i]);
	if (r.asked & ASK_SENSORS)
		show_sensors(d, &r, shares);
	if (r.asked & ASK_TIME)
		add_gpu_time(d, shares);
	if (!(r.asked & ASK_MEMORY))
		return;
	for (i = 0; i < r.count; i++)
		if (r.use[i].gpu >= gpus)
			gpus = r.use[i].gpu + 1;
	for (i = 0; i < gpus; i++)
		judge_gpu(d, &r, i);
}

void memwatch_begin(struct device *d)
{
	if (to_process < 0)
		return;
	atomic_store(&d->usage->sensors.on, d->opt->sensors != SENSORS_NONE);
	device_watch(d, to_process, heard, 0);
}
