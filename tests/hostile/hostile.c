// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile guest, against a real qcu-device with real mirrors. Each attack gets a device of its
 * own. In this device the good program goes on computing. docs/hostile-tests.md describes the
 * attacks.
 *
 * The device has held if at most the attack's own session has ended. The device lives, goes on
 * serving, and ends well when its VM does. No mirror has died, except by the device's own kill or
 * for a broken rule.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

static const struct attack random_attack = {
	"random", random_play, {"--vram", "256M", "--limit", "device-memory=24M"}, false, ""};
static const struct attack *const all[] = {map_attacks,	 image_attacks, handle_attacks,
					   ring_attacks, wear_attacks,	log_attacks,
					   read_attacks, graph_attacks};
#define FILES (sizeof(all) / sizeof(all[0]))

static struct host_options host;
static struct scene scene;

static const char usage[] =
	"usage: hostile [options] [ATTACK]...\n"
	"  --list             the names of the attacks, and what each does\n"
	"  --random SECONDS   any commands, segments, rings and messages, for so long\n"
	"  --commands N       and no more than N of them; also without --random\n"
	"  --seed N           of the random choice\n"
	"  --device PATH      the qcu-device that is attacked (beside this program's folder)\n"
	"  --arg ARG          one more argument for it\n"
	"  --print            what it says is printed at once\n";

/*
 * The attacker's session gets its own limit of device memory, a little less than all of the VM's.
 * Otherwise it could take all of it, and the good session would fail although the device is right.
 */
static const char *memory_limit(const struct attack *a)
{
	static char text[40];
	unsigned long vram = 256;
	unsigned int i;

	for (i = 0; i < 6 && a->arg[i]; i++) {
		if (!strcmp(a->arg[i], "--limit"))
			return NULL;
		if (!strcmp(a->arg[i], "--vram"))
			vram = strtoul(a->arg[i + 1], NULL, 10);
	}
	snprintf(text, sizeof(text), "device-memory=%luM", vram - 8);
	return text;
}

static bool play(const struct attack *a)
{
	const char *limit = memory_limit(a);
	struct host_options o = host;
	unsigned int n = 0, i;
	bool ok;

	while (o.arg[n])
		n++;
	for (i = 0; i < 6 && a->arg[i] && n < HOST_ARGS - 1; i++)
		o.arg[n++] = a->arg[i];
	if (limit && n < HOST_ARGS - 2) {
		o.arg[n++] = "--limit";
		o.arg[n++] = limit;
	}
	o.quiet = a->quiet;
	host_start(&scene.h, &o);
	guest_start(&scene.g, scene.h.sock);
	good_start(&scene);
	scene.h.fds = (int)host_fds(scene.h.pid);
	ok = a->play(&scene);
	ok &= good_stop();
	if (!host_alive(&scene.h))
		ok = fell("the device is gone");
	guest_stop(&scene.g);
	ok &= host_stop(&scene.h);
	if (!ok && !host.print)
		host_show(&scene.h);
	return ok;
}

/* Runs an attack in a process of its own: a failure there ends this attack only. */
static bool run(const struct attack *a)
{
	struct timespec from, to;
	int status;
	pid_t pid;

	fflush(NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	pid = fork();
	if (pid < 0)
		die("fork failed");
	if (!pid)
		exit(play(a) ? 0 : 1);
	waitpid(pid, &status, 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%s %-24s %.1f s\n", status ? "FAIL" : "ok  ", a->name,
	       (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	return !status;
}

static bool run_named(const char *name)
{
	unsigned int i, n;

	for (i = 0; i < FILES; i++)
		for (n = 0; all[i][n].name; n++)
			if (!strcmp(all[i][n].name, name))
				return run(&all[i][n]);
	if (!strcmp(name, "random"))
		return run(&random_attack);
	die("there is no attack %s (try --list)", name);
}

static bool run_all(void)
{
	unsigned int i, n;
	bool ok = true;

	for (i = 0; i < FILES; i++)
		for (n = 0; all[i][n].name; n++)
			ok &= run(&all[i][n]);
	return ok;
}

static void list(void)
{
	unsigned int i, n;

	for (i = 0; i < FILES; i++)
		for (n = 0; all[i][n].name; n++)
			printf("%-20s %s\n", all[i][n].name, all[i][n].what);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"list", no_argument, NULL, 'l'},
		{"random", required_argument, NULL, 'r'},
		{"commands", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},
		{"device", required_argument, NULL, 'd'},
		{"arg", required_argument, NULL, 'a'},
		{"print", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static char beside[4096];
	uint64_t seed = (uint64_t)time(NULL);
	unsigned int args = 0;
	bool ok = true;
	int o;

	snprintf(beside, sizeof(beside), "%s", argv[0]);
	if (strrchr(beside, '/'))
		*strrchr(beside, '/') = 0;
	strncat(beside, "/../../qcu-device/qcu-device", sizeof(beside) - strlen(beside) - 1);
	host.program = beside;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'l':
			list();
			return 0;
		case 'r':
			scene.seconds = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			scene.limit = strtoull(optarg, NULL, 10);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			host.program = optarg;
			break;
		case 'a':
			if (args < HOST_ARGS / 2)
				host.arg[args++] = optarg;
			break;
		case 'p':
			host.print = true;
			break;
		default:
			fputs(usage, o == 'h' ? stdout : stderr);
			return o == 'h' ? 0 : 2;
		}
	}
	scene.random = seed;
	printf("seed %llu\n", (unsigned long long)seed);
	if (scene.seconds || scene.limit)
		ok = run(&random_attack);
	else if (optind == argc)
		ok = run_all();
	for (; optind < argc; optind++)
		ok &= run_named(argv[optind]);
	return ok ? 0 : 1;
}
