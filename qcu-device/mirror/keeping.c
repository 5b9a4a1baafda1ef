// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of keeping.h as data, and how a command that has been carried out is kept. */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/libs.h"
#include "qcu-device/mirror/keep_calls.h"
#include "qcu-device/mirror/keeping.h"

#define FIELD_NONE    0xff
#define FIELD_MESSAGE 0xfe
#define FIELD_EACH    0xfd

struct kept_rule {
	uint8_t does, kind;
	uint8_t id, id_bytes; /* offset in the body */
	uint8_t key;	      /* or FIELD_* */
	uint8_t of_kind, of;
};

#define KEY_none(name)	  FIELD_NONE
#define KEY_message(name) FIELD_MESSAGE
#define KEY_each(name)	  FIELD_EACH
#define KEY_attr(name)	  offsetof(struct qcu_##name, attr)
#define KEY_peer(name)	  offsetof(struct qcu_##name, peer)
#define OF_none(name)	  KEPT_KINDS, 0
#define OF_module(name)	  HANDLE_MODULE, offsetof(struct qcu_##name, module)
#define OF_pool(name)	  HANDLE_POOL, offsetof(struct qcu_##name, pool)
#define OF_array(name)	  HANDLE_ARRAY, offsetof(struct qcu_##name, array)
#define OF_parent(name)	  HANDLE_GREEN, offsetof(struct qcu_##name, parent)
#define OF_graph(name)	  HANDLE_COND, offsetof(struct qcu_##name, graph)
#define OF_green(name)	  HANDLE_GREEN, offsetof(struct qcu_##name, green)
#define OF_mem(name)	  HANDLE_PHYS, offsetof(struct qcu_##name, mem)
#define OF_message(name)  HANDLE_ARRAY, FIELD_MESSAGE

