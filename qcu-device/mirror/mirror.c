// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Start and end of a mirror, and the check that every request passes. A request that the wire
 * forbids is refused here, before any lane sees it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"
#include "qcu-device/libs/libs.h"
#include "qcu-device/mirror/dispatch.h"
#include "qcu-device/mirror/going_impl.h"
#include "qcu-device/mirror/mirror.h"

static void release_handle(void *ctx, struct handle *h)
{
	struct mirror *m = ctx;
	const struct be_ops *ops = m->cfg.ops;

	switch (h->kind) {
	case HANDLE_STREAM:
		mir_turn_forget(m, h->device, h->stream);
		ops->stream_destroy(m->be, h->stream);
		break;
	case HANDLE_EVENT:
		if (h->shared)
			mir_share_end(m, &h->token);
		ops->event_destroy(m->be, h->event);
		break;
	case HANDLE_MODULE:
		mir_module_end(m, h);
		break;
	case HANDLE_ARRAY:
		ops->array_destroy(m->be, h->array);
		if (h->parent) /* has been charged for the memory */
			break;
		count_sub(m->counts, COUNT_DEVICE, h->bytes);
		mir_give_memory(m, h->device, h->bytes);
		break;
	case HANDLE_POOL:
		ops->pool_destroy(m->be, h->pool);
		mir_pool_gone(m, &h->charge);
		break;
	case HANDLE_COND:
		ops->cond_destroy(m->be, h->cond);
		break;
	case HANDLE_GRAPH:
		mir_graph_end(m, h);
		break;
	case HANDLE_LINK:
		ops->link_destroy(m->be, h->link);
		mir_give(m, LIMIT_MODULE_BYTES, h->bytes);
		break;
	case HANDLE_PHYS:
		mir_phys_end(m, h);
		break;
	case HANDLE_LIBRARY:
		lib_object_end(m, h);
		break;
	case HANDLE_GREEN:
		ops->green_destroy(m->be, h->green);
		break;
	case HANDLE_KERNEL:
	case HANDLE_KINDS:
		break; /* a kernel goes with its module, which `parent` holds */
	}
	mir_handle_gone(m, h);
}

static bool take_lane(void *mirror)
{
	struct mirror *m = mirror;

	return budget_take(&m->budget, LIMIT_LANES, 1);
}

static void give_lane(void *mirror)
{
	struct mirror *m = mirror;

	mir_give(m, LIMIT_LANES, 1);
}

static void put_in_order(void *mirror, struct mir_request *req, lanes_point end)
{
	struct mirror *m = mirror;

	order_request(&m->order, req, end);
}

static void free_mirror(struct mirror *m)
{
	unsigned int i;

	for (i = 0; i < MIR_USERS; i++)
		pthread_mutex_destroy(&m->use[i].lock);
	pthread_mutex_destroy(&m->import_lock);
	pthread_mutex_destroy(&m->image_lock);
	pthread_mutex_destroy(&m->link_lock);
	pthread_mutex_destroy(&m->va_lock);
	pthread_mutex_destroy(&m->pool_lock);
	pthread_mutex_destroy(&m->share_lock);
	pthread_mutex_destroy(&m->lock);
	free(m->meters);
	free(m);
}

/*
 * The most that a driver can have on a ring of QCU_QUEUE_SIZE, where a command with data takes
 * three descriptors. Work that waits in streams leaves this much room for commands. So commands are
 * refused only if a guest does what the driver does not do.
 */
#define RING_BYTES (QCU_QUEUE_SIZE / 3 * QCU_SEGS_MAX * sizeof(struct qcu_seg))

static bool charge_queue(void *mirror, int64_t bytes)
{
	struct mirror *m = mirror;
	uint64_t spare = m->budget.limits.session[LIMIT_QUEUED] / 4;

	if (bytes < 0) {
		mir_give(m, LIMIT_QUEUED, (uint64_t)-bytes);
		return true;
	}
	if (spare > RING_BYTES)
		spare = RING_BYTES;
	if (!budget_take(&m->budget, LIMIT_QUEUED, (uint64_t)bytes + spare))
		return false;
	mir_give(m, LIMIT_QUEUED, spare);
	return true;
}

static bool charge_module(void *mirror, int64_t bytes)
{
	struct mirror *m = mirror;

	if (bytes > 0)
		return budget_take(&m->budget, LIMIT_MODULE_BYTES, (uint64_t)bytes);
	mir_give(m, LIMIT_MODULE_BYTES, (uint64_t)-bytes);
	return true;
}

