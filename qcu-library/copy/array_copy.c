// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies from and to CUDA arrays. Copies from and to guest memory go slice by slice: a command
 * takes rows with a pitch. In pinned or malloc memory, one command takes all rows of a slice. In
 * other memory, it takes as many rows as fit in the pages that one command can name.
 */
#include <string.h>
#include <unistd.h>

#include "qcu-library/malloc/arena.h"
#include "qcu-library/memory/array.h"
#include "qcu-library/copy/copy.h"
#include "qcu-library/link/capture.h"

/* A box in an array; x and width in bytes. */
struct array_position {
	cudaArray_const_t handle;
	const struct qcul_array *array;
	size_t x, y, z;
};
struct memory {
	char *addr;
	size_t pitch, rows; /* of a slice */
};
struct size {
	size_t width, height, depth;
};

struct batch {
	struct qCUcmd cmds[QCU_SUBMIT_MAX];
	unsigned int count;
	uint32_t stream;
	bool post; /* the commands need no wait and no answer */
};

static cudaError_t flush_array_cmds(struct batch *b)
{
	cudaError_t err = cudaSuccess;

	if (b->count)
		err = b->post ? qcul_post(b->cmds, b->count) : qcul_send(b->cmds, b->count);
	b->count = 0;
	return err;
}

static bool fits_in_dimension(size_t pos, size_t len, size_t size)
{
	return pos <= size && len <= size - pos;
}

static bool fits(const struct array_position *p, const struct size *s)
{
	struct cudaExtent e = qcul_array_size(p->array);

	return p->x % p->array->elem == 0 && s->width % p->array->elem == 0 &&
	       fits_in_dimension(p->x, s->width, e.width * p->array->elem) &&
	       fits_in_dimension(p->y, s->height, e.height) &&
	       fits_in_dimension(p->z, s->depth, e.depth);
}

/* True: the GPU accesses the memory by this address. False: it is guest memory, which a command
 * names by its pages. */
static bool is_gpu_address(const struct memory *m, enum cudaMemcpyKind kind, bool *pinned)
{
	struct qcul_range range = qcul_mem_find(m->addr);

	*pinned = qcul_range_is_pinned(&range) || qcul_range_is_managed(&range);
	switch (range.kind) {
	case QCUL_MEM_DEVICE:
	case QCUL_MEM_VARIABLE:
	case QCUL_MEM_ALIAS:
		return !qcul_range_has(&range, QCUL_MEM_AMBIGUOUS) || kind == cudaMemcpyDefault ||
		       kind == cudaMemcpyDeviceToDevice;
	case QCUL_MEM_MANAGED:
		return qcul_range_has(&range, QCUL_MEM_MOVES);
	case QCUL_MEM_HOST:
		return kind == cudaMemcpyDeviceToDevice;
	default:
		return false;
	}
}

static bool is_inside_range(const struct qcul_range *range, const void *addr, size_t len)
{
	uint64_t offset = (uint64_t)(uintptr_t)addr - range->start;

	return len <= range->len && offset <= range->len - len;
}

/* The length from the first byte of the first row to the last byte of the last row. */
static bool measure_box_rows(size_t pitch, size_t rows, size_t width, size_t *len)
{
	return !__builtin_mul_overflow(pitch, rows - 1, len) &&
	       !__builtin_add_overflow(*len, width, len);
}

/* The records of both directions have the same fields. */
#define FILL_ROWS(record, p, m, s, row, slice)                \
	do {                                                  \
		(record)->array = (uint16_t)(p)->array->id;   \
		(record)->level = (uint8_t)(p)->array->level; \
		(record)->x = (uint32_t)(p)->x;               \
		(record)->y = (uint32_t)((p)->y + (row));     \
		(record)->z = (uint32_t)((p)->z + (slice));   \
		(record)->width = (uint32_t)(s)->width;       \
		(record)->height = (uint32_t)(s)->height;     \
		(record)->pitch = (uint32_t)(m)->pitch;       \
	} while (0)