static const struct kept_rule rules[QCU_OP_COUNT] = {
#define X(NAME, name, does, kind, id, key, of)                   \
	[QCU_OP_##NAME] = {KEPT_##does,                          \
			   kind,                                 \
			   offsetof(struct qcu_##name, id),      \
			   sizeof(((struct qcu_##name *)0)->id), \
			   KEY_##key(name),                      \
			   OF_##of(name)},
	KEPT_COMMANDS(X)
#undef X
};

/* Each command is in one of the two lists, and in one only. */
enum why_not { WORK, ASKS, WRITTEN, DEVICE, REFUSED };
enum listed {
#define X(NAME, ...) LISTED_##NAME,
	KEPT_COMMANDS(X)
#undef X
#define X(NAME, why) LISTED_##NAME,
		UNKEPT_COMMANDS(X)
#undef X
			LISTED_COMMANDS
};
#define X(n, NAME, ...) +(LISTED_##NAME >= 0)
_Static_assert(LISTED_COMMANDS == 0 QCU_COMMANDS(X), "each command is in a list, and in one only");
#undef X
#define X(NAME, why) _Static_assert((why) <= REFUSED, "a reason of keeping.h");
UNKEPT_COMMANDS(X)
#undef X

enum kept_does mir_kept_does(uint16_t op)
{
	return op < QCU_OP_COUNT ? (enum kept_does)rules[op].does : KEPT_NOTHING;
}

static void name_object(const struct qCUcmd *cmd, uint64_t id, uint32_t kind,
			struct kept_name *name)
{
	bool numbered = kind < HANDLE_KINDS;

	*name = (struct kept_name){.kind = kind, .id = id};
	/* The default streams, and the default pool. */
	if ((numbered && id < QCU_ID_FIRST) || kind == KEPT_SETTING)
		name->device = cmd->device;
	if (kind == HANDLE_STREAM && id == QCU_STREAM_PER_THREAD)
		name->tid = cmd->tid;
	if (kind == KEPT_SETTING)
		name->op = cmd->op;
	if (kind == KEPT_PAGE) /* there is one */
		name->id = 0;
}

static uint64_t number_in(const struct qCUcmd *cmd, uint8_t at, uint8_t bytes)
{
	uint64_t number = 0;

	memcpy(&number, cmd->body + at, bytes);
	return number;
}

bool mir_kept_name(const struct qCUcmd *cmd, struct kept_name *name)
{
	const struct kept_rule *rule = &rules[cmd->op];

	name_object(cmd, number_in(cmd, rule->id, rule->id_bytes), rule->kind, name);
	/* MALLOC of nothing makes nothing. */
	return name->id || rule->kind != KEPT_MEMORY;
}

static uint64_t hash(const uint8_t *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ text[i]) * 0x100000001b3u;
	return h;
}

/* A copy of the command with what came along. NULL: there is no memory for it. */
static struct kept_step *copy_command(struct call *c)
{
	const struct mir_request *req = c->req;
	uint8_t buffer = qcu_rule(c->cmd->op)->buffer;
	size_t len = c->cmd->op == QCU_OP_MAP ? req->seg_count * sizeof(*req->segs)
		     : buffer == QCU_BUFFER_MSG || buffer == QCU_BUFFER_IN ||
				     c->cmd->op == QCU_OP_LIB_ASK
			     ? c->cmd->buf.len
			     : 0;
	struct kept_step *r = kept_step_new(len);

	if (!r)
		return NULL;
	r->cmd = *c->cmd;
	r->cmd.status = 0;
	r->cmd.flags &= (uint8_t)~QCU_F_POSTED;
	if (!len)
		return r;
	if (c->cmd->op == QCU_OP_MAP) {
		memcpy(r->data, req->segs, len);
	} else if (buffer == QCU_BUFFER_MSG) {
		memcpy(r->data, req->msg, len);
	} else {
		r->cmd.flags = QCU_F_SEGS;
		/* What the guest has changed meanwhile is checked when it is restored. */
		if (mir_buf_read(c, r->data, len))
			memset(r->data, 0, len);
	}
	return r;
}

/* 0: the texture reads memory. */
static uint32_t array_of_texture(const struct mir_request *req)
{
	struct qcu_texture_msg t;

	memcpy(&t, req->msg, sizeof(t));
	return t.kind == QCU_TEXTURE_ARRAY || t.kind == QCU_TEXTURE_MIPMAP ? t.array : 0;
}

/* Settings of an object that overtake none, at most so many. */
#define SETTINGS 1024u

static uint64_t key_of(const struct call *c, const struct kept_rule *rule,
		       const struct kept_step *r)
{
	if (rule->key == FIELD_EACH)
		return KEPT_EACH;
	return rule->key == FIELD_MESSAGE ? hash(r->data, r->len) : number_in(c->cmd, rule->key, 4);
}

static void keep_object(struct call *c, const struct kept_rule *rule, const struct kept_name *name)
{
	struct kept_name of;
	struct kept_step *r;

	if (rule->key == FIELD_EACH && kept_count(&c->m->kept, name) > SETTINGS)
		kept_lose(&c->m->kept);
	if (rule->key == FIELD_EACH && kept_is_lost(&c->m->kept))
		return;
	r = copy_command(c);
	name_object(c->cmd,
		    rule->of == FIELD_MESSAGE ? array_of_texture(c->req)
					      : number_in(c->cmd, rule->of, 4),
		    rule->of_kind, &of);
	/* The stream in which it was allocated may be gone. */
	if (r && c->cmd->op == QCU_OP_MALLOC_ASYNC)
		r->cmd.malloc_async.stream = QCU_STREAM_LEGACY;
	if (r && rule->key != FIELD_NONE)
		r->key = key_of(c, rule, r);
	if (r && rule->kind == KEPT_MAP) {
		r->lo = c->cmd->map.va;
		r->span = c->cmd->map.len;
	} else if (r && rule->kind == KEPT_PAGE) {
		r->lo = c->cmd->buf.addr;
		r->span = c->cmd->buf.len;
	}
	kept_add(&c->m->kept, name, r, rule->does == KEPT_MAKES, &of);
	/* The addresses that were found before are void. */
	if (c->cmd->op == QCU_OP_VAR_BIND)
		kept_drop(&c->m->kept, name, QCU_OP_VAR_FIND, NULL);
}

/* One node of an update, at `node`, becomes a record of its own. */
static void keep_node(struct call *c, const struct kept_name *name, const uint8_t *node)
{
	struct qcu_graph_node head;
	struct kept_step *r;
	uint64_t args;

	memcpy(&head, node, sizeof(head));
	args = mir_kept_node(head.index, true);
	r = kept_step_new(head.bytes);
	if (r) {
		r->cmd = *c->cmd;
		r->cmd.buf.len = head.bytes;
		r->cmd.graph_update.nodes = 1;
		r->key = mir_kept_node(head.index, head.type == QCU_NODE_ARGS);
		memcpy(r->data, node, head.bytes);
	}
	/* Parameters of another kernel are no longer its own. */
	if (head.type != QCU_NODE_ARGS)
		kept_drop(&c->m->kept, name, c->cmd->op, &args);
	kept_add(&c->m->kept, name, r, false, NULL);
}

static void keep_nodes(struct call *c, const struct kept_name *name)
{
	size_t len = c->cmd->buf.len, at = 0;
	uint8_t *nodes = malloc(len + 1);
	struct qcu_graph_node head;

	/* The guest may have changed it meanwhile. */
	if (!nodes || mir_buf_read(c, nodes, len))
		kept_lose(&c->m->kept);
	else
		for (; len - at >= sizeof(head); at += head.bytes) {
			memcpy(&head, nodes + at, sizeof(head));
			if (head.bytes < sizeof(head) || head.bytes > len - at) {
				kept_lose(&c->m->kept);
				break;
			}
			keep_node(c, name, nodes + at);
		}
	free(nodes);
}

static void end_thread_streams(struct call *c)
{
	struct kept_name name = {
		.kind = HANDLE_STREAM, .id = QCU_STREAM_PER_THREAD, .tid = c->cmd->tid};

	for (; name.device < c->m->devices; name.device++)
		kept_end(&c->m->kept, &name);
}

/* Calls of a library that are repeated, at most so many different ones. */
#define REPEATED 1024u

/* The answer stands behind the arguments: has the library done it? */
static bool has_succeeded(const struct kept_step *r)
{
	const uint8_t *data = r->data;
	struct qcu_lib_answer answer;
	struct qcu_lib_head head;

	if (r->len < sizeof(head) + sizeof(answer))
		return false;
	memcpy(&head, data, sizeof(head));
	if (head.args > r->len - sizeof(head) - sizeof(answer))
		return false;
	memcpy(&answer, data + sizeof(head) + head.args, sizeof(answer));
	return !answer.status;
}

static void keep_repeated(struct call *c)
{
	const struct kept_name name = {.kind = HANDLE_LIBRARY, .id = MIR_REPEATED};
	struct kept_step *r;

	/* A guest may go on making calls. Each would cost memory, and a search among all others. */
	if (kept_is_lost(&c->m->kept))
		return;
	r = copy_command(c);
	if (r && !has_succeeded(r)) {
		kept_step_free(r);
		return;
	}
	if (r) {
		r->cmd.lib_ask.stream = QCU_STREAM_LEGACY;
		r->key = hash(r->data, r->len);
	}
	kept_add(&c->m->kept, &name, r, false, NULL);
	if (kept_count(&c->m->kept, &name) > REPEATED)
		kept_lose(&c->m->kept);
}

/*
 * Of a library's object the command that created it. What the program sets in it comes with each
 * call. The stream in which it was created may be gone.
 */
static void keep_library(struct call *c)
{
	const uint16_t function = c->cmd->lib_ask.function;
	struct kept_name name = {.kind = HANDLE_LIBRARY};
	struct kept_step *r;
	uint64_t start[2]; /* a struct qcu_lib_head, and the object's number */
	struct handle *h = NULL;

	mir_keep_call(c);
	if (c->cmd->op == QCU_OP_LIB_CALL)
		return;
	if (lib_repeats(c->cmd->lib_ask.library, function))
		keep_repeated(c);
	if (function != QCU_LIB_CREATE && function != QCU_LIB_DESTROY)
		return;
	if (c->cmd->buf.len < sizeof(start) || mir_buf_read(c, start, sizeof(start))) {
		kept_lose(&c->m->kept);
		return;
	}
	name.id = start[1];
	if (name.id >= QCU_ID_FIRST && name.id <= QCU_ID_MAX)
		h = handles_get(&c->m->handles, HANDLE_LIBRARY, (uint32_t)name.id);
	if (h && function == QCU_LIB_CREATE) {
		r = copy_command(c);
		if (r)
			r->cmd.lib_ask.stream = QCU_STREAM_LEGACY;
		kept_add(&c->m->kept, &name, r, true, NULL);
	} else if (!h && name.id >= QCU_ID_FIRST) {
		kept_end(&c->m->kept, &name);
	}
	handles_put(&c->m->handles, h);
}

void mir_keep(struct call *c)
{
	const struct kept_rule *rule = &rules[c->cmd->op];
	struct kept_name name, from;

	if (rule->does == KEPT_NOTHING || !mir_kept_name(c->cmd, &name))
		return;
	switch ((enum kept_does)rule->does) {
	case KEPT_MAKES:
	case KEPT_SETS:
		keep_object(c, rule, &name);
		break;
	case KEPT_SETS_NODES:
		keep_nodes(c, &name);
		break;
	case KEPT_COPIES:
		name_object(c->cmd, c->cmd->stream_attr_copy.from, rule->kind, &from);
		kept_copy(&c->m->kept, &from, &name, QCU_OP_STREAM_ATTR_SET, c->cmd);
		break;
	case KEPT_ENDS:
		kept_end(&c->m->kept, &name);
		break;
	case KEPT_ENDS_RANGE:
		kept_end_range(&c->m->kept, c->cmd->unmap.va, c->cmd->unmap.len);
		break;
	case KEPT_ENDS_THREAD:
		end_thread_streams(c);
		break;
	case KEPT_RESETS:
		kept_end_device(&c->m->kept, c->cmd->device);
		break;
	case KEPT_LIBRARY:
		keep_library(c);
		break;
	case KEPT_NOTHING:
		break;
	}
}
