// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every copy and memset goes through this file, except copies from and to CUDA arrays
 * (array_copy.c). It chooses the command, which depends on the kind of memory at the two ends, and
 * divides the copy into pieces.
 *
 * Memory in the window (pinned or from malloc) goes in one piece of any size, because the mirror
 * has mapped it. Only pinned memory may still be in use after the call (QCU_COPY_QUEUED). Other
 * memory is pinned page by page during the copy, and a command takes at most QCU_SEGS_MAX pages. A
 * small copy of such memory to the device travels with the command, so that the caller need not
 * wait. If neither side needs the GPU, the library copies the bytes itself, after the earlier work
 * in the stream.
 *
 * The rules of direction are those of NVIDIA's runtime under unified addressing: the direction says
 * which end must be memory that a GPU can use; the addresses decide the rest.
 */
#include <string.h>
#include <unistd.h>

#include "qcu-library/malloc/addresses.h"
#include "qcu-library/malloc/arena.h"
#include "qcu-library/copy/copy.h"
#include "qcu-library/link/capture.h"

enum memory_kind { MEMORY_HOST, MEMORY_WINDOW, MEMORY_DEVICE };
enum route { ROUTE_HOST, ROUTE_H2D, ROUTE_D2H, ROUTE_D2D };

struct batch {
	struct qCUcmd cmds[QCU_SUBMIT_MAX];
	unsigned int count;
	uint32_t stream;
	bool post;   /* the commands need no wait and no answer */
	bool pinned; /* the side in guest memory is pinned */
	bool whole;  /* one command can take the side in guest memory as one piece */
	bool small;  /* the bytes travel with the command */
	bool rows;   /* one command takes many rows */
};

/* A mapping may have others behind it. The mirror knows all of them, and checks. */
static bool is_inside_or_mapped(const struct qcul_range *range, const void *addr, size_t len)
{
	uint64_t offset = (uint64_t)(uintptr_t)addr - range->start;

	if (qcul_range_has(range, QCUL_MEM_MAPPED))
		return true;
	return len <= range->len && offset <= range->len - len;
}

/*
 * MEMORY_WINDOW only if the whole range lies in one piece of pinned memory. An address may stand
 * for both guest memory and device memory (QCUL_MEM_AMBIGUOUS). Then the direction decides.
 */
static cudaError_t find_memory_kind(const void *addr, size_t len, enum cudaMemcpyKind kind,
				    enum memory_kind *memory)
{
	struct qcul_range range = qcul_mem_find(addr);

	*memory = MEMORY_HOST;
	if (!qcul_range_is_known(&range))
		return cudaSuccess;
	/* Memory that is only partly registered counts as not registered. */
	if (qcul_range_is_registered(&range) && !is_inside_or_mapped(&range, addr, len))
		return cudaSuccess;
	*memory = qcul_range_is_on_gpu(&range) || range.kind == QCUL_MEM_ALIAS ||
				  qcul_range_has(&range, QCUL_MEM_MOVES)
			  ? MEMORY_DEVICE
			  : MEMORY_WINDOW;
	if (qcul_range_has(&range, QCUL_MEM_AMBIGUOUS) && kind != cudaMemcpyDefault) {
		*memory = MEMORY_HOST;
		return cudaSuccess;
	}
	return is_inside_or_mapped(&range, addr, len) ? cudaSuccess : cudaErrorInvalidValue;
}

bool qcul_copy_lasts(const void *addr, size_t len, uint64_t *device)
{
	struct qcul_range range = qcul_mem_find(addr);

	if (!qcul_range_is_known(&range) || !is_inside_or_mapped(&range, addr, len) ||
	    qcul_range_has(&range, QCUL_MEM_AMBIGUOUS))
		return false;
	*device = qcul_mem_device_address(addr);
	return *device;
}

bool qcul_copy_pin(const void *addr, size_t len)
{
	struct qcul_range range = qcul_mem_find(addr);
	struct qCUcmd cmd;

	if (qcul_range_is_known(&range) || !qcul_arena_holds(addr, len))
		return false;
	cmd = qcul_cmd(QCU_OP_HOST_REGISTER);
	cmd.host_register.buf.addr = (uint64_t)(uintptr_t)addr;
	cmd.host_register.buf.len = len;
	return !qcul_send(&cmd, 1) && cmd.host_register.device == (uint64_t)(uintptr_t)addr;
}

