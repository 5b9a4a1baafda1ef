// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The operator's list of libraries: how it is read, and that a library which is not in it is never
 * loaded, whichever command asks for it.
 */
#include <stdio.h>

#include "qcu-device/base/libraries.h"
#include "qcu-device/libs/libs.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

static struct be_ops ops;
static char opened[64];

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be;
	snprintf(opened, sizeof(opened), "%s", soname);
	snprintf(why, size, "not here");
	return NULL;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	(void)be;
	(void)library;
	(void)name;
	return NULL;
}

static int native(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	*stream = s;
	return 0;
}

static int start(void **state)
{
	struct mir_config cfg = {.session = 1, .ops = &ops};

	(void)state;
	fake_reset();
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	assert_true(libraries_parse("cublas,cufft", &cfg.refused_libraries));
	return mir_create(&mirror, &cfg);
}

static void lists(void **state)
{
	static const char *const bad[] = {
		"",	  ",",	   "cublas,", ",cublas",    "cublas,,cufft", "cublas ",
		"Cublas", "cubla", "nccl",    "all,cublas", "cublasx",	     "none,none"};
	uint32_t refused;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(libraries_parse(bad[i], &refused));
	assert_true(libraries_parse("all", &refused));
	assert_int_equal(refused, 0);
	assert_true(libraries_parse("none", &refused));
	assert_int_equal(refused, UINT32_MAX);
	assert_true(libraries_parse("cudnn,cusparse,cudnn", &refused));
	assert_int_equal(refused, ~(1u << QCU_LIB_CUDNN | 1u << QCU_LIB_CUSPARSE));
	assert_true(libraries_parse(libraries_names(), &refused));
	assert_int_equal(~refused, (1u << QCU_LIBS) - 2);
}

static int ask_library(uint16_t library, uint16_t function, uint64_t table, int *status,
		       char *reason)
{
	struct {
		struct qcu_lib_head head;
		uint64_t args[3];
		struct qcu_lib_answer answer;
		char reason[QCU_LIB_REASON];
	} msg = {
		.head = {.args = sizeof(msg.args), .outs = QCU_LIB_REASON},
		.args = {table, QCU_LIB_ROOM, QCU_LIB_REASON},
	};
	struct qcu_seg seg = {(uintptr_t)&msg, sizeof(msg)};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, sizeof(msg)}, .library = library,
			      .function = function);
	int rc;

	c.flags = QCU_F_SEGS;
	opened[0] = 0;
	rc = ask_with(&c, NULL, &seg, 1);
	*status = msg.answer.status;
	memcpy(reason, msg.reason, sizeof(msg.reason));
	return rc;
}

static void only_what_is_named(void **state)
{
	static const uint16_t functions[] = {QCU_LIB_CREATE, QCU_LIB_DESTROY, 0};
	char reason[QCU_LIB_REASON];
	int status;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		assert_int_equal(ask_library(QCU_LIB_CURAND, functions[i], 0, &status, reason),
				 QCU_ERR_NotSupported);
		assert_string_equal(opened, "");
	}
	assert_int_equal(
		ask_library(QCU_LIB_CURAND, QCU_LIB_OPEN, lib_curand.table, &status, reason), 0);
	assert_int_equal(status, QCU_LIB_MISSING);
	assert_non_null(strstr(reason, "the operator of the host does not allow libcurand.so.10"));
	assert_string_equal(opened, "");
	assert_int_equal(ask_library(QCU_LIB_CUFFT, QCU_LIB_CREATE, 0, &status, reason),
			 QCU_ERR_NotSupported);
	assert_string_equal(opened, "libcufft.so.12");
}

/* Each attempt to load a library costs a gap between addresses, of which there are few. */
static void not_tried_again(void **state)
{
	char reason[QCU_LIB_REASON];
	int status;

	(void)state;
	assert_int_equal(ask_library(QCU_LIB_CUFFT, QCU_LIB_OPEN, lib_cufft.table, &status, reason),
			 0);
	assert_int_equal(status, QCU_LIB_MISSING);
	assert_string_equal(opened, "libcufft.so.12");
	assert_string_equal(reason, "not here");
	assert_int_equal(ask_library(QCU_LIB_CUFFT, QCU_LIB_OPEN, lib_cufft.table, &status, reason),
			 0);
	assert_int_equal(status, QCU_LIB_MISSING);
	assert_string_equal(opened, "");
	assert_non_null(strstr(reason, "the host has no libcufft.so.12"));
	assert_int_equal(
		ask_library(QCU_LIB_CUBLAS, QCU_LIB_OPEN, lib_cublas.table, &status, reason), 0);
	assert_string_equal(opened, "libcublas.so.13");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test_setup_teardown(only_what_is_named, start, mirror_stop),
		cmocka_unit_test_setup_teardown(not_tried_again, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
