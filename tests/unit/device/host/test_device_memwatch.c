// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that use more memory of a GPU than they are charged for, as NVML sees it: qcu-device
 * ends the one that is above its limit and the allowance, and no other. Without NVML it says so
 * once and ends none. What programs may learn of a GPU: as --nvml says, within bounds, and without
 * asking NVML more often than once a second. The mirrors run on the software GPU; what NVML says
 * comes from a stand-in.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/host/fake_nvml.h"
#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/host/test_device_program.h"

#define MIB 0x100000ull

static char program[PATH_MAX], broker[PATH_MAX], backend_dir[PATH_MAX], library_dir[PATH_MAX];
static char numbers[] = "/tmp/qcu-nvml-XXXXXX";
static struct fake_nvml *fake;
static struct frontend fe;
static FILE *log_file;

static int find_programs(void **state)
{
	int fd = mkstemp(numbers);

	(void)state;
	if (fd < 0 || ftruncate(fd, sizeof(*fake)) ||
	    program_path(program, "qcu-device/qcu-device") ||
	    program_path(broker, "qcu-device/qcu-share") ||
	    program_path(backend_dir, "tests/jail") || program_path(library_dir, "tests/memwatch"))
		return -1;
	fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	setenv("QCU_BACKEND_DIR", backend_dir, 1);
	setenv("QCU_TEST_BACKEND", "soft", 1);
	setenv("QCU_TEST_NVML", numbers, 1);
	return fake == MAP_FAILED || access(program, X_OK);
}

static int remove_numbers(void **state)
{
	(void)state;
	return unlink(numbers);
}

static int works(unsigned int session)
{
	struct qCUcmd c = {.op = QCU_OP_DEVICE_SYNC, .tid = 1};

	return fe_ask(&fe, session, &c, 0, 0);
}

/*
 * Two sessions, whose mirrors work. limit, nvml: arguments of --limit and --nvml. more: up to three
 * more options, and NULL.
 */
static char gpu[64] = "cuda";

static void start_and_count(char *limit, char *nvml, bool with_nvml, char *const *more)
{
	char nvml_option[] = "--nvml";
	char gpu_option[] = "--gpu", spares_option[] = "--prewarm", spares[] = "0";
	char limit_option[] = "--limit", allowance[] = "library-memory=100M";
	char *argv[] = {program,      gpu_option, gpu,		spares_option, spares,
			limit_option, allowance,  limit_option, limit,	       nvml_option,
			nvml,	      NULL,	  NULL,		NULL,	       NULL};
	unsigned int q, i;

	for (i = 0; more[i]; i++)
		argv[11 + i] = more[i];

	if (with_nvml)
		setenv("LD_LIBRARY_PATH", library_dir, 1);
	else
		unsetenv("LD_LIBRARY_PATH");
	log_file = tmpfile();
	assert_non_null(log_file);
	fe_start_program(&fe, argv, fileno(log_file));
	for (q = 0; q < 3; q++)
		fe_queue_start(&fe, q);
	for (q = 1; q < 3; q++)
		assert_int_equal(fe_open(&fe, q) || works(q), 0);
}

static void start_with(char *limit, char *nvml, bool with_nvml)
{
	char *none = NULL;

	start_and_count(limit, nvml, with_nvml, &none);
}

static void start(char *limit, bool with_nvml)
{
	char nvml[] = "none";

	memset(fake, 0, sizeof(*fake));
	start_with(limit, nvml, with_nvml);
}

static bool said(const char *text)
{
	char line[256];
	bool found = false;

	rewind(log_file);
	while (!found && fgets(line, sizeof(line), log_file))
		found = strstr(line, text);
	return found;
}

static void stop(void)
{
	int status = fe_stop(&fe);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fclose(log_file);
}

/* The process in this place is the mirror of the session of the same number. */
static void use(unsigned int session, unsigned int gpu, uint64_t bytes)
{
	fake->process[session].pid = (uint32_t)fe_mirror(&fe, session);
	assert_int_not_equal(fake->process[session].pid, 0);
	fake->process[session].bytes[gpu] = bytes;
}

static void wait_for_looks(unsigned int n)
{
	uint32_t until = fake->asked + n * FAKE_GPUS;

	while ((int32_t)(until - fake->asked) > 0)
		usleep(1000);
}

static void wait_for_the_end(unsigned int session)
{
	while (works(session) != FE_GONE)
		usleep(1000);
}