unsigned int qcul_copy_unmaps(void)
{
	return atomic_load(&qcul_window_unmaps);
}

/*
 * If the library does not know an end that the direction calls device memory, it treats this end as
 * device memory. The mirror knows all device memory, and refuses the copy if the end is not.
 */
static enum route route_of(enum cudaMemcpyKind kind, enum memory_kind dst, enum memory_kind src)
{
	bool to = dst == MEMORY_DEVICE, from = src == MEMORY_DEVICE;

	if (dst == MEMORY_HOST)
		to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	if (src == MEMORY_HOST)
		from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	if (kind == cudaMemcpyDeviceToDevice || (to && from))
		return ROUTE_D2D;
	if (to)
		return ROUTE_H2D;
	return from ? ROUTE_D2H : ROUTE_HOST;
}

static cudaError_t flush_copy_cmds(struct batch *b)
{
	cudaError_t err = cudaSuccess;

	if (b->count)
		err = b->post ? qcul_post(b->cmds, b->count) : qcul_send(b->cmds, b->count);
	b->count = 0;
	return err;
}

/* Returns room for one more command. If the batch is full, this function sends it first. */
static cudaError_t next_copy_cmd(struct batch *b, enum qcu_op op, struct qCUcmd **cmd)
{
	cudaError_t err = b->count == QCU_SUBMIT_MAX ? flush_copy_cmds(b) : cudaSuccess;

	if (err)
		return err;
	*cmd = &b->cmds[b->count++];
	**cmd = qcul_cmd(op);
	return cudaSuccess;
}

static cudaError_t add_d2d(struct batch *b, void *dst, const void *src, size_t len)
{
	struct qCUcmd *cmd;
	cudaError_t err = next_copy_cmd(b, QCU_OP_COPY_D2D, &cmd);

	if (err)
		return err;
	cmd->copy_d2d.dst = qcul_mem_device_address(dst);
	cmd->copy_d2d.src = qcul_mem_device_address(src);
	cmd->copy_d2d.len = len;
	cmd->copy_d2d.stream = b->stream;
	return cudaSuccess;
}

/* The part of [addr, addr + len) that one command can take if all its pages are scattered. */
static size_t most_for_one_command(uint64_t addr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t most = QCU_SEGS_MAX * page - (addr & (page - 1));

	return len < most ? len : most;
}

static cudaError_t add_small(struct batch *b, uint64_t host, uint64_t device, size_t len)
{
	struct qCUcmd *cmd;
	cudaError_t err = next_copy_cmd(b, QCU_OP_COPY_SMALL, &cmd);

	if (err)
		return err;
	cmd->copy_small.buf.addr = host;
	cmd->copy_small.buf.len = len;
	cmd->copy_small.dst = device;
	cmd->copy_small.stream = b->stream;
	return cudaSuccess;
}

static cudaError_t add_host(struct batch *b, enum route route, uint64_t host, uint64_t device,
			    size_t len)
{
	uint32_t flags = b->pinned ? QCU_COPY_QUEUED : 0;

	while (len > 0) {
		size_t part = b->whole ? len : most_for_one_command(host, len);
		struct qCUcmd *cmd;
		cudaError_t err;

		err = next_copy_cmd(b, route == ROUTE_H2D ? QCU_OP_COPY_H2D : QCU_OP_COPY_D2H,
				    &cmd);
		if (err)
			return err;
		cmd->buf.addr = host;
		cmd->buf.len = part;
		if (route == ROUTE_H2D) {
			cmd->copy_h2d.dst = device;
			cmd->copy_h2d.stream = b->stream;
			cmd->copy_h2d.flags = flags;
		} else {
			cmd->copy_d2h.src = device;
			cmd->copy_d2h.stream = b->stream;
			cmd->copy_d2h.flags = flags;
		}
		host += part;
		device += part;
		len -= part;
	}
	return cudaSuccess;
}

