// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a session again from an archive. Its commands go through mir_submit(), one after another,
 * as if the guest had sent them: so the same code checks them, and the same limits hold. Each must
 * succeed, and have the same answer as in the session that was saved.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/spin.h"
#include "qcu-device/libs/libs.h"
#include "qcu-device/mirror/dispatch.h"
#include "qcu-device/mirror/going_impl.h"
#include "qcu-device/mirror/keeping.h"
#include "qcu-device/mirror/module_names.h"
#include "qcu-device/mirror/save.h"
#include "qcu-device/mirror/archive.h"

/* No thread of a guest has this number. */
#define RESTORING_THREAD 0xffffffffu
#define TEXT_MAX	 (64ull << 20)

struct restoring {
	struct mirror *m;
	struct archive from;
	char *why;
	size_t size;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool done;
	struct mir_request req;
	struct qcu_seg seg;
	struct mir_restore data;
	bool in_place;	 /* the data of the entry is registered */
	bool registered; /* `from.piece` is */
	uint64_t number; /* of the entry */
	uint64_t at;	 /* the moment that events are older than */
	struct loaded {
		uint64_t first; /* the first place of a small variable, or UINT64_MAX */
		uint32_t id;
	} * loaded; /* modules that are not settled */
	size_t loaded_count;
};

