// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Settings of the loopback transport's mirror, from the environment:
 *
 * - QCU_LOOPBACK_GPUS: the number of devices.
 * - QCU_LOOPBACK_BACKEND: the file of another backend, so that the real GPU can be measured without
 *   a VM.
 * - QCU_LOOPBACK_SHARED: a file. Processes that use the same file can give each other memory and
 *   events, as processes of one VM can.
 * - QCU_LOOPBACK_SHARE: a folder with the socket of a qcu-share for the GPU "soft". The program is
 * a VM of its own there, with the weight QCU_LOOPBACK_WEIGHT, at most QCU_LOOPBACK_MAX percent, and
 *   interactive with QCU_LOOPBACK_INTERACTIVE. QCU_LOOPBACK_RESIDENT: as --resident, in MiB.
 *   QCU_LOOPBACK_SWAP_ALL: as --swap-all, in MiB.
 *   QCU_LOOPBACK_MEMORY: the GPU's memory, in MiB, as the broker hears of it.
 * - QCU_LOOPBACK_NVML: full or none, as qcu-device's --nvml.
 * - QCU_TRACE: one line per command on stderr.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qcu-device/base/limits.h"
#include "qcu-device/memory/shares.h"
#include "qcu-device/turns/keeper.h"
#include "tests/transport/settings.h"

const struct be_ops *loopback_backend(void)
{
	const char *file = getenv("QCU_LOOPBACK_BACKEND");
	const struct be_ops *ops = NULL;
	be_plugin_fn *fn;
	void *lib;

	if (!file || !*file)
		return &be_soft;
	/*
	 * In a mirror process of its own the GPU driver would use libc's malloc. Loading the driver
	 * first, with RTLD_DEEPBIND, makes it do so here, too: the first dlopen of a library
	 * decides. This does nothing if the driver is not installed. RTLD_DEEPBIND also makes the
	 * backend find CUDA's functions in itself, not in this library.
	 */
	dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	lib = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (lib) {
		*(void **)&fn = dlsym(lib, BE_PLUGIN_SYMBOL);
		ops = fn ? fn() : NULL;
	}
	if (!ops || ops->abi != BE_ABI) {
		fprintf(stderr, "qcuda: QCU_LOOPBACK_BACKEND=%s: %s\n", file,
			lib ? "no backend of this version" : dlerror());
		return NULL;
	}
	return ops;
}

/*
 * No process gives out sessions here. So each process takes the first number that no living process
 * has: it locks the byte of that number in the file, until it ends. 0: none is left.
 */
static unsigned int take_session(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	for (lock.l_start = 1; lock.l_start <= QCU_MAX_SESSIONS; lock.l_start++)
		if (!fcntl(fd, F_SETLK, &lock))
			return (unsigned int)lock.l_start;
	return 0;
}

void loopback_join_others(struct mir_config *cfg)
{
	const char *file = getenv("QCU_LOOPBACK_SHARED");
	int fd = file && *file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	cfg->shares = shares_new(fd);
	cfg->session = cfg->shares ? take_session(fd) : 0;
	/* Closing the file would end the lock. */
	if (cfg->session) {
		shares_end(cfg->shares, cfg->session);
		return;
	}
	close(fd);
	fprintf(stderr, "qcuda: QCU_LOOPBACK_SHARED=%s: it is full, or cannot be mapped\n", file);
	shares_free(cfg->shares);
	cfg->shares = NULL;
}

static uint32_t share_number(const char *name, uint32_t otherwise)
{
	const char *value = getenv(name);

	return value && *value ? (uint32_t)strtoul(value, NULL, 10) : otherwise;
}

void loopback_share(struct mir_config *cfg)
{
	struct keeper_gpu gpu[2] = {{.name = "soft"}, {.name = "soft1"}};
	const char *folder = getenv("QCU_LOOPBACK_SHARE"), *why;
	struct turns_hello hello = {
		.magic = TURNS_MAGIC,
		.version = TURNS_VERSION,
		.weight = share_number("QCU_LOOPBACK_WEIGHT", TURNS_WEIGHT),
		.max = share_number("QCU_LOOPBACK_MAX", 0),
		.interactive = share_number("QCU_LOOPBACK_INTERACTIVE", 0),
		.moves = cfg->options.movable,
		.resident = (uint64_t)share_number("QCU_LOOPBACK_RESIDENT", 0) << 20,
		.swap = cfg->limits ? cfg->limits->vm[LIMIT_SWAP] + cfg->options.store +
					      cfg->limits->vm[LIMIT_SWAP_FILE]
				    : 0,
		.stores = (uint64_t)share_number("QCU_LOOPBACK_SWAP_ALL", 0) << 20,
	};
	struct keeper k;

	if (!folder || !*folder)
		return;
	gpu[0].memory = (uint64_t)share_number("QCU_LOOPBACK_MEMORY", 0) << 20;
	gpu[1].store = cfg->options.store;
	snprintf(hello.name, sizeof(hello.name), "%d", (int)getpid());
	why = keeper_start(&k, &hello, folder, gpu, cfg->options.store ? 2 : 1, NULL);
	if (why || !turns_map(&cfg->turns, k.gpus, k.orders, k.reports, k.bell))
		fprintf(stderr, "qcuda: QCU_LOOPBACK_SHARE=%s: %s\n", folder,
			why ? why : "no memory");
	else if (!cfg->session)
		cfg->session = 1;
}
