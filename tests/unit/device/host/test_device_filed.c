// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that leaves the GPU for another GPU (--swap-gpu) and a file (--swap-file): two programs of
 * a VM, in their sandboxes, with more memory than the software GPU has. Folders and sizes that
 * cannot be used come first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/host/test_device_program.h"

#define MIB	 0x100000ull
#define MEMORY	 (12 * MIB) /* of each program; the GPU has 16 MiB */
#define PART	 (4 * MIB)  /* is copied at a time */
#define PROGRAMS 2u

static char program[PATH_MAX], broker[PATH_MAX];
static char folder[] = "/tmp/qcu-filed-XXXXXX";
static char shares[64], files[64], option[96];
static struct frontend fe;
static FILE *log_file;
static pid_t broker_pid[2];
static char *const gpus[] = {(char[]){"soft"}, (char[]){"soft1"}};
static uint64_t address[PROGRAMS + 1];

static int find_programs(void **state)
{
	(void)state;
	if (program_path(program, "qcu-device/qcu-device") ||
	    program_path(broker, "qcu-device/qcu-share") || !mkdtemp(folder))
		return -1;
	snprintf(shares, sizeof(shares), "%s/shares", folder);
	snprintf(files, sizeof(files), "%s/files", folder);
	return mkdir(shares, 0700) || mkdir(files, 0700);
}

static int clean_up(void **state)
{
	char path[96];
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s.lock", shares, gpus[i]);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s.share", shares, gpus[i]);
		unlink(path);
	}
	/* Nothing else has been left there. */
	return rmdir(files) || rmdir(shares) || rmdir(folder);
}

static void must_be_refused(const char *says)
{
	char gpu[] = "--gpu=soft", swap[] = "--swap=2M", share[96], sock[96], text[4096];
	char *args[] = {program, gpu, share, swap, option, sock, NULL};
	int err, code;
	pid_t pid;

	snprintf(share, sizeof(share), "--share=%s", shares);
	snprintf(sock, sizeof(sock), "--socket=%s/socket", folder);
	pid = program_start(args, &err);
	code = program_finish(pid, err, text, sizeof(text));
	if (code != 1 || !strstr(text, says))
		fail_msg("%s: code %d, %s", option, code, text);
}

static void refused(const char *where, const char *says)
{
	snprintf(option, sizeof(option), "--swap-file=%s:64M", where);
	must_be_refused(says);
}

static void wrong_folders(void **state)
{
	(void)state;
	refused("/there/is/no/such/folder", "No such file or directory");
	refused("/dev/null", "Not a directory");
	refused("/proc", "no files without a name");
}

static void start_broker(unsigned int i, char *memory)
{
	char folder_option[] = "--folder", gpu_option[] = "--gpu", memory_option[] = "--memory";
	char *args[] = {broker,	 folder_option, shares, gpu_option,
			gpus[i], memory_option, memory, NULL};
	char path[96];

	broker_pid[i] = fork();
	if (!broker_pid[i]) {
		execv(broker, args);
		_exit(127);
	}
	snprintf(path, sizeof(path), "%s/%s.share", shares, gpus[i]);
	while (access(path, F_OK))
		usleep(1000);
}

static void start_brokers(void)
{
	char first[] = "16", second[] = "4";

	start_broker(0, first);
	start_broker(1, second);
}

/* Does the second GPU's broker say this of the VM? */
static bool second_says(const char *text)
{
	char command[PATH_MAX + 128], line[512] = "";
	FILE *f;

	snprintf(command, sizeof(command), "%s --folder %s --gpu soft1 --status", broker, shares);
	f = popen(command, "r");
	assert_non_null(f);
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	pclose(f);
	return strstr(line, text);
}

static void wrong_size(void **state)
{
	(void)state;
	start_brokers();
	snprintf(option, sizeof(option), "--swap-gpu=soft1:5M");
	must_be_refused("--swap-gpu 5 MiB is more than is left: the GPU has 4 MiB");
}

