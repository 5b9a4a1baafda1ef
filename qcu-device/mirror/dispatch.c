// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a request to its answer. The table of functions is made from QCU_COMMANDS, so a command
 * without a function does not link. What all commands have in common happens in mir_dispatch().
 */
#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"
#include "qcu-device/mirror/dispatch.h"
#include "qcu-device/mirror/keeping.h"

#define FUNCTION_CTL(n, name)
#define FUNCTION_DRV(n, name)  [n] = mir_do_##name,
#define FUNCTION_USR(n, name)  [n] = mir_do_##name,
#define FUNCTION_POST(n, name) [n] = mir_do_##name,

static mir_call_fn *const functions[QCU_OP_COUNT] = {
#define X(n, NAME, name, who, ...) FUNCTION_##who(n, name)
	QCU_COMMANDS(X)
#undef X
};

const char *mir_op_name(uint16_t op)
{
	static const char *const names[QCU_OP_COUNT] = {
#define X(n, NAME, ...) [n] = #NAME,
		QCU_COMMANDS(X)
#undef X
	};

	return op < QCU_OP_COUNT && names[op] ? names[op] : "unknown";
}

const char *mir_error_name(int error)
{
	switch (error) {
#define X(n, name, text) \
	case n:          \
		return "cudaError" #name;
		QCU_ERRORS(X)
#undef X
	}
	return "no CUDA error";
}

/*
 * Takes the locks with which a command may enter the backend. A command that parks runs on no lane
 * and takes none: a reset keeps all others out of the backend, and may itself wait for this
 * command. A reset takes all of them.
 */
static void enter_backend(struct call *c, unsigned int traits)
{
	struct mirror *m = c->m;
	unsigned int busy;

	if (traits & QCU_PARKS)
		return;
	if (!(traits & QCU_ALONE)) {
		pthread_mutex_lock(&m->use[c->req->order.slot].lock);
		return;
	}
	while ((busy = mir_try_users(m)) < MIR_USERS) {
		pthread_mutex_lock(&m->use[busy].lock);
		pthread_mutex_unlock(&m->use[busy].lock);
	}
}

static void leave_backend(struct call *c, unsigned int traits)
{
	if (traits & QCU_PARKS)
		return;
	if (traits & QCU_ALONE)
		mir_give_users(c->m);
	else
		pthread_mutex_unlock(&c->m->use[c->req->order.slot].lock);
}

/* Waits for the VM's turn on the GPU, if the command has work for it. */
static void wait_for_turn(struct call *c, unsigned int traits)
{
	const struct turn_gate *t = &c->m->turns;
	enum turns_kind kind = traits & QCU_TURN_UP	? TURNS_UP
			       : traits & QCU_TURN_DOWN ? TURNS_DOWN
							: TURNS_GPU;

	if (c->cmd->device < t->gpus &&
	    atomic_load_explicit(&t->view.orders[c->cmd->device].order[kind],
				 memory_order_acquire) != TURNS_FREE)
		mir_turn_wait(c, kind);
}

/* Why a command is not carried out, or success. */
static int refused(const struct call *c, unsigned int traits)
{
	if (c->cmd->tid && !(traits & QCU_ANY_DEVICE) && c->cmd->device >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	if (!(traits & QCU_PARKS) && atomic_load_explicit(&c->m->abandoned, memory_order_relaxed))
		return QCU_ERR_CudartUnloading;
	return QCU_ERR_Success;
}

/*
 * Lets the command into the backend when it is the VM's turn, and with its memory on the GPU.
 * Without memory that leaves this costs one test of a number.
 */
static int go_in(struct call *c, unsigned int traits, struct swap_wait *w)
{
	int rc;

	do {
		if (traits & QCU_TURN)
			wait_for_turn(c, traits);
		enter_backend(c, traits);
		if (!atomic_load_explicit(&c->m->swap_state, memory_order_relaxed) ||
		    traits & QCU_PARKS)
			return QCU_ERR_Success;
		rc = mir_swap_enter(c, traits, w);
		if (!rc)
			return rc;
		leave_backend(c, traits);
		if (rc == MIR_SWAP_WAIT)
			rc = mir_swap_wait(c, w);
	} while (!rc);
	return rc;
}

static void drop_holds(struct call *c)
{
	window_release(&c->m->window, &c->holds);
	/* A command that parks holds none, and may have been answered by another thread. */
	if (c->holds_memory)
		held_release(&c->m->held, c->req->order.slot);
	c->holds_memory = false;
}

static int begin_call(struct call *c, unsigned int traits, struct swap_wait *w)
{
	int status = go_in(c, traits, w);

	if (!status && c->cmd->tid && !(traits & (QCU_ANY_DEVICE | QCU_LOOKS)))
		budget_uses(&c->m->budget, c->cmd->device);
	return status;
}

/* The command's function has returned `status`. */
static int end_call(struct call *c, unsigned int traits, int status)
{
	if (c->waited && !status && c->cmd->tid && !(traits & (QCU_PARKS | QCU_ALONE)))
		status = mir_watch_error(c->m);
	/* Of work for the GPU only a library's may have to be kept. */
	if ((!(traits & QCU_TURN) || c->cmd->op == QCU_OP_LIB_CALL) && !status)
		mir_keep(c);
	leave_backend(c, traits);
	return status;
}

bool mir_dispatch(void *mirror, struct mir_request *req)
{
	struct mirror *m = mirror;
	struct qCUcmd *cmd = &req->cmd;
	unsigned int traits = qcu_rule(cmd->op)->traits;
	struct swap_wait room = {0};
	struct call c;
	bool exits = cmd->op == QCU_OP_THREAD_EXIT, posted = cmd->flags & QCU_F_POSTED;
	uint64_t began = m->cfg.trace ? spin_clock() : 0;
	int status;

	c.m = m;
	c.req = req;
	c.cmd = cmd;
	c.waited = c.holds_memory = c.marked = false;
	c.turn = 0;
	window_holds_init(&c.holds);
	complain_command(mir_op_name(cmd->op));
	status = refused(&c, traits);
	if (!status) {
		for (;;) {
			status = begin_call(&c, traits, &room);
			if (!status)
				status = end_call(&c, traits, functions[cmd->op](&c));
			if (status != QCU_ERR_MemoryAllocation || !m->swap ||
			    !mir_swap_make_room(&c, &room))
				break;
			drop_holds(&c);
		}
		if (m->swap && !(traits & QCU_PARKS))
			mir_swap_done(&c, &room);
	}
	drop_holds(&c);
	if (status == MIR_RULE_BROKEN)
		complain("the guest names memory that it may not");
	complain_command(NULL);
	if (status == MIR_PARKED)
		return false;
	if (c.waited)
		count_add(m->counts, COUNT_WAITS, 1);
	if (status && status != QCU_ERR_NotReady)
		count_add(m->counts, COUNT_ERRORS, 1);
	cmd->status = status;
	cmd->flags = (c.waited || status > 0) && mir_has_output(m) ? QCU_F_OUTPUT : 0;
	if (m->cfg.trace && !m->restore)
		complain_trace("thread %u seq %u %s%s: %s, %llu us", cmd->tid, cmd->seq,
			       mir_op_name(cmd->op), posted ? " posted" : "",
			       mir_error_name(cmd->status),
			       (unsigned long long)(spin_clock() - began) / 1000);
	req->done(req);
	return exits;
}