static bool refuse_archive(struct restoring *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse_archive(struct restoring *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, r->size, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- one command ---- */

static void note_answer(struct mir_request *req)
{
	struct restoring *r = (struct restoring *)((char *)req - offsetof(struct restoring, req));

	pthread_mutex_lock(&r->lock);
	r->done = true;
	pthread_cond_signal(&r->answered);
	pthread_mutex_unlock(&r->lock);
}

static bool submit_entry(struct restoring *r)
{
	r->done = false;
	r->req.done = note_answer;
	if (!mir_submit(r->m, &r->req))
		return false;
	pthread_mutex_lock(&r->lock);
	while (!r->done)
		pthread_cond_wait(&r->answered, &r->lock);
	pthread_mutex_unlock(&r->lock);
	return r->req.cmd.status != MIR_RULE_BROKEN;
}

/* Commands that are about contents, and that nobody keeps. */
static bool is_content(uint16_t op)
{
	return op == QCU_OP_COPY_H2D || op == QCU_OP_HOST_REGISTER || op == QCU_OP_ARRAY_WRITE;
}

/* What save_virtual.c writes. A number is released that only its mappings need. */
static bool is_virtual(uint16_t op)
{
	return op == QCU_OP_VA_RESERVE || op == QCU_OP_PHYS_CREATE || op == QCU_OP_PHYS_MAP ||
	       op == QCU_OP_PHYS_ACCESS_SET || op == QCU_OP_PHYS_RELEASE;
}

/* Calls that make an object what it is; none that computes. */
static bool is_allowed_call(const struct qcu_lib_ask *la)
{
	const enum lib_keeps keeps = lib_keeps(la->library, la->function);

	return la->function == QCU_LIB_CREATE || lib_repeats(la->library, la->function) ||
	       (keeps && keeps != LIB_KEEPS_SEQUENCE && keeps != LIB_KEEPS_STATE);
}

static bool is_allowed(const struct archive_entry *e)
{
	enum kept_does does = mir_kept_does(e->cmd.op);

	if (e->what == ARCHIVE_RECORDED)
		return e->cmd.op == QCU_OP_EVENT_RECORD;
	if (does == KEPT_LIBRARY)
		return e->cmd.op == QCU_OP_LIB_ASK && is_allowed_call(&e->cmd.lib_ask);
	return does == KEPT_MAKES || does == KEPT_SETS || is_content(e->cmd.op) ||
	       is_virtual(e->cmd.op) || e->cmd.op == QCU_OP_MANAGED;
}

/* Makes a request of the entry. mir_submit() checks it. */
static bool prepare(struct restoring *r, const struct archive_entry *e, void *data)
{
	const struct qcu_rule *rule = qcu_rule(e->cmd.op);
	struct qCUcmd *cmd = &r->req.cmd;
	unsigned int i;

	r->req = (struct mir_request){.cmd = e->cmd};
	r->data = (struct mir_restore){
		data, e->len, r->in_place || (data && data == r->from.piece && r->registered)};
	for (i = rule->in / 4; i < QCU_BODY / 4; i++)
		cmd->words[i] = 0;
	cmd->status = 0;
	cmd->flags = 0;
	cmd->seq = 0;
	if (rule->who == QCU_WHO_DRV) {
		cmd->tid = 0;
		cmd->flags = QCU_F_SEGS;
		r->req.segs = data;
		r->req.seg_count = e->len / sizeof(*r->req.segs);
		return true;
	}
	/* The attributes of a thread's own stream go to that thread's. */
	if (e->cmd.op != QCU_OP_STREAM_ATTR_SET || !cmd->tid)
		cmd->tid = RESTORING_THREAD;
	switch (rule->buffer) {
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT: /* of a library: its answer is written there */
		r->seg = (struct qcu_seg){0, e->len};
		r->req.segs = &r->seg;
		r->req.seg_count = e->len != 0;
		cmd->flags = e->len ? QCU_F_SEGS : 0;
		return cmd->buf.len == e->len;
	case QCU_BUFFER_MSG:
		r->req.msg = data;
		cmd->flags = e->len ? QCU_F_MSG : 0;
		return cmd->buf.len == e->len;
	case QCU_BUFFER_STAY:
		cmd->flags = QCU_F_WINDOW;
		break;
	}
	return !e->len;
}

/* What the guest was told must still be true. How long a load has taken need not. */
static bool is_same_answer(const struct qCUcmd *now, const struct qCUcmd *then)
{
	const struct qcu_rule *rule = qcu_rule(now->op);

	return now->op == QCU_OP_MODULE_LOAD ||
	       !memcmp(now->body + rule->in, then->body + rule->in, QCU_BODY - rule->in);
}

static bool carry_out(struct restoring *r, const struct archive_entry *e, void *data,
		      const struct be_wanted *wanted)
{
	static const struct be_wanted none;
	const char *name = mir_op_name(e->cmd.op);
	bool ok;

	if (e->cmd.op >= QCU_OP_COUNT || !qcu_rule(e->cmd.op) || !is_allowed(e))
		return refuse_archive(r, "entry %" PRIu64 " is none of a saved session", r->number);
	if (!prepare(r, e, data))
		return refuse_archive(r, "entry %" PRIu64 ", %s, has data of another length",
				      r->number, name);
	/*
	 * Nobody knows where an array is, and memory without an address, what a library has, and
	 * variables of an image that is only tried.
	 */
	if (e->cmd.op == QCU_OP_ARRAY_CREATE || e->cmd.op == QCU_OP_LIB_ASK ||
	    e->cmd.op == QCU_OP_PHYS_CREATE || e->cmd.op == QCU_OP_LINK_ADD)
		r->m->cfg.ops->want(r->m->be, NULL, 0);
	else
		r->m->cfg.ops->want(r->m->be, wanted ? wanted : &none, e->wanted);
	r->m->restore = &r->data;
	ok = submit_entry(r);
	r->m->restore = NULL;
	r->m->cfg.ops->want(r->m->be, &none, 0);
	if (!ok)
		return refuse_archive(r, "entry %" PRIu64 ", %s, is none that a guest may send",
				      r->number, name);
	if (r->req.cmd.status)
		return refuse_archive(r, "%s cannot be done again: %s", name,
				      mir_error_name(r->req.cmd.status));
	return is_same_answer(&r->req.cmd, &e->cmd) ||
	       refuse_archive(r, "%s has another answer than before", name);
}

/* ---- the entries ---- */

static bool set_age(struct restoring *r, const struct archive_entry *e)
{
	struct handle *h = handles_get(&r->m->handles, HANDLE_EVENT, e->cmd.event_record.event);
	uint64_t age = e->age;
	int rc = h ? r->m->cfg.ops->event_age(r->m->be, h->event, true, r->at, &age)
		   : (int)QCU_ERR_InvalidResourceHandle;

	handles_put(&r->m->handles, h);
	/* An event for other processes has no time. */
	return !rc || rc == QCU_ERR_NotReady || refuse_archive(r, "an event cannot be recorded");
}

/*
 * As a rule, modules were first used in the order of the addresses of their small variables. Large
 * ones do not lie beside others. CUDA begins with the highest piece of its addresses, and in a
 * piece from below (be_cuda_plot.c).
 */
#define SMALL_VARIABLE (2u << 20)
#define PIECE_MASK     ((uint64_t)(32 << 20) - 1)

static uint64_t place_in_order(uint64_t addr)
{
	return (~addr & ~PIECE_MASK) | (addr & PIECE_MASK);
}

static int compare_loaded(const void *a, const void *b)
{
	const struct loaded *x = a, *y = b;

	return x->first != y->first ? (x->first < y->first ? -1 : 1)
				    : (x->id > y->id) - (x->id < y->id);
}

static bool note_loaded(struct restoring *r, const struct archive_entry *e,
			const struct be_wanted *wanted)
{
	struct loaded *more = realloc(r->loaded, (r->loaded_count + 1) * sizeof(*more));
	uint64_t first = UINT64_MAX;
	uint32_t i;

	if (!more)
		return refuse_archive(r, "there is no memory");
	for (i = 0; i < e->wanted; i++)
		if (wanted[i].size < SMALL_VARIABLE && place_in_order(wanted[i].addr) < first)
			first = place_in_order(wanted[i].addr);
	r->loaded = more;
	more[r->loaded_count++] = (struct loaded){first, e->cmd.module_load.module};
	return true;
}

static int settle_module(struct restoring *r, uint32_t id)
{
	struct handle *h = handles_get(&r->m->handles, HANDLE_MODULE, id);
	struct image_names names = {0};
	int rc = QCU_ERR_MemoryAllocation;

	if (h && mir_module_names(r->m, id, &names))
		rc = r->m->cfg.ops->module_settle(r->m->be, h->module, &names);
	image_names_free(&names);
	handles_put(&r->m->handles, h);
	return rc;
}

/* All variables of modules get their memory, before something is written there. */
static bool settle_modules(struct restoring *r)
{
	size_t i;
	int rc = 0;

	if (r->loaded_count)
		qsort(r->loaded, r->loaded_count, sizeof(*r->loaded), compare_loaded);
	for (i = 0; i < r->loaded_count && !rc; i++)
		rc = settle_module(r, r->loaded[i].id);
	r->loaded_count = 0;
	return !rc || refuse_archive(r, "the variables of a module cannot be where they were");
}

static bool restore_text(struct restoring *r, const struct archive_entry *e, const char *text)
{
	if (!e->len || e->len > TEXT_MAX)
		return refuse_archive(r, "entry %" PRIu64 " has no text, or too much", r->number);
	r->m->cfg.ops->print_write(r->m->be, e->what == ARCHIVE_ASSERTED, text, e->len);
	return true;
}

static bool hold_places(struct restoring *r, const struct archive_entry *e,
			const struct be_wanted *places)
{
	const struct be_ops *ops = r->m->cfg.ops;

	if (e->len || !ops->hold || !places)
		return refuse_archive(r, "entry %" PRIu64 " is none of a saved session", r->number);
	return !ops->hold(r->m->be, places, e->wanted) ||
	       refuse_archive(r, "addresses of its memory are not free");
}

/*
 * The software GPU gives variables their memory when they are first used, after all that is bound.
 * CUDA's modules are loaded before anything else takes addresses.
 */
static bool must_settle(const struct restoring *r, uint16_t op)
{
	if (r->m->cfg.ops->vars_by_name)
		return op != QCU_OP_MODULE_LOAD;
	return (is_content(op) && op != QCU_OP_HOST_REGISTER) || op == QCU_OP_ARRAY_CREATE ||
	       op == QCU_OP_LIB_ASK;
}

/* A library must answer as it did: the answer is written over the one in `data`. */
static bool ask_library(struct restoring *r, const struct archive_entry *e, void *data)
{
	void *before = malloc(e->len + 1);
	bool ok;

	if (!before)
		return refuse_archive(r, "there is no memory");
	if (e->len)
		memcpy(before, data, e->len);
	ok = carry_out(r, e, data, NULL);
	if (ok && memcmp(before, data, e->len))
		ok = refuse_archive(r, "a library has another answer than before");
	free(before);
	return ok;
}

/* The data of the command has come ahead. Nothing of it is in the entry. */
static bool restore_ahead(struct restoring *r, struct archive_entry *e)
{
	const struct ahead_piece piece = {
		.addr = e->cmd.copy_h2d.dst, .sum = e->age, .len = (uint32_t)e->cmd.buf.len};
	struct mir_restore bytes;
	bool ok;

	if (e->cmd.op != QCU_OP_COPY_H2D || e->len || e->wanted || e->cmd.buf.len > AHEAD_BYTES)
		return refuse_archive(r, "entry %" PRIu64 " is none of a saved session", r->number);
	if (!settle_modules(r))
		return false;
	if (!going_came(r->m, &piece, &bytes))
		return refuse_archive(r, "memory of it has not come");
	e->len = bytes.len;
	r->in_place = bytes.registered;
	ok = carry_out(r, e, bytes.data, NULL);
	r->in_place = false;
	return ok;
}

static bool restore_entry(struct restoring *r, struct archive_entry *e, void *data,
			  const struct be_wanted *wanted)
{
	switch (e->what) {
	case ARCHIVE_COMMAND:
		if (must_settle(r, e->cmd.op) && !settle_modules(r))
			return false;
		if (e->cmd.op == QCU_OP_LIB_ASK)
			return ask_library(r, e, data);
		return carry_out(r, e, data, wanted) &&
		       (e->cmd.op != QCU_OP_MODULE_LOAD || note_loaded(r, e, wanted));
	case ARCHIVE_AHEAD:
		return restore_ahead(r, e);
	case ARCHIVE_PLACES:
		return hold_places(r, e, wanted);
	case ARCHIVE_RECORDED:
		return carry_out(r, e, data, wanted) && set_age(r, e);
	case ARCHIVE_PRINTED:
	case ARCHIVE_ASSERTED:
		return restore_text(r, e, data);
	case ARCHIVE_END:
		return settle_modules(r);
	}
	return refuse_archive(r, "entry %" PRIu64 " is of no kind that is known", r->number);
}

static bool read_entries(struct restoring *r)
{
	struct be_wanted *wanted;
	struct archive_entry e;
	bool ok;
	void *data;

	do {
		r->number++;
		if (!archive_read(&r->from, &e, &data, &wanted))
			return refuse_archive(r,
					      r->from.wrong ? "entry %" PRIu64 " is damaged"
							    : "the file ends at entry %" PRIu64,
					      r->number);
		ok = restore_entry(r, &e, data, wanted);
		archive_free(&r->from, data);
		free(wanted);
	} while (ok && e.what != ARCHIVE_END);
	return ok;
}

static bool read_head(struct restoring *r)
{
	const char *backend = r->m->cfg.ops->name;
	struct archive_head head;

	if (!archive_read_head(&r->from, &head) || head.magic != ARCHIVE_MAGIC ||
	    head.format != ARCHIVE_FORMAT)
		return refuse_archive(r, "the file is no saved session, or is damaged");
	if (head.wire != QCU_WIRE_VERSION)
		return refuse_archive(r, "the session is of version %u, not %u", head.wire,
				      QCU_WIRE_VERSION);
	if (strnlen(head.backend, sizeof(head.backend)) != strlen(backend) ||
	    memcmp(head.backend, backend, strlen(backend)))
		return refuse_archive(r, "the session is of another kind of GPU than %s", backend);
	if (head.devices != r->m->devices)
		return refuse_archive(r, "the session has %u GPUs, not %u", head.devices,
				      r->m->devices);
	return true;
}

/* Ends the lane that has carried out the entries. */
static bool end_restoring_thread(struct restoring *r)
{
	r->req = (struct mir_request){.cmd = {.op = QCU_OP_THREAD_EXIT, .tid = RESTORING_THREAD}};
	r->m->restore = &r->data;
	if (!submit_entry(r))
		return refuse_archive(r, "the thread that restores does not end");
	r->m->restore = NULL;
	return true;
}

static bool restore_archive(struct mirror *m, int fd, bool unsummed, char *why, size_t size)
{
	struct restoring r = {.m = m,
			      .from = {.fd = fd, .unsummed = unsummed},
			      .why = why,
			      .size = size,
			      .at = spin_clock(),
			      .lock = PTHREAD_MUTEX_INITIALIZER,
			      .answered = PTHREAD_COND_INITIALIZER};
	const struct be_ops *ops = m->cfg.ops;
	bool ok;

	if (!ops->unsaved)
		return refuse_archive(&r, "the backend %s cannot restore a session yet", ops->name);
	/* Contents come there. Without it they are slower. */
	r.from.piece = archive_pieces(1);
	r.registered = r.from.piece && !ops->host_register(m->be, r.from.piece, ARCHIVE_PIECE);
	ok = read_head(&r) && read_entries(&r) && end_restoring_thread(&r);
	if (r.registered)
		(void)ops->host_unregister(m->be, r.from.piece);
	archive_pieces_end(r.from.piece, 1);
	free(r.loaded);
	if (ops->hold)
		(void)ops->hold(m->be, NULL, 0);
	ops->want(m->be, NULL, 0);
	return ok;
}

bool mir_restore(struct mirror *m, int fd, char *why, size_t size)
{
	return restore_archive(m, fd, false, why, size);
}

bool mir_restore_unsummed(struct mirror *m, int fd, char *why, size_t size)
{
	return restore_archive(m, fd, true, why, size);
}
