// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transfers from and to every kind of memory: which bytes arrive, and who has copied them. The
 * mirror counts what its CPU copied (staged) and what the backend took in place. The driver counts
 * what it copied itself, which may be messages only.
 */
#define _GNU_SOURCE
#include <stdbool.h>

#include "mem.h"

#define ROOM  (5 * MIB)
#define GUARD 64

enum kind {
	CHUNKS,
	ELSEWHERE,
	SCATTERED,
	HUGE_PAGES,
	FILE_PAGES,
	STATIC,
	STACK,
	DISK_FILE,
	REGISTERED,
	KINDS
};

static const char *const names[KINDS] = {"chunks",     "chunks elsewhere", "scattered pages",
					 "huge pages", "a file's pages",   "static data",
					 "the stack",  "a file on disk",   "registered pages"};
static char in_static[ROOM];

static char *get(int fd, enum kind kind, size_t at, size_t len)
{
	char *p;

	switch (kind) {
	case CHUNKS:
		return raw_chunks(fd, at, len);
	case ELSEWHERE:
		p = mmap(NULL, len, RW, MAP_SHARED, fd, 0);
		SAME(p == MAP_FAILED, 0);
		return p;
	case SCATTERED:
		return mem_scattered(len);
	case HUGE_PAGES:
		return mem_huge(len);
	case FILE_PAGES:
		return mem_file(len);
	default:
		return in_static;
	}
}

static void balanced(const struct qcu_stats_desc *st)
{
	SAME(st->h2d_bytes + st->d2h_bytes, st->window_bytes + st->pages_bytes + st->staged_bytes);
}

/* Uploads from src and downloads into dst. Guard bytes are on both sides of the target. */
static void there_and_back(int fd, uint64_t dev, const char *src, const char *src_name, char *dst,
			   const char *dst_name, size_t len)
{
	size_t at, i;

	memset(dst, 0xc3, len + 2 * GUARD);
	SAME(mem_copy(fd, QCU_OP_COPY_H2D, dev, (void *)src, len, 0, 0), 0);
	SAME(mem_copy(fd, QCU_OP_COPY_D2H, dev, dst + GUARD, len, 0, 0), 0);
	at = mem_differs(src, dst + GUARD, len);
	if (at != len)
		printf("%zu bytes from %s to %s: byte %zu differs\n", len, src_name, dst_name, at);
	SAME(at, len);
	for (i = 0; i < GUARD; i++) {
		SAME((unsigned char)dst[i], 0xc3);
		SAME((unsigned char)dst[GUARD + len + i], 0xc3);
	}
}

static void every_pair(void)
{
	static const size_t sizes[] = {0,      1,	    4095,    65537,
				       999999, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1};
	static const size_t offsets[] = {0, 1, 4095, 77};
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, ROOM);
	struct qcu_stats_desc st;
	char *src[KINDS], *dst[KINDS];
	unsigned int a, b, s, turn = 0;

	for (a = 0; a < STATIC; a++) {
		src[a] = get(fd, a, 0, ROOM);
		dst[a] = get(fd, a, 16 * MIB, ROOM);
		mem_fill(src[a], ROOM, a);
	}
	for (a = 0; a < STATIC; a++)
		for (b = 0; b < STATIC; b++)
			for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++, turn++)
				there_and_back(fd, dev + turn % 3, src[a] + offsets[turn % 4],
					       names[a], dst[b] + offsets[turn / 4 % 4], names[b],
					       sizes[s]);
	/* The pages of static data belong to the program's file until the program writes them. */
	there_and_back(fd, dev, in_static + 1, names[STATIC], dst[CHUNKS], names[CHUNKS], 100001);
	there_and_back(fd, dev, src[CHUNKS] + 1, names[CHUNKS], in_static + 9, names[STATIC],
		       100001);
	st = mem_stats(fd);
	balanced(&st);
	SAME(st.staged_bytes > 0, 1);
	SAME(raw_stat("copied_in_guest"), raw_stat("msg_bytes"));
}

/*
 * Returns how much one transfer in each direction adds to the counters; p is memory of that kind.
 */
static struct qcu_stats_desc cost_at(int fd, enum kind kind, char *p, size_t off, size_t len)
{
	bool window = kind == CHUNKS || kind == REGISTERED;
	uint64_t dev = raw_malloc(fd, len);
	char *want = mem_anonymous(len);
	long copied = raw_stat("copied_in_guest"), messages = raw_stat("msg_bytes");
	long here = raw_stat("window_bytes"), there = raw_stat("pages_bytes");
	struct qcu_stats_desc before, after;