/* Adds one command for s->height rows of one slice, from `row` on. */
static cudaError_t add_slice_rows(struct batch *b, const struct array_position *p,
				  const struct memory *m, const struct size *s, size_t row,
				  size_t slice, bool down, uint32_t flags)
{
	struct qCUcmd *cmd;
	cudaError_t err = b->count == QCU_SUBMIT_MAX ? flush_array_cmds(b) : cudaSuccess;

	if (err)
		return err;
	cmd = &b->cmds[b->count++];
	*cmd = qcul_cmd(down ? QCU_OP_ARRAY_READ : QCU_OP_ARRAY_WRITE);
	cmd->buf.addr = (uint64_t)(uintptr_t)(m->addr + (slice * m->rows + row) * m->pitch);
	cmd->buf.len = m->pitch * (s->height - 1) + s->width;
	if (down) {
		FILL_ROWS(&cmd->array_read, p, m, s, row, slice);
		cmd->array_read.flags = (uint8_t)flags;
		cmd->array_read.stream = b->stream;
	} else {
		FILL_ROWS(&cmd->array_write, p, m, s, row, slice);
		cmd->array_write.flags = (uint8_t)flags;
		cmd->array_write.stream = b->stream;
	}
	return cudaSuccess;
}

/* How many rows one command can take if all their pages are scattered. */
static size_t rows_per_array_cmd(size_t pitch, size_t width)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t most = (QCU_SEGS_MAX - 1) * page;

	return width > most ? 1 : 1 + (most - width) / (pitch ? pitch : 1);
}

static cudaError_t host_copy(struct batch *b, const struct array_position *p,
			     const struct memory *m, const struct size *s, bool down, bool pinned,
			     bool sync)
{
	struct qcul_range range = qcul_mem_find(m->addr);
	size_t len, slice, row, most;
	cudaError_t err = cudaSuccess;

	if (!measure_box_rows(m->pitch, m->rows * (s->depth - 1) + s->height, s->width, &len))
		return cudaErrorInvalidValue;
	if (pinned && !is_inside_range(&range, m->addr, len)) {
		if (!qcul_range_is_registered(&range))
			return cudaErrorInvalidValue;
		pinned = false;
	}
	b->post = pinned && !sync;
	most = pinned || qcul_arena_holds(m->addr, len) ? s->height
							: rows_per_array_cmd(m->pitch, s->width);
	for (slice = 0; slice < s->depth && !err; slice++)
		for (row = 0; row < s->height && !err; row += most) {
			struct size part = {s->width, s->height - row, 1};

			if (part.height > most)
				part.height = most;
			err = add_slice_rows(b, p, m, &part, row, slice, down,
					     pinned ? QCU_COPY_QUEUED : 0);
		}
	if (!err && sync && down)
		b->cmds[b->count - 1].array_read.flags |= QCU_COPY_SYNC;
	else if (!err && sync)
		b->cmds[b->count - 1].array_write.flags |= QCU_COPY_SYNC;
	return err ? err : flush_array_cmds(b);
}

static cudaError_t device_copy(struct batch *b, const struct array_position *p,
			       const struct memory *m, const struct size *s, bool down)
{
	struct qcul_range range = qcul_mem_find(m->addr);
	struct qCUcmd *cmd = &b->cmds[b->count++];
	size_t len;

	if (m->rows > UINT32_MAX ||
	    !measure_box_rows(m->pitch, m->rows * (s->depth - 1) + s->height, s->width, &len))
		return cudaErrorInvalidValue;
	/* The mirror may refuse memory that the library does not know, so its answer is needed. */
	b->post = qcul_range_is_known(&range) && is_inside_range(&range, m->addr, len);
	*cmd = qcul_cmd(QCU_OP_ARRAY_DEVICE);
	cmd->array_device.addr = qcul_mem_device_address(m->addr);
	cmd->array_device.array = (uint16_t)p->array->id;
	cmd->array_device.level = (uint8_t)p->array->level;
	cmd->array_device.flags = down ? QCU_COPY_DOWN : 0;
	cmd->array_device.x = (uint32_t)p->x;
	cmd->array_device.y = (uint32_t)p->y;
	cmd->array_device.z = (uint32_t)p->z;
	cmd->array_device.width = (uint32_t)s->width;
	cmd->array_device.height = (uint32_t)s->height;
	cmd->array_device.depth = (uint32_t)s->depth;
	cmd->array_device.pitch = (uint32_t)m->pitch;
	cmd->array_device.rows = (uint32_t)m->rows;
	cmd->array_device.stream = b->stream;
	return flush_array_cmds(b);
}

static cudaError_t capture_array_copy(const struct array_position *p, const struct memory *m,
				      const struct size *s, enum cudaMemcpyKind kind,
				      cudaStream_t stream, bool down, bool sync)
{
	struct cudaMemcpy3DParms parms = {
		.extent = {s->width / p->array->elem, s->height, s->depth},
		.kind = kind,
	};
	struct cudaPitchedPtr ptr = {m->addr, m->pitch, s->width, m->rows};
	struct cudaPos pos = {p->x / p->array->elem, p->y, p->z};

	if (sync)
		return qcul_capture_refuse(stream);
	*(down ? &parms.srcArray : &parms.dstArray) = (cudaArray_t)(uintptr_t)p->handle;
	*(down ? &parms.srcPos : &parms.dstPos) = pos;
	*(down ? &parms.dstPtr : &parms.srcPtr) = ptr;
	return qcul_capture_copy(stream, &parms);
}

