// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Links in a mirror on the software GPU. Bad ones first: numbers that name nothing, images that are
 * not what the guest says, errors in PTX, what is defined twice or not at all, limits. Then two
 * units become one image, which is a module like any other.
 */
#include <stdio.h>

#include "qcu-device/base/limits.h"
#include "qcu-device/mirror/save.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

#define HEAD ".version 8.3\n.target sm_75\n.address_size 64\n"
#define TWICE                                                         \
	".visible .func (.param .b32 r) twice(.param .b32 v)\n{\n"    \
	".reg .b32 %a;\nld.param.b32 %a, [v];\nadd.u32 %a, %a, %a;\n" \
	"st.param.b32 [r], %a;\nret;\n}\n"

static const char defines[] = HEAD ".visible .global .align 4 .u32 base = 5;\n" TWICE;
static const char uses[] = HEAD ".extern .global .align 4 .u32 base;\n"
				".extern .func (.param .b32 r) twice(.param .b32 v);\n"
				".visible .entry k(.param .u64 p)\n{\n"
				".reg .b64 %p;\n.reg .b32 %a;\n"
				"ld.param.u64 %p, [p];\nld.global.u32 %a, [base];\n"
				"{\n.param .b32 r;\n.param .b32 v;\nst.param.b32 [v], %a;\n"
				"call (r), twice, (v);\nld.param.b32 %a, [r];\n}\n"
				"st.global.u32 [%p], %a;\nret;\n}\n";
static const char bad[] = HEAD ".visible .entry k()\n{\n.reg .b32 %a;\nmov.u32 %a, %b;\nret;\n}\n";
static const char elf[] = "\177ELF and nothing behind it";

static struct limits limits;

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};

	(void)state;
	memset(&limits, 0, sizeof(limits));
	limits.session[LIMIT_MODULE_BYTES] = 1 << 20;
	limits.session[LIMIT_MODULES] = 4;
	limits_default(&limits);
	cfg.options.vram = 64 << 20;
	cfg.limits = &limits;
	return mir_create(&mirror, &cfg);
}

static int create(uint32_t link)
{
	return ask(CMD(LINK_CREATE, link_create, .link = link, .jit = {.flags = QCU_JIT_LOGS}));
}

static int add_bytes(uint32_t link, uint32_t type, const void *image, size_t len)
{
	struct qCUcmd c = CMD(LINK_ADD, link_add, .buf = {1, len}, .link = link, .type = type);
	const struct qcu_seg seg = {(uintptr_t)image, len};

	c.flags = len ? QCU_F_SEGS : 0;
	return ask_with(&c, NULL, &seg, len ? 1 : 0);
}

static int add(uint32_t link, const char *ptx)
{
	return add_bytes(link, QCU_LINK_PTX, ptx, strlen(ptx) + 1);
}

static int complete(uint32_t link, uint64_t *bytes)
{
	struct qCUcmd c = CMD(LINK_COMPLETE, link_complete, .link = link);
	int rc = ask_with(&c, NULL, NULL, 0);

	*bytes = c.link_complete.bytes;
	return rc;
}

static int destroy(uint32_t link)
{
	return ask(CMD(LINK_DESTROY, link_destroy, .link = link));
}

static uint64_t result(uint32_t what, void *to, size_t room)
{
	struct qCUcmd c = CMD(RESULT_READ, result_read, .buf = {1, room}, .what = what);
	const struct qcu_seg seg = {(uintptr_t)to, room};

	memset(to, 0, room);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	return c.result_read.bytes;
}

