// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The metrics as text. docs/vm/tools.md explains each of them. The lines of a metric stand
 * together, as the format wants it: first the VM's, then those of each session under a name of
 * their own, so that no sum counts anything twice.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/host/board.h"

/* How often a copy is tried anew that met a change. The main process changes it in no time. */
#define TRIES 1000

/* A copy of all counts at one moment. The last session stands for the VM. */
#define ALL (QCU_MAX_SESSIONS + 1)

struct numbers {
	uint64_t calls[QCU_OP_COUNT];
	uint64_t n[COUNT_KINDS];
	uint64_t refused[LIMIT_KINDS];
	uint64_t used[LIMIT_KINDS];
	uint64_t memory[USAGE_DEVICES];
	uint64_t gpu_time;
};

struct view {
	FILE *out;
	const struct board_device *dev;
	uint64_t opened;
	struct board_session session[QCU_MAX_SESSIONS + 1];
	struct numbers of[ALL + 1];
};

static const struct {
	const char *metric, *labels;
	bool gauge;
} counts[COUNT_KINDS] = {
#define COUNTER			      false
#define GAUGE			      true
#define X(NAME, kind, metric, labels) {metric, labels, kind},
	COUNTS(X)
#undef X
};

static const char *const ops[QCU_OP_COUNT] = {
#define X(n, NAME, ...) [n] = #NAME,
	QCU_COMMANDS(X)
#undef X
};

static void add_counts_of_session(struct numbers *sum, const struct session_usage *p,
				  struct numbers *own)
{
	unsigned int i;

	for (i = 0; i < QCU_OP_COUNT; i++)
		sum->calls[i] += own->calls[i] = atomic_load(&p->counts.calls[i]);
	for (i = 0; i < COUNT_KINDS; i++)
		sum->n[i] += own->n[i] = atomic_load(&p->counts.n[i]);
	for (i = 0; i < LIMIT_KINDS; i++) {
		sum->refused[i] += own->refused[i] = atomic_load(&p->refused[i]);
		sum->used[i] += own->used[i] = atomic_load(&p->used[i]);
	}
	for (i = 0; i < USAGE_DEVICES; i++)
		sum->memory[i] += own->memory[i] = atomic_load(&p->memory[i]);
}

static void copy_board(struct view *v, const struct board *b, const struct usage *u)
{
	struct numbers *sum = &v->of[ALL];
	unsigned int i;

	memset(sum, 0, sizeof(*sum));
	v->opened = b->opened;
	memcpy(v->session, b->session, sizeof(v->session));
	memcpy(sum->calls, b->past.calls, sizeof(sum->calls));
	memcpy(sum->n, b->past.n, sizeof(sum->n));
	memcpy(sum->refused, b->past.refused, sizeof(sum->refused));
	/* Of what a session has now nothing is left when it is over. */
	for (i = 0; i < COUNT_KINDS; i++)
		if (counts[i].gauge)
			sum->n[i] = 0;
	sum->gpu_time = b->past.gpu_time;
	for (i = 0; i <= QCU_MAX_SESSIONS; i++) {
		add_counts_of_session(sum, &u->sessions[i], &v->of[i]);
		sum->gpu_time += v->of[i].gpu_time = board_gpu_time(b, u, i);
	}
}

static void read_board(struct view *v, const struct board *b, const struct usage *u)
{
	unsigned int tries;
	uint32_t before;

	for (tries = 0; tries < TRIES; tries++) {
		before = atomic_load_explicit(&b->changes, memory_order_acquire);
		if (before & 1)
			continue;
		copy_board(v, b, u);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&b->changes, memory_order_relaxed) == before)
			return;
	}
	copy_board(v, b, u);
}

static void head(struct view *v, const char *prefix, const char *metric, bool gauge)
{
	fprintf(v->out, "# TYPE qcuda_%s%s %s\n", prefix, metric, gauge ? "gauge" : "counter");
}

/* A guest chose the program's name. The main process has made it printable. */
static void label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text < ' ' || *text > '~' ? '?' : *text, out);
	}
}

static void print_text(struct view *v, unsigned int of, const char *metric, const char *labels,
		       const char *number)
{
	const struct board_session *s = of == ALL ? NULL : &v->session[of];

	fprintf(v->out, "qcuda_%s%s", s ? "session_" : "", metric);
	if (s) {
		fprintf(v->out, "{session=\"%u\",pid=\"%u\",program=\"", of, s->guest_pid);
		label(v->out, s->program);
		fprintf(v->out, "\"%s%s}", *labels ? "," : "", labels);
	} else if (*labels) {
		fprintf(v->out, "{%s}", labels);
	}
	fprintf(v->out, " %s\n", number);
}

static void print_metric(struct view *v, unsigned int of, const char *metric, const char *labels,
			 uint64_t n)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRIu64, n);
	print_text(v, of, metric, labels, number);
}

static bool is_all_or_live(const struct view *v, unsigned int of)
{
	return of == ALL || (of && v->session[of].live);
}

/* Calls f for the VM and then for each session: the lines of one metric. */
typedef void lines(struct view *v, unsigned int of, unsigned int what);

static void both(struct view *v, const char *metric, bool gauge, lines *f, unsigned int what)
{
	unsigned int i;

	head(v, "", metric, gauge);
	f(v, ALL, what);
	head(v, "session_", metric, gauge);
	for (i = 1; i <= QCU_MAX_SESSIONS; i++)
		if (is_all_or_live(v, i))
			f(v, i, what);
}

