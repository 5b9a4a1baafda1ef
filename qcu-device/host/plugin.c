// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend is a shared object that only mirrors load. A process that has initialised CUDA
 * must not fork, and a fault in CUDA must not end other sessions. So even the question whether
 * there is a GPU is asked in a child process.
 */
#define _GNU_SOURCE /* dladdr and its like, program_invocation_name */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/device.h"
#include "qcu-device/jail/gpus.h"

#define PLUGIN_FILE "be_cuda.so"

/* Numbers of attributes: cudaDevAttrPciBusId and so on, and cudaDevAttrPageableMemoryAccess. */
#define PCI_BUS		       33
#define PCI_DEVICE	       34
#define PCI_DOMAIN	       50
#define PAGEABLE_MEMORY_ACCESS 88

/* Finds the plugin in QCU_BACKEND_DIR, or else in the folder of this program. */
int plugin_path(char *path, size_t size)
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

static const struct be_ops *load_plugin_ops(const char *path, bool quiet)
{
	const struct be_ops *ops;
	be_plugin_fn *fn;
	void *lib;

	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		if (!quiet)
			complain("the cuda backend cannot be loaded: %s", dlerror());
		return NULL;
	}
	*(void **)&fn = dlsym(lib, BE_PLUGIN_SYMBOL);
	ops = fn ? fn() : NULL;
	if (!ops || ops->abi != BE_ABI) {
		complain("%s is not a backend of this version (it has abi %u, we need %u)", path,
			 ops ? ops->abi : 0, BE_ABI);
		return NULL;
	}
	return ops;
}

const struct be_ops *plugin_load(int fd)
{
	char path[32];
	const struct be_ops *ops;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ops = load_plugin_ops(path, false);
	close(fd);
	return ops;
}

static const struct be_ops *find_and_load(bool quiet)
{
	char path[PLUGIN_PATH_MAX];
	int rc = plugin_path(path, sizeof(path));

	if (!rc)
		return load_plugin_ops(path, quiet);
	if (!quiet)
		fprintf(stderr, "qcu-device: where is " PLUGIN_FILE "? %s\n", strerror(-rc));
	return NULL;
}

bool plugin_minor(const char *proc, unsigned int domain, unsigned int bus, unsigned int slot,
		  unsigned int *minor)
{
	char path[PATH_MAX], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%04x:%02x:%02x.0/information", proc, domain, bus, slot);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Device Minor: %u", minor) == 1;
	if (f)
		fclose(f);
	return found;
}

/* Adds a GPU to those that mirrors may open. A part of one is named for its size: MIG 1g.10gb. */
static bool add_gpu(struct jail_gpus *g, const struct qcu_device_desc *desc)
{
	unsigned int minor, i = 0;

	if (!plugin_minor(NVIDIA_GPUS, (unsigned int)desc->attr[PCI_DOMAIN],
			  (unsigned int)desc->attr[PCI_BUS], (unsigned int)desc->attr[PCI_DEVICE],
			  &minor))
		return false;
	while (i < g->count && g->minor[i] != minor)
		i++;
	if (i == JAIL_GPUS)
		return false;
	g->count += i == g->count;
	g->minor[i] = minor;
	g->split[i] |= g->part[0] || strstr(desc->name, " MIG ") != NULL;
	return true;
}

/* Can all GPUs but the last one, which is the store's, use its memory? */
static bool is_store_reached(const struct be_ops *ops, struct be *be, unsigned int count)
{
	int32_t possible = 1;
	unsigned int i;

	for (i = 0; i + 1 < count && possible; i++)
		if (ops->peer_info(be, i, count - 1, QCU_PEER_POSSIBLE, &possible))
			possible = 0;
	return possible;
}

/*
 * Looks at all GPUs. Could kernels reach memory that is not registered: this process's, and all of
 * the guest's?
 */
static bool reads_everything(const struct be_ops *ops, struct jail_gpus *gpus)
{
	static struct qcu_device_desc desc;
	const struct be_options options = {0};
	unsigned int count = 0, i;
	bool yes = false;
	struct be *be;

	gpus->known = false;
	if (!ops->device_count || !ops->device_desc || ops->open(&be, &options))
		return false;
	if (ops->device_count(be, &count))
		count = 0;
	gpus->known = count > 0;
	for (i = 0; i < count; i++) {
		if (ops->device_desc(be, i, &desc)) {
			gpus->known = false;
			continue;
		}
		yes |= desc.attr[PAGEABLE_MEMORY_ACCESS];
		if (i < JAIL_GPUS) {
			memcpy(gpus->uuid[i], desc.uuid, sizeof(gpus->uuid[i]));
			gpus->memory[i] = desc.total_mem;
			gpus->devices = i + 1;
		}
		gpus->known &= add_gpu(gpus, &desc);
	}
	gpus->store_unreached = gpus->store && !is_store_reached(ops, be, count);
	ops->close(be);
	return yes;
}

static enum plugin_probe probe_backend(bool quiet, struct jail_gpus *gpus)
{
	const struct be_ops *ops = find_and_load(quiet);

	if (!ops)
		return PLUGIN_MISSING;
	if (ops->probe && !ops->probe())
		return PLUGIN_NO_GPU;
	if (gpus->part[0])
		gpus_find_part(gpus);
	return reads_everything(ops, gpus) ? PLUGIN_OPEN_GPU : PLUGIN_GPU;
}

/* The process writes what it has found to the pipe, and ends with its answer. */
enum plugin_probe plugin_probe(bool quiet, struct jail_gpus *gpus)
{
	struct jail_gpus found = *gpus;
	int status, told[2];
	pid_t pid;

	if (pipe2(told, O_CLOEXEC)) {
		fprintf(stderr, "qcu-device: pipe: %s\n", strerror(errno));
		return PLUGIN_MISSING;
	}
	fflush(NULL);
	pid = fork();
	if (!pid) {
		enum plugin_probe answer = probe_backend(quiet, &found);

		_exit(write(told[1], &found, sizeof(found)) == sizeof(found) ? answer
									     : PLUGIN_MISSING);
	}
	close(told[1]);
	if (read(told[0], &found, sizeof(found)) == sizeof(found))
		*gpus = found;
	close(told[0]);
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