	mem_fill(p + off, len, kind);
	memcpy(want, p + off, len);
	before = mem_stats(fd);
	there = raw_stat("pages_bytes");
	SAME(mem_copy(fd, QCU_OP_COPY_H2D, dev, p + off, len, 0, QCU_COPY_SYNC), 0);
	memset(p + off, 0, len);
	SAME(mem_copy(fd, QCU_OP_COPY_D2H, dev, p + off, len, 0, QCU_COPY_SYNC), 0);
	SAME(window ? raw_stat("window_bytes") - here : raw_stat("pages_bytes") - there, 2 * len);
	after = mem_stats(fd);
	SAME(mem_differs(p + off, want, len), len);
	SAME(raw_stat("copied_in_guest") - copied, 0);
	SAME(raw_stat("msg_bytes") - messages, 0);
	balanced(&after);
	after.copies -= before.copies;
	after.window_bytes -= before.window_bytes;
	after.pages_bytes -= before.pages_bytes;
	after.staged_bytes -= before.staged_bytes;
	SAME(after.window_bytes + after.pages_bytes + after.staged_bytes, 2 * len);
	printf("%zu bytes up and down, %s: %llu copies, %llu in place, %llu staged\n", len,
	       names[kind], (unsigned long long)after.copies,
	       (unsigned long long)(after.window_bytes + after.pages_bytes),
	       (unsigned long long)after.staged_bytes);
	return after;
}

static struct qcu_stats_desc cost(int fd, enum kind kind, size_t off, size_t len)
{
	return cost_at(fd, kind, get(fd, kind, 0, len + off), off, len);
}

/*
 * Chunk memory: no CPU copies a byte, but in the first transfer of a large piece, if the host has
 * several CPUs for that.
 */
static struct qcu_stats_desc cost_of_chunks(int fd, size_t off, size_t len)
{
	char *p = get(fd, CHUNKS, 0, len + off);
	struct qcu_stats_desc st = cost_at(fd, CHUNKS, p, off, len);

	SAME(st.staged_bytes == 0 || st.staged_bytes == len, 1);
	SAME(st.window_bytes, 2 * len - st.staged_bytes);
	st = cost_at(fd, CHUNKS, p, off, len);
	SAME(st.staged_bytes, 0);
	SAME(st.pages_bytes, 0);
	SAME(st.window_bytes, 2 * len);
	return st;
}

/* If the chunks are side by side in the mirror, each direction takes one copy. */
static void chunks_of(unsigned int bytes)
{
	const char *map = getenv("QCU_TEST_MAP");
	int fd = raw_session();
	struct qcu_stats_desc st;
	size_t len = 17 * MIB + 5;

	mem_chunk_size(fd, bytes);
	st = cost_of_chunks(fd, 1, len);
	if (map && !strcmp(map, "cvm"))
		SAME(st.copies, 2);
}

static void chunks_64k(void)
{
	chunks_of(64 << 10);
}

static void chunks_256k(void)
{
	chunks_of(256 << 10);
}

static void chunks_1m(void)
{
	chunks_of(1 << 20);
}

static void chunks_4m(void)
{
	chunks_of(4 << 20);
}

static void chunks_16m(void)
{
	chunks_of(16 << 20);
}

/*
 * Any other memory: a CPU copies each byte at most once. If there is little data, a CPU copies none
 * of a long run of pages.
 */
static void pages(void)
{
	static const enum kind kinds[] = {ELSEWHERE, SCATTERED, HUGE_PAGES, FILE_PAGES};
	size_t i, len = 6 * MIB - 4000;
	struct qcu_stats_desc st;

	for (i = 0; i < 4; i++) {
		st = cost(raw_session(), kinds[i], 33, len);
		SAME(st.window_bytes, 0);
		if (kinds[i] == SCATTERED)
			SAME(st.staged_bytes > len, 1);
	}
	len = 2 * MIB - 4000;
	st = cost(raw_session(), HUGE_PAGES, 33, len);
	SAME(st.pages_bytes, 2 * len);
}

/* Each byte is transferred once: in place, or with one copy by a CPU of the host. */
static void once(const struct qcu_stats_desc *st, size_t len)
{
	SAME(st->window_bytes, 0);
	SAME(st->pages_bytes + st->staged_bytes, 2 * len);
}

