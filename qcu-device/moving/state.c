// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of a device, written and checked. See state.h. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/moving/refuse.h"
#include "qcu-device/moving/state.h"

void state_make(struct state *s, unsigned int sessions, unsigned int gpus, unsigned int open)
{
	*s = (struct state){
		.magic = STATE_MAGIC,
		.version = STATE_VERSION,
		.bytes = sizeof(*s),
		.wire_version = QCU_WIRE_VERSION,
		.sessions = sessions,
		.window_base = QCU_WINDOW_BASE,
		.window_size = QCU_WINDOW_SIZE,
		.open = open,
		.gpus = gpus,
	};
}

bool state_fits(const struct state_check *c, const struct state *s, char *why, size_t size)
{
	if (s->magic != STATE_MAGIC)
		return refuse_moving(why, size, "it is not the state of a qcu-device");
	if (s->version != STATE_VERSION)
		return refuse_moving(why, size, "its version is %u, and this qcu-device reads %u",
				     s->version, STATE_VERSION);
	if (s->wire_version != QCU_WIRE_VERSION)
		return refuse_moving(why, size,
				     "its wire version is %u, and this qcu-device has %u",
				     s->wire_version, QCU_WIRE_VERSION);
	if (s->sessions != c->sessions)
		return refuse_moving(
			why, size,
			"its device can have %u sessions, and this one %u: start qcu-device "
			"with the same --sessions",
			s->sessions, c->sessions);
	if (s->window_base != QCU_WINDOW_BASE || s->window_size != QCU_WINDOW_SIZE)
		return refuse_moving(why, size, "the window of its programs lies elsewhere");
	if (s->open > c->sessions)
		return refuse_moving(why, size,
				     "it has more open sessions than its device can have");
	if (s->open && s->gpus != c->gpus)
		return refuse_moving(why, size,
				     "its programs have %u GPUs in software, and here are %u",
				     s->gpus, c->gpus);
	if (s->bytes != sizeof(*s))
		return refuse_moving(why, size, "it is damaged");
	return true;
}

static bool is_name(const char name[16])
{
	size_t i, n = strnlen(name, 16);

	for (i = 0; i < 16; i++)
		if (i < n ? name[i] < ' ' || name[i] > '~' : name[i])
			return false;
	return true;
}

static bool is_possible_record(const struct state_entry *s)
{
	if (!is_name(s->name) || (s->waits != STATE_NONE && s->waits >= STATE_HEADS))
		return false;
	return !s->dead || (s->dead == 1 && s->waits == STATE_NONE);
}

bool state_entry_fits(struct state_check *c, const struct state_entry *s, char *why, size_t size)
{
	unsigned int i;

	if (s->queue <= c->last || s->queue > c->sessions)
		return refuse_moving(why, size, "session %u comes after session %u", s->queue,
				     c->last);
	if (!is_possible_record(s))
		return refuse_moving(why, size, "session %u is damaged", s->queue);
	for (i = 0; i < STATE_GPUS; i++) {
		if (s->memory[i] > c->session_memory || s->memory[i] > c->vm_memory - c->memory[i])
			return refuse_moving(
				why, size,
				"%.16s (pid %u in the VM) needs more memory of GPU %u than "
				"there is",
				s->name, s->pid, i);
		c->memory[i] += s->memory[i];
	}
	c->last = s->queue;
	return true;
}

uint64_t state_sum(uint64_t sum, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t word;

	for (sum ^= len; len; at += sizeof(word)) {
		size_t part = len < sizeof(word) ? len : sizeof(word);

		word = 0;
		memcpy(&word, at, part);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
		len -= part;
	}
	return sum;
}

/* ---- reading ---- */

void state_begin(struct state_reader *r, const struct state_check *check, struct ahead_reader *came)
{
	memset(r, 0, sizeof(*r));
	r->check = *check;
	r->came = came;
}

void state_end(struct state_reader *r)
{
	while (r->count)
		if (r->session[--r->count].file >= 0)
			close(r->session[r->count].file);
}

/* Returns the next part of this size when all of it has come. NULL: it is not all there yet. */
static const void *gather(struct state_reader *r, const uint8_t **at, size_t *len, size_t size)
{
	size_t n = size - r->have < *len ? size - r->have : *len;

	memcpy(r->some + r->have, *at, n);
	*at += n;
	*len -= n;
	r->have += n;
	if (r->have < size)
		return NULL;
	r->have = 0;
	if (r->part != STATE_SUM)
		r->sum = state_sum(r->sum, r->some, size);
	return r->some;
}

