// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend is a shared object that only mirrors load. A process that has initialised CUDA
 * must not fork, and a fault in it must not take other sessions along; so even the question
 * whether there is a GPU is asked in a child.
 */
#define _GNU_SOURCE /* dladdr's neighbours, program_invocation_name */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/device.h"

#define PLUGIN_FILE "be_cuda.so"

/* QCU_BACKEND_DIR, or where this program lies. */
static int plugin_path(char *path, size_t size)
{
	const char *dir = getenv("QCU_BACKEND_DIR");
	char exe[4096], *slash;
	ssize_t n;
	int len;

	if (!dir || !*dir) {
		n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		if (n < 0)
			return -errno;
		exe[n] = 0;
		slash = strrchr(exe, '/');
		if (slash)
			*slash = 0;
		dir = exe;
	}
	len = snprintf(path, size, "%s/" PLUGIN_FILE, dir);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

static const struct be_ops *load(bool quiet)
{
	char path[4096 + sizeof("/" PLUGIN_FILE)];
	const struct be_ops *ops;
	be_plugin_fn *fn;
	void *lib;
	int rc = plugin_path(path, sizeof(path));

	if (rc) {
		if (!quiet)
			fprintf(stderr, "qcu-device: where is " PLUGIN_FILE "? %s\n",
				strerror(-rc));
		return NULL;
	}
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		if (!quiet)
			fprintf(stderr, "qcu-device: the cuda backend cannot be loaded: %s\n",
				dlerror());
		return NULL;
	}
	*(void **)&fn = dlsym(lib, BE_PLUGIN_SYMBOL);
	ops = fn ? fn() : NULL;
	if (!ops || ops->abi != BE_ABI) {
		fprintf(stderr,
			"qcu-device: %s is not a backend of this version (it has abi %u, we need "
			"%u)\n",
			path, ops ? ops->abi : 0, BE_ABI);
		return NULL;
	}
	return ops;
}

const struct be_ops *plugin_load(void)
{
	return load(false);
}

enum plugin_probe plugin_probe(bool quiet)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		const struct be_ops *ops = load(quiet);

		if (!ops)
			_exit(PLUGIN_MISSING);
		_exit(!ops->probe || ops->probe() ? PLUGIN_GPU : PLUGIN_NO_GPU);
	}
	if (pid < 0) {
		fprintf(stderr, "qcu-device: fork: %s\n", strerror(errno));
		return PLUGIN_MISSING;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return PLUGIN_MISSING;
	if (WIFSIGNALED(status) && !quiet)
		fprintf(stderr,
			"qcu-device: the cuda backend crashed while looking for a GPU: %s\n",
			strsignal(WTERMSIG(status)));
	return WIFEXITED(status) ? (enum plugin_probe)WEXITSTATUS(status) : PLUGIN_NO_GPU;
}
