/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mirror on the software GPU, with a kernel, and descriptions of graphs for it. */
#ifndef TEST_DEVICE_GRAPH_H
#define TEST_DEVICE_GRAPH_H

#include "qcu-device/base/limits.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define MODULE 2
#define KERNEL 2

static uint64_t memory; /* 4096 bytes on the device */

/* A description that is being written. */
static struct {
	_Alignas(8) uint8_t bytes[16384];
	size_t len;
	uint32_t nodes;
} d;

/* The module's kernel is `step`. */
static int start_with(const char *ptx, struct limits *limits)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1, .limits = limits};
	struct qCUcmd c =
		CMD(MODULE_LOAD, module_load, .buf = {1, strlen(ptx) + 1}, .module = MODULE);
	const struct qcu_seg image = {(uintptr_t)ptx, strlen(ptx) + 1};

	cfg.options.vram = 64 << 20;
	if (mir_create(&mirror, &cfg))
		return -1;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
	c = CMD(KERNEL_FIND, kernel_find, .buf = {1, 4}, .module = MODULE, .kernel = KERNEL);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "step", NULL, 0), 0);
	c = CMD(MALLOC, malloc, .size = 4096);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	memory = c.malloc.ptr;
	d.len = d.nodes = 0;
	return 0;
}

static int fill(uint64_t at, uint32_t value)
{
	return ask(
		CMD(MEMSET, memset, .dst = at, .width = 4, .height = 1, .value = value, .elem = 4));
}

static uint32_t value_at(uint64_t at)
{
	uint32_t v = 0;
	const struct qcu_seg to = {(uintptr_t)&v, sizeof(v)};
	struct qCUcmd c = CMD(COPY_D2H, copy_d2h, .buf = {1, sizeof(v)}, .src = at);

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &to, 1), 0);
	return v;
}

/* Adds a record. Returns its head, for tests that make it wrong. */
static struct qcu_graph_node *node(uint8_t type, uint32_t index, const void *body, size_t len,
				   const uint32_t *deps, uint32_t count)
{
	struct qcu_graph_node *n = (void *)(d.bytes + d.len);
	size_t deps_len = (count * sizeof(*deps) + 7) / 8 * 8;

	memset(n, 0, sizeof(*n) + len + deps_len);
	n->bytes = (uint32_t)(sizeof(*n) + len + deps_len);
	n->type = type;
	n->index = index;
	n->deps = count;
	if (len)
		memcpy(n + 1, body, len);
	if (count)
		memcpy((uint8_t *)(n + 1) + len, deps, count * sizeof(*deps));
	d.len += n->bytes;
	d.nodes++;
	return n;
}

static struct qcu_graph_node *empty(uint32_t index)
{
	return node(QCU_NODE_EMPTY, index, NULL, 0, NULL, 0);
}

static struct qcu_graph_memset *set(uint32_t index, uint64_t at, uint32_t value)
{
	const struct qcu_graph_memset body = {
		.dst = at, .width = 4, .height = 1, .value = value, .elem = 4};

	return (void *)(node(QCU_NODE_MEMSET, index, &body, sizeof(body), NULL, 0) + 1);
}

static int send(struct qCUcmd c)
{
	const struct qcu_seg from = {(uintptr_t)d.bytes, d.len};

	c.buf.addr = 1;
	c.buf.len = d.len;
	c.flags = QCU_F_SEGS;
	d.len = d.nodes = 0;
	return ask_with(&c, NULL, &from, 1);
}

static int make(uint32_t id)
{
	return send(CMD(GRAPH_MAKE, graph_make, .graph = id, .nodes = d.nodes));
}

static int update(uint32_t id)
{
	return send(CMD(GRAPH_UPDATE, graph_update, .graph = id, .nodes = d.nodes));
}

static int launch(uint32_t id)
{
	return ask(CMD(GRAPH_LAUNCH, graph_launch, .graph = id, .event = QCU_GRAPH_NO_EVENT));
}

static int destroy(uint32_t id)
{
	return ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = id));
}

#endif
