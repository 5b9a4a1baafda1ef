// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device memory that leaves at random moments:
 *
 * - QCU_LOOPBACK_EVICT=N: some of it leaves once in N requests, by chance; all of it one time in
 *   two. At the end, QCU_LOOPBACK_EVICT_COUNT names a file that gets the number of bytes that left.
 * - QCU_LOOPBACK_EVICT_MS=N: the same, N milliseconds after it last left.
 * - QCU_LOOPBACK_SWAP=BYTES: it leaves when others need it, to at most so much host memory.
 * - QCU_LOOPBACK_SWAP_GPU=BYTES: first to the memory of another GPU, "soft1" for the broker.
 * - QCU_LOOPBACK_SWAP_FILE=FOLDER:BYTES: and to a file there, of at most so many bytes.
 * - QCU_LOOPBACK_SWAP_VM=FILE:SESSION: this process is one session of the VM that has this file.
 *   All bounds are the VM's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/base/limits.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/base/usage.h"
#include "qcu-device/commands/swap/swap.h"
#include "tests/transport/evict.h"

static _Atomic uint64_t chance, moved, next_ns;
static unsigned long every, every_ms;

static void tell_moved(void)
{
	const char *path = getenv("QCU_LOOPBACK_EVICT_COUNT");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%llu\n", (unsigned long long)atomic_load(&moved));
	fclose(f);
}

static unsigned long number_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 10) : 0;
}

/* NAME:NUMBER in the environment. Returns what is before the colon, or NULL. */
static char *pair_of(const char *name, uint64_t *number)
{
	static char text[4096];
	const char *value = getenv(name);
	char *colon;

	snprintf(text, sizeof(text), "%s", value ? value : "");
	colon = strrchr(text, ':');
	if (!colon)
		return NULL;
	*colon = '\0';
	*number = strtoull(colon + 1, NULL, 10);
	return text;
}

static void open_file(struct mir_config *cfg, struct limits *limits)
{
	const char *folder = pair_of("QCU_LOOPBACK_SWAP_FILE", &limits->vm[LIMIT_SWAP_FILE]);

	cfg->store_file = folder ? store_file_open(folder) : 0;
	if (cfg->store_file >= 0)
		return;
	fprintf(stderr, "qcuda: QCU_LOOPBACK_SWAP_FILE: %s: %s\n", folder, strerror(errno));
	cfg->store_file = 0;
}

static void join_vm(struct mir_config *cfg)
{
	uint64_t session = 0;
	const char *file = pair_of("QCU_LOOPBACK_SWAP_VM", &session);
	int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	cfg->session = (unsigned int)session % QCU_MAX_SESSIONS;
	cfg->usage = usage_new(fd);
	close(fd);
	if (cfg->usage)
		usage_end(cfg->usage, cfg->session);
}

void evict_setup(struct mir_config *cfg)
{
	static struct limits limits;
	const char *swap = getenv("QCU_LOOPBACK_SWAP");

	every = number_of("QCU_LOOPBACK_EVICT");
	every_ms = number_of("QCU_LOOPBACK_EVICT_MS");
	cfg->options.movable = every || every_ms || (swap && *swap);
	cfg->limits = &limits;
	if (swap && *swap)
		limits.vm[LIMIT_SWAP] = strtoull(swap, NULL, 10);
	cfg->options.store = limits.vm[LIMIT_SWAP_GPU] = number_of("QCU_LOOPBACK_SWAP_GPU");
	open_file(cfg, &limits);
	join_vm(cfg);
	if ((every || every_ms) && !atomic_exchange(&chance, every + every_ms))
		atexit(tell_moved);
}

static uint64_t next_chance(void)
{
	uint64_t old = atomic_load(&chance), x;

	do {
		x = old * 6364136223846793005ull + 1442695040888963407ull;
	} while (!atomic_compare_exchange_weak(&chance, &old, x));
	return x >> 33;
}

/* One thread has its time. */
static bool is_time(void)
{
	uint64_t now, next = atomic_load(&next_ns);

	if (!every_ms)
		return false;
	now = spin_clock();
	return now >= next &&
	       atomic_compare_exchange_strong(&next_ns, &next, now + every_ms * 1000000);
}

void evict_now_and_then(struct mirror *m)
{
	uint64_t want = UINT64_MAX;
	const char *why;
	unsigned int i;

	if (!m->swap || !((every && !(next_chance() % every)) || is_time()))
		return;
	if (next_chance() % 2)
		want = 1 + next_chance() % (4 << 20);
	for (i = 0; i < m->devices; i++)
		atomic_fetch_add(&moved, mir_swap_leave(m, i, want, &why));
}