/* Copies between a box of an array and memory. */
static cudaError_t memory_copy(const struct array_position *p, const struct memory *m,
			       const struct size *s, enum cudaMemcpyKind kind, cudaStream_t stream,
			       bool down, bool sync)
{
	struct batch b = {.count = 0};
	bool pinned, device;
	cudaError_t err;

	if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault ||
	    kind == cudaMemcpyHostToHost ||
	    kind == (down ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost))
		return cudaErrorInvalidMemcpyDirection;
	err = qcul_ready();
	if (!err)
		err = qcul_stream_id(stream, &b.stream);
	if (err)
		return err;
	if (!p->array)
		return cudaErrorInvalidResourceHandle;
	if (!s->width || !s->height || !s->depth)
		return cudaSuccess;
	if (!m->addr || !fits(p, s))
		return cudaErrorInvalidValue;
	if ((s->height > 1 || s->depth > 1) && (m->pitch < s->width || m->pitch > INT32_MAX))
		return cudaErrorInvalidPitchValue;
	if (s->depth > 1 && m->rows < s->height)
		return cudaErrorInvalidValue;
	if (qcul_captured(stream, &err))
		return err ? err : capture_array_copy(p, m, s, kind, stream, down, sync);
	device = is_gpu_address(m, kind, &pinned);
	if (device)
		err = device_copy(&b, p, m, s, down);
	else
		err = host_copy(&b, p, m, s, down, pinned, sync);
	if (sync)
		qcul_print_flush();
	return err;
}

static cudaError_t array_copy(const struct array_position *dst, const struct array_position *src,
			      const struct size *s, cudaStream_t stream)
{
	struct qCUcmd cmd;
	uint32_t id;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (err)
		return err;
	if (qcul_captured(stream, &err))
		return err ? err : qcul_capture_refuse(stream);
	if (!dst->array || !src->array)
		return cudaErrorInvalidResourceHandle;
	if (!s->width || !s->height || !s->depth)
		return cudaSuccess;
	if (dst->array->elem != src->array->elem || !fits(dst, s) || !fits(src, s))
		return cudaErrorInvalidValue;
	cmd = qcul_cmd(QCU_OP_ARRAY_COPY);
	cmd.array_copy.dst = (uint16_t)dst->array->id;
	cmd.array_copy.src = (uint16_t)src->array->id;
	cmd.array_copy.dst_level = (uint8_t)dst->array->level;
	cmd.array_copy.src_level = (uint8_t)src->array->level;
	cmd.array_copy.stream = id;
	cmd.array_copy.dx = (uint32_t)dst->x;
	cmd.array_copy.dy = (uint32_t)dst->y;
	cmd.array_copy.dz = (uint32_t)dst->z;
	cmd.array_copy.sx = (uint32_t)src->x;
	cmd.array_copy.sy = (uint32_t)src->y;
	cmd.array_copy.sz = (uint32_t)src->z;
	cmd.array_copy.width = (uint32_t)s->width;
	cmd.array_copy.height = (uint32_t)s->height;
	cmd.array_copy.depth = (uint32_t)s->depth;
	return qcul_post(&cmd, 1);
}

cudaError_t qcul_array_copy_2d(cudaArray_const_t array, size_t x, size_t y, void *addr,
			       size_t pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
			       cudaStream_t stream, bool down, bool sync)
{
	struct array_position p = {array, qcul_array(array), x, y, 0};
	struct memory m = {.addr = addr, .pitch = pitch, .rows = height};
	struct size s = {width, height, 1};

	if (width && height && width > pitch)
		return cudaErrorInvalidPitchValue;
	return memory_copy(&p, &m, &s, kind, stream, down, sync);
}

/* Copies a run of bytes through an array's rows: the rest of one row, whole rows, then the
 * beginning of one row. */
