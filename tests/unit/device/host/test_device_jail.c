// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The jail, from inside: a mirror of the program qcu-device tries what an attacker in the mirror
 * would try (jail_backend.c). QCU_TEST_BACKEND=PATH runs the test with be_cuda.so, on a GPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/host/device.h"
#include "qcu-device/jail/gpus.h"
#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/host/test_device_program.h"

#define USER "65533" /* an ordinary user, if this is root */

static char program[PATH_MAX], backend_dir[PATH_MAX], self[PATH_MAX];
static struct frontend fe;
static FILE *log_file;

static int find_programs(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (n < 0 || program_path(program, "qcu-device/qcu-device") ||
	    program_path(backend_dir, "tests/jail"))
		return -1;
	setenv("QCU_BACKEND_DIR", backend_dir, 1);
	setenv("QCU_TEST_BACKEND", "soft", 0);
	return access(program, X_OK);
}

/* ---- sockets outside of the jail, to which everyone may connect ---- */

static char socket_path[100], letters_path[104];
static int listeners[3] = {-1, -1, -1};

static int listen_at(int type, const char *path, bool file)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strncpy(addr.sun_path + !file, path, sizeof(addr.sun_path) - 2);
	assert_int_equal(
		bind(fd, (const struct sockaddr *)&addr,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + !file + strlen(path))),
		0);
	assert_true(type == SOCK_DGRAM || !listen(fd, 5));
	assert_true(!file || !chmod(path, 0777));
	return fd;
}

/* The socket lies in this folder, because the jail has no /tmp. */
static int open_sockets(void **state)
{
	(void)state;
	snprintf(socket_path, sizeof(socket_path), "jail-%d.sock", getpid());
	snprintf(letters_path, sizeof(letters_path), "%s.d", socket_path);
	listeners[0] = listen_at(SOCK_STREAM, socket_path, true);
	listeners[1] = listen_at(SOCK_STREAM, socket_path, false);
	listeners[2] = listen_at(SOCK_DGRAM, letters_path, true);
	setenv("QCU_TEST_SOCKET", socket_path, 1);
	return 0;
}

static int close_sockets(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		close(listeners[i]);
	unlink(socket_path);
	unlink(letters_path);
	unsetenv("QCU_TEST_SOCKET");
	return 0;
}

/* ---- the device ---- */

/* How the device is started. */
enum {
	AS_USER = 1,   /* as an ordinary user */
	NO_SPACES = 2, /* where new namespaces are refused */
};

static unsigned int command(unsigned int how, const char *const options[], char **argv)
{
	static char setpriv[] = "/usr/bin/setpriv", reuid[] = "--reuid", regid[] = "--regid",
		    user[] = USER, clear[] = "--clear-groups", refuse[] = "--refuse-namespaces",
		    gpu_option[] = "--gpu", gpu[] = "cuda";
	unsigned int n = 0, i;

	if (how & AS_USER && !geteuid()) {
		argv[n++] = setpriv;
		argv[n++] = reuid;
		argv[n++] = user;
		argv[n++] = regid;
		argv[n++] = user;
		argv[n++] = clear;
	}
	if (how & NO_SPACES) {
		argv[n++] = self;
		argv[n++] = refuse;
	}
	argv[n++] = program;
	argv[n++] = gpu_option;
	argv[n++] = gpu;
	for (i = 0; options && options[i]; i++)
		argv[n++] = (char *)options[i];
	argv[n] = NULL;
	return n;
}

/*
 * Runs a session whose backend makes all the attempts, beside another session and a spare. Its
 * messages are in log_file.
 */
static void start(unsigned int how, const char *const options[])
{
	static char prewarm[] = "--prewarm", one[] = "1";
	struct qCUcmd info = {.op = QCU_OP_INFO, .tid = 1};
	char *argv[24];
	unsigned int n = command(how, options, argv);

	argv[n++] = prewarm;
	argv[n++] = one;
	argv[n] = NULL;
	log_file = tmpfile();
	assert_non_null(log_file);
	fe_start_program(&fe, argv, fileno(log_file));
	fe_queue_start(&fe, 0);
	fe_queue_start(&fe, 1);
	fe_queue_start(&fe, 2);
	assert_int_equal(fe_open(&fe, 2), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_ask(&fe, 1, &info, 0, 0), 0);
	assert_true(info.info.devices > 0);
}

