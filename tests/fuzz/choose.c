// SPDX-License-Identifier: GPL-2.0-or-later
/* Random commands that keep most rules. */
#include <stdbool.h>
#include <string.h>

#include "include/qculib.h"
#include "tests/fuzz/choose.h"
#include "tests/fuzz/recorded.h"

static const uint64_t wide[] = {
	0,
	1,
	4,
	16,
	64,
	100,
	4096,
	8192,
	65536,
	131072,
	1u << 20,
	4u << 20,
	UINT32_MAX,
	1ull << 40,
	UINT64_MAX,
	UINT64_MAX - 4095,
	QCU_WINDOW_BASE,
	QCU_WINDOW_BASE + 4096,
	QCU_WINDOW_BASE + 65536,
	QCU_WINDOW_BASE + QCU_WINDOW_SIZE - 65536,
	QCU_WINDOW_BASE + QCU_WINDOW_SIZE,
	QCU_WINDOW_BASE + QCU_WINDOW_SIZE + QCU_ANNEX_SIZE,
	0x10000000,
	0x7ffff7ff0000,
	(uint64_t)CHOOSE_POINTER << 32,
	(uint64_t)CHOOSE_POINTER << 32 | 64,
	(uint64_t)(CHOOSE_POINTER + 1) << 32,
	(uint64_t)(CHOOSE_POINTER + 2) << 32 | 4096,
};
static const uint32_t narrow[] = {0, 0, 0, 1,  1,  2,	   2,	    3,
				  4, 8, 5, 32, 64, 0xffff, 0x10000, UINT32_MAX};

static uint32_t below(const struct chooser *how, uint32_t n)
{
	return fuzz_random(how->random, n);
}

uint64_t choose_wide(const struct chooser *how)
{
	const uint64_t places[] = {how->image, how->more, how->beyond};
	const uint32_t n = sizeof(wide) / sizeof(wide[0]);
	uint32_t i = below(how, n + 3);

	return i < n ? wide[i] : places[i - n];
}

uint32_t choose_narrow(const struct chooser *how)
{
	return narrow[below(how, sizeof(narrow) / sizeof(narrow[0]))];
}

/* Makes segments, most of the time in guest memory. Stores the sum of their lengths in *len. */
static uint32_t choose_segs(const struct chooser *how, uint8_t *tail, uint64_t *len)
{
	struct qcu_seg seg[4];
	unsigned int n = 1 + below(how, 4), i;
	bool pages = below(how, 4);

	*len = 0;
	for (i = 0; i < n; i++) {
		seg[i].gpa = how->gpa + below(how, (uint32_t)how->bytes);
		if (!below(how, 4))
			seg[i].gpa += how->more;
		seg[i].len = 1 + below(how, 16384);
		if (pages) {
			seg[i].gpa &= ~4095ull;
			seg[i].len = 4096ull << below(how, 5);
		}
		if (!below(how, 24))
			seg[i].gpa = choose_wide(how) | how->beyond;
		if (!below(how, 24))
			seg[i].len = below(how, 2) ? 0 : UINT64_MAX;
		*len += seg[i].len;
	}
	if (!below(how, 16))
		*len += 1;
	memcpy(tail, seg, n * sizeof(*seg));
	return n * (uint32_t)sizeof(*seg);
}

static uint32_t choose_texture(const struct chooser *how, uint8_t *tail)
{
	uint32_t i, n;

	for (i = 0; i < sizeof(struct qcu_texture_msg); i += 4) {
		n = below(how, 3) ? below(how, 5) : choose_narrow(how);
		memcpy(tail + i, &n, 4);
	}
	return sizeof(struct qcu_texture_msg);
}

static uint32_t choose_launch(const struct chooser *how, bool params, uint8_t *tail)
{
	struct qcu_launch_msg msg = {
		.grid = {1 + below(how, 3), 1, 1},
		.block = {1 + below(how, 64), 1, 1},
		.param_bytes = below(how, 8) ? 12 : choose_narrow(how) & 0xff,
	};
	uint64_t p = choose_wide(how);
	uint32_t n = choose_narrow(how);

	if (!below(how, 10))
		((uint32_t *)&msg)[below(how, 16)] = choose_narrow(how) & 0x1f;
	memcpy(tail, &msg, sizeof(msg));
	memcpy(tail + sizeof(msg), &p, 8);
	memcpy(tail + sizeof(msg) + 8, &n, 4);
	return sizeof(msg) + (params && msg.param_bytes < 200 ? msg.param_bytes : 0);
}

static uint32_t choose_message(const struct chooser *how, uint16_t op, uint8_t *tail)
{
	static const char *const names[] = {"k", "v", "t", "loop", "none"};
	const char *name = names[below(how, 5)];

	if (op == QCU_OP_TEXTURE_CREATE)
		return choose_texture(how, tail);
	if (op == QCU_OP_LAUNCH || op == QCU_OP_OCCUPANCY_CLUSTER)
		return choose_launch(how, op == QCU_OP_LAUNCH, tail);
	memcpy(tail, name, strlen(name));
	return (uint32_t)strlen(name);
}

static void choose_body(const struct chooser *how, struct qCUcmd *c, uint32_t bytes)
{
	uint64_t v;
	uint32_t i, x;

	for (i = 0; i + 4 <= bytes; i += 4) {
		x = choose_narrow(how);
		memcpy(c->body + i, &x, 4);
		if (i % 8 || i + 8 > bytes || below(how, 3))
			continue;
		v = choose_wide(how);
		memcpy(c->body + i, &v, 8);
		i += 4;
	}
}

