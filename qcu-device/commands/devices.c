// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands about devices, threads and the mirror itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/made.h"

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

	rc = c->m->cfg.ops->device_desc(c->m->be, c->cmd->device, &desc);
	desc.total_mem = budget_memory_total(&c->m->budget, desc.total_mem);
	return rc ? rc : mir_buf_write(c, 0, &desc, sizeof(desc));
}

int mir_do_device_sync(struct call *c)
{
	bool only;
	int rc;

	c->waited = true;
	only = mir_managed_sync(c);
	mir_turns_await(c->m, c->cmd->device);
	rc = c->m->cfg.ops->device_sync(c->m->be, c->cmd->device);
	if (!rc && only)
		mir_managed_synced(c);
	return rc;
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

	c->waited = true;
	mir_watches_end(m);
	mir_times_reset(m, device);
	handles_remove_if(&m->handles, HANDLE_EVENT, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_STREAM, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_GREEN, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_COND, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_GRAPH, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_LINK, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_LIBRARY, match_device, &device);
	mir_objects_end(m, &device);
	handles_remove_if(&m->handles, HANDLE_ARRAY, match_device, &device);
	handles_remove_if(&m->handles, HANDLE_POOL, match_device, &device);
	mir_thread_streams_end(m, NULL, &device);
	mir_managed_reset(m);
	staging_reset(&m->staging, device);
	mir_allocations_end(m, &device);
	mir_pools_end(m, &device);
	mir_imports_end(m, &device);
	for (limit = 0; limit < 3; limit++)
		mir_limit_back(m, device, limit, 0);
	budget_leaves(&m->budget, device);
	return m->cfg.ops->device_reset(m->be, device);
}

int mir_do_mem_info(struct call *c)
{
	uint64_t free_bytes = 0, total = 0, left;
	int rc;

	rc = c->m->cfg.ops->mem_info(c->m->be, c->cmd->device, &free_bytes, &total);
	mir_pools_count(c->m);
	left = budget_memory_left(&c->m->budget, c->cmd->device, total);
	/* What can be made free counts as free, if it was promised. */
	if (c->m->swap && left < total)
		free_bytes = left;
	c->cmd->mem_info.free = free_bytes < left ? free_bytes : left;
	c->cmd->mem_info.total = budget_memory_total(&c->m->budget, total);
	return rc;
}

/* cudaDeviceAttr */
#define ATTR_PCI_BUS	33
#define ATTR_PCI_DEVICE 34
#define ATTR_PCI_DOMAIN 50

/* Other mirrors may have written it. */
static uint8_t percent(uint8_t share)
{
	return share <= 100 ? share : 0;
}

static uint64_t bus_of(const struct qcu_device_desc *desc)
{
	return sensors_bus((uint32_t)desc->attr[ATTR_PCI_DOMAIN],
			   (uint32_t)desc->attr[ATTR_PCI_BUS],
			   (uint32_t)desc->attr[ATTR_PCI_DEVICE]);
}

/* Returns whether the mirror's own meter has shares of a moment ago; if not, it measures now. */
static bool measure_shares(struct mirror *m, unsigned int device)
{
	struct busy_reading now_of[BUSY_SESSIONS];
	bool there = false;

	pthread_mutex_lock(&m->lock);
	if (!m->meters)
		m->meters = calloc(USAGE_DEVICES, sizeof(*m->meters));
	if (m->meters) {
		budget_read_busy(&m->budget, device, now_of);
		there = busy_measure(&m->meters[device], now_of, busy_now());
	}
	pthread_mutex_unlock(&m->lock);
	return there;
}

/* What the meter has measured last. Returns how many milliseconds ago that was. */
static uint64_t measured_shares(struct mirror *m, unsigned int device, struct gpu_work *to)
{
	uint64_t now = busy_now(), taken = 0;
	unsigned int i;

	pthread_mutex_lock(&m->lock);
	if (m->meters)
		taken = m->meters[device].taken;
	to->known = taken && now - taken <= BUSY_MOST_US;
	for (i = 0; to->known && i < BUSY_SESSIONS; i++)
		to->of[i] = m->meters[device].session[i].share;
	pthread_mutex_unlock(&m->lock);
	return (now - taken) / 1000;
}

static uint64_t shares_now(struct call *c, const struct qcu_device_desc *desc, struct gpu_work *to)
{
	memset(to, 0, sizeof(*to));
	if (c->m->cfg.sensors == SENSORS_NONE)
		return 0;
	if (c->m->cfg.ops->sensors)
		return measured_shares(c->m, c->cmd->device, to);
	return c->m->cfg.usage
		       ? sensors_shares(&c->m->cfg.usage->sensors, bus_of(desc), sensors_now(), to)
		       : 0;
}

/* Does not ask the backend for free memory: for that, it would make a context. */
int mir_do_vm_use(struct call *c)
{
	const struct budget *b = &c->m->budget;
	struct usage_user users[QCU_MAX_SESSIONS];
	struct qcu_device_desc desc = {0};
	struct qcu_vm_use_desc use = {0};
	struct gpu_work shares;
	unsigned int i;
	uint64_t age;
	int rc;

	rc = c->m->cfg.ops->device_desc(c->m->be, c->cmd->device, &desc);
	if (rc)
		return rc;
	use.total = budget_vm_total(b, desc.total_mem);
	use.used = budget_vm_used(b, c->cmd->device);
	use.count = budget_users(b, c->cmd->device, users);
	age = shares_now(c, &desc, &shares);
	if (shares.known)
		use.busy_age = (uint32_t)age + 1;
	for (i = 0; i < use.count; i++) {
		const struct busy_percent *of = &shares.of[users[i].session];

		use.user[i].pid = users[i].pid;
		use.user[i].bytes = users[i].bytes;
		use.user[i].busy = percent(of->of[BUSY_KERNELS]);
		use.user[i].busy_memory = percent(of->of[BUSY_COPIES]);
	}
	return mir_buf_write(c, 0, &use, sizeof(use));
}

