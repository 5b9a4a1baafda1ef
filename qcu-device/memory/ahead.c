// SPDX-License-Identifier: GPL-2.0-or-later
/* Device memory that goes ahead. See ahead.h. */
#define _GNU_SOURCE /* memfd_create */
#include "qcu-device/memory/ahead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t ahead_sum(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t sum = 0, place = 0, x;

	for (; len; at += sizeof(x)) {
		const size_t n = len < sizeof(x) ? len : sizeof(x);

		x = 0;
		memcpy(&x, at, n);
		place += AHEAD_STEP;
		x += place;
		x = (x ^ x >> AHEAD_SHIFT) * AHEAD_STIR;
		x = (x ^ x >> AHEAD_SHIFT) * AHEAD_STIR;
		sum += x ^ x >> AHEAD_SHIFT;
		len -= n;
	}
	return sum;
}

/* ---- the file ---- */

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + AHEAD_PAGE - 1) / AHEAD_PAGE * AHEAD_PAGE;
}

static bool write_at(int fd, const void *bytes, size_t len, off_t at)
{
	const uint8_t *from = bytes;
	ssize_t n = 1;

	while (len && (n > 0 || errno == EINTR)) {
		n = pwrite(fd, from, len, at);
		if (n <= 0)
			continue;
		from += n;
		at += n;
		len -= (size_t)n;
	}
	return !len;
}

bool ahead_append(int fd, const struct ahead_piece *piece, const void *bytes)
{
	off_t at = lseek(fd, 0, SEEK_END);

	return at >= 0 && write_at(fd, bytes, piece->len, at + AHEAD_PAGE) &&
	       !ftruncate(fd, at + AHEAD_PAGE + (off_t)whole_pages(piece->len)) &&
	       write_at(fd, piece, sizeof(*piece), at);
}

uint64_t ahead_reach(const struct ahead_place *p)
{
	return p->at + whole_pages(p->len);
}

static int compare_places(const void *a, const void *b)
{
	const struct ahead_place *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* The piece that begins at this page. False: there is none. */
static bool read_place(const struct ahead_file *f, uint64_t at, struct ahead_place *p)
{
	struct ahead_piece piece;

	if (f->size - at < AHEAD_PAGE)
		return false;
	memcpy(&piece, f->bytes + at, sizeof(piece));
	*p = (struct ahead_place){piece.addr, piece.sum, at + AHEAD_PAGE, piece.len};
	return piece.len && piece.len <= AHEAD_BYTES &&
	       whole_pages(piece.len) <= f->size - at - AHEAD_PAGE;
}

static bool list_places(struct ahead_file *f)
{
	struct ahead_place p, *more;
	uint64_t at;
	size_t room = 0;

	for (at = 0; at < f->size; at = ahead_reach(&p)) {
		if (!read_place(f, at, &p))
			return false;
		if (f->count == room) {
			room = 2 * room + 64;
			more = realloc(f->place, room * sizeof(*more));
			if (!more)
				return false;
			f->place = more;
		}
		f->place[f->count++] = p;
	}
	if (f->count)
		qsort(f->place, f->count, sizeof(*f->place), compare_places);
	return true;
}

bool ahead_open(struct ahead_file *f, int fd)
{
	struct stat st;
	void *bytes;

	*f = (struct ahead_file){0};
	if (fstat(fd, &st))
		return false;
	if (!st.st_size)
		return true;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	f->bytes = bytes;
	f->size = (uint64_t)st.st_size;
	if (list_places(f))
		return true;
	ahead_close(f);
	return false;
}

void ahead_close(struct ahead_file *f)
{
	if (f->bytes)
		munmap(f->bytes, f->size);
	free(f->place);
	*f = (struct ahead_file){0};
}

const struct ahead_place *ahead_find(const struct ahead_file *f, uint64_t addr, uint64_t len,
				     uint64_t sum)
{
	const struct ahead_place key = {.addr = addr}, *p;

	if (!f->count)
		return NULL;
	p = bsearch(&key, f->place, f->count, sizeof(key), compare_places);
	return p && p->len == len && p->sum == sum ? p : NULL;
}

/* ---- the stream ---- */

static void refuse_ahead(struct ahead_reader *r, const char *why)
{
	r->bad = true;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

bool ahead_begin(struct ahead_reader *r, unsigned int sessions, uint64_t most)
{
	unsigned int i;

	memset(r, 0, sizeof(*r));
	r->sessions = sessions < QCU_MAX_SESSIONS ? sessions : QCU_MAX_SESSIONS;
	r->most = most;
	for (i = 0; i <= QCU_MAX_SESSIONS; i++)
		r->file[i] = -1;
	r->data = malloc(AHEAD_BYTES);
	return r->data;
}

void ahead_end(struct ahead_reader *r)
{
	unsigned int i;

	for (i = 0; i <= QCU_MAX_SESSIONS; i++)
		if (r->file[i] >= 0)
			close(r->file[i]);
	free(r->data);
	r->data = NULL;
}

/* The struct of a piece has come. */
static void check_piece(struct ahead_reader *r)
{
	const struct ahead_piece *p = &r->piece;
	const uint64_t takes = AHEAD_PAGE + whole_pages(p->len);

	if (!p->session || p->session > r->sessions || !p->len || p->len > AHEAD_BYTES)
		refuse_ahead(r, "memory that came ahead is damaged");
	else if (takes > r->most - r->bytes)
		refuse_ahead(r, "more memory comes ahead than there is room for");
	else
		r->bytes += takes;
}

/* All of a piece has come. */
static void keep_piece(struct ahead_reader *r)
{
	int *file = &r->file[r->piece.session];

	r->have = 0;
	if (ahead_sum(r->data, r->piece.len) != r->piece.sum) {
		refuse_ahead(r, "memory that came ahead is damaged");
		return;
	}
	if (*file < 0)
		*file = memfd_create("qcu-ahead", MFD_CLOEXEC);
	if (*file < 0 || !ahead_append(*file, &r->piece, r->data))
		refuse_ahead(r, "there is no room for memory that comes ahead");
}

void ahead_read(struct ahead_reader *r, const void *bytes, size_t len)
{
	const size_t head = sizeof(r->piece);
	const uint8_t *at = bytes;
	size_t whole, n;
	uint8_t *to;

	while (len && !r->bad) {
		whole = r->have < head ? head : head + r->piece.len;
		to = r->have < head ? (uint8_t *)&r->piece + r->have : r->data + r->have - head;
		n = whole - r->have < len ? whole - r->have : len;
		memcpy(to, at, n);
		at += n;
		len -= n;
		r->have += n;
		if (r->have == head)
			check_piece(r);
		else if (r->have == head + r->piece.len)
			keep_piece(r);
	}
}