/* Another number in the place of one, which may come from elsewhere in the message. */
static void change_word(const struct chooser *how, uint64_t *words, uint32_t n)
{
	uint64_t *at = n ? &words[below(how, n)] : NULL;

	if (!at)
		return;
	switch (below(how, 4)) {
	case 0:
		*at = choose_wide(how);
		break;
	case 1:
		*at = choose_narrow(how);
		break;
	case 2:
		*at = words[below(how, n)];
		break;
	default:
		*at += below(how, 2) ? 1 : UINT64_MAX;
	}
}

/* Makes a call of a library: one that a shim has made, most of the time with something changed. */
static uint32_t choose_library(const struct chooser *how, struct qCUcmd *c, uint8_t *tail)
{
	const struct recorded *r =
		&recorded[below(how, below(how, 6) ? recorded_count : RECORDED_OBJECTS)];
	struct qcu_lib_head head = {r->bytes, r->outs};
	uint64_t words[RECORDED_MAX / 8 + 3] = {0};
	uint16_t library = r->library, function = r->function;
	uint32_t changes = below(how, 4), n;
	struct qcu_seg seg;

	memcpy(words + 1, r->args, r->bytes);
	while (changes--)
		change_word(how, words + 1, r->bytes / 8);
	if (!below(how, 12))
		head.args = 8 * below(how, r->bytes / 8 + 2);
	if (!below(how, 12))
		function = (uint16_t)(below(how, 2) ? below(how, 800) : choose_narrow(how));
	if (!below(how, 20))
		library = (uint16_t)choose_narrow(how);
	if (!below(how, 20))
		head.outs = choose_narrow(how);
	memcpy(words, &head, sizeof(head));
	if (!below(how, 40))
		change_word(how, words, 1);
	n = (uint32_t)sizeof(head) + head.args;
	if (c->op == QCU_OP_LIB_CALL) {
		c->flags = QCU_F_MSG;
		c->lib_call.buf.len = n;
		c->lib_call.library = library;
		c->lib_call.function = function;
		c->lib_call.stream = below(how, 8) ? 0 : choose_narrow(how);
		memcpy(tail, words, n);
		return n;
	}
	how->put(how, (const uint8_t *)words, n);
	c->flags = QCU_F_SEGS;
	seg.gpa = how->message;
	seg.len = n + sizeof(struct qcu_lib_answer) + (head.outs < 65536 ? head.outs : 0);
	if (!below(how, 20))
		seg.len += choose_narrow(how) & 0xff;
	c->lib_ask.buf.len = seg.len;
	c->lib_ask.library = library;
	c->lib_ask.function = function;
	c->lib_ask.stream = below(how, 8) ? 0 : choose_narrow(how);
	memcpy(tail, &seg, sizeof(seg));
	return sizeof(seg);
}

uint32_t choose_command(const struct chooser *how, struct qCUcmd *c, uint8_t *tail)
{
	const struct qcu_seg image = {how->image, how->image_bytes};
	const struct qcu_rule *rule;
	uint64_t len;
	uint32_t n = 0;

	*c = (struct qCUcmd){0};
	do {
		c->op = (uint16_t)below(how, QCU_OP_COUNT);
		if (!below(how, 6))
			c->op = below(how, 2) ? QCU_OP_LIB_CALL : QCU_OP_LIB_ASK;
		rule = qcu_rule(c->op);
	} while (!rule || rule->who == QCU_WHO_CTL);
	c->tid = rule->who == QCU_WHO_DRV ? 0 : 1 + below(how, how->threads);
	c->device = below(how, how->devices) == 0;
	if (c->op == QCU_OP_LIB_CALL || c->op == QCU_OP_LIB_ASK) {
		n = choose_library(how, c, tail);
		if (rule->who == QCU_WHO_POST && below(how, 2))
			c->flags |= QCU_F_POSTED;
		return n;
	}
	choose_body(how, c, rule->in);
	switch (rule->buffer) {
	case QCU_BUFFER_MSG:
		c->flags = QCU_F_MSG;
		n = choose_message(how, c->op, tail);
		c->buf.len = n;
		break;
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
	case QCU_BUFFER_STAY:
		c->buf.addr = QCU_WINDOW_BASE + below(how, 4) * 4096;
		c->flags = QCU_F_WINDOW;
		c->buf.len = choose_wide(how);
		if (rule->buffer == QCU_BUFFER_STAY || below(how, 2))
			break;
		c->flags = QCU_F_SEGS;
		n = choose_segs(how, tail, &len);
		c->buf.len = len;
		if (c->op == QCU_OP_MODULE_LOAD || c->op == QCU_OP_LINK_ADD) {
			memcpy(tail, &image, sizeof(image));
			n = sizeof(image);
			c->buf.len = image.len;
		}
	}
	if (c->op == QCU_OP_MAP) {
		c->flags = QCU_F_SEGS;
		n = choose_segs(how, tail, &len);
		c->map.len = len;
		if (below(how, 2))
			c->map.va = QCU_WINDOW_BASE + below(how, 4) * 65536ull;
	}
	if (rule->who == QCU_WHO_POST && below(how, 2))
		c->flags |= QCU_F_POSTED;
	return n;
}

void choose_pointers(const uint64_t *pointer, uint8_t *at, size_t len)
{
	uint64_t v;

	for (; len >= 8; at += 8, len -= 8) {
		memcpy(&v, at, 8);
		if ((v >> 32 & ~(uint64_t)(CHOOSE_POINTERS - 1)) != CHOOSE_POINTER)
			continue;
		v = pointer[v >> 32 & (CHOOSE_POINTERS - 1)] + (uint32_t)v;
		memcpy(at, &v, 8);
	}
}
