// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QCU_TRACE_FILE: what this process sends to the host, and when, as a file that trace viewers read
 * (Chrome's JSON). docs/vm/tools.md describes it.
 *
 * Each command is sent by itself and timed. What puts copies or kernels into a stream is put
 * between two events of ours, so its time on the GPU is known, too. For each device there is one
 * moment that both clocks know: an event in an empty stream of our own. From there the GPU's times
 * are placed on the program's clock. When they are asked for, a second such moment shows whether
 * both clocks have gone on alike. If they have not, because the VM was stopped, the times between
 * the two are uncertain, and the trace says so. Nothing here waits for the program's work: what is
 * not done when it is asked for is written without a time on the GPU.
 *
 * The calls of the program's and its ranges come from trace_calls.c and trace_ranges.c. What the
 * program chooses is bounded: names are cut and escaped, and after EVENTS_MAX only a number is
 * kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"
#include "qcu-library/link/trace.h"

#define RECORDS	       4096
#define EVENTS_MAX     1000000
#define OWN_EVENTS_MAX 750000 /* of the program's calls and ranges: some are left for commands */
#define PAIRS	       1024
#define EVENTS_AT_ONCE 32
#define ANCHORS	       4    /* tries: the first ones also make the GPU's context */
#define LOOKS	       200  /* for a second anchor, which nothing keeps from being done */
#define DRIFT	       1000 /* clocks that are right may differ by this part of a span */

struct pair {
	uint32_t before, after; /* events */
	bool used;
};

struct trace_entry {
	uint64_t begin, end; /* ns of this process's clock */
	uint64_t bytes;
	uint64_t memory;  /* the address or number of what was allocated or freed */
	const char *call; /* the program's call that has sent it, or NULL */
	uint32_t tid, seq, stream;
	uint32_t kernel; /* of a launch */
	uint16_t op;
	bool posted, pageable;
	int error;
	uint8_t device;	   /* the mirror's number */
	struct pair *pair; /* NULL: no GPU time is wanted */
};

/* A moment that both clocks know. */
struct anchor {
	uint32_t event;
	uint64_t at, error; /* in ns of this process's clock */
};

struct device {
	bool tried, compared, apart;
	uint32_t stream;
	struct anchor first, second; /* no event: nothing is measured on this device */
	double rate; /* this process's ns for one of the GPU's, from the first to the second */
	struct pair *pairs; /* PAIRS of them */
	unsigned int made, next, used;
};

static const char *const names[QCU_OP_COUNT] = {
#define X(n, NAME, ...) [n] = #NAME,
	QCU_COMMANDS(X)
#undef X
};

static struct {
	FILE *out;
	atomic_bool on; /* the same as out, without the lock */
	pthread_key_t thread_key;
	bool have_thread_key;
	uint64_t written, left_out;
	struct trace_entry records[RECORDS];
	unsigned int count;
	struct device devices[UINT8_MAX + 1];
	uint64_t own[QCU_OP_COUNT]; /* commands that only the trace has sent */
	uint64_t unmeasured, uncertain;
	atomic_bool has_session;
} process;

/* In a file that is loaded late there is little room for variables of each thread: one pointer. */
static QCUL_NEAR struct qcul_traced_thread *traced_thread;

static void drop_trace_in_child(void);
QCUL_AT_FORK(QCUL_FORK_TRACE, .forget = drop_trace_in_child)

uint64_t qcul_trace_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- commands of our own ---- */

static cudaError_t send_own(struct qCUcmd *cmd, bool post)
{
	process.own[cmd->op]++;
	cmd->flags = post ? QCU_F_POSTED : 0;
	return qcul_send_untraced(cmd, 1);
}

/*
 * Makes events, and returns how many. They are made before there is work in any stream of the
 * device, and with answers: a limit that is in the way must not be an error of the program's.
 */
static unsigned int make_events(uint32_t *ids, unsigned int wanted, uint8_t device)
{
	struct qCUcmd cmds[EVENTS_AT_ONCE];
	unsigned int n = 0, made = 0;

	while (n < wanted) {
		struct qcul_handle *slot = qcul_handle_new(&qcul_events, &ids[n]);

		if (!slot)
			break;
		slot->flags = cudaEventDefault;
		slot->device = qcul_self.device;
		slot->made = true;
		cmds[n] = qcul_cmd(QCU_OP_EVENT_CREATE);
		cmds[n].device = device;
		cmds[n].event_create.event = ids[n];
		n++;
	}
	process.own[QCU_OP_EVENT_CREATE] += n;
	if (n && qcul_send_untraced(cmds, n) == cudaSuccess)
		return n;
	while (made < n && cmds[made].status == 0)
		made++;
	return made;
}

static cudaError_t record_event(uint32_t event, uint32_t stream, uint8_t device)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_EVENT_RECORD);

	cmd.device = device;
	cmd.event_record.event = event;
	cmd.event_record.stream = stream;
	return send_own(&cmd, true);
}