static void start(void)
{
	char gpu[] = "--gpu=soft", vram[] = "--vram=64M", swap[] = "--swap=2M", share[96];
	char lent[] = "--swap-gpu=soft1:4M";
	char *args[] = {program, gpu, vram, swap, lent, option, share, NULL};
	unsigned int q;

	snprintf(share, sizeof(share), "--share=%s", shares);
	snprintf(option, sizeof(option), "--swap-file=%s:64M", files);
	log_file = tmpfile();
	assert_non_null(log_file);
	fe_start_program(&fe, args, fileno(log_file));
	for (q = 0; q <= PROGRAMS; q++)
		fe_queue_start(&fe, q);
}

static bool said(const char *text)
{
	char line[512];
	bool found = false;

	rewind(log_file);
	while (!found && fgets(line, sizeof(line), log_file))
		found = strstr(line, text);
	return found;
}

/* The part of guest memory that is copied. */
static uint32_t *words(void)
{
	return (uint32_t *)(fe.ram + FE_FREE + MIB);
}

static int copy(unsigned int session, bool to_gpu, uint64_t at)
{
	struct qCUcmd c = {
		.op = to_gpu ? QCU_OP_COPY_H2D : QCU_OP_COPY_D2H, .tid = 1, .flags = QCU_F_SEGS};

	*(struct qcu_seg *)(fe.ram + FE_FREE) = (struct qcu_seg){FE_FREE + MIB, PART};
	if (to_gpu) {
		c.copy_h2d.buf.len = PART;
		c.copy_h2d.dst = address[session] + at;
	} else {
		c.copy_d2h.buf.len = PART;
		c.copy_d2h.src = address[session] + at;
	}
	return fe_ask(&fe, session, &c, FE_FREE, sizeof(struct qcu_seg));
}

static uint32_t word_of(unsigned int session, uint64_t at)
{
	return (uint32_t)(session * 0x9e3779b9u + at);
}

static void begin_program(unsigned int session)
{
	struct qCUcmd c = {.op = QCU_OP_MALLOC, .tid = 1, .malloc = {.size = MEMORY}};
	uint64_t at, i;

	assert_int_equal(fe_open(&fe, session), 0);
	assert_int_equal(fe_ask(&fe, session, &c, 0, 0), 0);
	address[session] = c.malloc.ptr;
	for (at = 0; at < MEMORY; at += PART) {
		for (i = 0; i < PART; i += 4)
			words()[i / 4] = word_of(session, at + i);
		assert_int_equal(copy(session, true, at), 0);
	}
}

static void check_program(unsigned int session)
{
	uint64_t at, i;

	for (at = 0; at < MEMORY; at += PART) {
		memset(words(), 0, PART);
		assert_int_equal(copy(session, false, at), 0);
		for (i = 0; i < PART; i += 4)
			assert_int_equal(words()[i / 4], word_of(session, at + i));
	}
}

static void in_turns(void **state)
{
	unsigned int i;

	(void)state;
	start();
	begin_program(1);
	begin_program(2);
	for (i = 0; i < 6; i++)
		check_program(1 + i % 2);
	/* How much is in files, of all that the VM may have there. */
	kill(fe.server, SIGUSR1);
	while (!said("VM: 2 of 4 sessions"))
		usleep(1000);
	/* 24 MiB are more than both GPUs and the host's part have together. */
	assert_true(said("VM: swap-file: ") && !said("VM: swap-file: 0 "));
	assert_true(said("VM: swap-gpu: ") && !said("VM: swap-gpu: 0 "));
	assert_true(second_says("held_mib 4 ") && second_says("resident_mib 4"));
	/* It dies while its memory is there. Who comes after it finds nothing of it. */
	check_program(2);
	kill(fe_mirror(&fe, 1), SIGKILL);
	assert_int_equal(fe_close(&fe, 1), 0);
	begin_program(1);
	check_program(2);
	check_program(1);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 2), 0);
	assert_true(second_says("held_mib 0 "));
	assert_int_equal(fe_stop(&fe), 0);
	assert_false(said("cannot") || said("fewer files"));
	fclose(log_file);
	for (i = 0; i < 2; i++) {
		kill(broker_pid[i], SIGKILL);
		waitpid(broker_pid[i], NULL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_folders),
					   cmocka_unit_test(wrong_size),
					   cmocka_unit_test(in_turns)};

	return cmocka_run_group_tests(tests, find_programs, clean_up);
}
