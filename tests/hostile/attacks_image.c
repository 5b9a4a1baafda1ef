// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks with module images: fields that a driver would take for its own pointers, lengths that
 * are wrong, and bytes that change while the device reads them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/attack.h"

#define Q	   ATTACK_FIRST
#define CORPUS	   "tests/fuzz/corpus/fatbin"
#define SEEDS_MAX  64
#define IMAGE_MAX  0x100000u
#define IMAGE	   GUEST_SPACE(Q)
#define CUDA_ERROR 999 /* no cudaError_t is above this */

static struct {
	uint8_t *bytes;
	size_t len;
} seed[SEEDS_MAX];
static unsigned int seeds;

static void add_seed(const void *bytes, size_t len)
{
	if (seeds == SEEDS_MAX || len > IMAGE_MAX)
		return;
	seed[seeds].bytes = malloc(len);
	if (!seed[seeds].bytes)
		die("no memory");
	memcpy(seed[seeds].bytes, bytes, len);
	seed[seeds++].len = len;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads the files always in the same order. */
static void read_corpus(void)
{
	static uint8_t bytes[IMAGE_MAX];
	struct dirent **list;
	char path[600];
	int n = scandir(CORPUS, &list, NULL, by_name), i;
	FILE *f;

	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", CORPUS, list[i]->d_name);
		f = list[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
		if (f) {
			add_seed(bytes, fread(bytes, 1, sizeof(bytes), f));
			fclose(f);
		}
		free(list[i]);
	}
	if (n < 1)
		die("%s: not there", CORPUS);
	free(list);
	add_seed(plain_image, plain_image_bytes);
}

/* The answer must be an error of CUDA's or success, unless the session is over. */
static bool load(struct scene *s, const void *bytes, size_t len, bool must_fail)
{
	int rc;

	memset(s->g.ram + IMAGE, 0, 0x2000);
	memcpy(s->g.ram + IMAGE, bytes, len);
	rc = cmd_load(&s->g, Q, 5, IMAGE, len);
	if (rc == GUEST_GONE) {
		guest_fresh(&s->g, Q);
		return true;
	}
	if (rc < 0 || rc > CUDA_ERROR || (!rc && must_fail))
		return fell("MODULE_LOAD of %zu bytes: %d", len, rc);
	if (!rc) {
		struct qCUcmd c = command(QCU_OP_MODULE_UNLOAD, 1);

		c.module_unload.module = 5;
		if (guest_ask(&s->g, Q, &c, NULL, 0))
			return fell("MODULE_UNLOAD: %d", c.status);
	}
	return true;
}

/*
 * Compilers put a wrapper around a fat binary. The wrapper holds pointers; the device must follow
 * none of them.
 */
static bool image_pointer(struct scene *s)
{
	static const uint64_t to[] = {
		0,
		1,
		0x414141414000ull,
		QCU_WINDOW_BASE,
		QCU_WINDOW_BASE + 0x1000,
		0x400000,
		0x555555554000ull,
		0x7ffff7ff0000ull,
		UINT64_MAX,
		UINT64_MAX - 0xfff,
	};
	struct {
		uint32_t magic, version;
		uint64_t data, file;
		uint8_t more[64];
	} w;
	unsigned int i, version;
	size_t len;

	guest_fresh(&s->g, Q);
	if (cmd_map(&s->g, Q, QCU_WINDOW_BASE, GUEST_SPACE(Q) + 0x400000, 0x10000))
		die("MAP fails");
	memset(&w, 0, sizeof(w));
	w.magic = 0x466243b1;
	for (version = 0; version < 4; version++) {
		for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
			w.version = version;
			w.data = to[i];
			w.file = to[(i + version) % (sizeof(to) / sizeof(to[0]))];
			for (len = 4; len <= sizeof(w); len += 4)
				if (!load(s, &w, len, true))
					return false;
		}
	}
	return true;
}

static void change(struct scene *s, uint8_t *bytes, size_t len)
{
	static const uint32_t odd[] = {0,	   1,	       0x7fffffff, 0x80000000,
				       0xffffffff, 0xfffffff8, 0x10000,	   0x466243b1};
	unsigned int times = 1 + rnd(s, 6);

	while (times--) {
		/* The device parses the headers first. */
		size_t at = rnd(s, 2) ? rnd(s, (uint32_t)(len < 256 ? len : 256))
				      : rnd(s, (uint32_t)len);

		if (rnd(s, 2) && len >= 4 && at <= len - 4)
			memcpy(bytes + at, &odd[rnd(s, 8)], 4);
		else
			bytes[at] = (uint8_t)rnd(s, 256);
	}
}

static bool image_malformed(struct scene *s)
{
	static uint8_t bytes[IMAGE_MAX];
	unsigned int round;

	read_corpus();
	guest_fresh(&s->g, Q);
	for (round = 0; round < 1500; round++) {
		unsigned int from = rnd(s, seeds);
		size_t len = seed[from].len;

		memcpy(bytes, seed[from].bytes, len);
		change(s, bytes, len);
		if (!rnd(s, 4))
			len = 1 + rnd(s, (uint32_t)len);
		if (!load(s, bytes, len, false))
			return false;
	}
	return true;
}

/* Lengths that exceed the image, and text without an end, at the end of guest memory. */
static bool image_length(struct scene *s)
{
	struct guest *g = &s->g;
	const uint64_t end = GUEST_RAM;
	size_t len;
	int rc;

	guest_fresh(g, Q);
	for (len = 1; len < 400; len++) {
		memcpy(g->ram + end - len, plain_image, len < plain_image_bytes ? len : 1);
		rc = cmd_load(g, Q, 5, end - len, len);
		if (rc == GUEST_GONE)
			guest_fresh(g, Q);
		else if (rc < 0)
			return fell("MODULE_LOAD of %zu bytes: %d", len, rc);
	}
	return true;
}

static struct {
	pthread_t thread;
	atomic_bool stop;
	uint8_t *bytes;
	size_t len;
} changer;

static void *keep_changing(void *unused)
{
	uint64_t x = 88172645463325252ull;

	while (!changer.stop) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		((volatile uint8_t *)changer.bytes)[(x >> 8) % changer.len] ^= (uint8_t)x;
	}
	return unused;
}

static bool image_changes(struct scene *s)
{
	unsigned int round, from;
	bool ok = true;
	int rc;

	read_corpus();
	guest_fresh(&s->g, Q);
	for (round = 0; round < 200 && ok; round++) {
		from = round % seeds;
		memset(s->g.ram + IMAGE, 0, 0x2000);
		memcpy(s->g.ram + IMAGE, seed[from].bytes, seed[from].len);
		changer.bytes = s->g.ram + IMAGE;
		changer.len = seed[from].len;
		changer.stop = false;
		if (pthread_create(&changer.thread, NULL, keep_changing, NULL))
			die("no thread");
		rc = cmd_load(&s->g, Q, 10 + round, IMAGE, seed[from].len);
		changer.stop = true;
		pthread_join(changer.thread, NULL);
		if (rc == GUEST_GONE)
			guest_fresh(&s->g, Q);
		else if (rc < 0 || rc > CUDA_ERROR)
			ok = fell("MODULE_LOAD: %d", rc);
	}
	return ok;
}

const struct attack image_attacks[] = {
	{"image_pointer", image_pointer, {NULL}, false, "a fat binary's wrapper with pointers"},
	{"image_malformed", image_malformed, {NULL}, false, "images with bytes changed or missing"},
	{"image_length", image_length, {NULL}, false, "text without an end, at the end of memory"},
	{"image_changes", image_changes, {NULL}, false, "images that change while they are read"},
	{0},
};
