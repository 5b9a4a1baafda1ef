// SPDX-License-Identifier: GPL-2.0-or-later
/* Device memory that goes ahead. See ahead.h. */
#define _GNU_SOURCE /* memfd_create */
#include "qcu-device/memory/ahead.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/base/sorted.h"

static uint64_t stir(uint64_t x)
{
	x = (x ^ x >> AHEAD_SHIFT) * AHEAD_STIR;
	x = (x ^ x >> AHEAD_SHIFT) * AHEAD_STIR;
	return x ^ x >> AHEAD_SHIFT;
}

uint64_t ahead_sum(const void *bytes, size_t len)
{
	const size_t whole = len / sizeof(uint64_t), rest = len % sizeof(uint64_t);
	const uint8_t *at = bytes;
	uint64_t sum = 0, word = 0, i;

	for (i = 1; i <= whole; i++, at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum += stir(word + i * AHEAD_STEP);
	}
	if (!rest)
		return sum;
	word = 0;
	memcpy(&word, at, rest);
	return sum + stir(word + i * AHEAD_STEP);
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

static uint64_t next_section(uint64_t at)
{
	return (at / AHEAD_SECTION + 1) * AHEAD_SECTION;
}

static struct ahead_listed *find_in_file(const struct ahead_file *f,
					 const struct ahead_piece *piece)
{
	const struct ahead_listed key = {.addr = piece->addr};
	struct ahead_listed **node = tfind(&key, &f->kept, sorted_compare);

	return node && (*node)->len == piece->len ? *node : NULL;
}

uint64_t ahead_takes(const struct ahead_file *f, const struct ahead_piece *piece)
{
	return find_in_file(f, piece) ? 0 : AHEAD_PAGE + whole_pages(piece->len);
}

/* At the end of the file. A piece of another length that has this address counts no more. */
static struct ahead_listed *add_to_file(struct ahead_file *f, const struct ahead_piece *piece)
{
	const uint64_t takes = AHEAD_PAGE + whole_pages(piece->len);
	struct ahead_listed *new = calloc(1, sizeof(*new)), **node;

	node = new ? tsearch(new, &f->kept, sorted_compare) : NULL;
	if (!node) {
		free(new);
		return NULL;
	}
	if (*node != new)
		free(new);
	new = *node;
	*new = (struct ahead_listed){.addr = piece->addr, .at = f->size, .len = piece->len};
	if (f->size + takes > next_section(f->size))
		new->at = next_section(f->size);
	f->size = new->at + takes;
	return new;
}

bool ahead_put(struct ahead_file *f, const struct ahead_piece *piece, const void *bytes)
{
	struct ahead_listed *p = find_in_file(f, piece);

	if (f->fd < 0)
		f->fd = memfd_create("qcu-ahead", MFD_CLOEXEC);
	if (f->fd >= 0 && !p)
		p = add_to_file(f, piece);
	return p && write_at(f->fd, bytes, piece->len, (off_t)(p->at + AHEAD_PAGE)) &&
	       !ftruncate(f->fd, (off_t)f->size) &&
	       write_at(f->fd, piece, sizeof(*piece), (off_t)p->at);
}

void ahead_close(struct ahead_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	tdestroy(f->kept, free);
	*f = (struct ahead_file){.fd = -1};
}

static bool add_listed(struct ahead_list *l, const struct ahead_listed *p)
{
	struct ahead_listed *more;

	/* Room for 64, 128, 256 and so on. */
	if (!l->count || (l->count >= 64 && !(l->count & (l->count - 1)))) {
		more = realloc(l->listed, (l->count ? 2 * l->count : 64) * sizeof(*more));
		if (!more)
			return false;
		l->listed = more;
	}
	l->listed[l->count++] = *p;
	return true;
}

/* The piece that begins here. *next: where the next one does. */
static bool read_listed(struct ahead_list *l, int fd, uint64_t at, uint64_t size, uint64_t *next)
{
	const uint64_t end = next_section(at) < size ? next_section(at) : size;
	struct ahead_piece piece;

	*next = next_section(at);
	if (end - at < AHEAD_PAGE ||
	    pread(fd, &piece, sizeof(piece), (off_t)at) != (ssize_t)sizeof(piece))
		return false;
	if (!piece.len) /* the rest of the section is empty */
		return end == *next;
	if (piece.len > AHEAD_BYTES || whole_pages(piece.len) > end - at - AHEAD_PAGE)
		return false;
	*next = at + AHEAD_PAGE + whole_pages(piece.len);
	return add_listed(l, &(struct ahead_listed){piece.addr, piece.sum, at + AHEAD_PAGE,
						    piece.len});
}

static int compare_listed(const void *a, const void *b)
{
	const struct ahead_listed *x = a, *y = b;
	const int order = sorted_compare(a, b);

	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Of pieces with one address the last one in the file counts. */
static void keep_newest(struct ahead_list *l)
{
	qsort(l->listed, l->count, sizeof(*l->listed), compare_listed);
	l->count = sorted_keep_last(l->listed, l->count, sizeof(*l->listed));
}

bool ahead_list(struct ahead_list *l, int fd)
{
	struct stat st;
	uint64_t at;
	bool ok;

	*l = (struct ahead_list){0};
	ok = !fstat(fd, &st);
	for (at = 0; ok && at < (uint64_t)st.st_size;)
		ok = read_listed(l, fd, at, (uint64_t)st.st_size, &at);
	if (!ok)
		ahead_unlist(l);
	else if (l->count)
		keep_newest(l);
	return ok;
}

void ahead_unlist(struct ahead_list *l)
{
	free(l->listed);
	*l = (struct ahead_list){0};
}

const struct ahead_listed *ahead_find(const struct ahead_list *l, uint64_t addr, uint64_t len,
				      uint64_t sum)
{
	const struct ahead_listed key = {.addr = addr}, *p;

	if (!l->count)
		return NULL;
	p = bsearch(&key, l->listed, l->count, sizeof(key), sorted_compare);
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
		r->file[i].fd = -1;
	r->data = malloc(AHEAD_BYTES);
	return r->data;
}

void ahead_end(struct ahead_reader *r)
{
	unsigned int i;

	for (i = 0; i <= QCU_MAX_SESSIONS; i++)
		ahead_close(&r->file[i]);
	free(r->data);
	r->data = NULL;
}

/* The struct of a piece has come. */
static void check_piece(struct ahead_reader *r)
{
	const struct ahead_piece *p = &r->piece;
	uint64_t takes;

	if (!p->session || p->session > r->sessions || !p->len || p->len > AHEAD_BYTES) {
		refuse_ahead(r, "memory that came ahead is damaged");
		return;
	}
	takes = ahead_takes(&r->file[p->session], p);
	if (takes > r->most - r->bytes)
		refuse_ahead(r, "more memory comes ahead than there is room for");
	else
		r->bytes += takes;
}

/* All of a piece has come. */
static void keep_piece(struct ahead_reader *r)
{
	r->have = 0;
	if (ahead_sum(r->data, r->piece.len) != r->piece.sum)
		refuse_ahead(r, "memory that came ahead is damaged");
	else if (!ahead_put(&r->file[r->piece.session], &r->piece, r->data))
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