static void stop(void)
{
	int status = fe_stop(&fe);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fclose(log_file);
}

static bool has_said(FILE *log, const char *text)
{
	char line[512];
	bool said = false;

	rewind(log);
	while (fgets(line, sizeof(line), log))
		said |= !!strstr(line, text);
	return said;
}

/* Counts the lines about refused attempts and about attempts that succeeded. */
static void count(unsigned int *refused, unsigned int *done, bool *all)
{
	char line[256];

	*refused = *done = 0;
	*all = false;
	rewind(log_file);
	while (fgets(line, sizeof(line), log_file)) {
		if (strncmp(line, "jail: ", 6))
			continue;
		*refused += !!strstr(line, ": refused");
		*done += !!strstr(line, ": DONE");
		*all |= !!strstr(line, "that was all");
		if (strstr(line, ": DONE"))
			fputs(line, stderr);
	}
}

/* The device must not start. Its last words are in the text. */
static void refuses_to_start(unsigned int how, const char *const options[], char *text, size_t size)
{
	static char fd_option[] = "--fd", fd[] = "0";
	char *argv[24];
	unsigned int n = command(how, options, argv);
	int pair[2], err[2];
	pid_t pid;

	argv[n++] = fd_option;
	argv[n++] = fd;
	argv[n] = NULL;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(err), 0);
	pid = fork();
	if (!pid) {
		dup2(pair[1], 0);
		dup2(err[1], 2);
		execv(argv[0], argv);
		_exit(127);
	}
	close(err[1]);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(program_finish(pid, err[0], text, size), 1);
}

/* Asks the kernel to refuse new namespaces to a program, as some hosts do, and executes it. */
static int refuse_namespaces(char **argv)
{
	static const int calls[] = {SCMP_SYS(unshare), SCMP_SYS(clone)};
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	unsigned int i;
	int rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	for (i = 0; i < 2 && !rc; i++) {
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), calls[i], 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
		if (!rc)
			rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), calls[i], 1,
					      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWNS,
						      CLONE_NEWNS));
		if (!rc)
			rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), calls[i], 1,
					      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWPID,
						      CLONE_NEWPID));
	}
	if (rc || seccomp_load(f))
		return 126;
	execv(argv[0], argv);
	return 127;
}

/* ---- the tests ---- */

static void all_refused(unsigned int how, unsigned int least)
{
	unsigned int refused, done;
	bool all;

	start(how, NULL);
	count(&refused, &done, &all);
	assert_true(all);
	assert_int_equal(done, 0);
	assert_true(refused >= least);
	stop();
}

/* CUDA's debugger gets a port at which nobody can reach it, if the network is the VM's own. */
static void ports_for_dumps(void **state)
{
	static const char *const options[] = {"--fault-place", NULL};
	static const char *const weak[] = {"--fault-place", "--weak-sandbox", NULL};
	unsigned int refused, done;
	bool all;

	(void)state;
	start(AS_USER, options);
	assert_true(has_said(log_file, "socket(AF_INET): DONE"));
	count(&refused, &done, &all);
	assert_true(all);
	assert_true(has_said(log_file, "listen at a port: DONE"));
	assert_int_equal(done, 2);
	stop();
	start(AS_USER | NO_SPACES, weak);
	assert_false(has_said(log_file, "socket(AF_INET): DONE"));
	stop();
}

static void everything_is_refused(void **state)
{
	(void)state;
	all_refused(0, geteuid() ? 31 : 66);
}

static void refused_to_a_user(void **state)
{
	(void)state;
	all_refused(AS_USER, 31);
}