static bool charge_device(void *mirror, unsigned int device, int64_t bytes)
{
	struct mirror *m = mirror;

	if (bytes > 0)
		return !mir_take_memory_from_pools(m, device, (uint64_t)bytes);
	mir_give_memory(m, device, (uint64_t)-bytes);
	return true;
}

static void count_busy_time(void *mirror, unsigned int device, enum be_busy kind, bool begins)
{
	struct mirror *m = mirror;

	budget_busy(&m->budget, device, kind == BE_BUSY_COPIES ? BUSY_COPIES : BUSY_KERNELS,
		    begins);
}

bool mir_take_request(struct mirror *m, size_t bytes)
{
	return budget_take(&m->budget, LIMIT_QUEUED, bytes);
}

void mir_give_request(struct mirror *m, size_t bytes)
{
	mir_give(m, LIMIT_QUEUED, bytes);
}

_Static_assert(BUDGET_ALL == SHARES_ALL, "passed through");

static uint64_t count_left_in_shares(void *shares, unsigned int device, unsigned int session)
{
	return shares_left(shares, device, session);
}

/*
 * The memory of a software GPU is host memory. So all programs of the VM together get as much of it
 * as one GPU has.
 */
static void begin_budget(struct mirror *m)
{
	struct mir_config *cfg = &m->cfg;
	struct limits *l = &m->budget.limits;
	uint64_t ram = 0;
	unsigned int i;

	budget_init(&m->budget, cfg->limits, cfg->usage, cfg->session);
	if (cfg->shares)
		m->budget.left = count_left_in_shares;
	m->budget.left_ctx = cfg->shares;
	budget_program(&m->budget, cfg->guest_pid);
	for (i = 0; cfg->mem && i < cfg->mem->count; i++)
		ram += cfg->mem->regions[i].size;
	limits_for_ram(l, cfg->mem ? ram : UINT64_MAX);
	cfg->options.printed_bytes = l->session[LIMIT_PRINTED];
	if (l->session[LIMIT_KERNEL_TIME] < UINT32_MAX)
		cfg->options.kernel_seconds = (uint32_t)l->session[LIMIT_KERNEL_TIME];
	cfg->options.charge_queue = charge_queue;
	cfg->options.charge_module = charge_module;
	cfg->options.charge_device = charge_device;
	cfg->options.busy = count_busy_time;
	cfg->options.charge_ctx = m;
	if (cfg->ops->memory && cfg->usage && l->vm[LIMIT_DEVICE_MEMORY] == LIMIT_NONE)
		l->vm[LIMIT_DEVICE_MEMORY] = cfg->ops->memory(&cfg->options);
	cfg->limits = l;
}

/* The counts are where the budget's are. A spare has no session yet, and has counted nothing. */
static void use_counts(struct mirror *m)
{
	m->counts = &m->budget.usage->counts;
	m->window.counts = m->counts;
}

