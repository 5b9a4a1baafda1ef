// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands that the attacks use. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/hostile/attack.h"

bool fell(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	return false;
}

uint32_t rnd(struct scene *s, uint32_t below)
{
	return fuzz_random(&s->random, below);
}

struct qCUcmd command(uint16_t op, uint32_t tid)
{
	return (struct qCUcmd){.op = op, .tid = tid};
}

int cmd_simple(struct guest *g, unsigned int q, uint16_t op, uint32_t tid)
{
	struct qCUcmd c = command(op, tid);

	return guest_ask(g, q, &c, NULL, 0);
}

int cmd_map(struct guest *g, unsigned int q, uint64_t va, uint64_t gpa, uint64_t len)
{
	const struct qcu_seg seg = {gpa, len};
	struct qCUcmd c = command(QCU_OP_MAP, 0);

	c.flags = QCU_F_SEGS;
	c.map.va = va;
	c.map.len = len;
	c.map.chunk_bytes = QCU_CHUNK_MIN;
	return guest_ask(g, q, &c, &seg, sizeof(seg));
}

int cmd_unmap(struct guest *g, unsigned int q, uint64_t va, uint64_t len)
{
	struct qCUcmd c = command(QCU_OP_UNMAP, 0);

	c.unmap.va = va;
	c.unmap.len = len;
	return guest_ask(g, q, &c, NULL, 0);
}

int cmd_malloc(struct guest *g, unsigned int q, uint64_t size, uint64_t *ptr)
{
	struct qCUcmd c = command(QCU_OP_MALLOC, 1);
	int rc;

	c.malloc.size = size;
	rc = guest_ask(g, q, &c, NULL, 0);
	*ptr = c.malloc.ptr;
	return rc;
}

int cmd_free(struct guest *g, unsigned int q, uint32_t tid, uint64_t ptr)
{
	struct qCUcmd c = command(QCU_OP_FREE, tid);

	c.free.ptr = ptr;
	return guest_ask(g, q, &c, NULL, 0);
}

int cmd_copy(struct guest *g, unsigned int q, uint32_t tid, bool up, uint64_t device,
	     const struct qcu_seg *segs, unsigned int count)
{
	struct qCUcmd c = command(up ? QCU_OP_COPY_H2D : QCU_OP_COPY_D2H, tid);
	unsigned int i;

	c.flags = QCU_F_SEGS;
	for (i = 0; i < count; i++)
		c.buf.len += segs[i].len;
	if (up) {
		c.copy_h2d.dst = device;
		c.copy_h2d.flags = QCU_COPY_SYNC;
	} else {
		c.copy_d2h.src = device;
		c.copy_d2h.flags = QCU_COPY_SYNC;
	}
	return guest_ask(g, q, &c, segs, (uint32_t)(count * sizeof(*segs)));
}

int cmd_stream(struct guest *g, unsigned int q, uint32_t stream)
{
	struct qCUcmd c = command(QCU_OP_STREAM_CREATE, 1);

	c.stream_create.stream = stream;
	c.stream_create.flags = 1; /* cudaStreamNonBlocking */
	return guest_ask(g, q, &c, NULL, 0);
}

int cmd_host_func(struct guest *g, unsigned int q, uint32_t stream, uint64_t token)
{
	struct qCUcmd c = command(QCU_OP_HOST_FUNC, 1);

	c.host_func.token = token;
	c.host_func.stream = stream;
	return guest_ask(g, q, &c, NULL, 0);
}

int cmd_load(struct guest *g, unsigned int q, uint32_t module, uint64_t gpa, uint64_t len)
{
	const struct qcu_seg seg = {gpa, len};
	struct qCUcmd c = command(QCU_OP_MODULE_LOAD, 1);

	c.flags = QCU_F_SEGS;
	c.module_load.buf.len = len;
	c.module_load.module = module;
	return guest_ask(g, q, &c, &seg, sizeof(seg));
}

int cmd_find(struct guest *g, unsigned int q, uint32_t module, uint32_t kernel, const char *name)
{
	struct qCUcmd c = command(QCU_OP_KERNEL_FIND, 1);

	c.flags = QCU_F_MSG;
	c.kernel_find.buf.len = strlen(name);
	c.kernel_find.module = module;
	c.kernel_find.kernel = kernel;
	return guest_ask(g, q, &c, name, (uint32_t)strlen(name));
}

int cmd_launch(struct guest *g, unsigned int q, uint32_t kernel, uint32_t stream, uint32_t grid,
	       uint64_t p, uint32_t n)
{
	struct {
		struct qcu_launch_msg msg;
		uint64_t p;
		uint32_t n;
	} __attribute__((packed)) m = {
		.msg = {.grid = {grid, 1, 1}, .block = {64, 1, 1}, .param_bytes = 12},
		.p = p,
		.n = n,
	};
	struct qCUcmd c = command(QCU_OP_LAUNCH, 1);

	c.flags = QCU_F_MSG;
	c.launch.kernel = kernel;
	c.launch.stream = stream;
	c.launch.buf.len = sizeof(m);
	if (!n) {
		m.msg.param_bytes = 0;
		c.launch.buf.len = sizeof(m.msg);
	}
	return guest_ask(g, q, &c, &m, (uint32_t)c.launch.buf.len);
}

bool cmd_host_run(struct guest *g, unsigned int q, unsigned int count)
{
	uint64_t token = 0;

	while (count--) {
		struct qCUcmd c = command(QCU_OP_HOST_NEXT, 1);
		int rc;

		c.host_next.done = token;
		c.host_next.wait = 1;
		rc = guest_ask(g, q, &c, NULL, 0);
		if (rc == GUEST_GONE)
			return false;
		if (rc)
			die("HOST_NEXT: %d", rc);
		token = c.host_next.token;
	}
	if (token) {
		struct qCUcmd c = command(QCU_OP_HOST_NEXT, 1);

		c.host_next.done = token;
		return guest_ask(g, q, &c, NULL, 0) == 0;
	}
	return true;
}

bool session_settled(struct scene *s, unsigned int q, bool *over)
{
	/* A guest thread ID of its own: the command waits for no work of other threads. */
	int rc = cmd_simple(&s->g, q, QCU_OP_INFO, 0x7fff0000);

	*over = rc == GUEST_GONE;
	return rc == GUEST_GONE || rc == 0 || fell("session %u: INFO gives %d", q, rc);
}