/* Without namespaces, the device starts only if it is told to, and it says what is missing. */
static void without_namespaces(void **state)
{
	static const char *const weak[] = {"--weak-sandbox", NULL};
	char text[4096];
	unsigned int refused, done, how;
	bool all;

	(void)state;
	for (how = NO_SPACES; how <= (NO_SPACES | AS_USER); how++) {
		refuses_to_start(how, NULL, text, sizeof(text));
		assert_non_null(strstr(text, "does not give a user namespace"));
		assert_non_null(strstr(text, "--weak-sandbox"));
		start(how, weak);
		assert_true(has_said(log_file, "WEAK SANDBOX: without a user namespace"));
		count(&refused, &done, &all);
		assert_true(all);
		/* It sees the machine's processes and their commands, and no more. */
		assert_int_equal(done, 2);
		assert_true(refused >= 29);
		stop();
	}
}

static void make_node(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	assert_true(fd >= 0 && !fchmod(fd, 0666));
	close(fd);
}

/* A /dev of this process and its children alone, with the files of one GPU. */
static void replace_dev(void)
{
	static const char *const nodes[] = {"/dev/nvidiactl",
					    "/dev/nvidia-uvm",
					    "/dev/nvidia-uvm-tools",
					    "/dev/nvidia-modeset",
					    "/dev/nvidia0",
					    "/dev/nvidia-caps/nvidia-cap1",
					    "/dev/nvidia-caps/nvidia-cap2"};
	unsigned int i;

	umask(0);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("test", "/dev", "tmpfs", 0, "mode=0755"), 0);
	assert_true(!mkdir("/dev/shm", 0777) && !mkdir("/dev/nvidia-caps", 0755));
	assert_int_equal(mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)), 0);
	assert_int_equal(mknod("/dev/zero", S_IFCHR | 0666, makedev(1, 5)), 0);
	assert_int_equal(mknod("/dev/urandom", S_IFCHR | 0666, makedev(1, 9)), 0);
	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		make_node(nodes[i]);
}

/* A mirror has the files of its GPU, and no others of NVIDIA's. */
static void files_of_gpus(void **state)
{
	unsigned int how, refused, done;
	char text[4096];
	bool all;

	(void)state;
	if (geteuid() || strcmp(getenv("QCU_TEST_BACKEND"), "soft")) {
		print_message("skipped: it needs root, and a machine without a GPU\n");
		skip();
	}
	replace_dev();
	for (how = 0; how <= AS_USER; how++) {
		start(how, NULL);
		assert_true(has_said(log_file, "/dev/nvidia0 is there"));
		assert_true(has_said(log_file, "/dev/nvidiactl is there"));
		assert_true(has_said(log_file, "/dev/nvidia-uvm is there"));
		assert_true(has_said(log_file, "a file in its memory is there"));
		count(&refused, &done, &all);
		assert_true(all);
		assert_int_equal(done, 0);
		stop();
	}
	/* With a second GPU it cannot be told which one is the VM's. */
	make_node("/dev/nvidia1");
	refuses_to_start(0, NULL, text, sizeof(text));
	assert_non_null(strstr(text, "a way to tell this VM's GPUs from others"));
}