static cudaError_t add_row(struct batch *b, enum route route, char *dst, const char *src,
			   size_t len)
{
	switch (route) {
	case ROUTE_H2D:
		return b->small ? add_small(b, (uintptr_t)src, (uintptr_t)dst, len)
				: add_host(b, route, (uintptr_t)src, (uintptr_t)dst, len);
	case ROUTE_D2H:
		return add_host(b, route, (uintptr_t)dst, (uintptr_t)src, len);
	case ROUTE_D2D:
		return add_d2d(b, dst, src, len);
	case ROUTE_HOST:
		memmove(dst, src, len);
		break;
	}
	return cudaSuccess;
}

/* The last command of a synchronous copy answers when the whole copy is done, because all its
 * commands are in one stream. */
static void wait_for_last(struct batch *b, enum route route)
{
	struct qCUcmd *last = &b->cmds[b->count - 1];

	if (last->op == QCU_OP_RECT_H2D)
		last->rect_h2d.flags = QCU_COPY_SYNC;
	else if (last->op == QCU_OP_RECT_D2H)
		last->rect_d2h.flags = QCU_COPY_SYNC;
	else if (last->op == QCU_OP_RECT_D2D)
		last->rect_d2d.flags = QCU_COPY_SYNC;
	else if (route == ROUTE_H2D)
		last->copy_h2d.flags = QCU_COPY_SYNC;
	else if (route == ROUTE_D2H)
		last->copy_d2h.flags = QCU_COPY_SYNC;
	else if (route == ROUTE_D2D)
		last->copy_d2d.flags = QCU_COPY_SYNC;
}

/* The length from the first byte of the first row to the last byte of the last row. False: there is
 * no such address range. */
static bool measure_copy_rows(const struct qcul_copy *c, size_t pitch, size_t *len)
{
	return !__builtin_mul_overflow(pitch, c->height - 1, len) &&
	       !__builtin_add_overflow(*len, c->width, len);
}

static cudaError_t check_and_flatten_copy(struct qcul_copy *c)
{
	if (c->kind < cudaMemcpyHostToHost || c->kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!c->dst || !c->src)
		return cudaErrorInvalidValue;
	if (c->height == 1)
		return cudaSuccess;
	if (c->width > c->dpitch || c->width > c->spitch)
		return cudaErrorInvalidPitchValue;
	/* Rows without gaps are one row. */
	if (c->dpitch == c->width && c->spitch == c->width) {
		if (__builtin_mul_overflow(c->width, c->height, &c->width))
			return cudaErrorInvalidValue;
		c->height = 1;
	}
	return cudaSuccess;
}

/* How many rows one command can take if all their pages are scattered. */
static size_t rows_per_rect_cmd(const struct qcul_copy *c, size_t pitch)
{
	size_t most = (QCU_SEGS_MAX - 1) * (size_t)sysconf(_SC_PAGESIZE);

	return c->width > most ? 1 : 1 + (most - c->width) / pitch;
}

/* Adds one command for the next `rows` rows. */
static cudaError_t add_rect(struct batch *b, const struct qcul_copy *c, enum route route, char *dst,
			    const char *src, size_t rows)
{
	uint32_t flags = b->pinned ? QCU_COPY_QUEUED : 0;
	struct qCUcmd *cmd;
	cudaError_t err;

	switch (route) {
	case ROUTE_H2D:
		err = next_copy_cmd(b, QCU_OP_RECT_H2D, &cmd);
		if (err)
			return err;
		cmd->rect_h2d = (struct qcu_rect_h2d){
			.buf = {(uintptr_t)src, c->spitch * (rows - 1) + c->width},
			.dst = (uintptr_t)dst,
			.pitch = (uint32_t)c->spitch,
			.dst_pitch = (uint32_t)c->dpitch,
			.width = (uint32_t)c->width,
			.height = (uint32_t)rows,
			.stream = b->stream,
			.flags = flags,
		};
		return cudaSuccess;
	case ROUTE_D2H:
		err = next_copy_cmd(b, QCU_OP_RECT_D2H, &cmd);
		if (err)
			return err;
		cmd->rect_d2h = (struct qcu_rect_d2h){
			.buf = {(uintptr_t)dst, c->dpitch * (rows - 1) + c->width},
			.src = (uintptr_t)src,
			.pitch = (uint32_t)c->dpitch,
			.src_pitch = (uint32_t)c->spitch,
			.width = (uint32_t)c->width,
			.height = (uint32_t)rows,
			.stream = b->stream,
			.flags = flags,
		};
		return cudaSuccess;
	default:
		err = next_copy_cmd(b, QCU_OP_RECT_D2D, &cmd);
		if (err)
			return err;
		cmd->rect_d2d = (struct qcu_rect_d2d){
			.dst = qcul_mem_device_address(dst),
			.src = qcul_mem_device_address(src),
			.dst_pitch = (uint32_t)c->dpitch,
			.src_pitch = (uint32_t)c->spitch,
			.width = (uint32_t)c->width,
			.height = (uint32_t)rows,
			.stream = b->stream,
		};
		return cudaSuccess;
	}
}