static void above_its_own_limit(void **state)
{
	char limit[] = "device-memory=300M";

	(void)state;
	start(limit, true);
	/* Up to the limit and the allowance, and on two GPUs, nothing happens. */
	use(1, 0, 400 * MIB);
	use(1, 1, 400 * MIB);
	use(2, 0, 100 * MIB);
	wait_for_looks(3);
	assert_int_equal(works(1) | works(2), 0);
	/* A process that is none of ours. */
	fake->process[3].pid = (uint32_t)getpid();
	fake->process[3].bytes[0] = 4000 * MIB;
	wait_for_looks(2);
	assert_int_equal(works(1) | works(2), 0);
	use(1, 1, 402 * MIB);
	wait_for_the_end(1);
	assert_true(said("session 1"));
	assert_true(said("it uses more memory of a GPU than it may"));
	fake->process[1].pid = 0;
	wait_for_looks(2);
	assert_int_equal(works(2), 0);
	assert_false(said("session 2"));
	/* The queue can have another session. */
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(works(1), 0);
	stop();
}

static void above_the_limit_of_the_vm(void **state)
{
	struct qCUcmd c = {.op = QCU_OP_MALLOC, .tid = 1};
	char limit[] = "vm-device-memory=500M";

	(void)state;
	start(limit, true);
	c.malloc.size = 200 * MIB;
	assert_int_equal(fe_ask(&fe, 1, &c, 0, 0), 0);
	/* Session 1 uses more, but is charged for it. */
	use(1, 0, 400 * MIB);
	use(2, 0, 290 * MIB);
	wait_for_looks(2);
	assert_int_equal(works(1) | works(2), 0);
	use(2, 0, 350 * MIB);
	wait_for_the_end(2);
	assert_true(said("session 2"));
	assert_true(said("the VM uses more memory of a GPU than it may"));
	assert_int_equal(works(1), 0);
	assert_false(said("session 1"));
	stop();
}

#define PART "MIG-01234567-89ab-cdef-0123-456789abcdef"

/* Only the part itself says who uses it. */
static void part_of_a_gpu(void **state)
{
	char limit[] = "device-memory=300M", nvml[] = "none";

	(void)state;
	strcpy(gpu, PART);
	memset(fake, 0, sizeof(*fake));
	strcpy(fake->part, PART);
	start_with(limit, nvml, true);
	assert_false(said("which part of the GPU"));
	use(1, 0, 4000 * MIB);
	use(2, 1, 4000 * MIB);
	fake->process[1].part_bytes = 400 * MIB;
	wait_for_looks(1);
	wait_for_looks(1);
	assert_int_equal(works(1) | works(2), 0);
	fake->process[2].part_bytes = 401 * MIB;
	wait_for_the_end(2);
	assert_true(said("session 2"));
	assert_int_equal(works(1), 0);
	assert_false(said("session 1"));
	stop();
}

/* NVML does not know this part: the device says what that leaves open, and serves the VM. */
static void unknown_part(void **state)
{
	char limit[] = "device-memory=300M", nvml[] = "none";

	(void)state;
	strcpy(gpu, PART);
	memset(fake, 0, sizeof(*fake));
	start_with(limit, nvml, true);
	assert_true(said("which part of the GPU"));
	while (!said("device memory is not watched: NVML does not know the part"))
		usleep(1000);
	assert_int_equal(works(1) | works(2), 0);
	stop();
}

/* What the software GPU's number is the end of. */
#define SOFT_GPU "GPU-71435544-4120-736f-6674-20475055000"

static char shares[] = "/tmp/qcu-shares-XXXXXX";

static void share_file(char *path, size_t size, unsigned int number, const char *end)
{
	snprintf(path, size, "%s/" SOFT_GPU "%u.%s", shares, number, end);
}

static pid_t start_broker(unsigned int number)
{
	char folder_option[] = "--folder", gpu_option[] = "--gpu", name[] = SOFT_GPU "0";
	char idle_option[] = "--idle", seconds[] = "60"; /* if the test fails */
	char *argv[] = {broker, folder_option, shares,	gpu_option,
			name,	idle_option,   seconds, NULL};
	char path[128];
	pid_t pid;

	name[sizeof(name) - 2] += (char)number;
	pid = fork();
	if (!pid) {
		execv(broker, argv);
		_exit(127);
	}
	share_file(path, sizeof(path), number, "share");
	while (access(path, F_OK))
		usleep(1000);
	return pid;
}

