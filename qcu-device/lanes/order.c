// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rules of order between lanes.
 *
 * A guest thread goes on as soon as its posted command is queued. It may then cause another thread
 * to send a command. That command may reach the mirror in another lane, and must still come after
 * the posted one. So each posted command leaves a mark at the stream or event that it is about, and
 * a later command about the same stream or event comes after that mark. Streams that the legacy
 * stream waits for leave their marks with the legacy stream, too. Commands that are about no stream
 * or event come after everything that is posted; the command table says which commands these are.
 * A graph may record and wait for more events than its launch can name. A launch says whether it
 * does: then it comes after everything posted, and counts as one that records all events.
 *
 * A command that the guest waits for leaves no mark: until it has been answered, no thread can rely
 * on it. Also, a posted command must never wait for a command that waits for the GPU.
 *
 * The driver's UNMAPs wait for the GPU beside its MAPs. A MAP comes after those earlier UNMAPs that
 * take out addresses which it brings in, and after no others. An UNMAP comes after all earlier
 * MAPs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/lanes/order.h"

#define NON_BLOCKING 1u /* cudaStreamNonBlocking */

/* What a command is about. Numbers beyond QCU_ID_MAX name nothing; the lane will report that. */
struct about {
	uint8_t order;
	bool records; /* any events */
	uint32_t stream, event, event2;
};

static struct about about(const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	uint32_t graph = cmd->op == QCU_OP_GRAPH_LAUNCH ? cmd->graph_launch.flags : 0;

	return (struct about){
		.order = graph & (QCU_GRAPH_AFTER_ALL | QCU_GRAPH_RECORDS) ? QCU_ORDER_ALL
									   : rule->order,
		.records = graph & QCU_GRAPH_RECORDS,
		.stream = qcu_field(cmd, rule->stream),
		.event = qcu_field(cmd, rule->event),
		.event2 = cmd->op == QCU_OP_EVENT_ELAPSED ? cmd->event_elapsed.end : UINT32_MAX,
	};
}

int order_init(struct order *o)
{
	*o = (struct order){
		.streams = calloc(QCU_ID_MAX + 1, sizeof(*o->streams)),
		.events = calloc(QCU_ID_MAX + 1, sizeof(*o->events)),
		.nonblocking = calloc(QCU_ID_MAX + 1, 1),
	};
	if (o->streams && o->events && o->nonblocking)
		return 0;
	order_fini(o);
	return -ENOMEM;
}

void order_fini(struct order *o)
{
	free(o->streams);
	free(o->events);
	free(o->nonblocking);
	free(o->leaving);
}

static bool blocking(const struct order *o, uint32_t stream)
{
	return stream <= QCU_ID_MAX && !o->nonblocking[stream];
}

static void after_stream(struct order *o, struct mir_request *req, uint32_t stream)
{
	unsigned int i;

	if (stream > QCU_ID_MAX)
		return;
	/* Only its own lane uses a per-thread stream. */
	if (stream >= QCU_ID_FIRST)
		lanes_after(o->lanes, req, o->streams[stream]);
	if (blocking(o, stream))
		lanes_after(o->lanes, req, o->legacy);
	if (stream != QCU_STREAM_LEGACY)
		return;
	/*
	 * The last command in the legacy stream has waited for what came before it. Only later
	 * marks matter.
	 */
	for (i = 0; i < o->slots; i++)
		if (o->blocking_at[o->slot[i]] > o->legacy_at)
			lanes_after(o->lanes, req, o->blocking[o->slot[i]]);
}

static void after_event(struct order *o, struct mir_request *req, uint32_t event)
{
	unsigned int i;

	if (event > QCU_ID_MAX)
		return;
	lanes_after(o->lanes, req, o->events[event]);
	for (i = 0; i < o->slots; i++)
		lanes_after(o->lanes, req, o->recorded[o->slot[i]]);
}

static void leave_marks(struct order *o, const struct about *a, lanes_point end)
{
	unsigned int slot = lanes_point_slot(end);

	o->count++;
	if (!o->posted[slot])
		o->slot[o->slots++] = (uint16_t)slot;
	o->posted[slot] = end;
	if (a->records)
		o->recorded[slot] = end;
	if (a->event <= QCU_ID_MAX)
		o->events[a->event] = end;
	if (a->stream > QCU_ID_MAX)
		return;
	o->streams[a->stream] = end;
	if (a->stream == QCU_STREAM_LEGACY) {
		o->legacy = end;
		o->legacy_at = o->count;
	} else if (blocking(o, a->stream)) {
		o->blocking[slot] = end;
		o->blocking_at[slot] = o->count;
	}
}

/* A MAP or UNMAP may contain any numbers; the lane refuses those that do not fit. */
static uint64_t last_byte(uint64_t va, uint64_t len)
{
	return len - 1 > UINT64_MAX - va ? UINT64_MAX : va + (len - 1);
}

static void comes_in(struct order *o, struct mir_request *req, lanes_point end)
{
	const struct qcu_map *map = &req->cmd.map;
	uint64_t last = last_byte(map->va, map->len);
	size_t i;

	for (i = 0; i < o->leaving_count; i++)
		if (map->va <= o->leaving[i].last && o->leaving[i].va <= last)
			lanes_after(o->lanes, req, o->leaving[i].end);
	o->mapped = end;
}

static void goes_out(struct order *o, struct mir_request *req, lanes_point end)
{
	const struct qcu_unmap *unmap = &req->cmd.unmap;
	size_t over = 0;

	lanes_after(o->lanes, req, o->mapped);
	while (over < o->leaving_count && lanes_passed(o->lanes, o->leaving[over].end))
		over++;
	o->leaving_count -= over;
	if (over)
		memmove(o->leaving, o->leaving + over, o->leaving_count * sizeof(*o->leaving));
	if (o->leaving_count == o->leaving_room) {
		size_t room = o->leaving_room ? 2 * o->leaving_room : 16;
		struct order_leaving *more = realloc(o->leaving, room * sizeof(*more));

		if (!more) {
			req->order.failed = true;
			return;
		}
		o->leaving = more;
		o->leaving_room = room;
	}
	o->leaving[o->leaving_count++] = (struct order_leaving){
		.va = unmap->va, .last = last_byte(unmap->va, unmap->len), .end = end};
}

void order_request(struct order *o, struct mir_request *req, lanes_point end)
{
	const struct qCUcmd *cmd = &req->cmd;
	const struct about a = about(cmd);
	unsigned int i;

	if (qcu_rule(cmd->op)->traits & QCU_MAKES && a.stream >= QCU_ID_FIRST &&
	    a.stream <= QCU_ID_MAX)
		o->nonblocking[a.stream] = cmd->stream_create.flags & NON_BLOCKING;
	for (i = 0; a.order == QCU_ORDER_ALL && i < o->slots; i++)
		lanes_after(o->lanes, req, o->posted[o->slot[i]]);
	if (a.order == QCU_ORDER_ABOUT) {
		after_stream(o, req, a.stream);
		after_event(o, req, a.event);
		after_event(o, req, a.event2);
	}
	if (cmd->op == QCU_OP_MAP)
		comes_in(o, req, end);
	else if (cmd->op == QCU_OP_UNMAP)
		goes_out(o, req, end);
	if (cmd->flags & QCU_F_POSTED)
		leave_marks(o, &a, end);
}
