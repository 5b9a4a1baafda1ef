// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text that a kernel chooses. The output and the assertions of a kernel go unchanged to the guest
 * program, and none of this text goes to the log. The device's own messages about a kernel contain
 * names that the kernel chose. These messages must be clean and limited in number. Each test runs a
 * mirror on the software GPU, in a process of its own, whose stderr is a file.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

/* "\e[2J\nqcu-device: all is well\n" */
#define BYTES                                                                                      \
	"{27,91,50,74,10,113,99,117,45,100,101,118,105,99,101,58,32,97,108,108,32,105,115,32,119," \
	"101,108,108,10,0}"
#define TEXT "\033[2J\nqcu-device: all is well\n"

#define K10   "kkkkkkkkkk"
#define K100  K10 K10 K10 K10 K10 K10 K10 K10 K10 K10
#define K1200 K100 K100 K100 K100 K100 K100 K100 K100 K100 K100 K100 K100

static const char ptx[] =
	".version 8.3\n.target sm_75\n.address_size 64\n"
	".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
	".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,"
	" .param .b64 s);\n"
	".file 1 \"a\033[2J\033]0;title\007.cu\"\n"
	".global .align 1 .b8 text[30] = " BYTES ";\n"
	".visible .entry print ()\n{\n.reg .b64 %d<3>;\n.reg .b32 %r<2>;\n"
	"mov.u64 %d1, text;\ncvta.global.u64 %d1, %d1;\nmov.u64 %d2, 0;\n"
	"{\n.param .b64 f;\nst.param.b64 [f], %d1;\n.param .b64 v;\nst.param.b64 [v], %d2;\n"
	".param .b32 r;\ncall.uni (r), vprintf, (f, v);\nld.param.b32 %r1, [r];\n}\nret;\n}\n"
	".visible .entry fail ()\n{\n.reg .b64 %d<3>;\n.reg .b32 %r<2>;\n"
	"mov.u64 %d1, text;\ncvta.global.u64 %d1, %d1;\nmov.u64 %d2, 1;\nmov.u32 %r1, 7;\n"
	"{\n.param .b64 m;\nst.param.b64 [m], %d1;\n.param .b64 f;\nst.param.b64 [f], %d1;\n"
	".param .b32 l;\nst.param.b32 [l], %r1;\n.param .b64 n;\nst.param.b64 [n], %d1;\n"
	".param .b64 s;\nst.param.b64 [s], %d2;\ncall.uni __assertfail, (m, f, l, n, "
	"s);\n}\nret;\n}\n"
	".visible .entry " K1200 " ()\n{\ntrap;\n}\n"
	".visible .entry fault ()\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<2>;\n"
	"mov.u64 %d1, 64;\n.loc 1 3 1\nld.global.u32 %r1, [%d1];\nst.global.u32 [%d1], "
	"%r1;\nret;\n}\n";

#define MODULE 2
#define KERNEL 2

static void must(bool ok, int code)
{
	if (!ok)
		_exit(code);
}

static void begin(const char *kernel)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = MODULE);
	const struct qcu_seg image = {(uintptr_t)ptx, sizeof(ptx)};

	cfg.options.vram = 16 << 20;
	must(!mir_create(&mirror, &cfg), 10);
	complain_context(1, 42);
	c.flags = QCU_F_SEGS;
	must(!ask_with(&c, NULL, &image, 1), 11);
	c = CMD(KERNEL_FIND, kernel_find, .buf = {1, strlen(kernel)}, .module = MODULE,
		.kernel = KERNEL);
	c.flags = QCU_F_MSG;
	must(!ask_with(&c, kernel, NULL, 0), 12);
}

static int launch(void)
{
	const struct qcu_launch_msg msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
	struct qCUcmd c = CMD(LAUNCH, launch, .buf = {1, sizeof(msg)}, .kernel = KERNEL);

	c.flags = QCU_F_MSG;
	return ask_with(&c, &msg, NULL, 0);
}

static int synchronize(void)
{
	return ask(CMD(DEVICE_SYNC, device_sync, 0));
}

/* Fetches the kernels' output as the guest program does. */
static const char *fetch(uint32_t channel)
{
	static char text[8192];
	const struct qcu_seg seg = {(uintptr_t)text, sizeof(text) - 1};
	struct qCUcmd c = CMD(PRINT_READ, print_read, .buf = {1, seg.len}, .channel = channel);

	c.flags = QCU_F_SEGS;
	must(!ask_with(&c, NULL, &seg, 1), 13);
	text[c.print_read.got] = '\0';
	return text;
}

