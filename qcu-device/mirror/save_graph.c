// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A graph is kept as its description and the last update of each node. They are put together here:
 * a node is its update, with the dependencies of the description and the last parameters. A call of
 * a library is its message, which the library of another mirror gets in a capture, as this one did.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/libs.h"
#include "qcu-device/mirror/save_graph.h"

/* One node: where its record, its dependencies and its parameters are. */
struct part {
	const uint8_t *node, *first, *args;
	uint64_t number; /* of the command that its record came with */
};

static struct qcu_graph_node head_of(const uint8_t *node)
{
	struct qcu_graph_node head;

	memcpy(&head, node, sizeof(head));
	return head;
}

static size_t deps_bytes(const struct qcu_graph_node *head)
{
	return (head->deps * sizeof(uint32_t) + 7) / 8 * 8;
}

/* Where the parameters are, and how many bytes. */
static size_t params_of(const uint8_t *node, const uint8_t **params)
{
	struct qcu_graph_node head = head_of(node);
	size_t at = sizeof(head) + mir_node_bytes(head.type) + deps_bytes(&head);

	*params = node + at;
	return head.bytes - at;
}

/*
 * The mirror has accepted the records. But they were read once more after that, and a guest may
 * have changed them.
 */
static bool is_node(const uint8_t *at, size_t left)
{
	struct qcu_graph_node head;

	if (left < sizeof(head))
		return false;
	head = head_of(at);
	return head.type < QCU_NODE_TYPES && head.deps <= head.bytes / sizeof(uint32_t) &&
	       head.bytes >= sizeof(head) + mir_node_bytes(head.type) + deps_bytes(&head) &&
	       head.bytes % 8 == 0 && head.bytes <= left;
}

/* The parts of all nodes, or NULL. */
static struct part *take_parts(const struct kept_object *o, uint32_t *count)
{
	const struct kept_step *r = STAILQ_FIRST(&o->records);
	uint32_t nodes = r->cmd.graph_make.nodes, i, index;
	struct part *all = calloc((size_t)nodes + 1, sizeof(*all));
	size_t at = 0;

	*count = nodes;
	for (i = 0; all && i < nodes; i++) {
		const uint8_t *node = (const uint8_t *)r->data + at;

		if (!is_node(node, r->len - at) || head_of(node).index != i)
			goto fail;
		all[i] = (struct part){.node = node, .first = node, .number = r->number};
		at += head_of(node).bytes;
	}
	while (all && (r = STAILQ_NEXT(r, link))) {
		if (!is_node(r->data, r->len))
			goto fail;
		index = head_of(r->data).index;
		if (index >= nodes)
			goto fail;
		if (head_of(r->data).type == QCU_NODE_ARGS) {
			all[index].args = r->data;
			continue;
		}
		all[index].node = r->data;
		all[index].number = r->number;
	}
	return all;
fail:
	free(all);
	return NULL;
}

/* Was there an object of this number when the node came, and is it still that one? */
static bool is_still(struct mirror *m, enum handle_kind kind, uint32_t id, uint64_t number)
{
	const struct kept_name name = {.kind = kind, .id = id};
	uint64_t made = kept_made(kept_find(&m->kept, &name));

	return made && made < number;
}

static const char *check_node(struct mirror *m, const struct part *p)
{
	const uint8_t *body = p->node + sizeof(struct qcu_graph_node);
	struct qcu_graph_kernel kernel;
	struct qcu_graph_event event;
	struct qcu_graph_copy copy;
	struct qcu_graph_cond cond;
	bool there = true;

	switch (head_of(p->node).type) {
	case QCU_NODE_KERNEL:
		memcpy(&kernel, body, sizeof(kernel));
		there = is_still(m, HANDLE_KERNEL, kernel.kernel, p->number);
		break;
	case QCU_NODE_RECORD:
	case QCU_NODE_WAIT:
		memcpy(&event, body, sizeof(event));
		there = is_still(m, HANDLE_EVENT, event.event, p->number);
		break;
	case QCU_NODE_COPY:
		memcpy(&copy, body, sizeof(copy));
		there = (!copy.dst.array || is_still(m, HANDLE_ARRAY, copy.dst.array, p->number)) &&
			(!copy.src.array || is_still(m, HANDLE_ARRAY, copy.src.array, p->number));
		break;
	case QCU_NODE_COND:
		memcpy(&cond, body, sizeof(cond));
		there = is_still(m, HANDLE_COND, cond.cond, p->number);
		break;
	}
	return there ? NULL : "an executable graph that needs something which has ended";
}

static const char *check_calls(struct mirror *m, const struct handle *h, uint64_t made)
{
	const struct graph_call *call;
	const char *why = NULL;
	uint32_t i;

	for (i = 0; !why && (call = mir_graph_call(h, &i)); i++)
		why = lib_call_unsaved(m, call, made);
	return why;
}

const char *save_graph_check(struct mirror *m, const struct kept_object *o, const struct handle *h)
{
	uint32_t count, i;
	struct part *all = take_parts(o, &count);
	const char *why = all ? NULL : "an executable graph whose description is not whole";

	for (i = 0; all && i < count && !why; i++)
		why = check_node(m, &all[i]);
	if (!why)
		why = check_calls(m, h, kept_made(o));
	if (!why && !mir_graph_memory(m, h))
		why = "an executable graph whose memory has been freed";
	free(all);
	return why;
}

/* Writes the node at `to`, or only says how long it is (NULL). */
static size_t put_together(const struct part *p, uint8_t *to)
{
	struct qcu_graph_node head = head_of(p->node), first = head_of(p->first);
	size_t body = mir_node_bytes(head.type), deps = deps_bytes(&first), params;
	const uint8_t *from;

	params = params_of(p->args ? p->args : p->node, &from);
	head.deps = first.deps;
	head.bytes = (uint32_t)(sizeof(head) + body + deps + params);
	if (!to)
		return head.bytes;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	memcpy(to, p->node + sizeof(head), body);
	memcpy(to + body, p->first + sizeof(head) + mir_node_bytes(first.type), deps);
	memcpy(to + body + deps, from, params);
	return head.bytes;
}

bool save_graph(const struct kept_object *o, struct qCUcmd *cmd, uint8_t **data)
{
	uint32_t count, i;
	struct part *all = take_parts(o, &count);
	size_t len = 0;

	*data = NULL;
	for (i = 0; all && i < count; i++)
		len += put_together(&all[i], NULL);
	if (all)
		*data = malloc(len + 1);
	*cmd = STAILQ_FIRST(&o->records)->cmd;
	cmd->buf.len = len;
	for (i = 0, len = 0; *data && i < count; i++)
		len += put_together(&all[i], *data + len);
	free(all);
	return *data;
}
