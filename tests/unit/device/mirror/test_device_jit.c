// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The options of the compiler, and what it says, in a mirror on the software GPU. Bad ones first:
 * options that do not exist, images with errors, results that nobody left. Each error's text names
 * line and reason, and goes to the thread that asked.
 */
#include <stdio.h>

#include "qcu-device/base/limits.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

#define HEAD ".version 8.3\n.target sm_75\n.address_size 64\n"

static const char good[] = HEAD ".visible .entry k()\n{\nret;\n}\n";
static const char bad[] = HEAD ".visible .entry k()\n{\n.reg .b32 %a;\nfrobnicate.u32 %a, 1;\n"
			       "ret;\n}\n";
static const char undefined[] = HEAD ".visible .entry k()\n{\n.reg .b32 %a;\n\n"
				     "mov.u32 %a, %b;\nret;\n}\n";
static const char nonsense[] = "this is no code";

static struct limits limits;

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};

	(void)state;
	memset(&limits, 0, sizeof(limits));
	limits.session[LIMIT_MODULE_BYTES] = 1 << 20;
	limits_default(&limits);
	cfg.options.vram = 64 << 20;
	cfg.limits = &limits;
	return mir_create(&mirror, &cfg);
}

static int load_as(uint32_t tid, uint32_t module, const void *image, size_t len,
		   const struct qcu_jit *jit)
{
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, len}, .module = module);
	const struct qcu_seg seg = {(uintptr_t)image, len};

	c.tid = tid;
	c.flags = QCU_F_SEGS;
	c.module_load.jit = *jit;
	return ask_with(&c, NULL, &seg, 1);
}

static int load(uint32_t module, const char *ptx, uint32_t flags)
{
	return load_as(1, module, ptx, strlen(ptx) + 1, &(struct qcu_jit){.flags = flags});
}

static int unload(uint32_t module)
{
	return ask(CMD(MODULE_UNLOAD, module_unload, .module = module));
}

/* Reads at most `room` bytes, and returns how many there are. */
static uint64_t result(uint32_t tid, uint32_t what, char *text, size_t room, uint32_t forget)
{
	struct qCUcmd c =
		CMD(RESULT_READ, result_read, .buf = {1, room}, .what = what, .forget = forget);
	const struct qcu_seg seg = {(uintptr_t)text, room};

	memset(text, 0, room);
	c.tid = tid;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	return c.result_read.bytes;
}

static void bad_options(void **state)
{
	static const struct qcu_jit jits[] = {
		{.flags = QCU_JIT_FLAGS + 1},
		{.flags = 1u << 31},
		{.rsvd = 1},
		{.flags = QCU_JIT_OPTIMIZE, .optimize = 5},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(jits) / sizeof(jits[0]); i++)
		assert_int_equal(load_as(1, 2, good, sizeof(good), &jits[i]), QCU_ERR_InvalidValue);
	assert_int_equal(load(2, good, QCU_JIT_FLAGS), 0);
	assert_int_equal(load(2, good, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(unload(2), 0);
}

static void bad_reads(void **state)
{
	struct qCUcmd c = CMD(RESULT_READ, result_read, .what = QCU_RESULTS);

	(void)state;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	c = CMD(RESULT_READ, result_read, .forget = 2);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	c = CMD(RESULT_READ, result_read, .what = QCU_RESULT_DATA, .bytes = 1);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), REFUSED);
	c = CMD(RESULT_READ, result_read, .what = QCU_RESULT_DATA);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.result_read.bytes, 0);
}

static void errors_have_line_and_reason(void **state)
{
	char text[400], part[8];
	uint64_t n;

	(void)state;
	assert_int_equal(load(2, bad, QCU_JIT_LOGS), QCU_ERR_InvalidPtx);
	n = result(1, QCU_RESULT_ERROR, text, sizeof(text), 0);
	assert_int_equal(n, strlen(text));
	assert_non_null(strstr(text, "line 7"));
	assert_non_null(strstr(text, "frobnicate"));
	/* The length is that of all of it, also when there is no room for it. */
	assert_int_equal(result(1, QCU_RESULT_ERROR, part, sizeof(part), 0), n);
	assert_memory_equal(part, text, sizeof(part));
	assert_int_equal(result(1, QCU_RESULT_INFO, text, sizeof(text), 0), 0);

	assert_int_equal(load(2, undefined, QCU_JIT_LOGS), QCU_ERR_InvalidPtx);
	result(1, QCU_RESULT_ERROR, text, sizeof(text), 0);
	assert_non_null(strstr(text, "line 8"));
	assert_non_null(strstr(text, "%b"));

	assert_int_equal(load(2, nonsense, QCU_JIT_LOGS), QCU_ERR_InvalidKernelImage);
	result(1, QCU_RESULT_ERROR, text, sizeof(text), 1);
	assert_non_null(strstr(text, "neither"));
	assert_int_equal(result(1, QCU_RESULT_ERROR, text, sizeof(text), 0), 0);
}