static void end_broker(pid_t pid, unsigned int number)
{
	char path[128];

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	share_file(path, sizeof(path), number, "share");
	unlink(path);
	share_file(path, sizeof(path), number, "lock");
	unlink(path);
}

/* The other GPU is for what leaves the VM's: it has a limit of its own. */
static void store_on_another(void **state)
{
	char limit[] = "device-memory=300M", nvml[] = "none", swap[] = "--swap=1G";
	char share[sizeof(shares) + 8], store[] = "--swap-gpu=" SOFT_GPU "1:500M";
	char *more[] = {swap, store, share, NULL};
	pid_t pid[2];

	(void)state;
	assert_non_null(mkdtemp(shares));
	pid[0] = start_broker(0);
	pid[1] = start_broker(1);
	snprintf(share, sizeof(share), "--share=%s", shares);
	strcpy(gpu, SOFT_GPU "0");
	setenv("QCU_TEST_STORE", "near", 1);
	memset(fake, 0, sizeof(*fake));
	start_and_count(limit, nvml, true, more);
	use(1, 1, 350 * MIB);
	use(2, 1, 350 * MIB);
	wait_for_looks(2);
	assert_int_equal(works(1) | works(2), 0);
	use(2, 1, 352 * MIB);
	wait_for_the_end(2);
	assert_true(said("session 2") && said("swap-gpu is its 500 MiB"));
	assert_int_equal(works(1), 0);
	/* That of the others has not changed. */
	fake->process[2].pid = 0;
	use(1, 0, 402 * MIB);
	wait_for_the_end(1);
	assert_true(said("device-memory is 300 MiB"));
	unsetenv("QCU_TEST_STORE");
	stop();
	end_broker(pid[0], 0);
	end_broker(pid[1], 1);
	assert_int_equal(rmdir(shares), 0);
}

/* The tests after these use whole GPUs. */
static int whole_again(void **state)
{
	(void)state;
	strcpy(gpu, "cuda");
	return 0;
}

static void nvml_fails(void **state)
{
	char limit[] = "device-memory=300M";

	(void)state;
	start(limit, true);
	wait_for_looks(1);
	use(1, 0, 4000 * MIB);
	fake->error = 9;
	while (!said("device memory is not watched: NVML does not say"))
		usleep(1000);
	fake->error = 0;
	assert_int_equal(works(1) | works(2), 0);
	stop();
}

static void no_nvml(void **state)
{
	char limit[] = "device-memory=300M";

	(void)state;
	start(limit, false);
	while (!said("device memory is not watched: "))
		usleep(1000);
	assert_int_equal(works(1) | works(2), 0);
	assert_int_equal(fake->asked, 0);
	stop();
}

/* Without a limit on device memory and with --nvml none nobody asks, and nobody complains. */
static void no_limit(void **state)
{
	char limit[] = "streams=100";

	(void)state;
	start(limit, true);
	assert_int_equal(fe_child(&fe, "qcu-memwatch", 0), 0);
	assert_int_equal(works(1) | works(2), 0);
	stop();
}

/* ---- sensors ---- */

static uint64_t ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct qcu_sensors ask_once(unsigned int session)
{
	struct qCUcmd c = {.op = QCU_OP_SENSORS, .tid = 1};

	assert_int_equal(fe_ask(&fe, session, &c, 0, 0), 0);
	return c.sensors;
}

static struct qcu_sensors learn(unsigned int session)
{
	struct qcu_sensors now = ask_once(session);

	for (; now.known == QCU_SENSORS_SOON; now = ask_once(session))
		usleep(1000);
	return now;
}

/* Numbers that NVML has been asked for after this call. */
static struct qcu_sensors learn_new(unsigned int session)
{
	uint32_t before = fake->sensors_asked;
	struct qcu_sensors now;

	/* The second question comes when the first answer has been shown. */
	while (fake->sensors_asked - before < 2)
		now = learn(session);
	now = learn(session);
	return now;
}

static bool knows(const struct qcu_sensors *s, enum qcu_sensor what)
{
	return s->known >> what & 1;
}

static void start_sensors(char *nvml)
{
	char limit[] = "streams=100";

	memset(fake, 0, sizeof(*fake));
	fake->clock[1] = 1755;
	fake->clock[2] = 2619;
	fake->clock[3] = 1500;
	fake->app_clock[0] = 1410;
	fake->app_clock[2] = 1593;
	fake->busy = 90;
	fake->busy_memory = 80;
	fake->celsius = 55;
	fake->milliwatts = 312000;
	fake->power_limit = 700000;
	strcpy(fake->driver, "580.65.06");
	start_with(limit, nvml, true);
}

