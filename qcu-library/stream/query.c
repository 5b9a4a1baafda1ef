// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cudaEventQuery and cudaStreamQuery, as far as the library can answer them itself.
 *
 * "Done" stays true: for an event until it is recorded again, for a stream until work is put into
 * any stream.
 *
 * "Not done" is the mirror's last answer. The library believes it until one of these happens:
 *
 * - The mirror writes something else into a page that it shares with this process.
 * - The program may know better: a command has been waited for, or an answer has come from the
 *   page.
 * - Some time has passed (QCUL_BELIEVE_MS), because the mirror may no longer exist.
 *
 * In the last two cases the library sends the question again. docs/async.md has the reasons.
 *
 * A question has a token that is never used twice. For an event it consists of the event's number
 * and how often the event was recorded; for a stream, of the stream's number and how often the
 * mirror was asked about streams after new work. The token selects a word of the page. The word
 * serves one question at a time; other questions are sent to the mirror.
 */
#include "qcu-library/link/fork.h"
#include "qcu-library/stream/stream.h"

#define TOKEN_STREAM (1ull << 62)
#define TOKEN_DEVICE 56 /* first bit of the device number of a legacy stream: 6 bits */
#define TOKEN_COUNT  40 /* first bit of the number of the stream or event */

struct question {
	uint64_t token, count;
	unsigned int slot;
	_Atomic uint64_t *done; /* the last count that is known to be done */
};

struct watch_slot {
	_Atomic uint64_t token;	    /* the question that is watched or about to be; 0: none */
	_Atomic uint64_t waits, ms; /* at the mirror's last "not ready" */
};

static struct {
	_Atomic(_Atomic uint64_t *) page; /* the mirror writes it; NULL: not made yet */
	atomic_bool tried;		  /* tried to make the page */
	struct watch_slot watch_slots[QCU_WATCH_SLOTS];
	_Atomic uint64_t legacy_done[UINT8_MAX + 1]; /* the legacy streams' `done`, by device */
} session;

/* In a forked child the parent's page is ordinary memory. */
static void unmap_query_page(void)
{
	if (session.page)
		qcul_window_unmap(session.page, QCU_WATCH_BYTES);
}

QCUL_AT_FORK(QCUL_FORK_QUERY, .forget = unmap_query_page, QCUL_SESSION)

/* ---- the page ---- */

/* The first "not ready" of a session makes the page. Without a page, all questions are sent. */
static void make_page(void)
{
	struct qCUcmd cmd;
	void *addr;

	if (atomic_exchange(&session.tried, true))
		return;
	addr = qcul_window_map(QCU_WATCH_BYTES);
	if (!addr)
		return;
	cmd = qcul_cmd(QCU_OP_WATCH);
	cmd.watch.buf.addr = (uint64_t)(uintptr_t)addr;
	cmd.watch.buf.len = QCU_WATCH_BYTES;
	if (qcul_send(&cmd, 1) == cudaSuccess)
		atomic_store(&session.page, addr);
	else
		qcul_window_unmap(addr, QCU_WATCH_BYTES);
}

static void release_question_slot(const struct question *q)
{
	uint64_t token = q->token;

	atomic_compare_exchange_strong(&session.watch_slots[q->slot].token, &token, 0);
}

static void is_done(const struct question *q)
{
	/*
	 * Do this first: a thread that sees that this is done must not go on believing older
	 * answers.
	 */
	qcul_progress_waited();
	atomic_store(q->done, q->count);
	release_question_slot(q);
}

enum look { ASK, DONE, NOT_YET };

static enum look look_for_answer(const struct question *q)
{
	const struct watch_slot *p = &session.watch_slots[q->slot];
	_Atomic uint64_t *words = atomic_load_explicit(&session.page, memory_order_acquire);
	uint64_t word;

	if (atomic_load(q->done) == q->count)
		return DONE;
	if (!words || atomic_load_explicit(&p->token, memory_order_acquire) != q->token)
		return ASK;
	/* Pairs with the mirror's release store of the word. */
	word = atomic_load_explicit(&words[q->slot], memory_order_acquire);
	if (word == q->token) {
		is_done(q);
		return DONE;
	}
	if (word == (q->token | QCU_WATCH_ASK) ||
	    atomic_load(&p->waits) != atomic_load(&qcul_waits) ||
	    qcul_clock_ms() - atomic_load(&p->ms) > QCUL_BELIEVE_MS)
		return ASK;
	return NOT_YET;
}