static cudaError_t add_rects(struct batch *b, const struct qcul_copy *c, enum route route)
{
	size_t most = c->height, row, rows;
	cudaError_t err = cudaSuccess;

	if (route != ROUTE_D2D && !b->whole)
		most = rows_per_rect_cmd(c, route == ROUTE_H2D ? c->spitch : c->dpitch);
	for (row = 0; row < c->height && !err; row += rows) {
		rows = c->height - row < most ? c->height - row : most;
		err = add_rect(b, c, route, (char *)c->dst + row * c->dpitch,
			       (const char *)c->src + row * c->spitch, rows);
	}
	return err;
}

static cudaError_t add_all_rows(struct batch *b, const struct qcul_copy *c, enum route route)
{
	char *dst = c->dst;
	const char *src = c->src;
	cudaError_t err = cudaSuccess;
	size_t row;

	if (b->rows)
		err = add_rects(b, c, route);
	for (row = 0; row < c->height && !b->rows && !err; row++) {
		err = add_row(b, route, dst, src, c->width);
		dst += c->dpitch;
		src += c->spitch;
	}
	if (!err && b->count && c->sync && !b->post)
		wait_for_last(b, route);
	return err;
}

static cudaError_t capture_copy(const struct qcul_copy *c, cudaStream_t stream)
{
	const struct cudaMemcpy3DParms parms = {
		.srcPtr = {(void *)(uintptr_t)c->src, c->height > 1 ? c->spitch : c->width,
			   c->width, c->height},
		.dstPtr = {c->dst, c->height > 1 ? c->dpitch : c->width, c->width, c->height},
		.extent = {c->width, c->height, 1},
		.kind = c->kind,
	};

	return c->sync ? qcul_capture_refuse(stream) : qcul_capture_copy(stream, &parms);
}

static bool is_alias(const void *addr)
{
	return qcul_mem_find(addr).kind == QCUL_MEM_ALIAS;
}

/*
 * Decides which copies return before they are done. If the library does not know the device end,
 * it waits for the mirror's answer. A copy within device memory never waits, as in CUDA. A small
 * copy of pageable memory does not wait either, but if it is synchronous it first waits for the
 * earlier work in its stream.
 */
static cudaError_t plan(struct batch *b, const struct qcul_copy *c, enum route route,
			enum memory_kind dst, enum memory_kind src, size_t src_len, size_t dst_len)
{
	b->pinned = (route == ROUTE_H2D ? src : dst) == MEMORY_WINDOW;
	b->whole = b->pinned || (route == ROUTE_H2D ? qcul_arena_holds(c->src, src_len)
						    : qcul_arena_holds(c->dst, dst_len));
	b->small = b->post = false;
	/* One command takes many rows only if the GPU's ends are device memory, where a range lies
	 * in one allocation. The program's own memory may consist of several registrations. */
	b->rows = c->height > 1 && route != ROUTE_HOST &&
		  (route == ROUTE_H2D || src == MEMORY_DEVICE) &&
		  (route == ROUTE_D2H || dst == MEMORY_DEVICE) && c->dpitch <= INT32_MAX &&
		  c->spitch <= INT32_MAX && c->height <= INT32_MAX && !is_alias(c->dst) &&
		  !is_alias(c->src);
	switch (route) {
	case ROUTE_H2D:
		b->small = !b->rows && dst == MEMORY_DEVICE && src == MEMORY_HOST &&
			   c->width <= QCU_MSG_MAX && c->height <= QCU_MSG_MAX / c->width;
		b->post = b->small || (dst == MEMORY_DEVICE && b->pinned && !c->sync);
		if (b->small && c->sync && qcul_legacy_busy(qcul_self.device))
			return qcul_stream_wait(b->stream);
		break;
	case ROUTE_D2H:
		b->post = src == MEMORY_DEVICE && b->pinned && !c->sync;
		break;
	case ROUTE_D2D:
		b->post = dst != MEMORY_HOST && src != MEMORY_HOST &&
			  (!c->sync || (dst == MEMORY_DEVICE && src == MEMORY_DEVICE));
		break;
	case ROUTE_HOST:
		return qcul_stream_wait(b->stream);
	}
	return cudaSuccess;
}