/* How many bytes of struct qcu_fault come if there is room for `room`. */
static uint64_t fetch_fault(struct qcu_fault *fault, size_t room)
{
	const struct qcu_seg seg = {(uintptr_t)fault, room};
	struct qCUcmd c = CMD(PRINT_READ, print_read, .buf = {1, room}, .channel = QCU_PRINT_FAULT);

	c.flags = QCU_F_SEGS;
	must(!ask_with(&c, NULL, &seg, 1), 14);
	return c.print_read.got;
}

static void end(void)
{
	mir_destroy(mirror);
}

static char log_text[1 << 16];

static const char *log_of(void (*session)(void))
{
	FILE *f = tmpfile();
	int status;
	size_t n;
	pid_t pid;

	assert_non_null(f);
	pid = fork();
	if (!pid) {
		dup2(fileno(f), STDERR_FILENO);
		session();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rewind(f);
	n = fread(log_text, 1, sizeof(log_text) - 1, f);
	log_text[n] = '\0';
	fclose(f);
	return log_text;
}

static void print_and_fail(void)
{
	begin("print");
	for (int i = 0; i < 100; i++)
		must(!launch(), 20);
	must(!synchronize(), 21);
	must(strstr(fetch(QCU_PRINT_OUT), TEXT TEXT), 22);
	end();
	begin("fail");
	must(!launch() && synchronize() == QCU_ERR_Assert, 23);
	must(strstr(fetch(QCU_PRINT_ERR), "Assertion `" TEXT "` failed."), 24);
	end();
}

static void what_it_prints_is_the_programs(void **state)
{
	const char *text = log_of(print_and_fail);

	(void)state;
	/* The log may say that an assertion failed, but not the assertion's text. */
	assert_null(strchr(text, '\033'));
	assert_null(strstr(text, "all is well"));
}

static void faults(void)
{
	for (int i = 0; i < 3 * COMPLAIN_BURST; i++) {
		begin("fault");
		must(!launch() && synchronize() == QCU_ERR_IllegalAddress, 30);
		end();
	}
}

static void what_is_said_about_it_is_clean(void **state)
{
	const char *text = log_of(faults), *line;
	unsigned int lines = 0;

	(void)state;
	assert_non_null(strstr(text, "\\x1b[2J\\x1b]0;title\\x07.cu:3"));
	for (line = text; *line; line += strcspn(line, "\n") + 1) {
		lines++;
		assert_true(!strncmp(line, "qcu-device: session 1 (pid 42)", 30) ||
			    strstr(line, "messages about the guest are left out"));
		for (size_t i = 0; i < strcspn(line, "\n"); i++)
			assert_in_range(line[i], ' ', '~');
	}
	/* A slow machine logs one more line each second. */
	assert_in_range(lines, COMPLAIN_BURST, 3 * COMPLAIN_BURST - 1);
}

static void fault_and_fetch(void)
{
	struct qcu_fault f;

	begin("fault");
	must(!fetch_fault(&f, sizeof(f)), 40);
	must(!launch() && synchronize() == QCU_ERR_IllegalAddress, 41);
	must(!fetch_fault(&f, sizeof(f) - 1), 42);
	must(fetch_fault(&f, sizeof(f)) == sizeof(f), 43);
	must(f.error == QCU_ERR_IllegalAddress && f.addr == 64 && f.size == 4 && f.line == 3, 44);
	must(f.flags == (QCU_FAULT_THREAD | QCU_FAULT_ACCESS), 45);
	must(!strcmp(f.kernel, "fault") && !strcmp(f.file, "a\033[2J\033]0;title\007.cu"), 46);
	must(!strcmp(f.what, "read of 4 bytes at global address 0x40"), 47);
	must(!fetch_fault(&f, sizeof(f)), 48);
	end();
	begin(K1200);
	must(!launch() && synchronize() == QCU_ERR_LaunchFailure, 50);
	must(fetch_fault(&f, sizeof(f)) == sizeof(f), 51);
	must(strlen(f.kernel) == sizeof(f.kernel) - 1 && !strncmp(f.kernel, K1200, 1023), 52);
	must(f.flags == QCU_FAULT_THREAD && !f.addr && !f.file[0] && f.line, 53);
	end();
}

static void where_it_failed_is_told_once(void **state)
{
	(void)state;
	log_of(fault_and_fetch);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_prints_is_the_programs),
		cmocka_unit_test(what_is_said_about_it_is_clean),
		cmocka_unit_test(where_it_failed_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