/* The VM's own work: the sum of its sessions' shares. False: they are not known yet. */
static bool learn_own_work(struct mirror *m, unsigned int device, struct gpu_sensors *g)
{
	struct gpu_work shares = {0};
	unsigned int i, sum[BUSY_KINDS] = {0};

	if (m->cfg.sensors == SENSORS_NONE)
		return true;
	if (!measure_shares(m, device))
		return false;
	measured_shares(m, device, &shares);
	for (i = 0; i < BUSY_SESSIONS; i++) {
		sum[BUSY_KERNELS] += shares.of[i].of[BUSY_KERNELS];
		sum[BUSY_COPIES] += shares.of[i].of[BUSY_COPIES];
	}
	g->value[QCU_SENSOR_busy] = sum[BUSY_KERNELS] < 100 ? sum[BUSY_KERNELS] : 100;
	g->value[QCU_SENSOR_busy_memory] = sum[BUSY_COPIES] < 100 ? sum[BUSY_COPIES] : 100;
	g->known |= 1u << QCU_SENSOR_busy | 1u << QCU_SENSOR_busy_memory;
	return true;
}

int mir_do_sensors(struct call *c)
{
	const struct be_ops *ops = c->m->cfg.ops;
	struct qcu_sensors *r = &c->cmd->sensors;
	struct qcu_device_desc desc = {0};
	struct gpu_sensors g = {0};
	bool there = true;
	int rc;

	rc = ops->device_desc(c->m->be, c->cmd->device, &desc);
	if (rc)
		return rc;
	if (ops->sensors) {
		ops->sensors(c->m->be, c->cmd->device, &g.known, g.value);
		there = learn_own_work(c->m, c->cmd->device, &g);
	} else if (c->m->cfg.usage) {
		there = sensors_get(&c->m->cfg.usage->sensors, bus_of(&desc), sensors_now(), &g);
	}
	/* Also of what other mirrors may have written. */
	sensors_check(&g, c->m->cfg.sensors);
	r->known = there ? g.known : QCU_SENSORS_SOON;
#define X(name, greatest, whose) r->name = g.value[QCU_SENSOR_##name];
	QCU_SENSORS(X)
#undef X
	return QCU_ERR_Success;
}

/* The last values of cudaDeviceP2PAttr and cudaAtomicOperation, which CUDA uses as indexes. */
#define PEER_ATTR_LAST	 5u
#define PEER_ATOMIC_LAST 12u

bool mir_peer_attr_known(uint32_t attr)
{
	if (attr < QCU_PEER_ATOMICS)
		return attr <= PEER_ATTR_LAST;
	return attr < QCU_PEER_HOST_ATOMICS + 0x100u && (attr & 0xff) <= PEER_ATOMIC_LAST;
}

int mir_limit_set(struct call *c, struct qcu_limit_set *r)
{
	uint64_t before, value = r->value;
	int rc = mir_take_limit(c, r->limit, &value, &before);

	if (rc)
		return rc;
	rc = c->m->cfg.ops->limit_set(c->m->be, c->cmd->device, r->limit, value);
	if (rc)
		mir_limit_back(c->m, c->cmd->device, r->limit, before);
	return rc;
}

int mir_do_thread_exit(struct call *c)
{
	uint32_t tid = c->cmd->tid;

	mir_result_drop(c);
	mir_thread_streams_end(c->m, &tid, NULL);
	return QCU_ERR_Success;
}

int mir_do_stats(struct call *c)
{
	const struct counts *s = c->m->counts;
	struct qcu_stats_desc d = {
		.commands = count_calls(s),
		.h2d_bytes = count_get(s, COUNT_H2D),
		.d2h_bytes = count_get(s, COUNT_D2H),
		.d2d_bytes = count_get(s, COUNT_D2D),
		.window_bytes = count_get(s, COUNT_H2D_WINDOW) + count_get(s, COUNT_D2H_WINDOW),
		.pages_bytes = count_get(s, COUNT_H2D_PAGES) + count_get(s, COUNT_D2H_PAGES),
		.staged_bytes = count_get(s, COUNT_H2D_STAGED) + count_get(s, COUNT_D2H_STAGED),
		.copies = count_get(s, COUNT_COPIES),
		.mapped_bytes = c->m->window.mapped_bytes,
		.registered_bytes = c->m->window.registered_bytes,
		.device_bytes = count_get(s, COUNT_DEVICE),
		.away_bytes = count_get(s, COUNT_AWAY),
		.out_bytes = count_get(s, COUNT_SWAP_OUT),
		.in_bytes = count_get(s, COUNT_SWAP_IN),
		.room_us = count_get(s, COUNT_ROOM_US),
		.file_bytes = count_get(s, COUNT_FILE_OUT),
	};

	return mir_buf_write(c, 0, &d, sizeof(d));
}