/* Is the question that holds the slot answered, or out of date so that it is never asked again? */
static bool is_over(uint64_t token, uint64_t word)
{
	uint32_t id = (uint32_t)(token >> TOKEN_COUNT) & QCU_ID_MAX;
	uint64_t count = token & ((1ull << TOKEN_COUNT) - 1);

	if ((word & ~QCU_WATCH_ASK) == token)
		return true;
	return count != (token & TOKEN_STREAM ? atomic_load(&qcul_moved) >> 1
					      : atomic_load(&qcul_events.slots[id].recorded));
}

/* Takes the slot for the question. False: the question cannot have it. */
static bool claim_question_slot(const struct question *q)
{
	struct watch_slot *p = &session.watch_slots[q->slot];
	_Atomic uint64_t *words = atomic_load(&session.page);
	uint64_t token = atomic_load(&p->token);

	if (!words || !q->token)
		return false;
	if (token == q->token)
		return true;
	if ((token && !is_over(token, atomic_load(&words[q->slot]))) ||
	    !atomic_compare_exchange_strong(&p->token, &token, q->token))
		return false;
	/* This question may have been asked before, and its answer may be out of date. */
	atomic_store(&words[q->slot], 0);
	return true;
}

/* ---- the questions ---- */

static struct question question(uint64_t kind, uint64_t id, uint64_t count, _Atomic uint64_t *done)
{
	return (struct question){
		.token = kind | id << TOKEN_COUNT | (count & ((1ull << TOKEN_COUNT) - 1)),
		.count = count,
		.slot = (id + (kind ? QCU_WATCH_SLOTS / 2 : 0)) % QCU_WATCH_SLOTS,
		.done = done,
	};
}

/*
 * Sends the question. token, slot and watched point to members of the command; watched is part of
 * the answer.
 */
static cudaError_t ask_mirror(const struct question *q, struct qCUcmd *cmd, __u64 *token,
			      __u32 *slot, const __u32 *watched)
{
	struct watch_slot *p = &session.watch_slots[q->slot];
	uint64_t before = atomic_load(&qcul_waits);
	bool mine = claim_question_slot(q);
	cudaError_t err;

	if (mine) {
		*token = q->token;
		*slot = q->slot;
	}
	err = qcul_send(cmd, 1);
	if (err == cudaErrorNotReady && *watched) {
		atomic_store(&p->ms, qcul_clock_ms());
		atomic_store(&p->waits, before);
		return err;
	}
	if (err == cudaSuccess)
		is_done(q);
	else if (mine)
		release_question_slot(q);
	if (err == cudaErrorNotReady)
		make_page();
	return err;
}

cudaError_t qcul_query_event(uint32_t event)
{
	struct qcul_handle *slot = &qcul_events.slots[event];
	struct question q = question(0, event, atomic_load(&slot->recorded), &slot->done);
	struct qCUcmd cmd = qcul_cmd(QCU_OP_EVENT_QUERY);
	enum look seen;

	cmd.event_query.event = event;
	/* Other processes may record the event again. */
	if (slot->flags & cudaEventInterprocess)
		return qcul_send(&cmd, 1);
	seen = qcul_event_waited(event) ? DONE : look_for_answer(&q);
	if (seen != ASK)
		return qcul_known(seen == DONE ? cudaSuccess : cudaErrorNotReady);
	return ask_mirror(&q, &cmd, &cmd.event_query.token, &cmd.event_query.slot,
			  &cmd.event_query.watched);
}

cudaError_t qcul_query_stream(uint32_t stream)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_STREAM_QUERY);
	struct question q;
	enum look seen;

	cmd.stream_query.stream = stream;
	if (qcul_stream_waited(stream))
		return qcul_known(cudaSuccess);
	/* A per-thread stream is different for each thread. */
	if (stream == QCU_STREAM_PER_THREAD)
		return qcul_send(&cmd, 1);
	if (stream == QCU_STREAM_LEGACY)
		q = question(TOKEN_STREAM | (uint64_t)cmd.device << TOKEN_DEVICE, stream,
			     qcul_progress_now(), &session.legacy_done[cmd.device]);
	else
		q = question(TOKEN_STREAM, stream, qcul_progress_now(),
			     &qcul_streams.slots[stream].done);
	seen = look_for_answer(&q);
	if (seen != ASK)
		return qcul_known(seen == DONE ? cudaSuccess : cudaErrorNotReady);
	return ask_mirror(&q, &cmd, &cmd.stream_query.token, &cmd.stream_query.slot,
			  &cmd.stream_query.watched);
}