/* The number of a GPU's file comes from the driver, which knows it by its place on the bus. */
static void minors(void **state)
{
	char dir[] = "jail-gpus-XXXXXX", path[256];
	unsigned int minor = 0;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_false(plugin_minor(dir, 0, 0x65, 0, &minor));
	snprintf(path, sizeof(path), "%s/0000:65:00.0", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(plugin_minor(dir, 0, 0x65, 0, &minor));
	strcat(path, "/information");
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("Model: \t\t NVIDIA H200\nIRQ:   \t\t 53\nBus Type: \t PCIe\n"
	      "Device Minor: \t 5\nGPU Excluded:\t No\n",
	      f);
	fclose(f);
	assert_true(plugin_minor(dir, 0, 0x65, 0, &minor));
	assert_int_equal(minor, 5);
	assert_false(plugin_minor(dir, 1, 0x65, 0, &minor));
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	rmdir(dir);
}

#define UUID  "01234567-89ab-cdef-0123-456789abcdef"
#define OTHER "fedcba98-7654-3210-fedc-ba9876543210"
#define MORE  "11111111-2222-3333-4444-555555555555"

static void bad_names(void **state)
{
	static const char *const bad[] = {
		"GPU-",
		"GPU-0",
		"GPU" UUID,
		"gpu-" UUID,
		"MIG-" UUID "0",
		"MIG-" UUID ",",
		"GPU-" UUID " ",
		"GPU-" UUID "," UUID,
		"MIG-GPU-" UUID "/1/0",
		"MIG-" UUID ",GPU-" OTHER,
		"GPU-" OTHER ",MIG-" UUID,
		"GPU-01234567x89ab-cdef-0123-456789abcdef",
		"GPU-0123456789ab-cdef-0123-456789abcdef0",
	};
	static struct jail_gpus g;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (!gpus_choose(&g, bad[i]))
			fail_msg("%s", bad[i]);
}

/* The names that the operator gives, what CUDA has found by them, and what a broker is called. */
static void names(void **state)
{
	static const unsigned char uuid[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
					     0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
	static struct jail_gpus g;
	char name[64];

	(void)state;
	assert_null(gpus_check(&g));
	assert_null(gpus_choose(&g, "GPU-" UUID ",GPU-" OTHER));
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "GPU-" UUID ",GPU-" OTHER);
	assert_int_equal(g.named, 2);
	g.devices = 1;
	assert_non_null(gpus_check(&g));
	g.devices = 2;
	assert_non_null(gpus_check(&g));
	memcpy(g.uuid[1], uuid, sizeof(uuid));
	memcpy(g.uuid[0], g.chosen[1], sizeof(uuid));
	assert_null(gpus_check(&g));
	gpus_name(&g, 1, name, sizeof(name));
	assert_string_equal(name, "GPU-" UUID);
	g.devices = 3;
	assert_non_null(gpus_check(&g));

	/* One more, for what leaves them. */
	assert_non_null(gpus_add_store(&g, "GPU-" OTHER));
	assert_non_null(gpus_add_store(&g, "MIG-" MORE));
	assert_non_null(gpus_add_store(&g, "GPU-1"));
	assert_false(g.store);
	assert_null(gpus_choose(&g, "GPU-" UUID ",GPU-" OTHER));
	assert_null(gpus_add_store(&g, "GPU-" MORE));
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "GPU-" UUID ",GPU-" OTHER ",GPU-" MORE);
	assert_true(g.store && g.named == 3);
	memcpy(g.uuid[2], g.chosen[2], sizeof(uuid));
	assert_null(gpus_check(&g));
	g.store_unreached = true;
	assert_non_null(gpus_check(&g));
	g.store = g.store_unreached = false;

	assert_null(gpus_choose(&g, "MIG-" UUID));
	assert_int_equal(g.named, 1);
	assert_non_null(gpus_check(&g));
	g.devices = 1;
	assert_null(gpus_check(&g));
	gpus_name(&g, 0, name, sizeof(name));
	assert_string_equal(name, "MIG-" UUID);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/* Numbers of GPUs mean others where fewer GPUs can be opened. */
static void numbers(void **state)
{
	struct jail_gpus g = {.known = true, .devices = 1};

	(void)state;
	assert_null(gpus_choose(&g, "GPU-" UUID ",GPU-" OTHER));
	memcpy(g.uuid, g.chosen, sizeof(g.uuid));
	gpus_name_numbers(&g);
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "GPU-" UUID ",GPU-" OTHER);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	gpus_name_numbers(&g);
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "GPU-" UUID);
	setenv("CUDA_VISIBLE_DEVICES", "3,0", 1);
	g.devices = 2;
	gpus_name_numbers(&g);
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "GPU-" UUID ",GPU-" OTHER);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	g.split[1] = true;
	gpus_name_numbers(&g);
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "0");
	unsetenv("CUDA_VISIBLE_DEVICES");
	gpus_name_numbers(&g);
	assert_null(getenv("CUDA_VISIBLE_DEVICES"));
}