cudaError_t qcul_copy(const struct qcul_copy *copy, cudaStream_t stream)
{
	struct qcul_copy c = *copy;
	struct batch b;
	enum memory_kind dst, src;
	enum route route;
	size_t dst_len, src_len;
	cudaError_t err = qcul_open();

	if (err)
		return err;
	if (!c.width || !c.height)
		return qcul_ready();
	err = check_and_flatten_copy(&c);
	if (!err)
		err = qcul_ready();
	if (!err)
		err = qcul_stream_id(stream, &b.stream);
	if (err)
		return err;
	if (!measure_copy_rows(&c, c.dpitch, &dst_len) ||
	    !measure_copy_rows(&c, c.spitch, &src_len))
		return cudaErrorInvalidValue;
	err = find_memory_kind(c.dst, dst_len, c.kind, &dst);
	if (!err)
		err = find_memory_kind(c.src, src_len, c.kind, &src);
	if (err)
		return err;
	if (qcul_captured(stream, &err))
		return err ? err : capture_copy(&c, stream);

	route = route_of(c.kind, dst, src);
	b.count = 0;
	err = plan(&b, &c, route, dst, src, src_len, dst_len);
	if (!err)
		err = add_all_rows(&b, &c, route);
	if (!err)
		err = flush_copy_cmds(&b);
	if (c.sync)
		qcul_print_flush();
	return err;
}

static cudaError_t capture_fill(const struct qcul_fill *f, cudaStream_t stream)
{
	const struct cudaGraphNodeParams node = {
		.type = cudaGraphNodeTypeMemset,
		.memset =
			{
				.dst = f->dst,
				.pitch = f->pitch,
				.value = f->value,
				.elementSize = f->elem,
				.width = f->width / f->elem,
				.height = f->height,
			},
	};

	return qcul_capture_node(stream, &node);
}

cudaError_t qcul_fill(const struct qcul_fill *f, cudaStream_t stream)
{
	struct qCUcmd cmd;
	enum memory_kind memory;
	uint32_t id;
	size_t len, pitch = f->height == 1 ? 0 : f->pitch;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (err || !f->width || !f->height)
		return err;
	if (!f->dst || (f->height > 1 && f->width > pitch))
		return cudaErrorInvalidValue;
	if (__builtin_mul_overflow(pitch, f->height - 1, &len) ||
	    __builtin_add_overflow(len, f->width, &len))
		return cudaErrorInvalidValue;
	err = find_memory_kind(f->dst, len, cudaMemcpyDefault, &memory);
	if (err)
		return err;
	if (qcul_captured(stream, &err))
		return err ? err : capture_fill(f, stream);
	cmd = qcul_cmd(QCU_OP_MEMSET);
	cmd.memset.dst = qcul_mem_device_address(f->dst);
	cmd.memset.pitch = pitch;
	cmd.memset.width = f->width;
	cmd.memset.height = f->height;
	cmd.memset.value = f->value;
	cmd.memset.stream = id;
	cmd.memset.elem = f->elem;
	/* A memset of pinned memory is synchronous: the program may read the memory next, without
	 * waiting for the stream. */
	cmd.memset.flags = memory == MEMORY_WINDOW ? QCU_COPY_SYNC : 0;
	return memory == MEMORY_DEVICE ? qcul_post(&cmd, 1) : qcul_send(&cmd, 1);
}

cudaError_t qcul_memset(void *dst, size_t pitch, int value, size_t width, size_t height,
			cudaStream_t stream)
{
	const struct qcul_fill fill = {dst, pitch, width, height, (unsigned char)value, 1};

	return qcul_fill(&fill, stream);
}