static void busy(unsigned int place, uint32_t pid, uint32_t sm, uint32_t memory)
{
	fake->process[place].pid = pid;
	fake->process[place].busy_memory = memory;
	fake->process[place].busy = sm;
}

/* How busy the programs keep the GPU, as a program of the VM sees it. */
static void shares_are(uint8_t busy1, uint8_t memory1, uint8_t busy2, uint8_t memory2)
{
	const struct qcu_vm_use_desc *use = (void *)(fe.ram + FE_FREE + 0x1000);
	struct qcu_seg *seg = (void *)(fe.ram + FE_FREE);
	struct qCUcmd c = {.op = QCU_OP_VM_USE, .tid = 1, .flags = QCU_F_SEGS};

	*seg = (struct qcu_seg){FE_FREE + 0x1000, sizeof(*use)};
	c.vm_use.buf.len = sizeof(*use);
	assert_int_equal(fe_ask(&fe, 1, &c, FE_FREE, sizeof(*seg)), 0);
	assert_int_equal(use->count, 2);
	assert_in_range(use->busy_age, 1, 10000);
	assert_int_equal(use->user[0].busy, busy1);
	assert_int_equal(use->user[0].busy_memory, memory1);
	assert_int_equal(use->user[1].busy, busy2);
	assert_int_equal(use->user[1].busy_memory, memory2);
}

static void own_sensors(void **state)
{
	char nvml[] = "own";
	struct qcu_sensors s;
	uint64_t began;
	uint32_t before;
	unsigned int i;

	(void)state;
	start_sensors(nvml);
	busy(1, (uint32_t)fe_mirror(&fe, 1), 30, 5);
	busy(2, (uint32_t)fe_mirror(&fe, 2), 40, 6);
	busy(3, (uint32_t)getpid(), 29, 7);
	s = learn_new(1);
	assert_int_equal(s.clock_sm, fake->clock[1]);
	assert_int_equal(s.clock_memory, fake->clock[2]);
	assert_int_equal(s.clock_video, fake->clock[3]);
	assert_int_equal(s.app_sm, fake->app_clock[0]);
	assert_int_equal(s.app_memory, fake->app_clock[2]);
	assert_int_equal(s.driver, QCU_DRIVER(580, 65, 6));
	/* What the VM's programs do together, and nobody else. */
	assert_int_equal(s.busy, 70);
	assert_int_equal(s.busy_memory, 11);
	shares_are(30, 5, 40, 6);
	assert_false(knows(&s, QCU_SENSOR_celsius) || knows(&s, QCU_SENSOR_milliwatts) ||
		     knows(&s, QCU_SENSOR_power_limit));
	assert_int_equal(s.celsius | s.milliwatts | s.power_limit, 0);
	/* However often programs ask, NVML is asked once a second. */
	began = ms();
	before = fake->sensors_asked;
	for (i = 0; i < 2000; i++)
		assert_int_equal(ask_once(1 + i % 2).clock_sm, fake->clock[1]);
	assert_in_range(fake->sensors_asked - before, 0, (ms() - began) / 1000 + 2);
	assert_int_equal(works(1) | works(2), 0);
	stop();
}

static void impossible_numbers(void **state)
{
	char nvml[] = "full";
	struct qcu_sensors s;

	(void)state;
	start_sensors(nvml);
	fake->clock[1] = 100001;
	fake->clock[2] = UINT32_MAX;
	fake->busy = 101;
	fake->celsius = 251;
	fake->milliwatts = UINT32_MAX;
	strcpy(fake->driver, "580.\033[31m");
	s = learn_new(1);
	assert_int_equal(s.known, 1u << QCU_SENSOR_clock_video | 1u << QCU_SENSOR_app_sm |
					  1u << QCU_SENSOR_app_memory |
					  1u << QCU_SENSOR_busy_memory |
					  1u << QCU_SENSOR_power_limit);
	assert_int_equal(s.clock_sm | s.clock_memory | s.busy | s.celsius | s.milliwatts, 0);
	fake->error = 3;
	while (learn(2).known)
		usleep(1000);
	fake->error = 0;
	s = learn_new(2);
	assert_true(knows(&s, QCU_SENSOR_clock_video));
	stop();
}

