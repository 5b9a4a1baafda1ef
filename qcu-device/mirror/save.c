// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Saves a session: first the commands that have made it what it is, in their order, then contents.
 * Whatever cannot be made again is found before anything is written.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qcu-device/base/spin.h"
#include "qcu-device/base/zero.h"
#include "qcu-device/commands/swap/swap.h"
#include "qcu-device/libs/libs.h"
#include "qcu-device/mirror/going.h"
#include "qcu-device/mirror/going_impl.h"
#include "qcu-device/mirror/keeping.h"
#include "qcu-device/mirror/save.h"
#include "qcu-device/mirror/save_memory.h"
#include "qcu-device/mirror/module_names.h"
#include "qcu-device/mirror/save_graph.h"
#include "qcu-device/mirror/save_virtual.h"
#include "qcu-device/mirror/archive.h"

#define PAUSE_NS 200000

#define BIT(kind) (1u << (kind))
/*
 * Objects with addresses that the program knows, and what needs no memory of the GPU. Modules come
 * before them, arrays and objects of libraries after them: they take what is left.
 */
#define FIRST_KINDS                                                                            \
	(BIT(KEPT_TEXTURE) - 1 - BIT(HANDLE_ARRAY) - BIT(HANDLE_GRAPH) - BIT(HANDLE_LIBRARY) - \
	 BIT(HANDLE_MODULE))

struct saving {
	struct mirror *m;
	struct archive to;
	char *why;
	size_t size;
	uint8_t *buffer[2]; /* ARCHIVE_PIECE bytes each */
	bool registered;
	bool passes; /* what is in the way may end soon */
	uint64_t at; /* the moment that events are older than */
};

