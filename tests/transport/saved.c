// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * See saved.h. The new mirror's memory lies at the same addresses of this process, so the old one
 * ends first: a session that was saved and cannot be restored ends the program. CUDA's context
 * stays: a new one in the same process would take addresses that the session has had.
 */
#define _GNU_SOURCE /* memfd_create, program_invocation_short_name */
#include "tests/transport/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "qcu-device/base/spin.h"
#include "qcu-device/memory/ahead.h"
#include "qcu-device/mirror/going.h"
#include "qcu-device/mirror/save.h"

/* How long a session may work before it counts as busy. */
#define WAIT_MS 300

static pthread_rwlock_t sending = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool wanted;
static unsigned int left;	   /* how often yet; under `sending` */
static _Atomic uint64_t every = 2; /* before one command in so many */
static uint64_t random_state;
static const char *when; /* NULL: at any time */

/* What has gone ahead of this session, and a list of it; -1: nothing. Under `sending`. */
static struct ahead_file came = {.fd = -1};
static int sent = -1;

static void read_settings(void)
{
	const char *text = getenv("QCU_LOOPBACK_SAVE");
	unsigned long long seed;
	unsigned int times;

	if (text && sscanf(text, "%llu:%u", &seed, &times) == 2) {
		random_state = seed * 0x9e3779b97f4a7c15u + 1;
		wanted = true;
		when = getenv("QCU_LOOPBACK_SAVE_WHEN");
		left = times;
	}
}

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = __atomic_add_fetch(&random_state, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void note(const char *what, const char *why)
{
	const char *file = getenv("QCU_LOOPBACK_SAVED");
	int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	char line[400];

	if (fd < 0)
		return;
	snprintf(line, sizeof(line), "%s%s\n", what, why);
	if (write(fd, line, strlen(line)) < 0)
		perror(file);
	close(fd);
}

void saved_enter(void)
{
	pthread_once(&once, read_settings);
	if (wanted)
		pthread_rwlock_rdlock(&sending);
}

void saved_leave(void)
{
	if (wanted)
		pthread_rwlock_unlock(&sending);
}

void saved_forked(void)
{
	static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;

	sending = fresh;
	came = (struct ahead_file){.fd = -1};
	sent = -1;
}

void saved_setup(struct mir_config *cfg)
{
	pthread_once(&once, read_settings);
	/* Memory of the software GPU has its addresses in any case. */
	if (wanted && cfg->ops != &be_soft)
		cfg->options.movable = true;
}

static double now(void)
{
	return (double)spin_clock() * 1e-9;
}

/* A line with what it took, into the file of QCU_LOOPBACK_SAVE_TIMES. */
static void note_times(const double at[4], int fd)
{
	const char *file = getenv("QCU_LOOPBACK_SAVE_TIMES");
	FILE *f = file ? fopen(file, "ae") : NULL;

	if (!f)
		return;
	fprintf(f, "saved %lld bytes in %.3f s, ended in %.3f s, restored in %.3f s\n",
		(long long)lseek(fd, 0, SEEK_END), at[1] - at[0], at[2] - at[1], at[3] - at[2]);
	fclose(f);
}

/* A copy for the fuzzer, into the folder of QCU_LOOPBACK_ARCHIVES. */
static void keep_archive(int fd)
{
	const char *folder = getenv("QCU_LOOPBACK_ARCHIVES");
	off_t len = lseek(fd, 0, SEEK_END), at = 0;
	char path[4096];
	int to;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%s.%d.%u", folder, program_invocation_short_name, getpid(),
		 left);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (to < 0 || sendfile(to, fd, &at, (size_t)len) != len)
		perror(path);
	close(to);
}

static void forget_ahead(void)
{
	ahead_close(&came);
	if (sent >= 0)
		close(sent);
	sent = -1;
}

static void take_pieces(struct mirror *m, const uint8_t *bytes)
{
	struct ahead_piece p;

	while (mir_ahead_next(m, &p)) {
		p.sum = ahead_sum(bytes, p.len);
		if (!ahead_put(&came, &p, bytes) || write(sent, &p, sizeof(p)) != sizeof(p))
			break;
	}
	mir_ahead_end(m);
}

/* What has gone before goes again if it has been written since. */
static void go_ahead(struct mirror *m)
{
	int buffer = memfd_create("buffer", MFD_CLOEXEC);
	const bool again = sent >= 0;
	void *bytes = MAP_FAILED;
	uint64_t changed;

	if (!again)
		sent = memfd_create("sent", MFD_CLOEXEC);
	if (buffer >= 0 && sent >= 0 && !ftruncate(buffer, AHEAD_BYTES))
		bytes = mmap(NULL, AHEAD_BYTES, PROT_READ, MAP_SHARED, buffer, 0);
	if (bytes != MAP_FAILED) {
		if (again ? mir_ahead_again(m, buffer, sent, UINT64_MAX, UINT64_MAX, &changed)
			  : mir_ahead_begin(m, buffer))
			take_pieces(m, bytes);
		mir_ahead_forget(m);
		munmap(bytes, AHEAD_BYTES);
	} else {
		forget_ahead();
	}
	if (buffer >= 0)
		close(buffer);
}

/* Only when the GPU has no work: this thread may be the one for which work waits. */
static void try_ahead(struct mirror *m)
{
	bool passes;
	char why[256];

	if (mir_can_save(m, WAIT_MS, &passes, why, sizeof(why)))
		go_ahead(m);
}

static bool restore(struct mirror *m, int fd, char *why, size_t size)
{
	bool ok;

	if (came.fd >= 0)
		mir_ahead_came(m, came.fd);
	ok = mir_restore(m, fd, why, size);
	mir_ahead_drop(m);
	return ok;
}

static void move(struct mirror **mirror, const struct mir_config *cfg, int fd)
{
	double at[4] = {now()};
	struct mir_request *parked;
	char why[256] = "no mirror";

	if (sent >= 0)
		mir_ahead_sent(*mirror, sent);
	if (!mir_save(*mirror, fd, WAIT_MS, why, sizeof(why))) {
		note("refused: ", why);
		return;
	}
	at[1] = now();
	keep_archive(fd);
	parked = mir_unpark(*mirror);
	mir_destroy(*mirror);
	at[2] = now();
	lseek(fd, 0, SEEK_SET);
	if (mir_create(mirror, cfg) || !restore(*mirror, fd, why, sizeof(why))) {
		note("lost: ", why);
		fprintf(stderr, "qcuda: the saved session is lost: %s\n", why);
		abort();
	}
	at[3] = now();
	note_times(at, fd);
	if (parked)
		mir_submit(*mirror, parked);
	note(came.fd >= 0 ? "saved, and memory had gone ahead" : "saved", "");
	forget_ahead();
}

void saved_try(struct mirror **mirror, const struct mir_config *cfg)
{
	int fd;

	pthread_once(&once, read_settings);
	if (!wanted || (when && access(when, F_OK)) || next_random() % every)
		return;
	fd = memfd_create("session", MFD_CLOEXEC);
	if (fd < 0)
		return;
	if (!pthread_rwlock_wrlock(&sending)) {
		/* The session is saved at a later one of these moments. */
		if (*mirror && left && next_random() % 2) {
			try_ahead(*mirror);
		} else if (*mirror && left) {
			left--;
			every *= 2;
			move(mirror, cfg, fd);
		}
		pthread_rwlock_unlock(&sending);
	}
	close(fd);
}