static void numbers(void **state)
{
	struct qCUcmd c = CMD(LINK_COMPLETE, link_complete, .link = 2, .rsvd = 1);
	uint64_t bytes;

	(void)state;
	assert_int_equal(add(2, defines), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(complete(2, &bytes), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(destroy(2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(1u << 16), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2), 0);
	assert_int_equal(create(2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	assert_int_equal(complete(2, &bytes), QCU_ERR_InvalidValue); /* nothing is in it */
	assert_int_equal(destroy(2), 0);
	assert_int_equal(destroy(2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(add(2, defines), QCU_ERR_InvalidResourceHandle);
	/* The options are checked as those of a module. */
	c = CMD(LINK_CREATE, link_create, .link = 2, .jit = {.rsvd = 1});
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	assert_int_equal(create(2), 0);
	c = CMD(LINK_ADD, link_add, .buf = {1, 4}, .link = 2, .type = 1,
		.jit = {.flags = QCU_JIT_LOGS});
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &(struct qcu_seg){(uintptr_t)elf, 4}, 1),
			 QCU_ERR_InvalidValue);
	assert_int_equal(destroy(2), 0);
}

static void images_are_what_they_are_called(void **state)
{
	char text[400];
	uint32_t type;

	(void)state;
	for (type = 0; type < 6; type++) {
		assert_int_equal(create(2), 0);
		assert_int_equal(add_bytes(2, type, elf, sizeof(elf)),
				 type > QCU_LINK_FATBIN ? QCU_ERR_InvalidValue
							: QCU_ERR_InvalidKernelImage);
		assert_int_equal(destroy(2), 0);
	}
	assert_int_equal(create(2), 0);
	assert_int_equal(add_bytes(2, QCU_LINK_PTX, defines, 0), QCU_ERR_InvalidValue);
	assert_int_equal(add_bytes(2, QCU_LINK_FATBIN, defines, sizeof(defines)),
			 QCU_ERR_InvalidKernelImage);
	assert_int_equal(add(2, defines), QCU_ERR_InvalidValue); /* it has failed */
	assert_int_equal(destroy(2), 0);
	assert_int_equal(create(2), 0);
	/* PTX that nothing ends, and that ends too early. */
	assert_int_equal(add_bytes(2, QCU_LINK_PTX, defines, sizeof(defines) - 1),
			 QCU_ERR_InvalidKernelImage);
	assert_true(result(QCU_RESULT_ERROR, text, sizeof(text)) > 10);
	assert_int_equal(destroy(2), 0);
}

static void errors_in_ptx(void **state)
{
	char text[400];
	uint64_t bytes;

	(void)state;
	assert_int_equal(create(2), 0);
	assert_int_equal(add(2, defines), 0);
	assert_int_equal(add(2, bad), QCU_ERR_InvalidPtx);
	result(QCU_RESULT_ERROR, text, sizeof(text));
	assert_non_null(strstr(text, "line 7"));
	assert_non_null(strstr(text, "%b"));
	assert_int_equal(complete(2, &bytes), QCU_ERR_InvalidValue);
	assert_int_equal(destroy(2), 0);

	assert_int_equal(create(2), 0);
	assert_int_equal(add(2, defines), 0);
	assert_int_equal(add(2, defines), 0);
	assert_int_equal(complete(2, &bytes), QCU_ERR_InvalidPtx);
	result(QCU_RESULT_ERROR, text, sizeof(text));
	assert_non_null(strstr(text, "defined in two units"));
	assert_int_equal(bytes, 0);
	assert_int_equal(destroy(2), 0);

	assert_int_equal(create(2), 0);
	assert_int_equal(add(2, uses), 0);
	assert_int_equal(complete(2, &bytes), QCU_ERR_InvalidPtx);
	result(QCU_RESULT_ERROR, text, sizeof(text));
	assert_non_null(strstr(text, "twice"));
	assert_int_equal(destroy(2), 0);
}

static void limits_count(void **state)
{
	static char big[600 << 10];
	uint32_t i;

	(void)state;
	memset(big, ' ', sizeof(big) - 1);
	memcpy(big, defines, strlen(defines));
	for (i = 2; i < 6; i++)
		assert_int_equal(create(i), 0);
	assert_int_equal(create(6), QCU_ERR_MemoryAllocation);
	/* The image and the text that was made from it are both counted. */
	assert_int_equal(add(2, big), QCU_ERR_MemoryAllocation);
	for (i = 2; i < 6; i++)
		assert_int_equal(destroy(i), 0);
	assert_int_equal(create(2), 0);
	assert_int_equal(add(2, defines), 0);
	/* A link that nobody destroys goes with the mirror. */
}

/* A unit with some variables of its own. */
static const char *variables(uint32_t unit)
{
	static char text[9000];
	int n = sprintf(text, HEAD), i;

	for (i = 0; i < 200; i++)
		n += sprintf(text + n, ".visible .global .align 4 .u32 v%u_%d;\n", unit, i);
	return text;
}

/* Each image has all that was added before it. The one that it replaces counts no longer. */
static void added_later(void **state)
{
	uint64_t bytes, before = 0;
	uint32_t unit;

	(void)state;
	assert_int_equal(create(2), 0);
	for (unit = 0; unit < 20; unit++) {
		assert_int_equal(add(2, variables(unit)), 0);
		assert_int_equal(complete(2, &bytes), 0);
		assert_true(bytes > before + 5000);
		before = bytes;
	}
	assert_int_equal(destroy(2), 0);
}

/* A thread that has ended reads nothing. */
static void result_of_ended_thread(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_int_equal(create(2), 0);
	assert_int_equal(add(2, defines), 0);
	assert_int_equal(complete(2, &bytes), 0);
	assert_true(mir_awaits_program(mirror));
	assert_int_equal(ask(CMD(THREAD_EXIT, thread_exit)), 0);
	assert_false(mir_awaits_program(mirror));
}

static void two_units(void **state)
{
	struct qCUcmd c;
	struct qcu_seg seg;
	char image[4096], text[16];
	uint64_t bytes, memory;
	uint32_t value = 0;
	struct {
		struct qcu_launch_msg msg;
		uint64_t p;
	} msg = {.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 8}};

	(void)state;
	assert_int_equal(create(2), 0);
	assert_int_equal(add(2, uses), 0);
	assert_int_equal(add(2, defines), 0);
	assert_int_equal(complete(2, &bytes), 0);
	assert_true(bytes > 100 && bytes < sizeof(image));
	assert_int_equal(result(QCU_RESULT_DATA, image, sizeof(image)), bytes);
	assert_int_equal(result(QCU_RESULT_ERROR, text, sizeof(text)), 0);
	assert_int_equal(destroy(2), 0);

	c = CMD(MODULE_LOAD, module_load, .buf = {1, bytes}, .module = 2);
	c.flags = QCU_F_SEGS;
	seg = (struct qcu_seg){(uintptr_t)image, bytes};
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	c = CMD(KERNEL_FIND, kernel_find, .buf = {1, 1}, .module = 2, .kernel = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "k", NULL, 0), 0);
	c = CMD(MALLOC, malloc, .size = 4);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	memory = msg.p = c.malloc.ptr;
	c = CMD(LAUNCH, launch, .buf = {1, sizeof(msg)}, .kernel = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, &msg, NULL, 0), 0);
	c = CMD(COPY_D2H, copy_d2h, .buf = {1, 4}, .src = memory);
	c.flags = QCU_F_SEGS;
	seg = (struct qcu_seg){(uintptr_t)&value, 4};
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	assert_int_equal(value, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers, start, mirror_stop),
		cmocka_unit_test_setup_teardown(images_are_what_they_are_called, start,
						mirror_stop),
		cmocka_unit_test_setup_teardown(errors_in_ptx, start, mirror_stop),
		cmocka_unit_test_setup_teardown(limits_count, start, mirror_stop),
		cmocka_unit_test_setup_teardown(added_later, start, mirror_stop),
		cmocka_unit_test_setup_teardown(result_of_ended_thread, start, mirror_stop),
		cmocka_unit_test_setup_teardown(two_units, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