/* Who has no log reads the reason on its stderr, and has no result. */
static void without_a_log(void **state)
{
	struct qCUcmd c = CMD(PRINT_READ, print_read, .buf = {1, 400}, .channel = QCU_PRINT_ERR);
	char text[400] = "";
	const struct qcu_seg seg = {(uintptr_t)text, sizeof(text)};

	(void)state;
	assert_int_equal(load(2, bad, 0), QCU_ERR_InvalidPtx);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	assert_non_null(strstr(text, "line 7"));
	assert_int_equal(result(1, QCU_RESULT_ERROR, text, sizeof(text), 0), 0);
}

static void each_thread_has_its_own(void **state)
{
	const struct qcu_jit jit = {.flags = QCU_JIT_LOGS};
	char text[400];

	(void)state;
	assert_int_equal(load_as(7, 2, bad, sizeof(bad), &jit), QCU_ERR_InvalidPtx);
	assert_int_equal(load_as(8, 2, undefined, sizeof(undefined), &jit), QCU_ERR_InvalidPtx);
	result(7, QCU_RESULT_ERROR, text, sizeof(text), 0);
	assert_non_null(strstr(text, "frobnicate"));
	result(8, QCU_RESULT_ERROR, text, sizeof(text), 0);
	assert_non_null(strstr(text, "%b"));
	assert_int_equal(result(9, QCU_RESULT_ERROR, text, sizeof(text), 0), 0);
	/* A later load takes the place of an earlier one, whether it says anything or not. */
	assert_int_equal(load_as(7, 2, good, sizeof(good), &jit), 0);
	assert_int_equal(result(7, QCU_RESULT_ERROR, text, sizeof(text), 0), 0);
	assert_int_equal(unload(2), 0);
}

/* Texts of very many threads: the oldest go, and what is kept is counted. */
static void many_threads(void **state)
{
	const struct qcu_jit jit = {.flags = QCU_JIT_LOGS};
	char text[400];
	uint32_t tid;

	(void)state;
	for (tid = 1; tid <= 300; tid++)
		assert_int_equal(load_as(tid, 2, bad, sizeof(bad), &jit), QCU_ERR_InvalidPtx);
	assert_int_equal(result(1, QCU_RESULT_ERROR, text, sizeof(text), 0), 0);
	assert_int_not_equal(result(300, QCU_RESULT_ERROR, text, sizeof(text), 0), 0);
	for (tid = 1; tid <= 300; tid++)
		(void)result(tid, QCU_RESULT_ERROR, text, sizeof(text), 1);
	assert_int_equal(load_as(1, 2, good, (1 << 20) + 1, &jit), QCU_ERR_MemoryAllocation);
}

static void verbose(void **state)
{
	char text[400];

	(void)state;
	assert_int_equal(load(2, good, QCU_JIT_LOGS | QCU_JIT_VERBOSE), 0);
	result(1, QCU_RESULT_INFO, text, sizeof(text), 0);
	assert_non_null(strstr(text, "k: "));
	assert_non_null(strstr(text, "registers"));
	assert_int_equal(unload(2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_options, start, mirror_stop),
		cmocka_unit_test_setup_teardown(bad_reads, start, mirror_stop),
		cmocka_unit_test_setup_teardown(errors_have_line_and_reason, start, mirror_stop),
		cmocka_unit_test_setup_teardown(without_a_log, start, mirror_stop),
		cmocka_unit_test_setup_teardown(each_thread_has_its_own, start, mirror_stop),
		cmocka_unit_test_setup_teardown(many_threads, start, mirror_stop),
		cmocka_unit_test_setup_teardown(verbose, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