/* False: there is no time between them, because one is not done or has failed. */
static bool elapsed_ns(uint32_t start, uint32_t end, int64_t *ns)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_EVENT_ELAPSED);
	float ms;

	cmd.event_elapsed.start = start;
	cmd.event_elapsed.end = end;
	if (qcul_broken() || send_own(&cmd, false))
		return false;
	memcpy(&ms, &cmd.event_elapsed.ms, sizeof(ms));
	*ns = (int64_t)((double)ms * 1e6);
	return true;
}

static void make_pairs(struct device *d, uint8_t device)
{
	uint32_t ids[EVENTS_AT_ONCE];
	unsigned int got = EVENTS_AT_ONCE, i;

	d->pairs = calloc(PAIRS, sizeof(*d->pairs));
	while (d->pairs && d->made < PAIRS && got == EVENTS_AT_ONCE) {
		got = make_events(ids, EVENTS_AT_ONCE, device);
		for (i = 0; i + 1 < got && d->made < PAIRS; i += 2)
			d->pairs[d->made++] = (struct pair){.before = ids[i], .after = ids[i + 1]};
	}
}

/* An anchor is an event in a stream of our own, in which nothing else waits. */
static void begin_device(struct device *d, uint8_t device)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_STREAM_CREATE);
	struct qcul_handle *slot;
	uint32_t events[2];
	unsigned int i;
	uint64_t begin;

	d->tried = true;
	slot = qcul_handle_new(&qcul_streams, &d->stream);
	if (!slot)
		return;
	slot->flags = cudaStreamNonBlocking;
	slot->device = qcul_self.device;
	cmd.device = device;
	cmd.stream_create.stream = d->stream;
	cmd.stream_create.flags = cudaStreamNonBlocking;
	if (send_own(&cmd, false) || make_events(events, 2, device) != 2)
		return;
	for (i = 0; i < ANCHORS; i++) {
		begin = qcul_trace_now();
		if (record_event(events[0], d->stream, device))
			return;
		cmd = qcul_cmd(QCU_OP_EVENT_SYNC);
		cmd.device = device;
		cmd.event_sync.event = events[0];
		if (send_own(&cmd, false))
			return;
		d->first.error = (qcul_trace_now() - begin) / 2;
		d->first.at = begin + d->first.error;
	}
	d->first.event = events[0];
	d->second.event = events[1];
	make_pairs(d, device);
}

/*
 * Makes the second anchor, and looks whether both clocks have gone on alike since the first. They
 * have not if the VM was stopped meanwhile: then the GPU's clock went on.
 */
static void compare_clocks(struct device *d, uint8_t device)
{
	uint64_t begin = qcul_trace_now();
	int64_t gpu = 0, own;
	unsigned int i;

	d->compared = d->apart = true;
	d->second.at = 0;
	d->rate = 1;
	if (record_event(d->second.event, d->stream, device))
		return;
	for (i = 0; !elapsed_ns(d->first.event, d->second.event, &gpu); i++)
		if (i == LOOKS || qcul_broken())
			return;
	d->second.error = (qcul_trace_now() - begin) / 2;
	d->second.at = begin + d->second.error;
	own = (int64_t)(d->second.at - d->first.at);
	d->apart = (uint64_t)llabs(own - gpu) >
		   d->first.error + d->second.error + (uint64_t)llabs(gpu) / DRIFT;
	if (!d->apart && gpu > 0)
		d->rate = (double)own / (double)gpu;
}

/* `written`: all that lay between the anchors. What is kept is measured by the first one again. */
static void end_comparisons(bool written)
{
	struct device *d;

	for (d = process.devices; d <= &process.devices[UINT8_MAX]; d++) {
		uint32_t free = d->first.event;

		if (written && d->compared && d->second.at) {
			d->first = d->second;
			d->second.event = free;
		}
		d->compared = false;
	}
}

