// SPDX-License-Identifier: GPL-2.0-or-later
/* The metrics as text: what the counts of sessions, and of sessions that are over, add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/host/board.h"

static struct board *board;
static struct usage *usage;
static char *text;
static bool gpu_time = true; /* it is known */

static int set_up(void **state)
{
	(void)state;
	board = board_new(-1);
	usage = usage_new(-1);
	return !board || !usage;
}

static int tear_down(void **state)
{
	(void)state;
	board_free(board);
	usage_free(usage);
	free(text);
	text = NULL;
	return 0;
}

static void print(const struct board *b, const struct usage *u)
{
	const struct board_device dev = {
		.name = "vm\"1\\", .gpu = "soft", .gpu_time = gpu_time, .pid = 77, .sessions = 5};
	size_t len;
	FILE *out;

	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
	board_print(out, &dev, b, u);
	assert_int_equal(fclose(out), 0);
}

/* The text has exactly this line. */
static void has(const char *line)
{
	const char *at = strstr(text, line);
	size_t n = strlen(line);

	if (!at || (at != text && at[-1] != '\n') || at[n] != '\n')
		fail_msg("no line %s in\n%s", line, text);
}

static void has_not(const char *part)
{
	if (strstr(text, part))
		fail_msg("there is %s in\n%s", part, text);
}

#define OF_1 "{session=\"1\",pid=\"40\",program=\"train\""

static void without_a_vm(void **state)
{
	(void)state;
	print(NULL, NULL);
	has("qcuda_connected 0");
	has("qcuda_sessions 0");
	has("qcuda_sessions_limit 5");
	has("qcuda_launches_total 0");
	has_not("qcuda_session_launches_total{");
}

/* What a guest or an operator named cannot make a label, or a line, of its own. */
static void names_are_quoted(void **state)
{
	char line[128];

	(void)state;
	board_open(board, 3, 9, "a\"} 1\nx\\\x7f");
	print(board, usage);
	snprintf(line, sizeof(line),
		 "qcuda_device{vm=\"vm\\\"1\\\\\",pid=\"77\",gpu=\"soft\",wire=\"%u\"} 1",
		 QCU_WIRE_VERSION);
	has(line);
	has("qcuda_session_launches_total{session=\"3\",pid=\"9\",program=\"a\\\"} 1?x\\\\?\"} 0");
}

static void long_names_are_cut(void **state)
{
	(void)state;
	board_open(board, 3, 9, "0123456789abcdefXYZ");
	print(board, usage);
	has("qcuda_session_launches_total{session=\"3\",pid=\"9\",program=\"0123456789abcdef\"} 0");
}

static void counts_of_a_session(void **state)
{
	struct counts *c = &usage->sessions[1].counts;

	(void)state;
	board_open(board, 1, 40, "train");
	count_add(c, COUNT_H2D_WINDOW, 100);
	count_add(c, COUNT_H2D_WINDOW, 11);
	count_add(c, COUNT_D2H_STAGED, 7);
	count_add(c, COUNT_LAUNCHES, 3);
	count_call(c, QCU_OP_LAUNCH);
	count_call(c, QCU_OP_LAUNCH);
	count_add(c, COUNT_REGISTERED, 4096);
	count_add(c, COUNT_CHUNKS, 2);
	count_add(c, COUNT_H2D, 55); /* only for STATS */
	atomic_store(&usage->sessions[1].memory[2], 640);
	atomic_store(&usage->sessions[1].used[LIMIT_MAPPED], 8192);
	atomic_store(&usage->sessions[1].refused[LIMIT_STREAMS], 4);
	print(board, usage);
	has("qcuda_connected 1");
	has("qcuda_sessions 1");
	has("qcuda_sessions_opened_total 1");
	has("qcuda_session_copied_bytes_total" OF_1 ",direction=\"h2d\",path=\"chunks\"} 111");
	has("qcuda_copied_bytes_total{direction=\"h2d\",path=\"chunks\"} 111");
	has("qcuda_copied_bytes_total{direction=\"d2h\",path=\"staged\"} 7");
	has("qcuda_copied_bytes_total{direction=\"d2h\",path=\"pages\"} 0");
	has("qcuda_session_launches_total" OF_1 "} 3");
	has("qcuda_session_calls_total" OF_1 ",command=\"LAUNCH\"} 2");
	has("qcuda_calls_total{command=\"LAUNCH\"} 2");
	has_not("command=\"MALLOC\"");
	has("qcuda_registered_bytes 4096");
	has("qcuda_chunks 2");
	has("qcuda_mapped_bytes 8192");
	has("qcuda_session_device_memory_bytes" OF_1 ",gpu=\"2\"} 640");
	has("qcuda_device_memory_bytes{gpu=\"2\"} 640");
	has("qcuda_device_memory_bytes{gpu=\"0\"} 0");
	has("qcuda_session_refused_total" OF_1 ",limit=\"streams\"} 4");
	has("qcuda_refused_total{limit=\"streams\"} 4");
	has("# TYPE qcuda_copied_bytes_total counter");
	has("# TYPE qcuda_session_registered_bytes gauge");
	has_not("} 55\n");
}