/* The files of a part of a GPU, in the list that the driver makes. */
static void parts(void **state)
{
	char path[] = "jail-parts-XXXXXX";
	struct jail_gpus g = {.known = true};
	unsigned int minor[8];
	FILE *f;

	(void)state;
	assert_int_equal(gpus_part_files(&g, path, 0, minor, 8), 0);
	f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fputs("config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
	      "gpu0/gi1/ci1/access 14\ngpu0/gi11/access 102\ngpu0/gi11/ci1/access 104\n"
	      "gpu10/gi1/access 1362\ngpu0/gi\ngpu0/gix 7\ngpu0/config 8\n",
	      f);
	fclose(f);
	/* All parts of one GPU, and nothing that is about no part. */
	assert_int_equal(gpus_part_files(&g, path, 0, minor, 8), 5);
	assert_int_equal(minor[0], 12);
	assert_int_equal(minor[4], 104);
	assert_int_equal(gpus_part_files(&g, path, 0, minor, 2), 2);
	assert_int_equal(gpus_part_files(&g, path, 1, minor, 8), 0);
	g.part_known = true;
	g.part_instance = g.part_compute = 1;
	assert_int_equal(gpus_part_files(&g, path, 0, minor, 8), 2);
	assert_int_equal(minor[0], 12);
	assert_int_equal(minor[1], 14);
	unlink(path);
}

/* Without a jail, some of the same attempts succeed. A message says that there is no jail. */
static void without_a_jail(void **state)
{
	static const char *const off[] = {"--no-sandbox", NULL};
	unsigned int refused, done;
	bool all;

	(void)state;
	setenv("QCU_TEST_NO_SANDBOX", "1", 1);
	start(0, off);
	unsetenv("QCU_TEST_NO_SANDBOX");
	count(&refused, &done, &all);
	assert_true(all);
	assert_int_equal(done, 7);
	assert_int_equal(refused, 0);
	assert_true(has_said(log_file, "NO SANDBOX"));
	stop();
}

static unsigned long number(pid_t pid, const char *file, const char *format)
{
	char path[64], line[256];
	unsigned long value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, format, &value) != 1)
		;
	fclose(f);
	return value;
}

/* Returns where the first mapping with this name begins. */
static unsigned long place(pid_t pid, const char *name)
{
	char path[64], line[512];
	unsigned long at = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!at && fgets(line, sizeof(line), f))
		if (strstr(line, name))
			sscanf(line, "%lx-", &at);
	fclose(f);
	assert_int_not_equal(at, 0);
	return at;
}

/* An ordinary user, no capabilities, no new privileges, and randomised addresses. */
static void rights_and_addresses(void **state)
{
	unsigned long mine = number(getpid(), "status", "Uid: %lu"), stack[2], first[2];
	pid_t pid[2];
	unsigned int i;

	(void)state;
	start(0, NULL);
	for (i = 0; i < 2; i++) {
		struct qCUcmd info = {.op = QCU_OP_INFO, .tid = 1};

		assert_int_equal(fe_ask(&fe, i + 1, &info, 0, 0), 0);
		pid[i] = fe_mirror(&fe, i + 1);
		assert_true(pid[i] > 0);
		if (!geteuid())
			assert_int_not_equal(number(pid[i], "status", "Uid: %lu"), mine);
		assert_int_equal(number(pid[i], "status", "CapPrm: %lx"), 0);
		assert_int_equal(number(pid[i], "status", "CapEff: %lx"), 0);
		assert_int_equal(number(pid[i], "status", "NoNewPrivs: %lu"), 1);
		assert_int_equal(number(pid[i], "status", "Seccomp: %lu"), 2);
		stack[i] = place(pid[i], "[stack]");
		first[i] = place(pid[i], "/ld-linux");
	}
	/* Each mirror, and the main process, is another user, and has another pid for itself. */
	if (!geteuid()) {
		assert_int_not_equal(number(pid[0], "status", "Uid: %lu"),
				     number(pid[1], "status", "Uid: %lu"));
		assert_int_not_equal(number(pid[0], "status", "Uid: %lu"),
				     number(fe.server, "status", "Uid: %lu"));
	}
	assert_int_not_equal(number(pid[0], "status", "NSpid: %*lu %lu"),
			     number(pid[1], "status", "NSpid: %*lu %lu"));
	assert_true(number(pid[0], "status", "NSpid: %*lu %lu") > 1);
	assert_int_equal(number(fe.server, "status", "CapEff: %lx"), 0);
	assert_int_equal(number(fe.server, "status", "Seccomp: %lu"), 2);
	assert_int_not_equal(stack[0], stack[1]);
	assert_int_not_equal(first[0], first[1]);
	stop();
}