int mir_create(struct mirror **out, const struct mir_config *cfg)
{
	const char *lacks = be_lacks(cfg->ops);
	struct mirror *m;
	unsigned int i;
	int rc;

	if (lacks) {
		complain("the %s backend has no %s", cfg->ops->name, lacks);
		return -ENODEV;
	}
	m = aligned_alloc(64, sizeof(*m));
	if (!m) {
		complain("no memory for a mirror");
		return -ENOMEM;
	}
	memset(m, 0, sizeof(*m));
	m->cfg = *cfg;
	begin_budget(m);
	m->cfg.options.complain = complain_text;
	for (i = 0; i < MIR_USERS; i++)
		pthread_mutex_init(&m->use[i].lock, NULL);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->share_lock, NULL);
	pthread_mutex_init(&m->pool_lock, NULL);
	pthread_mutex_init(&m->image_lock, NULL);
	pthread_mutex_init(&m->link_lock, NULL);
	pthread_mutex_init(&m->va_lock, NULL);
	pthread_mutex_init(&m->import_lock, NULL);
	carriers_init(&m->carriers, cfg->copiers);
	rc = held_init(&m->held, MIR_USERS);
	if (rc) {
		complain("no memory for a mirror");
		carriers_fini(&m->carriers);
		free_mirror(m);
		return rc;
	}
	handles_init(&m->handles, release_handle, m);
	kept_init(&m->kept);
	mir_host_calls_init(m);
	mir_watches_init(m);
	mir_times_init(m);
	mir_results_init(m);
	rc = window_init(&m->window, cfg->ops, cfg->mem, cfg->map, cfg->pin_limit);
	if (rc)
		goto fail_window;
	m->window.carriers = &m->carriers;
	m->graph_call = lib_graph_call;
	m->window.unplaced = mir_managed_gone;
	m->window.unplaced_ctx = m;
	use_counts(m);

	if (!mir_swap_prepare(m)) {
		complain("no memory for a mirror");
		rc = -ENOMEM;
		goto fail_open;
	}
	window_lend(&m->window);
	rc = cfg->ops->open(&m->be, &m->cfg.options);
	if (!rc && window_take_back(&m->window)) {
		cfg->ops->close(m->be);
		rc = QCU_ERR_MapBufferObjectFailed;
	}
	if (rc) {
		complain("the %s backend does not open: %s", cfg->ops->name, mir_error_name(rc));
		rc = -ENODEV;
		goto fail_open;
	}
	window_set_backend(&m->window, m->be);
	staging_init(&m->staging, cfg->ops, m->be);
	rc = cfg->ops->device_count(m->be, &m->devices);
	if (rc) {
		complain("the %s backend counts no devices: %s", cfg->ops->name,
			 mir_error_name(rc));
		rc = -ENODEV;
		goto fail_lanes;
	}
	if (m->devices > MIR_DEVICES_MAX)
		m->devices = MIR_DEVICES_MAX;
	rc = order_init(&m->order);
	if (rc) {
		complain("no memory for a mirror");
		goto fail_lanes;
	}
	rc = lanes_create(&m->lanes, mir_dispatch, put_in_order, m, cfg->poll_us);
	if (rc) {
		complain("no lanes: %s", strerror(-rc));
		goto fail_order;
	}
	lanes_bound(m->lanes,
		    m->budget.limits.session[LIMIT_LANES] < LANES_MAX
			    ? (unsigned int)m->budget.limits.session[LIMIT_LANES]
			    : LANES_MAX,
		    take_lane, give_lane);
	m->order.lanes = m->lanes;
	mir_turns_begin(m);
	mir_swap_begin(m);
	*out = m;
	return 0;

fail_order:
	order_fini(&m->order);
fail_lanes:
	staging_fini(&m->staging);
	cfg->ops->close(m->be);
fail_open:
	mir_swap_fini(m);
	window_fini(&m->window);
fail_window:
	mir_results_fini(m);
	mir_times_fini(m);
	mir_watches_fini(m);
	mir_host_calls_fini(m);
	kept_fini(&m->kept);
	handles_fini(&m->handles);
	held_fini(&m->held);
	carriers_fini(&m->carriers);
	free_mirror(m);
	return rc;
}

/*
 * Creates the context of device 0, which every program begins with. The contexts of the other
 * devices cost as much GPU memory each, and few programs use them. So each of them is created at
 * its first use.
 */
void mir_warm(struct mirror *m)
{
	uint64_t free_bytes, total;

	if (m->devices)
		(void)m->cfg.ops->mem_info(m->be, 0, &free_bytes, &total);
}

void mir_begin(struct mirror *m, unsigned int session, uint32_t guest_pid)
{
	m->cfg.session = session;
	budget_begin(&m->budget, session);
	budget_program(&m->budget, guest_pid);
	use_counts(m);
	mir_turns_begin(m);
	mir_swap_session(m);
}

/* Releases the streams that wait for the guest. */
static void end_waits(struct mirror *m)
{
	mir_host_calls_end(m);
	if (m->cfg.ops->values_end)
		m->cfg.ops->values_end(m->be);
}

/* How long to wait for commands that have begun. They may be waiting for the GPU. */
#define LAST_CALLS_MS 200

void mir_abandon(struct mirror *m)
{
	atomic_store(&m->abandoned, true);
	mir_swap_stop(m);
	mir_turns_stop(m);
	end_waits(m);
	mir_watches_end(m);
	pthread_mutex_lock(&m->use[MIR_USER_WATCHING].lock);
	pthread_mutex_unlock(&m->use[MIR_USER_WATCHING].lock);
	pthread_mutex_lock(&m->use[MIR_USER_TIMING].lock);
	pthread_mutex_unlock(&m->use[MIR_USER_TIMING].lock);
	(void)lanes_idle(m->lanes, LAST_CALLS_MS);
}