cudaError_t qcul_array_copy_run(cudaArray_const_t array, size_t x, size_t y, void *addr,
				size_t count, enum cudaMemcpyKind kind, cudaStream_t stream,
				bool down, bool sync)
{
	const struct qcul_array *a = qcul_array(array);
	size_t row = a ? a->extent.width * a->elem : 0, part;
	char *at = addr;
	cudaError_t err;

	do {
		struct array_position p = {array, a, x, y, 0};
		struct memory m = {.addr = at};
		struct size s = {count, 1, 1};

		if (a && x < row && count > row - x)
			s.width = row - x;
		if (a && !x && count >= row) {
			s.width = row;
			s.height = count / row;
		}
		m.pitch = s.width;
		m.rows = s.height;
		part = s.width * s.height;
		err = memory_copy(&p, &m, &s, kind, stream, down, sync);
		at += part;
		count -= part;
		y += x + s.width == row ? s.height : 0;
		x = 0;
	} while (!err && count);
	return err;
}

cudaError_t qcul_array_to_array_2d(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				   size_t sx, size_t sy, size_t width, size_t height,
				   enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct array_position to = {dst, qcul_array(dst), dx, dy, 0};
	struct array_position from = {src, qcul_array(src), sx, sy, 0};
	struct size s = {width, height, 1};

	if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	return array_copy(&to, &from, &s, stream);
}

/* Both runs go through the rows of their arrays. Each step ends where one of the two rows ends. */
cudaError_t qcul_array_to_array_run(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				    size_t sx, size_t sy, size_t count, enum cudaMemcpyKind kind,
				    cudaStream_t stream)
{
	const struct qcul_array *d = qcul_array(dst), *s = qcul_array(src);
	size_t drow = d ? d->extent.width * d->elem : 0, srow = s ? s->extent.width * s->elem : 0;
	cudaError_t err;

	do {
		size_t part = count;

		if (dx < drow && part > drow - dx)
			part = drow - dx;
		if (sx < srow && part > srow - sx)
			part = srow - sx;
		err = qcul_array_to_array_2d(dst, dx, dy, src, sx, sy, part, part ? 1 : 0, kind,
					     stream);
		count -= part;
		dx += part;
		sx += part;
		dy += dx == drow;
		sy += sx == srow;
		dx = dx == drow ? 0 : dx;
		sx = sx == srow ? 0 : sx;
	} while (!err && count);
	return err;
}

/* Finds the address of a position in memory; pos->x counts bytes. False: there is no such address.
 */
static bool find_memory_corner(const struct cudaPitchedPtr *p, const struct cudaPos *pos,
			       struct memory *m)
{
	size_t slice, z, y;

	if (__builtin_mul_overflow(p->pitch, p->ysize, &slice) ||
	    __builtin_mul_overflow(slice, pos->z, &z) ||
	    __builtin_mul_overflow(p->pitch, pos->y, &y))
		return false;
	*m = (struct memory){
		.addr = p->ptr ? (char *)p->ptr + z + y + pos->x : NULL,
		.pitch = p->pitch,
		.rows = p->ysize,
	};
	return true;
}

static bool find_array_position(cudaArray_const_t array, const struct cudaPos *pos,
				struct array_position *p)
{
	*p = (struct array_position){array, qcul_array(array), 0, pos->y, pos->z};
	return !p->array || !__builtin_mul_overflow(pos->x, (size_t)p->array->elem, &p->x);
}

cudaError_t qcul_array_copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool sync)
{
	struct array_position dst = {0}, src = {0}, *one;
	struct size s = {p->extent.width, p->extent.height, p->extent.depth};
	struct cudaPos pos = p->dstArray ? p->srcPos : p->dstPos;
	struct memory m;

	if ((p->dstArray && p->dstPtr.ptr) || (p->srcArray && p->srcPtr.ptr))
		return cudaErrorInvalidValue;
	if ((p->dstArray && !find_array_position(p->dstArray, &p->dstPos, &dst)) ||
	    (p->srcArray && !find_array_position(p->srcArray, &p->srcPos, &src)))
		return cudaErrorInvalidValue;
	one = p->dstArray ? &dst : &src;
	if (!one->array)
		return cudaErrorInvalidResourceHandle;
	/* With an array, the width and the position in memory count elements. */
	if (__builtin_mul_overflow(s.width, (size_t)one->array->elem, &s.width) ||
	    __builtin_mul_overflow(pos.x, (size_t)one->array->elem, &pos.x))
		return cudaErrorInvalidValue;
	if (p->dstArray && p->srcArray)
		return p->kind == cudaMemcpyDeviceToDevice || p->kind == cudaMemcpyDefault
			       ? array_copy(&dst, &src, &s, stream)
			       : cudaErrorInvalidMemcpyDirection;
	if (!find_memory_corner(p->dstArray ? &p->srcPtr : &p->dstPtr, &pos, &m))
		return cudaErrorInvalidValue;
	return memory_copy(one, &m, &s, p->kind, stream, !p->dstArray, sync);
}