static void static_data(void)
{
	size_t len = ROOM - 100;
	struct qcu_stats_desc st = cost_at(raw_session(), STATIC, in_static, 33, len);

	once(&st, len);
}

static void stack(void)
{
	char local[3 * MIB];
	size_t len = sizeof(local) - 100;
	struct qcu_stats_desc st = cost_at(raw_session(), STACK, local, 33, len);

	once(&st, len);
}

/* Memory of a file on disk: shared with the file, and private to the process. */
static void disk_file(void)
{
	static const int flags[] = {MAP_SHARED, MAP_PRIVATE};
	size_t len = 3 * MIB - 100, i;
	int file;

	for (i = 0; i < 2; i++) {
		struct qcu_stats_desc st;
		char *p;

		file = open("/tmp/mem_paths", O_RDWR | O_CREAT | O_TRUNC, 0600);
		SAME(file < 0, 0);
		SAME(ftruncate(file, 3 * MIB), 0);
		p = mmap(NULL, 3 * MIB, RW, flags[i], file, 0);
		SAME(p == MAP_FAILED, 0);
		close(file);
		SAME(unlink("/tmp/mem_paths"), 0);
		st = cost_at(raw_session(), DISK_FILE, p, 33, len);
		once(&st, len);
	}
}

/* When the same scattered pages are registered, no CPU gathers pieces any more. */
static void registered(void)
{
	size_t len = 6 * MIB - 4000;
	char *p = mem_scattered(len + 33);
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);
	struct qcu_stats_desc st;
	int fd = raw_session();

	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = len + 33;
	SAME(raw_submit(fd, &cmd), 0);
	st = cost_at(fd, REGISTERED, p, 33, len);
	SAME(st.staged_bytes, 0);
	SAME(st.pages_bytes, 0);
	SAME(st.window_bytes, 2 * len);
	/* They are always side by side on the host: one copy in each direction. */
	SAME(st.copies, 2);
}

static void all_at_once(size_t len)
{
	int fd = raw_session();

	cost_of_chunks(fd, 0, len);
	SAME(munmap(WINDOW, len), 0);
}

static void chunks_64_mib(void)
{
	all_at_once(64 * MIB);
}

/* Needs a guest with 4 GiB; tests/vm/memory/transfers.sh decides when it runs. */
static void chunks_1_gib(void)
{
	all_at_once(1024 * MIB);
}

/* The longest possible table of segments, less a few bytes. */
static void scattered_64_mib(void)
{
	struct qcu_stats_desc st = cost(raw_session(), SCATTERED, 0, 64 * MIB);

	SAME(st.window_bytes, 0);
	SAME(st.staged_bytes > 64 * MIB, 1);
}

/*
 * A fragmented guest has no large blocks. Transfers must work all the same. Runs with
 * QCU_TEST_SMALL set.
 */
static void in_small_blocks(void)
{
	int fd = raw_session();
	size_t len = 16 * MIB + 3;
	unsigned long small = 0, chunks;
	char line[512], blocks[256], *at;
	FILE *f;

	cost_of_chunks(fd, 5, len);
	f = fopen("/sys/kernel/debug/qcuda/groups", "r");
	SAME(!f, 0);
	while (fgets(line, sizeof(line), f)) {
		fputs(line, stdout);
		if (sscanf(line, "%*d %*x %*x %lu %255s", &chunks, blocks) != 2)
			continue;
		for (at = strtok(blocks, ","); at; at = strtok(NULL, ",")) {
			unsigned long kib, n;

			SAME(sscanf(at, "%luK:%lu", &kib, &n), 2);
			if (kib <= 64)
				small += kib * n;
		}
	}
	fclose(f);
	/* Nearly all blocks must be small; otherwise the guest was not fragmented. */
	SAME(small > 12 << 10, 1);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"every_pair", every_pair},
		{"chunks_64k", chunks_64k},
		{"chunks_256k", chunks_256k},
		{"chunks_1m", chunks_1m},
		{"chunks_4m", chunks_4m},
		{"chunks_16m", chunks_16m},
		{"pages", pages},
		{"static_data", static_data},
		{"stack", stack},
		{"disk_file", disk_file},
		{"registered", registered},
		{"chunks_64_mib", chunks_64_mib},
		{"scattered_64_mib", scattered_64_mib},
		{"chunks_1_gib", chunks_1_gib},
		{"in_small_blocks", in_small_blocks},
		{0},
	};

	return raw_main(argc, argv, cases);
}
