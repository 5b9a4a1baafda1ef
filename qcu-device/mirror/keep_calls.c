// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of libraries that make an object what it is: those that make a plan, and those that set
 * something in a generator. They are kept as questions whose answer is known. How far a generator
 * has got in its sequence is kept as a call that sets its place.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/libs.h"
#include "qcu-device/mirror/keep_calls.h"

/* A call that is kept has at most so many bytes, and an object at most so many calls. */
#define CALL_BYTES 4096u
#define CALLS	   64u

/* The arguments begin with the object, as number, version and bytes of settings. */
struct object_words {
	uint64_t number, version, settings;
};

/* A call without an object is of no object. */
struct kept_call {
	struct qcu_lib_head head;
	struct object_words object;
	uint64_t first, last; /* of the arguments behind the object */
};

static struct kept_step *new_question(const struct qCUcmd *cmd, uint16_t function, size_t len)
{
	struct kept_step *r = kept_step_new(len);

	if (!r)
		return NULL;
	r->cmd = *cmd;
	r->cmd.op = QCU_OP_LIB_ASK;
	r->cmd.status = 0;
	r->cmd.flags = QCU_F_SEGS;
	r->cmd.lib_ask = (struct qcu_lib_ask){.buf.len = len,
					      .stream = QCU_STREAM_LEGACY,
					      .library = cmd->lib_ask.library,
					      .function = function};
	memset(r->data, 0, len);
	return r;
}

/*
 * The whole message, or NULL: it is too long, there is no memory, or the guest has changed it
 * meanwhile. A posted call has no answer, and gets a good one.
 */
static struct kept_step *copy_as_question(struct call *c)
{
	const size_t len = c->cmd->buf.len;
	const bool posted = c->cmd->op == QCU_OP_LIB_CALL;
	const size_t answer = posted ? sizeof(struct qcu_lib_answer) : 0;
	struct kept_step *r;

	if (len > CALL_BYTES)
		return NULL;
	r = new_question(c->cmd, c->cmd->lib_ask.function, len + answer);
	if (r && posted)
		memcpy(r->data, c->req->msg, len);
	else if (r && mir_buf_read(c, r->data, len))
		memset(r->data, 0, len);
	return r;
}

/* What the message begins with. False: it is not one of a call that has an object. */
static bool read_object_call(struct call *c, struct kept_call *k)
{
	const size_t begin = offsetof(struct kept_call, first);
	uint8_t bytes[CALL_BYTES];
	struct qcu_lib_answer answer;
	size_t len = c->cmd->buf.len, end;

	if (len > sizeof(bytes))
		len = sizeof(bytes);
	if (c->cmd->op == QCU_OP_LIB_CALL)
		memcpy(bytes, c->req->msg, len);
	else if (mir_buf_read(c, bytes, len))
		return false;
	memset(k, 0, sizeof(*k));
	if (len < begin)
		return false;
	memcpy(k, bytes, begin);
	end = sizeof(k->head) + k->head.args;
	if (k->head.args > len - sizeof(k->head) || end < begin)
		return false;
	/* Such objects have no settings. A guest may write what the mirror does not look at. */
	if (k->object.settings) {
		kept_lose(&c->m->kept);
		return false;
	}
	if (end - begin >= sizeof(k->first)) {
		memcpy(&k->first, bytes + begin, sizeof(k->first));
		memcpy(&k->last, bytes + end - sizeof(k->last), sizeof(k->last));
	}
	if (c->cmd->op == QCU_OP_LIB_CALL)
		return true;
	if (len - end < sizeof(answer))
		return false;
	memcpy(&answer, bytes + end, sizeof(answer));
	return !answer.status;
}

/* Calls with the same key replace each other. */
static uint64_t key_of_call(struct call *c, const struct kept_name *name, enum lib_keeps what,
			    uint64_t first)
{
	const uint64_t ready = 1;
	const uint64_t behind = kept_holds(&c->m->kept, name, QCU_OP_LIB_ASK, ready);
	uint64_t key = c->cmd->lib_ask.function;

	if (what == LIB_KEEPS_READY)
		return ready;
	/* The numbers are few: the library knows no others. */
	if (what == LIB_KEEPS_NUMBER)
		key = 0x10000 | (first & 0xffff);
	return key << 2 | 2 | behind;
}

static void add_call(struct call *c, const struct kept_name *name, struct kept_step *r)
{
	kept_add(&c->m->kept, name, r, false, NULL);
	if (kept_count(&c->m->kept, name) > CALLS)
		kept_lose(&c->m->kept);
}

/* The object's place in its sequence, as the call that sets it. */
static void keep_place(struct call *c, const struct kept_name *name, const struct lib_object *o,
		       const struct kept_call *k)
{
	const struct {
		struct qcu_lib_head head;
		struct object_words object;
		uint64_t place;
		struct qcu_lib_answer answer;
	} message = {.head.args = sizeof(k->object) + sizeof(message.place),
		     .object = {.number = k->object.number},
		     .place = o->place};
	const uint16_t function = lib_places(o);
	struct kept_step *r = new_question(c->cmd, function, sizeof(message));

	if (r) {
		memcpy(r->data, &message, sizeof(message));
		r->key = (uint64_t)function << 2 | 2;
	}
	add_call(c, name, r);
}

void mir_keep_call(struct call *c)
{
	const enum lib_keeps what = lib_keeps(c->cmd->lib_ask.library, c->cmd->lib_ask.function);
	struct kept_name name = {.kind = HANDLE_LIBRARY};
	struct handle *h = NULL;
	struct kept_step *r;
	struct kept_call k;

	if (what == LIB_KEEPS_NOTHING || kept_is_lost(&c->m->kept) || !read_object_call(c, &k))
		return;
	name.id = k.object.number;
	if (name.id >= QCU_ID_FIRST && name.id <= QCU_ID_MAX)
		h = handles_get(&c->m->handles, HANDLE_LIBRARY, (uint32_t)name.id);
	if (h && lib_moved(c->m->cfg.ops, h->library, what, k.last)) {
		keep_place(c, &name, h->library, &k);
	} else if (h && what != LIB_KEEPS_SEQUENCE && what != LIB_KEEPS_STATE) {
		r = copy_as_question(c);
		if (r)
			r->key = key_of_call(c, &name, what, k.first);
		add_call(c, &name, r);
	}
	handles_put(&c->m->handles, h);
}
