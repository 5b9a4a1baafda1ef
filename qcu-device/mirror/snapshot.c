// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads and writes what snapshot.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/mirror/snapshot.h"

_Static_assert(sizeof(struct snapshot_entry) == 96 && sizeof(struct snapshot_head) == 48,
	       "no padding");

static bool write_all(struct snapshot *s, const void *from, size_t len)
{
	const uint8_t *at = from;

	while (len && !s->failed) {
		ssize_t n = write(s->fd, at, len);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			s->failed = true;
		}
	}
	return !s->failed;
}

static bool read_all(struct snapshot *s, void *to, size_t len)
{
	uint8_t *at = to;

	while (len && !s->failed) {
		ssize_t n = read(s->fd, at, len);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			s->failed = true;
		}
	}
	return !s->failed;
}

/* Each step can be undone, so two snapshots that differ in one word never get the same sum. */
static void add_to_sum(struct snapshot *s, const void *from, size_t len)
{
	const uint8_t *at = from;
	uint64_t h = s->sum ^ len, word;

	for (; len; at += sizeof(word)) {
		size_t part = len < sizeof(word) ? len : sizeof(word);

		word = 0;
		memcpy(&word, at, part);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
		len -= part;
	}
	s->sum = h;
}

static bool check_sum(struct snapshot *s, uint64_t sum)
{
	s->wrong |= sum != s->sum && !s->unsummed;
	return !s->wrong;
}

bool snapshot_write_head(struct snapshot *s, struct snapshot_head *head)
{
	add_to_sum(s, head, offsetof(struct snapshot_head, sum));
	head->sum = s->sum;
	return write_all(s, head, sizeof(*head));
}

bool snapshot_write(struct snapshot *s, struct snapshot_entry *e, const void *data,
		    const struct be_place *places)
{
	add_to_sum(s, e, offsetof(struct snapshot_entry, sum));
	e->sum = s->sum;
	add_to_sum(s, data, e->len);
	add_to_sum(s, places, e->places * sizeof(*places));
	return write_all(s, e, sizeof(*e)) && write_all(s, data, e->len) &&
	       write_all(s, places, e->places * sizeof(*places)) &&
	       write_all(s, &s->sum, sizeof(s->sum));
}

bool snapshot_read_head(struct snapshot *s, struct snapshot_head *head)
{
	if (!read_all(s, head, sizeof(*head)))
		return false;
	add_to_sum(s, head, offsetof(struct snapshot_head, sum));
	return check_sum(s, head->sum);
}

static void *read_part(struct snapshot *s, size_t len)
{
	void *part = malloc(len);

	if (!part || !read_all(s, part, len)) {
		s->failed = true;
		free(part);
		return NULL;
	}
	add_to_sum(s, part, len);
	return part;
}

bool snapshot_read(struct snapshot *s, struct snapshot_entry *e, void **data,
		   struct be_place **places)
{
	uint64_t sum;
	bool ok;

	*data = NULL;
	*places = NULL;
	if (!read_all(s, e, sizeof(*e)))
		return false;
	add_to_sum(s, e, offsetof(struct snapshot_entry, sum));
	if (!check_sum(s, e->sum))
		return false;
	if (e->len > SNAPSHOT_DATA_MAX || e->places > SNAPSHOT_PLACES_MAX) {
		s->wrong = true;
		return false;
	}
	if (e->len)
		*data = read_part(s, e->len);
	else
		add_to_sum(s, NULL, 0);
	if (e->places && !s->failed)
		*places = read_part(s, e->places * sizeof(**places));
	else
		add_to_sum(s, NULL, 0);
	ok = !s->failed && read_all(s, &sum, sizeof(sum)) && check_sum(s, sum);
	if (!ok) {
		free(*data);
		free(*places);
		*data = NULL;
		*places = NULL;
	}
	return ok;
}