static uint64_t distance_of(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The address of device memory does not tell where a mirror's code is. */
static void device_addresses(void **state)
{
	uint64_t seen[3];
	unsigned int i, j, near = 0;

	(void)state;
	start(0, NULL);
	fe_queue_start(&fe, 3);
	assert_int_equal(fe_open(&fe, 3), 0);
	for (i = 0; i < 3; i++) {
		struct qCUcmd cmd = {.op = QCU_OP_MALLOC, .tid = 1, .malloc = {.size = 1 << 20}};
		pid_t pid;

		assert_int_equal(fe_ask(&fe, i + 1, &cmd, 0, 0), 0);
		pid = fe_mirror(&fe, i + 1);
		assert_true(pid > 0);
		seen[i] = cmd.malloc.ptr - place(pid, "/libc.so.6");
		for (j = 0; j < i; j++)
			near += distance_of(seen[i], seen[j]) <= 64u << 20;
	}
	/* Two of them may be alike by chance, once in 3000 times. */
	assert_true(near < 2);
	stop();
}

/* When the main process is killed, nothing of it is left. */
static void all_end_with_main(void **state)
{
	struct pollfd end[4];
	pid_t pid[4];
	unsigned int i;
	int status;

	(void)state;
	start(0, NULL);
	pid[0] = fe_mirror(&fe, 1);
	pid[1] = fe_mirror(&fe, 2);
	pid[2] = fe_child(&fe, "qcu-first", 0);
	pid[3] = fe_child(&fe, "qcu-nursery", 0);
	for (i = 0; i < 4; i++) {
		assert_true(pid[i] > 0);
		end[i] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pid[i], 0),
					 .events = POLLIN};
		assert_true(end[i].fd >= 0);
	}
	kill(fe.server, SIGKILL);
	for (i = 0; i < 4; i++) {
		assert_int_equal(poll(&end[i], 1, 20000), 1);
		close(end[i].fd);
	}
	status = fe_stop(&fe);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	fclose(log_file);
}

/* A GPU whose kernels could reach the mirror's own memory is used only if it is named. */
static void open_gpu(void **state)
{
	char gpu_option[] = "--gpu", gpu[] = "cuda", fd_option[] = "--fd", fd[] = "0";
	static const char option[] = "--let-kernels-reach-all-memory", *const options[] = {option,
											   NULL};
	char line[512];
	char *argv[] = {program, gpu_option, gpu, fd_option, fd, NULL};
	int status, pair[2];
	bool said = false;
	FILE *log;
	pid_t pid;

	(void)state;
	setenv("QCU_TEST_PAGEABLE", "1", 1);
	log = tmpfile();
	assert_non_null(log);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (!pid) {
		dup2(pair[1], 0);
		dup2(fileno(log), 2);
		execv(program, argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	rewind(log);
	while (fgets(line, sizeof(line), log))
		said |= strstr(line, "HMM or ATS") && strstr(line, option);
	assert_true(said);
	fclose(log);
	close(pair[0]);
	close(pair[1]);
	start(0, options);
	stop();
	unsetenv("QCU_TEST_PAGEABLE");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_is_refused, open_sockets, close_sockets),
		cmocka_unit_test_setup_teardown(refused_to_a_user, open_sockets, close_sockets),
		cmocka_unit_test_setup_teardown(without_namespaces, open_sockets, close_sockets),
		cmocka_unit_test_setup_teardown(ports_for_dumps, open_sockets, close_sockets),
		cmocka_unit_test(without_a_jail),
		cmocka_unit_test(rights_and_addresses),
		cmocka_unit_test(device_addresses),
		cmocka_unit_test(all_end_with_main),
		cmocka_unit_test(open_gpu),
		cmocka_unit_test(minors),
		cmocka_unit_test(bad_names),
		cmocka_unit_test(names),
		cmocka_unit_test(numbers),
		cmocka_unit_test(parts),
		/* The last one: it changes this process's /dev. */
		cmocka_unit_test(files_of_gpus),
	};

	if (argc > 2 && !strcmp(argv[1], "--refuse-namespaces"))
		return refuse_namespaces(argv + 2);
	return cmocka_run_group_tests(tests, find_programs, NULL);
}