static bool begin_entry_or_sum(struct state_reader *r)
{
	r->part = r->count < r->head.open ? STATE_ENTRY : STATE_SUM;
	return true;
}

static bool take_state_head(struct state_reader *r, const void *head)
{
	memcpy(&r->head, head, sizeof(r->head));
	return state_fits(&r->check, &r->head, r->why, sizeof(r->why)) && begin_entry_or_sum(r);
}

static bool take_state_entry(struct state_reader *r, const void *entry)
{
	struct state_session *s = &r->session[r->count];

	memcpy(&s->entry, entry, sizeof(s->entry));
	s->file = -1;
	if (!state_entry_fits(&r->check, &s->entry, r->why, sizeof(r->why)))
		return false;
	r->count++;
	if (s->entry.dead)
		return begin_entry_or_sum(r);
	s->file = memfd_create("qcu-session", MFD_CLOEXEC);
	r->bytes = 0;
	r->ahead = true;
	r->part = STATE_LENGTH;
	return s->file >= 0 || refuse_moving(r->why, sizeof(r->why), "there is no memory for it");
}

/* Of what went ahead, and of the archive: the length that has come, 0 being the end. */
static bool is_possible_piece(const struct state_reader *r)
{
	if (r->left > STATE_PIECE || r->left > STATE_ARCHIVE_MAX - r->bytes)
		return false;
	if (r->ahead)
		return r->left ? r->came != NULL : !r->bytes || !r->came->have;
	return r->left || r->bytes >= STATE_ARCHIVE_MIN;
}

static bool take_piece_length(struct state_reader *r, const void *length)
{
	const struct state_session *s = &r->session[r->count - 1];

	memcpy(&r->left, length, sizeof(r->left));
	if (!is_possible_piece(r))
		return refuse_moving(r->why, sizeof(r->why), "session %u is damaged",
				     s->entry.queue);
	r->bytes += r->left;
	if (r->left) {
		r->part = STATE_BYTES;
		return true;
	}
	if (!r->ahead)
		return begin_entry_or_sum(r);
	r->ahead = false;
	r->bytes = 0;
	return true;
}

static bool take_piece_bytes(struct state_reader *r, const uint8_t **at, size_t *len)
{
	size_t n = r->left < *len ? r->left : *len;
	ssize_t took = (ssize_t)n;

	if (r->ahead)
		ahead_read(r->came, *at, n);
	else
		took = write(r->session[r->count - 1].file, *at, n);
	if (r->ahead && r->came->bad)
		return refuse_moving(r->why, sizeof(r->why), "%s", r->came->why);
	if (took <= 0)
		return refuse_moving(r->why, sizeof(r->why), "there is no memory for it");
	*at += took;
	*len -= (size_t)took;
	r->left -= (size_t)took;
	if (!r->left)
		r->part = STATE_LENGTH;
	return true;
}

static bool take_state_sum(struct state_reader *r, const void *sum)
{
	r->part = STATE_END;
	return !memcmp(sum, &r->sum, sizeof(r->sum)) ||
	       refuse_moving(r->why, sizeof(r->why), "it is damaged");
}

static bool take_state_part(struct state_reader *r, const uint8_t **at, size_t *len)
{
	static const struct {
		size_t size;
		bool (*take)(struct state_reader *r, const void *part);
	} parts[] = {
		[STATE_HEAD] = {sizeof(struct state), take_state_head},
		[STATE_ENTRY] = {sizeof(struct state_entry), take_state_entry},
		[STATE_LENGTH] = {sizeof(uint64_t), take_piece_length},
		[STATE_SUM] = {sizeof(uint64_t), take_state_sum},
	};
	const void *part;

	if (r->part == STATE_BYTES)
		return take_piece_bytes(r, at, len);
	if (r->part == STATE_END)
		return refuse_moving(r->why, sizeof(r->why), "it is damaged");
	part = gather(r, at, len, parts[r->part].size);
	return !part || parts[r->part].take(r, part);
}

void state_read(struct state_reader *r, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len && !r->bad)
		r->bad = !take_state_part(r, &at, &len);
}

bool state_is_whole(const struct state_reader *r, char *why, size_t size)
{
	if (r->bad)
		return refuse_moving(why, size, "%s", r->why);
	return r->part == STATE_END ||
	       refuse_moving(why, size,
			     r->part == STATE_HEAD ? "it is too short" : "it is cut off");
}

bool state_read_file(struct state_reader *r, int fd, char *why, size_t size)
{
	static uint8_t piece[STATE_PIECE];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		state_read(r, piece, (size_t)n);
	return state_is_whole(r, why, size);
}