/* What the VM's counters say never goes back. What is there now goes with the session. */
static void counts_of_sessions_that_are_over(void **state)
{
	(void)state;
	board_open(board, 1, 40, "train");
	count_add(&usage->sessions[1].counts, COUNT_D2D, 10);
	count_add(&usage->sessions[1].counts, COUNT_CHUNKS, 10);
	count_call(&usage->sessions[1].counts, QCU_OP_FREE);
	atomic_store(&usage->sessions[1].refused[LIMIT_EVENTS], 1);
	board_end(board, usage, 1);
	board_open(board, 1, 41, "again");
	count_add(&usage->sessions[1].counts, COUNT_D2D, 5);
	count_add(&usage->sessions[1].counts, COUNT_CHUNKS, 3);
	print(board, usage);
	has("qcuda_sessions 1");
	has("qcuda_sessions_opened_total 2");
	has("qcuda_copied_bytes_total{direction=\"d2d\",path=\"device\"} 15");
	has("qcuda_session_copied_bytes_total{session=\"1\",pid=\"41\",program=\"again\","
	    "direction=\"d2d\",path=\"device\"} 5");
	has("qcuda_chunks 3");
	has("qcuda_calls_total{command=\"FREE\"} 1");
	has("qcuda_refused_total{limit=\"events\"} 1");
	has_not("train");
}

/* Each metric has one TYPE line, before all its lines. */
/* How long a session's kernels have kept GPUs busy: as the mirror counts it, within bounds. */
static void time_of_kernels(void **state)
{
	_Atomic uint64_t *v = &usage->sessions[2].busy[0][BUSY_KERNELS].v;
	unsigned int i;

	(void)state;
	board_open(board, 2, 22, "two");
	board->session[2].began = busy_now() - 7000000;
	print(board, usage);
	has("qcuda_gpu_seconds_total 0.000000");
	atomic_store(v, 1500000 << 1);
	atomic_store(&usage->sessions[2].busy[1][BUSY_KERNELS].v, 20 << 1);
	atomic_store(&usage->sessions[2].busy[0][BUSY_COPIES].v, 9 << 1);
	print(board, usage);
	has("qcuda_gpu_seconds_total 1.500020");
	has("qcuda_session_gpu_seconds_total{session=\"2\",pid=\"22\",program=\"two\"} 1.500020");
	board_end(board, usage, 2);
	/* Of the next session in this place all is new. */
	board_open(board, 2, 23, "next");
	print(board, usage);
	has("qcuda_gpu_seconds_total 1.500020");
	has("qcuda_session_gpu_seconds_total{session=\"2\",pid=\"23\",program=\"next\"} 0.000000");
	/* A mirror that lies is busy for no longer than its session has lasted. */
	board->session[2].began = busy_now() - 3000000;
	for (i = 0; i < USAGE_DEVICES; i++)
		atomic_store(&usage->sessions[2].busy[i][BUSY_KERNELS].v, 1);
	assert_in_range(board_gpu_time(board, usage, 2), USAGE_DEVICES * 3000000ull,
			USAGE_DEVICES * 60000000ull);
	/* Where NVML tells, nothing counts that a mirror has counted. */
	board_add_gpu_time(board, 2, 250000);
	print(board, usage);
	has("qcuda_gpu_seconds_total 1.750020");
	has("qcuda_session_gpu_seconds_total{session=\"2\",pid=\"23\",program=\"next\"} 0.250000");
	board_end(board, usage, 2);
	print(board, usage);
	has("qcuda_gpu_seconds_total 1.750020");
	gpu_time = false;
	print(board, usage);
	gpu_time = true;
	has_not("gpu_seconds_total 1");
	has("# TYPE qcuda_gpu_seconds_total counter");
}

static void lines_of_a_metric_are_together(void **state)
{
	char *line, *rest, name[128] = "";

	(void)state;
	board_open(board, 1, 40, "train");
	board_open(board, 2, 41, "other");
	print(board, usage);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, "# TYPE ", 7)) {
			size_t n = strcspn(line + 7, " ");

			assert_true(n < sizeof(name));
			memcpy(name, line + 7, n);
			name[n] = 0;
			assert_null(strstr(rest, line));
			continue;
		}
		if (strncmp(line, name, strlen(name)) || !strchr("{ ", line[strlen(name)]))
			fail_msg("%s stands below %s", line, name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(without_a_vm),
		TEST(names_are_quoted),
		TEST(long_names_are_cut),
		TEST(counts_of_a_session),
		TEST(counts_of_sessions_that_are_over),
		TEST(time_of_kernels),
		TEST(lines_of_a_metric_are_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