/* ---- writing ---- */

/* Nothing more is added. What is written stays. */
static void end_tracing(void)
{
	qcul_session_traced_by(NULL);
	atomic_store(&process.on, false);
}

static void stop(const char *why)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	qcul_say_once(&said, "QCU_TRACE_FILE cannot be written (%s): the trace is not complete",
		      why);
	end_tracing();
	process.out = NULL;
}

/* Bytes of the character of UTF-8 that begins here. 0: none does. */
static unsigned int bytes_of_character(const unsigned char *c)
{
	unsigned int n = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4, i;

	if (*c > 0xf4)
		return 0;
	for (i = 1; i < n; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
	    (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f))
		return 0;
	return n;
}

/* A name of the program's as JSON has it. What may not stand there becomes a question mark. */
static void write_trace_name(const char *name)
{
	const unsigned char *c = (const unsigned char *)name;
	unsigned int n, left = QCUL_TRACE_NAME - 1;

	putc('"', process.out);
	for (; *c && left; c += n ? n : 1, left--) {
		n = bytes_of_character(c);
		if (*c == '"' || *c == '\\')
			putc('\\', process.out);
		if (!n || *c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
			putc('?', process.out);
		else
			fwrite(c, 1, n, process.out);
	}
	fputs(*c ? "...\"" : "\"", process.out);
}

static void write_trace_head(const char *phase, const char *category, const char *name,
			     uint32_t track, uint64_t at)
{
	fprintf(process.out, ",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":", phase, category);
	write_trace_name(name);
	fprintf(process.out, ",\"pid\":%d,\"tid\":%u,\"ts\":%llu.%03llu", (int)getpid(), track,
		(unsigned long long)(at / 1000), (unsigned long long)(at % 1000));
}

/* May another event be written, if there are so many at most? The caller holds the lock. */
static bool room_for_event(uint64_t most)
{
	if (!process.out)
		return false;
	if (process.written >= most) {
		process.left_out++;
		return false;
	}
	process.written++;
	return true;
}

static void lasts(uint64_t ns)
{
	fprintf(process.out, ",\"dur\":%llu.%03llu", (unsigned long long)(ns / 1000),
		(unsigned long long)(ns % 1000));
}

/* The tracks of streams have numbers that no thread has. */
#define TRACK 0x40000000u

/* What the GPU did for a record. Its start is on this process's clock. */
struct gpu_time {
	uint64_t start, ns;
	bool uncertain;
};

static void write_call_args(const struct trace_entry *r)
{
	char kernel[QCUL_TRACE_NAME];

	fprintf(process.out,
		",\"args\":{\"seq\":%u,\"stream\":%u,\"bytes\":%llu,\"posted\":%s,\"error\":%d",
		r->seq, r->stream, (unsigned long long)r->bytes, r->posted ? "true" : "false",
		r->error);
	if (r->call) {
		fprintf(process.out, ",\"call\":");
		write_trace_name(r->call);
	}
	if (r->op == QCU_OP_LAUNCH && qcul_trace_kernel(r->kernel, kernel)) {
		fprintf(process.out, ",\"kernel\":");
		write_trace_name(kernel);
	}
	if (qcul_trace_memory_kind(r->op))
		fprintf(process.out, ",\"memory\":\"%c%u.%llx\"", qcul_trace_memory_kind(r->op),
			r->device, (unsigned long long)r->memory);
	fprintf(process.out, "%s}}", r->pageable ? ",\"pageable\":true" : "");
}

static void write_trace_record(const struct trace_entry *r, const struct gpu_time *gpu)
{
	const char *name = names[r->op];

	if (!room_for_event(EVENTS_MAX))
		return;
	write_trace_head("X", "call", name, r->tid, r->begin);
	lasts(r->end - r->begin);
	write_call_args(r);
	if (!gpu)
		return;
	write_trace_head("b", "queue", name, r->tid, r->begin);
	fprintf(process.out, ",\"id\":\"%u.%u\"}", r->tid, r->seq);
	write_trace_head("e", "queue", name, r->tid, gpu->start);
	fprintf(process.out, ",\"id\":\"%u.%u\"}", r->tid, r->seq);
	write_trace_head("X", "gpu", name, TRACK + r->stream, gpu->start);
	lasts(gpu->ns);
	fprintf(process.out, ",\"args\":{\"seq\":%u,\"tid\":%u,\"bytes\":%llu%s}}", r->seq, r->tid,
		(unsigned long long)r->bytes, gpu->uncertain ? ",\"uncertain\":true" : "");
}

/* Work begins after its call, and what is measured has ended. Measured times are only as exact as
 * the anchors. */
static bool measure(const struct trace_entry *r, struct gpu_time *gpu)
{
	struct device *d = &process.devices[r->device];
	int64_t start, ns;
	uint64_t now;

	if (r->error || !elapsed_ns(r->pair->before, r->pair->after, &ns))
		return false;
	if (!d->compared)
		compare_clocks(d, r->device);
	if (!elapsed_ns(d->first.event, r->pair->before, &start))
		return false;
	now = qcul_trace_now();
	gpu->ns = ns > 0 ? (uint64_t)ns : 0;
	gpu->start = d->first.at + (uint64_t)(int64_t)((double)start * d->rate);
	gpu->uncertain = d->apart;
	if (gpu->start + gpu->ns > now)
		gpu->start = now > gpu->ns ? now - gpu->ns : 0;
	if (gpu->start < r->begin)
		gpu->start = r->begin;
	return true;
}

static void give_pair(struct trace_entry *r)
{
	if (!r->pair)
		return;
	r->pair->used = false;
	process.devices[r->device].used--;
	r->pair = NULL;
}

/*
 * Writes the records, and asks for the times on the GPU of as many as are done. `keep`: the rest
 * may wait, if there is room. Not `ask`: the thread must not wait for an answer now, because an
 * earlier command of it may wait for something that only this thread will do.
 */
static void flush_trace_records(bool ask, bool keep)
{
	unsigned int i, kept = 0;

	for (i = 0; i < process.count; i++) {
		struct trace_entry *r = &process.records[i];
		struct gpu_time gpu;
		bool measured = ask && r->pair && measure(r, &gpu);

		/* A quarter must go, so that not each call asks all over again. */
		if (keep && r->pair && !measured && i >= process.count / 4) {
			kept = process.count - i;
			break;
		}
		process.unmeasured += r->pair && !measured;
		process.uncertain += measured && gpu.uncertain;
		write_trace_record(r, measured ? &gpu : NULL);
		give_pair(r);
	}
	memmove(process.records, process.records + i, kept * sizeof(process.records[0]));
	process.count = kept;
	end_comparisons(!kept);
	if (fflush(process.out))
		stop(strerror(errno));
}

/* ---- one command ---- */

/* The caller holds the lock. NULL: none is free. */
static struct pair *take_pair(uint8_t device)
{
	struct device *d = &process.devices[device];
	unsigned int i;

	if (!d->tried)
		begin_device(d, device);
	for (i = 0; i < d->made; i++) {
		struct pair *p = &d->pairs[d->next];

		d->next = (d->next + 1) % d->made;
		if (p->used)
			continue;
		p->used = true;
		d->used++;
		return p;
	}
	return NULL;
}

/* Does the command put work into a stream of its thread's device? */
static bool measurable(const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);

	return rule->traits & QCU_MEMORY && rule->stream < QCU_BODY &&
	       qcul_device_ordinal(qcul_stream_device(qcu_field(cmd, rule->stream))) == cmd->device;
}

static cudaError_t send_one(struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	struct qcul_traced_thread *t = qcul_traced_thread();
	struct trace_entry r = {.tid = cmd->tid,
				.op = cmd->op,
				.bytes = qcul_trace_bytes(cmd),
				.device = cmd->device,
				.call = t ? t->call : NULL,
				.kernel = cmd->op == QCU_OP_LAUNCH ? cmd->launch.kernel : 0,
				.stream =
					rule->stream < QCU_BODY ? qcu_field(cmd, rule->stream) : 0,
				.posted = cmd->flags & QCU_F_POSTED};
	bool wanted = false;
	cudaError_t err;

	if (measurable(cmd)) {
		pthread_mutex_lock(&at_fork.lock);
		r.pair = process.out ? take_pair(r.device) : NULL;
		wanted = process.out && !r.pair;
		if (r.pair && record_event(r.pair->before, r.stream, r.device))
			give_pair(&r);
		pthread_mutex_unlock(&at_fork.lock);
	}
	r.begin = qcul_trace_now();
	err = qcul_send_untraced(cmd, 1);
	r.end = qcul_trace_now();
	r.seq = cmd->seq;
	r.error = err;
	r.memory = qcul_trace_memory(cmd);
	r.pageable = qcul_trace_pageable(cmd);
	if (!err)
		qcul_trace_note(cmd);
	pthread_mutex_lock(&at_fork.lock);
	process.unmeasured += wanted;
	if (r.pair && record_event(r.pair->after, r.stream, r.device))
		give_pair(&r);
	if (process.out && process.count == RECORDS)
		flush_trace_records(false, false);
	if (process.out)
		process.records[process.count++] = r;
	if (process.out && !r.posted &&
	    (process.count >= RECORDS / 2 || process.devices[r.device].used >= PAIRS / 2))
		flush_trace_records(true, true);
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* A reset ends all events of the device. */
static void before_reset(void)
{
	unsigned int i;

	pthread_mutex_lock(&at_fork.lock);
	if (process.out)
		flush_trace_records(true, false);
	for (i = 0; i <= UINT8_MAX; i++)
		free(process.devices[i].pairs);
	memset(process.devices, 0, sizeof(process.devices));
	pthread_mutex_unlock(&at_fork.lock);
}

static cudaError_t send_traced(struct qCUcmd *cmds, unsigned int n)
{
	cudaError_t first = cudaSuccess, err;
	unsigned int i;

	qcul_self.traced = true;
	atomic_store_explicit(&process.has_session, true, memory_order_relaxed);
	for (i = 0; i < n; i++) {
		if (qcu_rule(cmds[i].op)->traits & QCU_ALONE)
			before_reset();
		err = send_one(&cmds[i]);
		first = first ? first : err;
		if (err && qcul_broken())
			break;
	}
	qcul_self.traced = false;
	return first;
}

/* ---- what the program does itself ---- */

static void forget_traced_thread(void *thread)
{
	struct qcul_traced_thread *t = thread;
	struct qcul_traced_range *r;

	traced_thread = NULL;
	while ((r = t->ranges)) {
		t->ranges = r->below;
		free(r);
	}
	free(t);
}

static void write_thread_name(const char *category, uint32_t tid, const char *name)
{
	pthread_mutex_lock(&at_fork.lock);
	if (room_for_event(OWN_EVENTS_MAX)) {
		write_trace_head("M", category, "thread_name", tid, 0);
		fprintf(process.out, ",\"args\":{\"name\":");
		write_trace_name(name);
		fprintf(process.out, "}}");
	}
	pthread_mutex_unlock(&at_fork.lock);
}

/* The program's name goes before the system's. */
void qcul_trace_name_thread(uint32_t tid, const char *name)
{
	write_thread_name("named", tid, name);
}

struct qcul_traced_thread *qcul_traced_thread(void)
{
	char name[32] = "";

	if (!atomic_load_explicit(&process.on, memory_order_relaxed))
		return NULL;
	if (traced_thread)
		return traced_thread;
	traced_thread = calloc(1, sizeof(*traced_thread));
	if (!traced_thread)
		return NULL;
	if (process.have_thread_key)
		pthread_setspecific(process.thread_key, traced_thread);
	prctl(PR_GET_NAME, name);
	write_thread_name("system", qcul_tid(), name);
	return traced_thread;
}

/* The head of an event of the calling thread's. The caller holds the lock. */
static void write_own_head(const char *phase, const char *category, const char *name,
			   const char *domain, uint64_t at)
{
	write_trace_head(phase, category, name, qcul_tid(), at);
	fprintf(process.out, ",\"args\":{");
	if (domain) {
		fprintf(process.out, "\"domain\":");
		write_trace_name(domain);
	}
	fprintf(process.out, "}");
}

void qcul_trace_span(const char *category, const char *name, const char *domain, uint64_t begin)
{
	uint64_t end = qcul_trace_now();

	pthread_mutex_lock(&at_fork.lock);
	if (room_for_event(OWN_EVENTS_MAX)) {
		write_own_head("X", category, name, domain, begin);
		lasts(end - begin);
		fprintf(process.out, "}");
	}
	pthread_mutex_unlock(&at_fork.lock);
}

void qcul_trace_bound(bool begins, const char *name, const char *domain, uint64_t id)
{
	pthread_mutex_lock(&at_fork.lock);
	/* What has begun must end, so its end has a place kept. */
	if (begins ? room_for_event(OWN_EVENTS_MAX) : process.out != NULL) {
		write_own_head(begins ? "b" : "e", "range", name, domain, qcul_trace_now());
		fprintf(process.out, ",\"id\":\"r%llu\"}", (unsigned long long)id);
	}
	pthread_mutex_unlock(&at_fork.lock);
}

void qcul_trace_mark(const char *name, const char *domain)
{
	pthread_mutex_lock(&at_fork.lock);
	if (room_for_event(OWN_EVENTS_MAX)) {
		write_own_head("i", "range", name, domain, qcul_trace_now());
		fprintf(process.out, ",\"s\":\"t\"}");
	}
	pthread_mutex_unlock(&at_fork.lock);
}

/* ---- begin and end ---- */

/* The file has what was flushed before the fork, and is the parent's. */
static void drop_trace_in_child(void)
{
	if (!process.out)
		return;
	end_tracing();
	__fpurge(process.out);
	fclose(process.out);
	process.out = NULL;
	process.count = 0;
}

/* %p in the name is this process's number, so that several processes can be traced at once. */
static bool expand(const char *name, char *path, size_t size)
{
	const char *at = strstr(name, "%p");
	int n = at ? snprintf(path, size, "%.*s%d%s", (int)(at - name), name, (int)getpid(), at + 2)
		   : snprintf(path, size, "%s", name);

	return n > 0 && (size_t)n < size;
}

__attribute__((constructor)) static void begin_trace(void)
{
	const char *name = getenv("QCU_TRACE_FILE");
	char path[4096];
	int pid = (int)getpid();

	if (!name || !*name)
		return;
	errno = ENAMETOOLONG;
	process.out = expand(name, path, sizeof(path)) ? fopen(path, "we") : NULL;
	if (!process.out) {
		stop(strerror(errno));
		return;
	}
	fprintf(process.out,
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,"
		"\"args\":{\"name\":\"process %d\"}}",
		pid, pid);
	if (fflush(process.out)) {
		stop(strerror(errno));
		return;
	}
	process.have_thread_key = !pthread_key_create(&process.thread_key, forget_traced_thread);
	qcul_session_traced_by(send_traced);
	atomic_store(&process.on, true);
}

/* Memory that left the GPU, as the device has counted it. */
static void write_memory_that_left(void)
{
	struct qcu_stats_desc d = {0};
	struct qCUcmd cmd = qcul_cmd(QCU_OP_STATS);

	cmd.stats.buf.addr = (uint64_t)(uintptr_t)&d;
	cmd.stats.buf.len = sizeof(d);
	if (!atomic_load(&process.has_session) || send_own(&cmd, false) ||
	    !(d.out_bytes | d.room_us))
		return;
	fprintf(process.out, ",\"away\":%llu,\"left\":%llu,\"came_back\":%llu,\"room_us\":%llu",
		(unsigned long long)d.away_bytes, (unsigned long long)d.out_bytes,
		(unsigned long long)d.in_bytes, (unsigned long long)d.room_us);
	if (d.file_bytes)
		fprintf(process.out, ",\"filed\":%llu", (unsigned long long)d.file_bytes);
}

/* After the program's own end: what it has not waited for may not be done. */
__attribute__((destructor)) static void end_trace(void)
{
	const char *comma = "";
	unsigned int i;

	pthread_mutex_lock(&at_fork.lock);
	end_tracing();
	if (process.out)
		flush_trace_records(true, false);
	if (process.out) {
		fprintf(process.out,
			"\n],\"otherData\":{\"pid\":\"%d\",\"unmeasured\":%llu,\"uncertain\":%llu,"
			"\"left_out\":%llu,\"ended\":%llu",
			(int)getpid(), (unsigned long long)process.unmeasured,
			(unsigned long long)process.uncertain, (unsigned long long)process.left_out,
			(unsigned long long)qcul_trace_now());
		write_memory_that_left();
		fprintf(process.out, ",\"own_commands\":{");
		for (i = 0; i < QCU_OP_COUNT; i++) {
			if (!process.own[i])
				continue;
			fprintf(process.out, "%s\"%s\":%llu", comma, names[i],
				(unsigned long long)process.own[i]);
			comma = ",";
		}
		fprintf(process.out, "}}}\n");
		if (fclose(process.out))
			stop(strerror(errno));
		process.out = NULL;
	}
	pthread_mutex_unlock(&at_fork.lock);
}