static void all_sensors(void **state)
{
	char nvml[] = "full";
	struct qcu_sensors s;

	(void)state;
	start_sensors(nvml);
	busy(1, (uint32_t)fe_mirror(&fe, 1), 30, 5);
	s = learn_new(1);
	assert_int_equal(s.known, (1u << QCU_SENSOR_COUNT) - 1);
	assert_int_equal(s.busy, fake->busy);
	assert_int_equal(s.busy_memory, fake->busy_memory);
	assert_int_equal(s.celsius, fake->celsius);
	assert_int_equal(s.milliwatts, fake->milliwatts);
	assert_int_equal(s.power_limit, fake->power_limit);
	shares_are(30, 5, 0, 0);
	stop();
}

/* ---- GPU time ---- */

/* What SIGUSR1 says of a session's GPU time, in milliseconds; -1: nothing. */
static long time_said(unsigned int session)
{
	char line[256], who[40];
	long s, ms, said_last = -1;

	snprintf(who, sizeof(who), "qcu-device: session %u ", session);
	rewind(log_file);
	while (fgets(line, sizeof(line), log_file)) {
		const char *at = strstr(line, ": GPU time: ");

		if (at && !strncmp(line, who, strlen(who)) &&
		    sscanf(at, ": GPU time: %ld.%3ld s", &s, &ms) == 2)
			said_last = s * 1000 + ms;
	}
	return said_last;
}

static long time_of(unsigned int session)
{
	kill(fe.server, SIGUSR1);
	usleep(20000);
	return time_said(session);
}

static void gpu_time(void **state)
{
	char limit[] = "streams=100", none[] = "none", option[] = "--gpu-time";
	char *more[] = {option, NULL};

	(void)state;
	memset(fake, 0, sizeof(*fake));
	/* Without the option nothing is said. */
	start_with(limit, none, true);
	while (!said("of 4 sessions"))
		time_of(1);
	assert_int_equal(time_said(1), -1);
	stop();
	start_and_count(limit, none, true, more);
	busy(1, (uint32_t)fe_mirror(&fe, 1), 100, 5);
	busy(3, (uint32_t)getpid(), 50, 7);
	/* Nobody asks, and NVML is asked all the same, but programs learn nothing of it. */
	while (time_of(1) < 100)
		assert_int_equal(ask_once(1).known, 0);
	/* The lines after this one come a moment later. */
	while (time_said(2) < 0 || !said("VM: GPU time: "))
		usleep(1000);
	assert_int_equal(time_said(2), 0);
	stop();
}

/* As long as nobody asks, NVML is not asked either. */
static void asked_for(void **state)
{
	char none[] = "none", own[] = "own";

	(void)state;
	start_sensors(none);
	assert_int_equal(ask_once(1).known, 0);
	assert_int_equal(fe_child(&fe, "qcu-memwatch", 0), 0);
	stop();
	start_sensors(own);
	assert_int_equal(works(1) | works(2), 0);
	usleep(600000);
	assert_int_equal(works(1) | works(2), 0);
	assert_int_equal(fake->sensors_asked, 0);
	learn(1);
	assert_int_not_equal(fake->sensors_asked, 0);
	stop();
}

static void sensors_without_nvml(void **state)
{
	char limit[] = "streams=100", nvml[] = "full";

	(void)state;
	memset(fake, 0, sizeof(*fake));
	start_with(limit, nvml, false);
	assert_int_equal(learn(1).known, 0);
	assert_int_equal(learn(2).known, 0);
	assert_false(said("device memory is not watched"));
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_nvml),
		cmocka_unit_test(nvml_fails),
		cmocka_unit_test(no_limit),
		cmocka_unit_test(above_its_own_limit),
		cmocka_unit_test(above_the_limit_of_the_vm),
		cmocka_unit_test_teardown(part_of_a_gpu, whole_again),
		cmocka_unit_test_teardown(unknown_part, whole_again),
		cmocka_unit_test_teardown(store_on_another, whole_again),
		cmocka_unit_test(own_sensors),
		cmocka_unit_test(impossible_numbers),
		cmocka_unit_test(all_sensors),
		cmocka_unit_test(asked_for),
		cmocka_unit_test(gpu_time),
		cmocka_unit_test(sensors_without_nvml),
	};

	return cmocka_run_group_tests(tests, find_programs, remove_numbers);
}