/* All counts whose metric is that of the first one. */
static void count_lines(struct view *v, unsigned int of, unsigned int first)
{
	unsigned int i;

	for (i = first; i < COUNT_KINDS; i++)
		if (counts[i].metric && !strcmp(counts[i].metric, counts[first].metric))
			print_metric(v, of, counts[i].metric, counts[i].labels, v->of[of].n[i]);
}

static void call_lines(struct view *v, unsigned int of, unsigned int unused)
{
	char labels[64];
	unsigned int i;

	(void)unused;
	for (i = 0; i < QCU_OP_COUNT; i++) {
		if (!ops[i] || !v->of[of].calls[i])
			continue;
		snprintf(labels, sizeof(labels), "command=\"%s\"", ops[i]);
		print_metric(v, of, "calls_total", labels, v->of[of].calls[i]);
	}
}

static void memory_lines(struct view *v, unsigned int of, unsigned int unused)
{
	char labels[32];
	unsigned int i;

	(void)unused;
	for (i = 0; i < USAGE_DEVICES; i++) {
		if (i && !v->of[of].memory[i])
			continue;
		snprintf(labels, sizeof(labels), "gpu=\"%u\"", i);
		print_metric(v, of, "device_memory_bytes", labels, v->of[of].memory[i]);
	}
}

static void print_seconds(struct view *v, unsigned int of, const char *metric, uint64_t us)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
	print_text(v, of, metric, "", number);
}

static void time_lines(struct view *v, unsigned int of, unsigned int unused)
{
	(void)unused;
	if (v->dev->gpu_time)
		print_seconds(v, of, "gpu_seconds_total", v->of[of].gpu_time);
}

static void turn_lines(struct view *v, unsigned int of, unsigned int unused)
{
	(void)unused;
	print_seconds(v, of, "turn_wait_seconds_total", v->of[of].n[COUNT_TURNS_US]);
}

static void room_lines(struct view *v, unsigned int of, unsigned int unused)
{
	(void)unused;
	print_seconds(v, of, "room_wait_seconds_total", v->of[of].n[COUNT_ROOM_US]);
}

static void refused_lines(struct view *v, unsigned int of, unsigned int unused)
{
	char labels[64];
	unsigned int i;

	(void)unused;
	for (i = 0; i < LIMIT_KINDS; i++) {
		snprintf(labels, sizeof(labels), "limit=\"%s\"", limit_name((enum limit)i));
		if (of == ALL || v->of[of].refused[i])
			print_metric(v, of, "refused_total", labels, v->of[of].refused[i]);
	}
}

static void mapped_lines(struct view *v, unsigned int of, unsigned int unused)
{
	(void)unused;
	print_metric(v, of, "mapped_bytes", "", v->of[of].used[LIMIT_MAPPED]);
}

static void since_lines(struct view *v, unsigned int of, unsigned int unused)
{
	(void)unused;
	print_metric(v, of, "start_time_seconds", "", v->session[of].since);
}

static void sessions(struct view *v, const struct board_device *dev)
{
	unsigned int i, n = 0;

	for (i = 1; i <= QCU_MAX_SESSIONS; i++)
		n += v->session[i].live;
	head(v, "", "sessions", true);
	print_metric(v, ALL, "sessions", "", n);
	head(v, "", "sessions_limit", true);
	print_metric(v, ALL, "sessions_limit", "", dev->sessions);
	head(v, "", "sessions_opened_total", false);
	print_metric(v, ALL, "sessions_opened_total", "", v->opened);
	head(v, "session_", "start_time_seconds", true);
	for (i = 1; i <= QCU_MAX_SESSIONS; i++)
		if (is_all_or_live(v, i))
			since_lines(v, i, 0);
}

void board_print(FILE *out, const struct board_device *dev, const struct board *b,
		 const struct usage *u)
{
	struct view *v = calloc(1, sizeof(*v));
	unsigned int i;

	if (!v)
		return;
	v->out = out;
	v->dev = dev;
	if (b && u)
		read_board(v, b, u);
	head(v, "", "device", true);
	fprintf(out, "qcuda_device{vm=\"");
	label(out, dev->name);
	fprintf(out, "\",pid=\"%d\",gpu=\"%s\",wire=\"%u\"} 1\n", dev->pid, dev->gpu,
		QCU_WIRE_VERSION);
	head(v, "", "connected", true);
	print_metric(v, ALL, "connected", "", b && u);
	sessions(v, dev);
	for (i = 0; i < COUNT_KINDS; i++)
		if (counts[i].metric &&
		    (!i || !counts[i - 1].metric || strcmp(counts[i].metric, counts[i - 1].metric)))
			both(v, counts[i].metric, counts[i].gauge, count_lines, i);
	both(v, "calls_total", false, call_lines, 0);
	both(v, "device_memory_bytes", true, memory_lines, 0);
	both(v, "gpu_seconds_total", false, time_lines, 0);
	both(v, "turn_wait_seconds_total", false, turn_lines, 0);
	both(v, "room_wait_seconds_total", false, room_lines, 0);
	both(v, "mapped_bytes", true, mapped_lines, 0);
	both(v, "refused_total", false, refused_lines, 0);
	free(v);
}