static bool refuse_saving(struct saving *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse_saving(struct saving *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, s->size, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- is it possible? ---- */

/* A command that is just done may have sent another one of the driver's: so this looks twice. */
static bool wait_until_idle(struct saving *s, unsigned int ms)
{
	const uint64_t end = spin_clock() + ms * 1000000ull;
	struct mirror *m = s->m;
	bool busy, idle;
	const char *why;

	do {
		idle = lanes_idle(m->lanes, ms) && lanes_idle(m->lanes, ms);
		why = m->cfg.ops->unsaved(m->be, &busy);
		if (idle && !busy)
			return why ? refuse_saving(s, "%s", why) : true;
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	} while (spin_clock() < end);
	s->passes = true;
	return refuse_saving(s, "%s",
			     idle ? "work of the GPU does not end" : "a command does not end");
}

static const char *kind_name(enum handle_kind kind)
{
	static const char *const names[] = {
		[HANDLE_STREAM] = "a stream of a green context",
		[HANDLE_EVENT] = "an event of another process",
		[HANDLE_MODULE] = "a module",
		[HANDLE_KERNEL] = "a kernel",
		[HANDLE_ARRAY] = "an array",
		[HANDLE_POOL] = "a memory pool",
		[HANDLE_COND] = "a conditional node",
		[HANDLE_GRAPH] = "an executable graph",
		[HANDLE_LINK] = "a link",
		[HANDLE_GREEN] = "a green context",
		[HANDLE_LIBRARY] = "an object of a library such as cuBLAS",
	};

	return names[kind];
}

/* Is what it depends on kept, and still there under its number? */
static bool is_whole(struct saving *s, const struct kept_object *o, const char *what)
{
	if (o->of.kind >= KEPT_KINDS || o->of.id < QCU_ID_FIRST ||
	    (o->of_number && kept_made(kept_find(&s->m->kept, &o->of)) == o->of_number))
		return true;
	return refuse_saving(s, "it has %s that needs something which has ended", what);
}

static bool are_objects_kept(struct saving *s, enum kept_kind kind, const char *what)
{
	const struct kept_object *o;
	bool ok = true;

	TAILQ_FOREACH(o, &s->m->kept.objects[kind], link)
	ok = ok && is_whole(s, o, what);
	return ok;
}

/* A backend that does not know what kernels allocate has the image say whether they may. */
static bool check_module(struct saving *s, uint32_t id)
{
	struct image_names names;
	bool ok = mir_module_names(s->m, id, &names) || refuse_saving(s, "there is no memory");

	if (ok && names.mallocs)
		ok = refuse_saving(s, "kernels may have memory from malloc()");
	image_names_free(&names);
	return ok;
}

/* It is placed by the number of its memory, which may mean another one now. */
static bool is_array_kept(struct saving *s, const struct kept_object *o, const struct handle *h)
{
	struct handle *mem;

	if (!h->parent)
		return is_whole(s, o, "an array");
	mem = handles_get(&s->m->handles, HANDLE_PHYS, (uint32_t)o->of.id);
	handles_put(&s->m->handles, mem);
	return mem == h->parent ||
	       refuse_saving(s, "it has an array in memory whose number has ended");
}

static bool is_handle_kept(struct saving *s, enum handle_kind kind, uint32_t id,
			   const struct handle *h)
{
	const struct kept_name name = {.kind = kind, .id = id};
	const struct kept_object *o = kept_find(&s->m->kept, &name);
	const char *why;

	if (kind == HANDLE_PHYS) /* save_virtual_check() has looked at it */
		return true;
	if (kind == HANDLE_LIBRARY && (why = lib_unsaved(h)))
		return refuse_saving(s, "it has an object of %s, whose state cannot be read", why);
	if (!o || !o->made)
		return refuse_saving(s, "it has %s", kind_name(kind));
	if (kind == HANDLE_COND && !s->m->cfg.ops->cond_saved)
		return refuse_saving(s, "it has a conditional node, whose handle CUDA chooses");
	if (kind == HANDLE_LINK && h->failed)
		return refuse_saving(s, "it has a link that has failed");
	if (kind == HANDLE_MODULE && !check_module(s, id))
		return false;
	if (h->shared)
		return refuse_saving(s, "it shares %s with other processes", kind_name(kind));
	if (kind == HANDLE_GRAPH) {
		why = save_graph_check(s->m, o, h);
		return !why || refuse_saving(s, "it has %s", why);
	}
	if (kind == HANDLE_ARRAY)
		return is_array_kept(s, o, h);
	return is_whole(s, o, kind_name(kind));
}

static bool are_handles_kept(struct saving *s)
{
	unsigned int kind;
	struct handle *h;
	bool ok = true;
	uint32_t id;

	for (kind = 0; kind < HANDLE_KINDS && ok; kind++) {
		for (id = QCU_ID_FIRST; ok && (h = handles_next(&s->m->handles, kind, &id)); id++) {
			ok = is_handle_kept(s, kind, id, h);
			handles_put(&s->m->handles, h);
		}
	}
	return ok;
}

/* Calls that are repeated need their handle, where they have one. */
static bool are_calls_kept(struct saving *s)
{
	const struct kept_name name = {.kind = HANDLE_LIBRARY, .id = MIR_REPEATED};
	const struct kept_object *o = kept_find(&s->m->kept, &name);
	const struct kept_step *r;
	struct kept_name of = {.kind = HANDLE_LIBRARY};
	uint64_t made;

	if (!o)
		return true;
	STAILQ_FOREACH(r, &o->records, link)
	{
		memcpy(&of.id, (const uint8_t *)r->data + sizeof(struct qcu_lib_head),
		       sizeof(of.id));
		made = kept_made(kept_find(&s->m->kept, &of));
		if (lib_needs_handle(r->cmd.lib_ask.function) && (!made || made > r->number))
			return refuse_saving(s, "it has an algorithm of cublaslt whose handle has "
						"ended");
	}
	return true;
}

static bool is_memory_kept(struct saving *s)
{
	const struct kept_object *o;
	struct qcu_ipc_token token;
	struct be_wanted p;
	size_t count = 0;

	TAILQ_FOREACH(o, &s->m->kept.objects[KEPT_MEMORY], link)
	{
		if (!mir_allocation_at(s->m, o->name.id, &p.size, &p.dev))
			continue;
		count++;
		if (mir_allocation_shared(s->m, o->name.id, &token) == QCU_ERR_Success)
			return refuse_saving(s, "it shares memory with other processes");
		if (!is_whole(s, o, "memory"))
			return false;
	}
	return count == mir_allocations(s->m) || refuse_saving(s, "not all of its memory is known");
}

static bool is_possible(struct saving *s)
{
	struct mirror *m = s->m;
	const char *why;

	if (m->kept.lost)
		return refuse_saving(s, "there was no memory for what would have to be saved");
	if (!LIST_EMPTY(&m->imports) || !LIST_EMPTY(&m->opened))
		return refuse_saving(s, "it has opened memory of another process");
	why = save_virtual_check(m);
	if (why)
		return refuse_saving(s, "%s", why);
	if (m->result_count) {
		s->passes = true;
		return refuse_saving(s, "a result has not been read yet");
	}
	return are_handles_kept(s) && are_calls_kept(s) && is_memory_kept(s) &&
	       are_objects_kept(s, KEPT_TEXTURE, "a texture") &&
	       are_objects_kept(s, KEPT_SURFACE, "a surface");
}

/* ---- the commands ---- */

static bool write_entry(struct saving *s, struct archive_entry *e, const void *data,
			const struct be_wanted *wanted)
{
	return archive_write(&s->to, e, data, wanted) ||
	       refuse_saving(s, "the file cannot be written");
}

static bool write_command(struct saving *s, const struct qCUcmd *cmd, const void *data, size_t len,
			  const struct be_wanted *wanted, uint32_t count)
{
	struct archive_entry e = {
		.what = ARCHIVE_COMMAND, .len = len, .wanted = count, .cmd = *cmd};

	return write_entry(s, &e, data, wanted);
}

/* Where the module's variables are, for the caller to free. False: there is no memory. */
static bool list_variables(struct mirror *m, uint32_t id, const struct handle *h,
			   struct be_wanted **list, size_t *count)
{
	struct image_names names;
	bool ok = mir_module_names(m, id, &names);

	*list = NULL;
	if (ok)
		*count = m->cfg.ops->module_vars(m->be, h->module, &names, NULL, 0);
	if (ok)
		*list = calloc(*count + 1, sizeof(**list));
	if (*list)
		m->cfg.ops->module_vars(m->be, h->module, &names, *list, *count);
	image_names_free(&names);
	return *list;
}

static bool write_module(struct saving *s, const struct kept_step *r)
{
	struct mirror *m = s->m;
	const uint32_t id = r->cmd.module_load.module;
	struct handle *h = handles_get(&m->handles, HANDLE_MODULE, id);
	struct be_wanted *wanted = NULL;
	size_t count = 0;
	bool ok = h && list_variables(m, id, h, &wanted, &count);

	handles_put(&m->handles, h);
	ok = ok ? write_command(s, &r->cmd, r->data, r->len, wanted, (uint32_t)count)
		: refuse_saving(s, "there is no memory");
	free(wanted);
	return ok;
}

/* With its handle and its value. An outermost graph has neither. */
static bool write_cond_create(struct saving *s, const struct kept_step *r)
{
	struct mirror *m = s->m;
	struct handle *h = handles_get(&m->handles, HANDLE_COND, r->cmd.cond_create.cond);
	struct be_wanted wanted = {0};

	if (h)
		m->cfg.ops->cond_saved(m->be, h->cond, &wanted);
	handles_put(&m->handles, h);
	return write_command(s, &r->cmd, NULL, 0, &wanted, r->cmd.cond_create.graph != 0);
}

static bool write_record(struct saving *s, const struct kept_step *r)
{
	const struct be_ops *ops = s->m->cfg.ops;
	struct kept_name name;
	struct be_wanted p[2] = {{0}};
	uint32_t count = 1;

	if (r->cmd.op == QCU_OP_MODULE_LOAD)
		return write_module(s, r);
	if (r->cmd.op == QCU_OP_COND_CREATE)
		return write_cond_create(s, r);
	mir_kept_name(&r->cmd, &name);
	if (name.kind != KEPT_MEMORY && name.kind != KEPT_TEXTURE && name.kind != KEPT_SURFACE)
		return write_command(s, &r->cmd, r->data, r->len, NULL, 0);
	p[0].addr = name.id;
	mir_allocation_at(s->m, p[0].addr, &p[0].size, &p[0].dev);
	if (name.kind == KEPT_MEMORY && ops->mem_block &&
	    ops->mem_block(s->m->be, p[0].addr, &p[1]))
		count++;
	return write_command(s, &r->cmd, r->data, r->len, p, count);
}

/* Is the object still there? What it depends on may have ended it without a command of its own. */
static bool is_alive(struct mirror *m, const struct kept_object *o)
{
	struct be_wanted p;
	struct handle *h;

	if (o->name.kind == KEPT_MEMORY)
		return mir_allocation_at(m, o->name.id, &p.size, &p.dev);
	if (o->name.kind >= HANDLE_KINDS || o->name.id < QCU_ID_FIRST)
		return true;
	h = handles_get(&m->handles, o->name.kind, (uint32_t)o->name.id);
	handles_put(&m->handles, h);
	return h;
}

static int compare_numbers(const void *a, const void *b)
{
	const struct kept_step *const *x = a, *const *y = b;

	return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

/* All commands about objects of these kinds, bits, in their order. */
static bool write_records(struct saving *s, unsigned int kinds)
{
	const struct kept_step **all = NULL, *r;
	size_t count = 0, room = 0, i;
	const struct kept_object *o;
	unsigned int kind;
	bool ok = true;

	for (kind = 0; kind < KEPT_KINDS; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		TAILQ_FOREACH(o, &s->m->kept.objects[kind], link)
		{
			if (!is_alive(s->m, o))
				continue;
			STAILQ_FOREACH(r, &o->records, link)
			{
				if (count == room) {
					void *more;

					room = 2 * room + 64;
					more = realloc(all, room * sizeof(*all));
					if (!more) {
						free(all);
						return refuse_saving(s, "there is no memory");
					}
					all = more;
				}
				all[count++] = r;
			}
		}
	}
	if (count)
		qsort(all, count, sizeof(*all), compare_numbers);
	for (i = 0; i < count && ok; i++)
		ok = write_record(s, all[i]);
	free(all);
	return ok;
}

/* Guest memory that is registered, or managed memory that moves. */
static bool write_pinned_map(struct saving *s, const struct window_pinned *p)
{
	struct qCUcmd cmd = {.op = QCU_OP_HOST_REGISTER, .flags = QCU_F_WINDOW};

	if (p->placed) {
		cmd = (struct qCUcmd){.op = QCU_OP_MANAGED, .device = (uint8_t)p->device};
		cmd.managed = (struct qcu_managed){p->va, p->len, p->bytes};
	} else {
		cmd.host_register.buf = (struct qcu_buf){p->va, p->len};
		cmd.host_register.device = p->va;
	}
	return write_command(s, &cmd, NULL, 0, NULL, 0);
}

static bool write_pinned(struct saving *s)
{
	struct window_pinned p;
	uint64_t va;
	bool ok = true;

	for (va = 0; ok && window_next_pinned(&s->m->window, va, &p); va = p.va + p.len)
		ok = write_pinned_map(s, &p);
	return ok;
}

#define PLACES 4096u

/* So that nothing else of the GPU's gets the addresses. */
static bool write_places(struct saving *s)
{
	const struct be_ops *ops = s->m->cfg.ops;
	struct archive_entry e = {.what = ARCHIVE_PLACES};
	const struct kept_object *o;
	struct be_wanted *all, *p;
	bool ok = true;

	if (!ops->hold)
		return true;
	all = calloc(PLACES, sizeof(*all));
	if (!all)
		return refuse_saving(s, "there is no memory");
	TAILQ_FOREACH(o, &s->m->kept.objects[KEPT_MEMORY], link)
	{
		p = &all[e.wanted];
		p->addr = o->name.id;
		if (!ok || !mir_allocation_at(s->m, p->addr, &p->size, &p->dev))
			continue;
		(void)ops->mem_block(s->m->be, p->addr, p);
		if (++e.wanted < PLACES)
			continue;
		ok = write_entry(s, &e, NULL, all);
		e.wanted = 0;
	}
	ok = ok && (!e.wanted || write_entry(s, &e, NULL, all));
	free(all);
	return ok;
}

/* ---- contents ---- */

/* The buffers are registered, so that the GPU copies into one while the other one is written. */
static bool open_buffers(struct saving *s)
{
	s->buffer[0] = archive_pieces(2);
	if (!s->buffer[0])
		return refuse_saving(s, "there is no memory");
	s->buffer[1] = s->buffer[0] + ARCHIVE_PIECE;
	s->registered = !s->m->cfg.ops->host_register(s->m->be, s->buffer[0], 2 * ARCHIVE_PIECE);
	return true;
}

static void close_buffers(struct saving *s)
{
	if (s->registered)
		(void)s->m->cfg.ops->host_unregister(s->m->be, s->buffer[0]);
	archive_pieces_end(s->buffer[0], 2);
}

static uint64_t piece_at(const struct be_wanted *p, uint64_t at)
{
	return p->size - at < ARCHIVE_PIECE ? p->size - at : ARCHIVE_PIECE;
}

/* Memory at an address that was wanted is zero, so zeros need not be written. */
static bool write_memory(struct saving *s, const struct be_wanted *p, bool zeros)
{
	const struct be_ops *ops = s->m->cfg.ops;
	struct be *be = s->m->be;
	struct be_stream *stream = ops->stream_legacy(be, p->dev);
	struct qCUcmd cmd = {.op = QCU_OP_COPY_H2D, .device = (uint8_t)p->dev, .flags = QCU_F_SEGS};
	uint64_t at = 0, len = 0, next;
	unsigned int turn = 0;
	bool ok = true;
	int rc = 0;

	if (p->size)
		rc = ops->copy_d2h(be, s->buffer[0], p->addr, piece_at(p, 0), stream);
	for (; at < p->size && ok && !rc; at = next, turn = !turn) {
		len = piece_at(p, at);
		next = at + len;
		rc = ops->stream_sync(be, stream);
		if (!rc && next < p->size)
			rc = ops->copy_d2h(be, s->buffer[!turn], p->addr + next, piece_at(p, next),
					   stream);
		if (rc || (!zeros && is_all_zero(s->buffer[turn], len)))
			continue;
		cmd.copy_h2d = (struct qcu_copy_h2d){
			.buf = {0, len}, .dst = p->addr + at, .flags = QCU_COPY_SYNC};
		ok = write_command(s, &cmd, s->buffer[turn], len, NULL, 0);
	}
	if (rc || !ok)
		(void)ops->stream_sync(be, stream);
	return rc ? refuse_saving(s, "its memory cannot be read") : ok;
}

static bool write_variables(struct saving *s, uint32_t id, const struct handle *h)
{
	struct be_wanted *wanted;
	size_t count = 0, i;
	bool ok = list_variables(s->m, id, h, &wanted, &count) ||
		  refuse_saving(s, "there is no memory");

	for (i = 0; i < count && ok; i++)
		ok = write_memory(s, &wanted[i], true);
	free(wanted);
	return ok;
}

/* Rows of one slice. piece has room for them. */
static bool write_rows(struct saving *s, const struct handle *h, struct qCUcmd *cmd, uint8_t *piece)
{
	const struct be_ops *ops = s->m->cfg.ops;
	struct be_stream *stream = ops->stream_legacy(s->m->be, h->device);
	const struct qcu_array_write *w = &cmd->array_write;
	const struct be_box box = {
		.src = {.array = h->array, .level = w->level, .y = w->y, .z = w->z},
		.dst = {.addr = (uintptr_t)piece,
			.pitch = w->pitch,
			.rows = w->height,
			.host = true},
		.width = w->width,
		.height = w->height,
		.depth = 1,
	};

	if (ops->copy_box(s->m->be, &box, stream) || ops->stream_sync(s->m->be, stream))
		return refuse_saving(s, "an array cannot be read");
	return write_command(s, cmd, piece, w->buf.len, NULL, 0);
}

static bool write_level(struct saving *s, const struct handle *h, struct qCUcmd *cmd)
{
	struct qcu_array_write *w = &cmd->array_write;
	uint32_t size[3], most;
	uint8_t *piece;
	bool ok;

	be_array_extent(&h->desc, w->level, size);
	w->width = w->pitch = size[0] * be_array_elem(&h->desc);
	most = w->width < ARCHIVE_PIECE ? (uint32_t)ARCHIVE_PIECE / w->width : 1;
	piece = malloc((size_t)most * w->width);
	ok = piece || refuse_saving(s, "there is no memory");
	for (w->z = 0; w->z < size[2] && ok; w->z++) {
		for (w->y = 0; w->y < size[1] && ok; w->y += w->height) {
			w->height = size[1] - w->y < most ? size[1] - w->y : most;
			w->buf.len = (uint64_t)w->height * w->width;
			ok = write_rows(s, h, cmd, piece);
		}
	}
	free(piece);
	return ok;
}

static bool write_array(struct saving *s, uint32_t id, const struct handle *h)
{
	struct qCUcmd cmd = {.op = QCU_OP_ARRAY_WRITE, .device = (uint8_t)h->device};
	struct qcu_array_write *w = &cmd.array_write;
	bool ok = true;

	w->array = id;
	w->flags = QCU_COPY_SYNC;
	do {
		ok = write_level(s, h, &cmd);
	} while (ok && ++w->level < h->desc.levels);
	return ok;
}

static bool write_event(struct saving *s, uint32_t id, const struct handle *h)
{
	struct archive_entry e = {.what = ARCHIVE_RECORDED};

	if (s->m->cfg.ops->event_age(s->m->be, h->event, false, s->at, &e.age))
		return true;
	e.cmd.op = QCU_OP_EVENT_RECORD;
	e.cmd.device = (uint8_t)h->device;
	e.cmd.event_record.event = id;
	return write_entry(s, &e, NULL, NULL);
}

static bool write_of_handles(struct saving *s, enum handle_kind kind)
{
	struct handle *h;
	bool ok = true;
	uint32_t id;

	for (id = QCU_ID_FIRST; ok && (h = handles_next(&s->m->handles, kind, &id)); id++) {
		ok = kind == HANDLE_MODULE  ? write_variables(s, id, h)
		     : kind == HANDLE_ARRAY ? write_array(s, id, h)
					    : write_event(s, id, h);
		handles_put(&s->m->handles, h);
	}
	return ok;
}

/* The guest's driver knows which parts of it are on the GPU. */
static bool write_managed(struct saving *s)
{
	struct window_pinned p;
	struct be_wanted memory;
	uint64_t va;
	bool ok = true;

	for (va = 0; ok && window_next_pinned(&s->m->window, va, &p); va = p.va + p.len) {
		memory = (struct be_wanted){.addr = p.va, .size = p.bytes, .dev = p.device};
		ok = !p.placed || write_memory(s, &memory, false);
	}
	return ok;
}

static bool write_ahead(void *arg, struct archive_entry *e)
{
	return write_entry(arg, e, NULL, NULL);
}

static bool write_piece_run(void *arg, const struct be_wanted *memory)
{
	return write_memory(arg, memory, false);
}

static bool write_allocations(struct saving *s)
{
	const struct save_memory out = {s, write_ahead, write_piece_run};

	snprintf(s->why, s->size, "its memory cannot be read");
	return save_memory(s->m, &out);
}

static bool write_contents(struct saving *s)
{
	return write_of_handles(s, HANDLE_MODULE) && write_managed(s) && write_allocations(s) &&
	       write_of_handles(s, HANDLE_EVENT);
}

/* ---- virtual memory ---- */

static bool write_virtual(void *arg, const struct qCUcmd *cmd, const struct be_wanted *wanted)
{
	return write_command(arg, cmd, NULL, 0, wanted, wanted != NULL);
}

/* Zeros, too: this memory has no address that was wanted. */
static bool write_mapped(void *arg, const struct be_wanted *memory)
{
	return write_memory(arg, memory, true);
}

static bool write_virtual_part(struct saving *s,
			       bool (*write)(struct mirror *m, const struct save_out *out))
{
	const struct save_out out = {s, write_virtual, write_mapped};

	snprintf(s->why, s->size, "there is no memory");
	return write(s->m, &out);
}

static bool write_graphs(struct saving *s)
{
	const struct kept_object *o;
	struct qCUcmd cmd;
	uint8_t *data;
	bool ok = true;

	TAILQ_FOREACH(o, &s->m->kept.objects[HANDLE_GRAPH], link)
	{
		if (!ok || !is_alive(s->m, o))
			continue;
		ok = save_graph(o, &cmd, &data) ? write_command(s, &cmd, data, cmd.buf.len, NULL, 0)
						: refuse_saving(s, "there is no memory");
		free(data);
	}
	return ok;
}

/* ---- text that the program has not read ---- */

struct text {
	char *text;
	size_t len;
	bool assertion;
};

static bool take_printed_text(struct saving *s, struct text *t)
{
	const struct be_ops *ops = s->m->cfg.ops;
	typeof(ops->print_read) read = t->assertion ? ops->assert_read : ops->print_read;
	size_t len = 0;

	if (read(s->m->be, NULL, 0, &len) || !len)
		return true;
	t->text = malloc(len);
	if (t->text && !read(s->m->be, t->text, len, &t->len))
		return true;
	return refuse_saving(s, "printed text cannot be read");
}

static bool write_text(struct saving *s, const struct text *t)
{
	struct archive_entry e = {.what = t->assertion ? ARCHIVE_ASSERTED : ARCHIVE_PRINTED,
				  .len = t->len};

	return !t->len || write_entry(s, &e, t->text, NULL);
}

/* The mirror's own text stays in the mirror, too: it is told once. */
static bool write_refusal(struct saving *s)
{
	struct archive_entry e = {.what = ARCHIVE_ASSERTED, .len = strlen(s->m->refusal)};

	return !e.len || write_entry(s, &e, s->m->refusal, NULL);
}

/* The backend gets the text back, since the mirror may go on. */
static bool write_end(struct saving *s)
{
	struct text out = {0}, err = {.assertion = true};
	struct archive_entry end = {.what = ARCHIVE_END};
	bool ok = take_printed_text(s, &out) && take_printed_text(s, &err) && write_refusal(s) &&
		  write_text(s, &out) && write_text(s, &err) && write_entry(s, &end, NULL, NULL);

	s->m->cfg.ops->print_write(s->m->be, false, out.text, out.len);
	s->m->cfg.ops->print_write(s->m->be, true, err.text, err.len);
	free(out.text);
	free(err.text);
	return ok;
}

static bool write_head(struct saving *s)
{
	struct archive_head head = {.magic = ARCHIVE_MAGIC,
				    .format = ARCHIVE_FORMAT,
				    .wire = QCU_WIRE_VERSION,
				    .devices = s->m->devices};

	snprintf(head.backend, sizeof(head.backend), "%s", s->m->cfg.ops->name);
	return archive_write_head(&s->to, &head) || refuse_saving(s, "the file cannot be written");
}

static bool can_save(struct saving *s, unsigned int wait_ms)
{
	if (!s->m->cfg.ops->unsaved)
		return refuse_saving(s, "the backend %s cannot save a session yet",
				     s->m->cfg.ops->name);
	if (atomic_load(&s->m->abandoned))
		return refuse_saving(s, "the session has ended");
	return wait_until_idle(s, wait_ms) && is_possible(s);
}

bool mir_can_save(struct mirror *m, unsigned int wait_ms, bool *passes, char *why, size_t size)
{
	struct saving s = {.m = m, .why = why, .size = size};
	bool ok = can_save(&s, wait_ms);

	*passes = s.passes;
	return ok;
}

static bool write_session(struct saving *s)
{
	struct mirror *m = s->m;
	bool ok;

	if (!open_buffers(s))
		return false;
	mir_watches_end(m);
	s->at = spin_clock();
	ok = write_head(s) && write_records(s, BIT(KEPT_MAP)) && write_pinned(s) &&
	     write_records(s, BIT(KEPT_PAGE) | BIT(KEPT_SETTING)) && write_places(s) &&
	     write_virtual_part(s, save_virtual_addresses) &&
	     write_records(s, BIT(HANDLE_MODULE)) && write_records(s, FIRST_KINDS) &&
	     write_contents(s) && write_virtual_part(s, save_virtual_memory) &&
	     write_records(s, BIT(HANDLE_ARRAY)) && write_of_handles(s, HANDLE_ARRAY) &&
	     write_records(s, BIT(KEPT_TEXTURE) | BIT(KEPT_SURFACE)) &&
	     write_records(s, BIT(HANDLE_LIBRARY)) && write_graphs(s) && write_end(s);
	close_buffers(s);
	return ok;
}

void mir_bring_back(struct mirror *m, unsigned int wait_ms)
{
	mir_swap_bring_back(m, spin_clock() + wait_ms * 1000000ull);
}

/* Memory that leaves while it is read would be lost. */
bool mir_save(struct mirror *m, int fd, unsigned int wait_ms, char *why, size_t size)
{
	struct saving s = {.m = m, .to = {.fd = fd}, .why = why, .size = size};
	bool ok;

	mir_swap_stay(m, true);
	mir_bring_back(m, wait_ms);
	ok = can_save(&s, wait_ms) && write_session(&s);
	mir_swap_stay(m, false);
	mir_ahead_forget(m);
	return ok;
}
