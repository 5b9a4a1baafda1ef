// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a request to its answer. The table of functions is made from QCU_COMMANDS, so a command
 * without a function does not link. What all commands have in common happens in mir_dispatch().
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "qcu-device/complain.h"
#include "qcu-device/mirror_impl.h"

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

int mir_not_supported(struct call *c)
{
	struct mirror *m = c->m;
	bool first;

	pthread_mutex_lock(&m->lock);
	first = !m->said[c->cmd->op];
	m->said[c->cmd->op] = 1;
	pthread_mutex_unlock(&m->lock);
	if (first)
		complain("not supported by the %s backend", m->cfg.ops->name);
	return QCU_ERR_NotSupported;
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

typedef int read_fn(struct be *be, void *buf, size_t max, size_t *got);

static bool has_text(struct mirror *m, read_fn *read)
{
	size_t got = 0;

	return read && !read(m->be, NULL, 0, &got) && got;
}

/*
 * Is there text to fetch? The checks of a software GPU print text without an error. The reason why
 * an image was refused may come with any error.
 */
static bool has_output(struct mirror *m)
{
	bool refusal;

	pthread_mutex_lock(&m->lock);
	refusal = m->refusal[0];
	pthread_mutex_unlock(&m->lock);
	return refusal || has_text(m, m->cfg.ops->print_read) ||
	       has_text(m, m->cfg.ops->assert_read);
}

/* Text of the mirror's own for the program, delivered once, cut to the room there is. */
static int read_refusal(struct call *c, uint64_t room, uint64_t *got)
{
	struct mirror *m = c->m;
	char text[sizeof(m->refusal)];

	pthread_mutex_lock(&m->lock);
	memcpy(text, m->refusal, sizeof(text));
	m->refusal[0] = '\0';
	pthread_mutex_unlock(&m->lock);
	*got = strlen(text) < room ? strlen(text) : room;
	return *got ? mir_buf_write(c, 0, text, *got) : (int)QCU_ERR_Success;
}

uint64_t mir_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool mir_dispatch(void *mirror, struct mir_request *req)
{
	struct mirror *m = mirror;
	struct qCUcmd *cmd = &req->cmd;
	struct call c;
	bool exits = cmd->op == QCU_OP_THREAD_EXIT;
	uint64_t began = m->cfg.trace ? mir_now_ns() : 0;
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
	cmd->flags = (c.waited || status > 0) && has_output(m) ? QCU_F_OUTPUT : 0;
	if (m->cfg.trace)
		complain_trace("thread %u seq %u %s: %s, %llu us", cmd->tid, cmd->seq,
			       mir_op_name(cmd->op), mir_error_name(cmd->status),
			       (unsigned long long)(mir_now_ns() - began) / 1000);
	req->done(req);
	return exits;
}

/* ---- devices and the mirror itself ---- */

int mir_do_info(struct call *c)
{
	const struct be_ops *ops = c->m->cfg.ops;
	struct qcu_info *info = &c->cmd->info;
	int rc = QCU_ERR_Success;

	info->devices = c->m->devices;
	if (ops->versions)
		rc = ops->versions(c->m->be, &info->driver_version, &info->runtime_version);
	snprintf(info->backend, sizeof(info->backend), "%s", ops->name);
	return rc;
}

int mir_do_device_info(struct call *c)
{
	struct qcu_device_desc desc = {0};
	int rc;

	MIR_NEED(c, device_desc);
	rc = c->m->cfg.ops->device_desc(c->m->be, c->cmd->device, &desc);
	desc.total_mem = budget_memory_total(&c->m->budget, desc.total_mem);
	return rc ? rc : mir_buf_write(c, 0, &desc, sizeof(desc));
}

int mir_do_device_sync(struct call *c)
{
	MIR_NEED(c, device_sync);
	c->waited = true;
	return c->m->cfg.ops->device_sync(c->m->be, c->cmd->device);
}

static bool match_device(const struct handle *h, const void *arg)
{
	return h->device == *(const unsigned int *)arg;
}

/* All other lanes are out of the backend now. */
int mir_do_device_reset(struct call *c)
{
	struct mirror *m = c->m;
	unsigned int device = c->cmd->device, limit;

	MIR_NEED(c, device_reset);
	c->waited = true;
	mir_watches_end(m);
	mir_times_reset(m, device);
	handles_remove_if(&m->handles, HANDLE_EVENT, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_STREAM, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_COND, match_device, &device);
	mir_objects_end(m, &device);
	handles_remove_if(&m->handles, HANDLE_ARRAY, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_POOL, match_device, &device);
	mir_thread_streams_end(m, NULL, &device);
	staging_reset(&m->staging, device);
	mir_allocations_end(m, &device);
	mir_pools_end(m, &device);
	mir_imports_end(m, &device);
	for (limit = 0; limit < 3; limit++)
		mir_limit_back(m, device, limit, 0);
	return m->cfg.ops->device_reset(m->be, device);
}

int mir_do_mem_info(struct call *c)
{
	uint64_t free_bytes = 0, total = 0, left;
	int rc;

	MIR_NEED(c, mem_info);
	rc = c->m->cfg.ops->mem_info(c->m->be, c->cmd->device, &free_bytes, &total);
	mir_pools_count(c->m);
	left = budget_memory_left(&c->m->budget, c->cmd->device, total);
	c->cmd->mem_info.free = free_bytes < left ? free_bytes : left;
	c->cmd->mem_info.total = budget_memory_total(&c->m->budget, total);
	return rc;
}

int mir_do_peer_access(struct call *c)
{
	const struct qcu_peer_access *p = &c->cmd->peer_access;

	MIR_NEED(c, peer_access);
	if (p->peer >= c->m->devices || p->peer == c->cmd->device)
		return QCU_ERR_InvalidDevice;
	if (p->enable > 1)
		return QCU_ERR_InvalidValue;
	return c->m->cfg.ops->peer_access(c->m->be, c->cmd->device, p->peer, p->enable);
}

/* The last values of cudaDeviceP2PAttr and cudaAtomicOperation, which CUDA uses as indexes. */
#define PEER_ATTR_LAST	 5u
#define PEER_ATOMIC_LAST 12u

static bool peer_attr_known(uint32_t attr)
{
	if (attr < QCU_PEER_ATOMICS)
		return attr <= PEER_ATTR_LAST;
	return attr < QCU_PEER_HOST_ATOMICS + 0x100u && (attr & 0xff) <= PEER_ATOMIC_LAST;
}

int mir_do_peer_info(struct call *c)
{
	struct qcu_peer_info *p = &c->cmd->peer_info;
	int32_t value = 0;
	int rc;

	MIR_NEED(c, peer_info);
	if (!peer_attr_known(p->attr))
		return QCU_ERR_InvalidValue;
	if (p->attr < QCU_PEER_HOST_ATOMICS &&
	    (p->peer >= c->m->devices || p->peer == c->cmd->device))
		return QCU_ERR_InvalidDevice;
	rc = c->m->cfg.ops->peer_info(c->m->be, c->cmd->device, p->peer, p->attr, &value);
	p->value = value;
	return rc;
}

int mir_do_limit_set(struct call *c)
{
	const struct qcu_limit_set *l = &c->cmd->limit_set;
	uint64_t before, value = l->value;
	int rc;

	MIR_NEED(c, limit_set);
	rc = mir_take_limit(c, l->limit, &value, &before);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->limit_set(c->m->be, c->cmd->device, l->limit, value);
	if (rc)
		mir_limit_back(c->m, c->cmd->device, l->limit, before);
	return rc;
}

int mir_do_limit_get(struct call *c)
{
	struct qcu_limit_get *l = &c->cmd->limit_get;
	uint64_t value = 0;
	int rc;

	MIR_NEED(c, limit_get);
	rc = c->m->cfg.ops->limit_get(c->m->be, c->cmd->device, l->limit, &value);
	l->value = value;
	return rc;
}

int mir_do_thread_exit(struct call *c)
{
	uint32_t tid = c->cmd->tid;

	mir_thread_streams_end(c->m, &tid, NULL);
	return QCU_ERR_Success;
}

int mir_do_print_read(struct call *c)
{
	bool errors = c->cmd->print_read.channel == QCU_PRINT_ERR;
	read_fn *read = errors ? c->m->cfg.ops->assert_read : c->m->cfg.ops->print_read;
	uint8_t text[4096];
	uint64_t off = 0, room = c->cmd->buf.len;
	int rc = QCU_ERR_Success;

	if (c->cmd->print_read.channel > QCU_PRINT_ERR || c->cmd->print_read.rsvd)
		return QCU_ERR_InvalidValue;
	if (!read)
		return mir_not_supported(c);
	if (errors) {
		rc = read_refusal(c, room, &off);
		room -= off;
	}
	while (room && !rc) {
		size_t got = 0;

		rc = read(c->m->be, text, room < sizeof(text) ? room : sizeof(text), &got);
		if (rc || !got)
			break;
		rc = mir_buf_write(c, off, text, got);
		off += got;
		room -= got;
	}
	c->cmd->print_read.got = rc ? 0 : off;
	return rc;
}

int mir_do_stats(struct call *c)
{
	struct mir_stats *s = &c->m->stats;
	struct qcu_stats_desc d = {
		.commands = s->commands,
		.h2d_bytes = s->h2d_bytes,
		.d2h_bytes = s->d2h_bytes,
		.d2d_bytes = s->d2d_bytes,
		.window_bytes = s->window_bytes,
		.pages_bytes = s->pages_bytes,
		.staged_bytes = s->staged_bytes,
		.copies = s->copies,
		.mapped_bytes = c->m->window.mapped_bytes,
		.registered_bytes = c->m->window.registered_bytes,
		.device_bytes = s->device_bytes,
	};

	return mir_buf_write(c, 0, &d, sizeof(d));
}
