// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads and writes what archive.h describes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/mirror/archive.h"

_Static_assert(sizeof(struct archive_entry) == 96 && sizeof(struct archive_head) == 48,
	       "no padding");

/* At this place of the file, or (at < 0) where it stands. */
static bool transfer(int fd, bool out, uint8_t *p, size_t len, off_t at)
{
	while (len) {
		ssize_t n = at < 0 ? (out ? write(fd, p, len) : read(fd, p, len))
				   : (out ? pwrite(fd, p, len, at) : pread(fd, p, len, at));

		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		if (n < 0)
			continue;
		p += n;
		len -= (size_t)n;
		at = at < 0 ? at : at + n;
	}
	return true;
}

/*
 * Large data of a file that can be read and written anywhere is divided between threads: most of
 * the time goes into the kernel's copy, and into memory for the file.
 */
#define PARTS	   4u
#define PART_BYTES ((size_t)1 << 20) /* at least */

struct part {
	pthread_t thread;
	bool started, out, ok;
	int fd;
	uint8_t *p;
	size_t len;
	off_t at;
};

static void *transfer_part(void *arg)
{
	struct part *t = arg;

	t->ok = transfer(t->fd, t->out, t->p, t->len, t->at);
	return NULL;
}

/* Where parts can be written, or -1: only in order. */
static off_t place_in_file(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || flags & O_APPEND ? -1 : lseek(fd, 0, SEEK_CUR);
}

static bool transfer_parts(int fd, bool out, uint8_t *p, size_t len, off_t at)
{
	const size_t each = len / PARTS;
	struct part part[PARTS];
	bool ok = true;
	unsigned int i;

	for (i = PARTS; i--;) {
		part[i] = (struct part){
			.out = out,
			.fd = fd,
			.p = p + i * each,
			.len = i + 1 < PARTS ? each : len - i * each,
			.at = at + (off_t)(i * each),
		};
		part[i].started =
			i && !pthread_create(&part[i].thread, NULL, transfer_part, &part[i]);
		if (!part[i].started)
			transfer_part(&part[i]);
	}
	for (i = 0; i < PARTS; i++) {
		if (part[i].started)
			pthread_join(part[i].thread, NULL);
		ok = ok && part[i].ok;
	}
	return ok && lseek(fd, at + (off_t)len, SEEK_SET) >= 0;
}

static bool transfer_all(struct archive *s, bool out, void *p, size_t len)
{
	off_t at = !s->failed && len >= PARTS * PART_BYTES ? place_in_file(s->fd) : -1;

	if (!s->failed)
		s->failed = !(at < 0 ? transfer(s->fd, out, p, len, -1)
				     : transfer_parts(s->fd, out, p, len, at));
	return !s->failed;
}

static bool write_all(struct archive *s, const void *from, size_t len)
{
	return transfer_all(s, true, (void *)from, len);
}

static bool read_all(struct archive *s, void *to, size_t len)
{
	return transfer_all(s, false, to, len);
}

/* Each step can be undone, so two archives that differ in one word never get the same sum. */
static uint64_t step_of_sum(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* A processor works on all lanes at once. */
#define LANES 8u
static size_t add_lanes(uint64_t *h, const uint8_t *at, size_t len)
{
	uint64_t lane[LANES] = {0}, word[LANES];
	size_t done = 0;
	unsigned int i;

	for (; len - done >= sizeof(word); done += sizeof(word)) {
		memcpy(word, at + done, sizeof(word));
		for (i = 0; i < LANES; i++)
			lane[i] = step_of_sum(lane[i], word[i]);
	}
	for (i = 0; i < LANES && done; i++)
		*h = step_of_sum(*h, lane[i]);
	return done;
}

static void add_to_sum(struct archive *s, const void *from, size_t len)
{
	uint64_t h = s->sum ^ len, word;
	const uint8_t *at = from;
	size_t part = add_lanes(&h, at, len);

	while (len -= part) {
		at += part;
		part = len < sizeof(word) ? len : sizeof(word);
		word = 0;
		memcpy(&word, at, part);
		h = step_of_sum(h, word);
	}
	s->sum = h;
}

static bool check_sum(struct archive *s, uint64_t sum)
{
	s->wrong |= sum != s->sum && !s->unsummed;
	return !s->wrong;
}

bool archive_write_head(struct archive *s, struct archive_head *head)
{
	add_to_sum(s, head, offsetof(struct archive_head, sum));
	head->sum = s->sum;
	return write_all(s, head, sizeof(*head));
}

bool archive_write(struct archive *s, struct archive_entry *e, const void *data,
		   const struct be_wanted *wanted)
{
	add_to_sum(s, e, offsetof(struct archive_entry, sum));
	e->sum = s->sum;
	add_to_sum(s, data, e->len);
	add_to_sum(s, wanted, e->wanted * sizeof(*wanted));
	return write_all(s, e, sizeof(*e)) && write_all(s, data, e->len) &&
	       write_all(s, wanted, e->wanted * sizeof(*wanted)) &&
	       write_all(s, &s->sum, sizeof(s->sum));
}

bool archive_read_head(struct archive *s, struct archive_head *head)
{
	if (!read_all(s, head, sizeof(*head)))
		return false;
	add_to_sum(s, head, offsetof(struct archive_head, sum));
	return check_sum(s, head->sum);
}

static void *read_part(struct archive *s, size_t len)
{
	void *part = malloc(len);

	if (part && read_all(s, part, len)) {
		add_to_sum(s, part, len);
		return part;
	}
	s->failed = true;
	free(part);
	return NULL;
}

static void *read_data(struct archive *s, size_t len)
{
	if (!s->piece || len > ARCHIVE_PIECE)
		return read_part(s, len);
	if (!read_all(s, s->piece, len))
		return NULL;
	add_to_sum(s, s->piece, len);
	return s->piece;
}

void archive_free(struct archive *s, void *data)
{
	if (data != s->piece)
		free(data);
}

bool archive_read(struct archive *s, struct archive_entry *e, void **data,
		  struct be_wanted **wanted)
{
	uint64_t sum;
	bool ok;

	*data = NULL;
	*wanted = NULL;
	if (!read_all(s, e, sizeof(*e)))
		return false;
	add_to_sum(s, e, offsetof(struct archive_entry, sum));
	if (!check_sum(s, e->sum))
		return false;
	if (e->len > ARCHIVE_DATA_MAX || e->wanted > ARCHIVE_WANTED_MAX) {
		s->wrong = true;
		return false;
	}
	if (e->len)
		*data = read_data(s, e->len);
	else
		add_to_sum(s, NULL, 0);
	if (e->wanted && !s->failed)
		*wanted = read_part(s, e->wanted * sizeof(**wanted));
	else
		add_to_sum(s, NULL, 0);
	ok = !s->failed && read_all(s, &sum, sizeof(sum)) && check_sum(s, sum);
	if (!ok) {
		archive_free(s, *data);
		free(*wanted);
		*data = NULL;
		*wanted = NULL;
	}
	return ok;
}

void *archive_pieces(unsigned int count)
{
	void *p = mmap(NULL, count * ARCHIVE_PIECE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void archive_pieces_end(void *pieces, unsigned int count)
{
	if (pieces)
		munmap(pieces, count * ARCHIVE_PIECE);
}
