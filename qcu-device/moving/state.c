// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of a device, written and checked. See state.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/qcucmd.h"
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
	if (s->dead)
		return s->dead == 1 && !s->bytes && s->waits == STATE_NONE;
	return s->bytes >= STATE_ARCHIVE_MIN && s->bytes <= STATE_ARCHIVE_MAX;
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

/* Reads the next bytes of the file, and adds them to the sum. */
struct state_reader {
	int fd;
	uint64_t at, left, sum;
};

static bool read_next(struct state_reader *r, void *to, size_t len)
{
	if (r->left < len || pread(r->fd, to, len, (off_t)r->at) != (ssize_t)len)
		return false;
	r->at += len;
	r->left -= len;
	r->sum = state_sum(r->sum, to, len);
	return true;
}

static bool read_archive(struct state_reader *r, uint64_t bytes)
{
	static uint8_t piece[STATE_PIECE];
	bool ok = bytes <= r->left;

	for (; ok && bytes; bytes -= bytes < sizeof(piece) ? bytes : sizeof(piece))
		ok = read_next(r, piece, bytes < sizeof(piece) ? bytes : sizeof(piece));
	return ok;
}

bool state_file_fits(int fd, uint64_t len, struct state_check *c, char *why, size_t size)
{
	struct state_reader r = {.fd = fd, .left = len};
	struct state_entry record;
	struct state head;
	uint64_t sum, want;
	unsigned int i;

	if (!read_next(&r, &head, sizeof(head)))
		return refuse_moving(why, size, "it has %llu bytes, which is too short",
				     (unsigned long long)len);
	if (!state_fits(c, &head, why, size))
		return false;
	for (i = 0; i < head.open; i++) {
		if (!read_next(&r, &record, sizeof(record)))
			return refuse_moving(why, size, "it is cut off");
		if (!state_entry_fits(c, &record, why, size))
			return false;
		if (!read_archive(&r, record.bytes))
			return refuse_moving(why, size, "it is cut off");
	}
	want = r.sum;
	if (!read_next(&r, &sum, sizeof(sum)))
		return refuse_moving(why, size, "it is cut off");
	return (!r.left && sum == want) || refuse_moving(why, size, "it is damaged");
}