void mir_destroy(struct mirror *m)
{
	mir_swap_stop(m);
	mir_turns_stop(m);
	end_waits(m);
	mir_moves_end(m);
	lanes_destroy(m->lanes);
	mir_swap_join(m);
	going_free(m);
	mir_turns_fini(m);
	carriers_fini(&m->carriers);
	mir_watches_fini(m);
	mir_times_fini(m);
	order_fini(&m->order);
	mir_thread_streams_end(m, NULL, NULL);
	mir_objects_end(m, NULL);
	mir_virtual_end(m);
	handles_fini(&m->handles);
	mir_graphs_end(m);
	staging_fini(&m->staging);
	mir_allocations_end(m, NULL);
	mir_pools_end(m, NULL);
	mir_imports_end(m, NULL);
	lib_unload(m);
	mir_results_fini(m);
	window_fini(&m->window);
	mir_swap_end(m);
	m->cfg.ops->close(m->be);
	mir_swap_fini(m);
	mir_graphs_fini(m);
	mir_host_calls_fini(m);
	held_fini(&m->held);
	kept_fini(&m->kept);
	free_mirror(m);
}

/* True if no segment is empty and all segments together have exactly `len` bytes. */
static bool segs_sum(const struct mir_request *req, uint64_t len)
{
	size_t i;

	if (req->seg_count > QCU_SEGS_MAX)
		return false;
	for (i = 0; i < req->seg_count; i++) {
		const struct qcu_seg *s = &req->segs[i];

		if (!s->len || s->len > len || s->len - 1 > UINT64_MAX - s->gpa)
			return false;
		len -= s->len;
	}
	return !len;
}

/* Returns which rule of the wire the request breaks, or NULL. */
static const char *broken_rule(const struct mir_request *req, const struct qcu_rule *rule)
{
	const struct qCUcmd *cmd = &req->cmd;
	unsigned int flags = cmd->flags & ~(rule->who == QCU_WHO_POST ? QCU_F_POSTED : 0u);

	if (rule->who == QCU_WHO_CTL)
		return "belongs on the control queue";
	if ((rule->who == QCU_WHO_DRV) != !cmd->tid)
		return "has the wrong sender";
	if (!qcu_request_clean(cmd, rule))
		return "sets a reserved field";
	if (req->seg_count && !(flags & QCU_F_SEGS))
		return "has segments that its flags deny";

	if (cmd->op == QCU_OP_MAP || cmd->op == QCU_OP_MANAGED_MOVE) {
		uint64_t len = cmd->op == QCU_OP_MAP ? cmd->map.len : cmd->managed_move.len;

		return flags != QCU_F_SEGS   ? "has no segments"
		       : !segs_sum(req, len) ? "has segments of another length"
					     : NULL;
	}
	switch (rule->buffer) {
	case QCU_BUFFER_NONE:
		return flags ? "has flags for a buffer that it does not have" : NULL;
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
		if (flags == QCU_F_WINDOW || (!flags && !cmd->buf.len))
			return NULL;
		if (flags != QCU_F_SEGS)
			return "does not say where its buffer is";
		return segs_sum(req, cmd->buf.len) ? NULL : "has segments of another length";
	case QCU_BUFFER_MSG:
		if (flags != QCU_F_MSG && (flags || cmd->buf.len))
			return "has no message";
		return cmd->buf.len > QCU_MSG_MAX ? "has an oversized message" : NULL;
	case QCU_BUFFER_STAY:
		return flags != QCU_F_WINDOW ? "is not about mapped memory" : NULL;
	}
	return "is of no kind that we know";
}

bool mir_submit(struct mirror *m, struct mir_request *req)
{
	const struct qcu_rule *rule = qcu_rule(req->cmd.op);
	const char *why = rule ? broken_rule(req, rule) : "is no command";

	if (why) {
		complain("command %u (%s) %s", req->cmd.op, mir_op_name(req->cmd.op), why);
		return false;
	}
	count_call(m->counts, req->cmd.op);
	if (rule->traits & QCU_TIMED && qcu_field(&req->cmd, rule->until) & QCU_COPY_TIMED)
		req->taken = spin_clock();
	/*
	 * This request does not go to a lane. It takes no time, and it must get through even when
	 * every lane waits for it.
	 */
	if (rule->traits & QCU_PARKS) {
		mir_dispatch(m, req);
		return true;
	}
	if (lanes_submit(m->lanes, req)) {
		req->cmd.status = QCU_ERR_OperatingSystem;
		req->cmd.flags = 0;
		req->done(req);
	}
	return true;
}
