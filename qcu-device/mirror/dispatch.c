// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a request to its answer. The table of functions is made from QCU_COMMANDS, so a command
 * without a function does not link. What all commands have in common happens in mir_dispatch().
 */
#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/mirror/dispatch.h"

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
 * Runs a command, a reset, while no other command is in the backend. If another command is there,
 * this releases all locks while it waits, because that command may be waiting for a third one.
 */
static int carry_out_alone(struct call *c)
{
	struct mirror *m = c->m;
	unsigned int i = 0, busy;
	int status;

	while (i < MIR_USERS) {
		for (i = 0; i < MIR_USERS && !pthread_mutex_trylock(&m->use[i].lock); i++)
			;
		busy = i;
		while (busy < MIR_USERS && i)
			pthread_mutex_unlock(&m->use[--i].lock);
		if (busy < MIR_USERS) {
			pthread_mutex_lock(&m->use[busy].lock);
			pthread_mutex_unlock(&m->use[busy].lock);
		}
	}
	status = functions[c->cmd->op](c);
	while (i)
		pthread_mutex_unlock(&m->use[--i].lock);
	return status;
}

static int carry_out(struct call *c)
{
	unsigned int traits = qcu_rule(c->cmd->op)->traits;
	struct mirror *m = c->m;
	pthread_mutex_t *use;
	int status;

	if (c->cmd->tid && !(traits & QCU_ANY_DEVICE) && c->cmd->device >= m->devices)
		return QCU_ERR_InvalidDevice;
	/*
	 * A command that parks does not run on a lane. A reset keeps all others out of the backend,
	 * and may itself wait for this command.
	 */
	if (traits & QCU_PARKS)
		return functions[c->cmd->op](c);
	if (traits & QCU_ALONE && !m->abandoned)
		return carry_out_alone(c);
	if (atomic_load_explicit(&m->abandoned, memory_order_relaxed))
		return QCU_ERR_CudartUnloading;
	use = &m->use[c->req->order.slot].lock;
	pthread_mutex_lock(use);
	status = functions[c->cmd->op](c);
	if (c->waited && !status)
		status = mir_watch_error(m);
	pthread_mutex_unlock(use);
	return status;
}

bool mir_dispatch(void *mirror, struct mir_request *req)
{
	struct mirror *m = mirror;
	struct qCUcmd *cmd = &req->cmd;
	struct call c;
	bool exits = cmd->op == QCU_OP_THREAD_EXIT;
	uint64_t began = m->cfg.trace ? spin_clock() : 0;
	int status;

	c.m = m;
	c.req = req;
	c.cmd = cmd;
	c.waited = false;
	window_holds_init(&c.holds);
	complain_command(mir_op_name(cmd->op));
	status = carry_out(&c);
	window_release(&m->window, &c.holds);
	if (status == MIR_RULE_BROKEN)
		complain("the guest names memory that it may not");
	complain_command(NULL);
	if (status == MIR_PARKED)
		return false;
	cmd->status = status;
	cmd->flags = (c.waited || status > 0) && mir_has_output(m) ? QCU_F_OUTPUT : 0;
	if (m->cfg.trace)
		complain_trace("thread %u seq %u %s: %s, %llu us", cmd->tid, cmd->seq,
			       mir_op_name(cmd->op), mir_error_name(cmd->status),
			       (unsigned long long)(spin_clock() - began) / 1000);
	req->done(req);
	return exits;
}
