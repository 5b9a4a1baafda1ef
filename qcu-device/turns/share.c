// SPDX-License-Identifier: GPL-2.0-or-later
/* qcu-share: the broker of one GPU (broker.h), or a question to it. */
#define _GNU_SOURCE /* setresuid, setgroups */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "qcu-device/turns/broker.h"
#include "qcu-device/turns/keeper.h"

#define EXIT_USAGE 2
#define NOBODY	   65534u
#define ANSWER_MS  5000
#define MEMORY_MAX (1ul << 30) /* MiB */
#define FILES_MAX  4096	       /* four for each VM */

static const char usage[] =
	"usage: qcu-share --gpu NAME [--folder DIR] [--idle SECONDS] [--memory MIB]\n"
	"                 [--evict MS]\n"
	"       qcu-share --gpu NAME [--folder DIR] --status\n"
	"\n"
	"Tells the VMs of one GPU whose turn it is. qcu-device starts it when it is needed.\n"
	"\n"
	"  --gpu NAME      which GPU: its UUID as nvidia-smi -L shows it, or soft\n"
	"  --folder DIR    where its socket lies (/run/qcuda/share)\n"
	"  --idle SECONDS  end after so long without a VM, 1 to 86400 (never)\n"
	"  --memory MIB    memory that all VMs of the software GPU have together (no bound)\n"
	"  --evict MS      for tests: memory that can leave the GPU does, so often (only when "
	"needed)\n"
	"  --status        print what each VM has had, and end\n"
	"  --version, --help\n";

/* Of the options. 0: not given. */
struct settings {
	unsigned long idle;   /* seconds */
	unsigned long memory; /* MiB */
	unsigned long evict;  /* milliseconds */
};

static int complain_and_fail(const char *what)
{
	fprintf(stderr, "qcu-share: %s: %s\n", what, strerror(errno));
	return EXIT_FAILURE;
}

/* False: it is not ours to serve. */
static bool is_alone(const char *folder, const char *gpu)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.lock", folder, gpu);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* The lock is held until the process ends. */
	return fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB);
}

static int listen_in(const char *folder, const char *gpu)
{
	struct sockaddr_un addr;
	int fd;

	if (!turns_address(&addr, folder, gpu))
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(addr.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    chmod(addr.sun_path, 0600) || listen(fd, 64))
		return -1;
	return fd;
}

/* It needs nothing that root may do. */
static bool give_up_root(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return geteuid() || (!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
			     !setresuid(NOBODY, NOBODY, NOBODY));
}

static int serve(const char *folder, const char *gpu, const struct settings *set)
{
	struct rlimit files = {FILES_MAX, FILES_MAX};
	uid_t owner = geteuid();
	int listener;

	/* The folder of a user is the user's, so that nobody else can take the name. */
	if (mkdir(folder, 0700) && errno != EEXIST)
		return complain_and_fail(folder);
	if (!is_alone(folder, gpu)) {
		if (errno == EWOULDBLOCK)
			return EXIT_SUCCESS;
		return complain_and_fail(folder);
	}
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &files);
	/* Its turns are short, so it should run when its time has come. */
	setpriority(PRIO_PROCESS, 0, -10);
	listener = listen_in(folder, gpu);
	if (listener < 0)
		return complain_and_fail(gpu);
	if (!give_up_root())
		return complain_and_fail("root's rights cannot be given up");
	return broker_serve(listener, owner, (unsigned int)set->idle, (uint64_t)set->memory << 20,
			    (unsigned int)set->evict)
		       ? EXIT_SUCCESS
		       : complain_and_fail("epoll");
}

static int ask(const char *folder, const char *gpu)
{
	const struct turns_hello h = {.magic = TURNS_MAGIC, .version = TURNS_ASK};
	static char text[1 << 17];
	struct pollfd answer = {.fd = turns_connect(folder, gpu), .events = POLLIN};
	int sock = answer.fd;
	ssize_t n;

	if (sock < 0)
		return complain_and_fail(gpu);
	if (send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		return complain_and_fail(gpu);
	if (poll(&answer, 1, ANSWER_MS) == 0)
		errno = ETIMEDOUT;
	n = recv(sock, text, sizeof(text), 0);
	if (n < 0 || fwrite(text, 1, (size_t)n, stdout) != (size_t)n || fflush(stdout))
		return complain_and_fail(gpu);
	return EXIT_SUCCESS;
}

/* A name becomes part of a path. */
static bool is_good_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < KEEPER_GPU_NAME && *name != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       n;
}

static bool take_number(const char *option, const char *text, unsigned long most, unsigned long *n)
{
	char *end;

	*n = strtoul(text, &end, 10);
	if (!*end && end != text && *text != '-' && *n && *n <= most)
		return true;
	fprintf(stderr, "qcu-share: %s %s: a number from 1 to %lu is wanted\n", option, text, most);
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"gpu", required_argument, NULL, 'g'},
		{"folder", required_argument, NULL, 'f'},
		{"idle", required_argument, NULL, 'i'},
		{"memory", required_argument, NULL, 'm'},
		{"evict", required_argument, NULL, 'e'},
		{"status", no_argument, NULL, 's'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *gpu = NULL, *folder = "/run/qcuda/share";
	struct settings set = {0};
	bool status = false;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'g':
			gpu = optarg;
			break;
		case 'f':
			folder = optarg;
			break;
		case 'i':
			if (!take_number("--idle", optarg, 86400, &set.idle))
				return EXIT_USAGE;
			break;
		case 'm':
			if (!take_number("--memory", optarg, MEMORY_MAX, &set.memory))
				return EXIT_USAGE;
			break;
		case 'e':
			if (!take_number("--evict", optarg, 86400000, &set.evict))
				return EXIT_USAGE;
			break;
		case 's':
			status = true;
			break;
		case 'V':
			printf("qcu-share, protocol %u\n", TURNS_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs("Try qcu-share --help.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc || !gpu || !is_good_name(gpu)) {
		fputs(optind < argc ? "qcu-share: it takes options only\n"
		      : !gpu	    ? "qcu-share: --gpu NAME is wanted\n"
				    : "qcu-share: --gpu: letters, digits, and . _ - are wanted\n",
		      stderr);
		fputs("Try qcu-share --help.\n", stderr);
		return EXIT_USAGE;
	}
	return status ? ask(folder, gpu) : serve(folder, gpu, &set);
}
