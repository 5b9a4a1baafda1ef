// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the sandbox costs: cost [ROUNDS [DEVICE-ARGUMENT]...]
 *
 * Two devices run side by side, one of them without a sandbox, and get the same commands in turns.
 * Each round measures a few of every kind, and which device comes first changes from round to
 * round. Prints the medians, and the median of the rounds' ratios. Not part of `make test`: what it
 * prints is right on a machine that does nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

#define ROUNDS_MAX 10000u
#define SESSION	   1
#define BYTES	   8192u
#define DEVICE	   "../../qcu-device/qcu-device" /* beside this program */

static struct scene scene[2]; /* [1]: with the sandbox */
static uint64_t device[2];

static void must(int status, const char *what)
{
	if (status)
		die("%s: %d", what, status);
}

static void copy(struct scene *s, bool up, uint64_t ptr)
{
	const struct qcu_seg seg = {GUEST_SPACE(SESSION), BYTES};

	must(cmd_copy(&s->g, SESSION, 1, up, ptr, &seg, 1), "copy");
}

static void copy_up(struct scene *s, uint64_t ptr)
{
	copy(s, true, ptr);
}

static void copy_down(struct scene *s, uint64_t ptr)
{
	copy(s, false, ptr);
}

static void launch(struct scene *s, uint64_t ptr)
{
	must(cmd_launch(&s->g, SESSION, GOOD_ID, QCU_STREAM_LEGACY, 1, ptr, 64), "launch");
	must(cmd_simple(&s->g, SESSION, QCU_OP_DEVICE_SYNC, 1), "synchronize");
}

static void allocate(struct scene *s, uint64_t ptr)
{
	must(cmd_malloc(&s->g, SESSION, BYTES, &ptr), "malloc");
	must(cmd_free(&s->g, SESSION, 1, ptr), "free");
}

static void open_session(struct scene *s, uint64_t ptr)
{
	(void)ptr;
	must(guest_open(&s->g, SESSION + 1), "open");
	must(cmd_simple(&s->g, SESSION + 1, QCU_OP_DEVICE_SYNC, 1), "first command");
	must(guest_close(&s->g, SESSION + 1), "close");
}

static const struct {
	const char *name;
	void (*run)(struct scene *s, uint64_t ptr);
	unsigned int times; /* in one round */
} kind[] = {
	{"copy of 8 KiB up", copy_up, 50},
	{"copy of 8 KiB down", copy_down, 50},
	{"launch, and wait", launch, 50},
	{"malloc and free", allocate, 50},
	{"session from open to close", open_session, 1},
};

#define KINDS (sizeof(kind) / sizeof(kind[0]))

static void start(unsigned int i, struct host_options o)
{
	struct scene *s = &scene[i];
	unsigned int n = 0;

	while (o.arg[n])
		n++;
	if (!i)
		o.arg[n] = "--no-sandbox";
	host_start(&s->h, &o);
	guest_start(&s->g, s->h.sock);
	must(guest_open(&s->g, SESSION), "open");
	memcpy(s->g.ram + GUEST_SPACE(SESSION), plain_image, plain_image_bytes);
	must(cmd_load(&s->g, SESSION, GOOD_ID, GUEST_SPACE(SESSION), plain_image_bytes), "load");
	must(cmd_find(&s->g, SESSION, GOOD_ID, GOOD_ID, "k"), "kernel");
	must(cmd_malloc(&s->g, SESSION, BYTES, &device[i]), "malloc");
}

/* Microseconds of one. */
static double measure(unsigned int k, unsigned int i)
{
	struct timespec from, to;
	unsigned int n;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (n = 0; n < kind[k].times; n++)
		kind[k].run(&scene[i], device[i]);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e6 +
		(double)(to.tv_nsec - from.tv_nsec) / 1e3) /
	       kind[k].times;
}

static int smaller(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned int n)
{
	qsort(values, n, sizeof(*values), smaller);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int main(int argc, char **argv)
{
	static double us[KINDS][2][ROUNDS_MAX], ratio[KINDS][ROUNDS_MAX];
	unsigned int rounds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 500, r, k, i;
	struct host_options o = {.quiet = true};
	static char program[4096];

	if (!rounds || rounds > ROUNDS_MAX || argc > HOST_ARGS)
		die("usage: %s [ROUNDS [DEVICE-ARGUMENT]...]; at most %u rounds", argv[0],
		    ROUNDS_MAX);
	if (readlink("/proc/self/exe", program, sizeof(program) - sizeof(DEVICE)) < 0)
		die("/proc is not there");
	strcpy(strrchr(program, '/') + 1, DEVICE);
	o.program = program;
	for (i = 2; i < (unsigned int)argc; i++)
		o.arg[i - 2] = argv[i];
	for (i = 0; i < 2; i++)
		start(i, o);
	for (r = 0; r < rounds; r++) {
		for (k = 0; k < KINDS; k++) {
			for (i = 0; i < 2; i++)
				us[k][(r + i) % 2][r] = measure(k, (r + i) % 2);
			ratio[k][r] = us[k][1][r] / us[k][0][r];
		}
	}
	printf("%u rounds, medians       without    with  ratio\n", rounds);
	for (k = 0; k < KINDS; k++)
		printf("%-26s %8.2f %8.2f us  %.4f\n", kind[k].name, median(us[k][0], rounds),
		       median(us[k][1], rounds), median(ratio[k], rounds));
	for (i = 0; i < 2; i++) {
		guest_stop(&scene[i].g);
		if (!host_stop(&scene[i].h))
			host_show(&scene[i].h);
	}
	return 0;
}
