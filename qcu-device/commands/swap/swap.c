// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a command does about memory that leaves (swap.h): it waits while memory leaves, brings back
 * what is away if it needs it, and asks for room if there is none.
 *
 * Bringing memory back needs no lock of other commands: nothing uses memory that is away. So it
 * cannot wait for a command that waits for the GPU, whose work may be waiting for this one.
 */
#include <stdlib.h>
#include <time.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"

#define NS_PER_S 1000000000ull
#define ALLOC_NS (60 * NS_PER_S)  /* an allocation waits so long for room */
#define BACK_NS	 (600 * NS_PER_S) /* a command that needs what is away waits so long */
#define SLACK	 (64ull << 20)	  /* what an allocation may take beyond its size */
#define MODULE	 (1ull << 20)	  /* variables of a module, most of the time */
#define CONTEXT	 (640ull << 20)	  /* what the first use of a GPU takes */
#define ROWS	 8u		  /* an array takes the memory of so many, if it has fewer */
#define UNIT	 (2ull << 20)	  /* what a large array takes is rounded up to this */

static bool charge_store(void *mirror, enum store_medium medium, int64_t bytes)
{
	const enum limit what = medium == STORE_FILE ? LIMIT_SWAP_FILE : LIMIT_SWAP;
	struct mirror *m = mirror;

	if (bytes > 0 && !budget_take(&m->budget, what, (uint64_t)bytes))
		return false;
	if (medium == STORE_FILE)
		count_add(m->counts, COUNT_FILED, (uint64_t)bytes);
	if (bytes < 0)
		mir_give(m, what, (uint64_t)-bytes);
	return true;
}

static void count_moved(void *mirror, enum store_medium medium, bool out, uint64_t bytes)
{
	struct mirror *m = mirror;

	if (medium == STORE_FILE)
		count_add(m->counts, out ? COUNT_FILE_OUT : COUNT_FILE_IN, bytes);
	else if (medium == STORE_GPU)
		count_add(m->counts, out ? COUNT_LENT_OUT : COUNT_LENT_IN, bytes);
}

bool mir_swap_prepare(struct mirror *m)
{
	struct swap *s;
	unsigned int i;

	if (m->cfg.options.movable && !m->cfg.ops->mem_leave) {
		complain("--swap: the %s backend cannot let memory leave", m->cfg.ops->name);
		m->cfg.options.movable = false;
	}
	if (!m->cfg.options.movable)
		return true;
	s = calloc(1, sizeof(*s));
	if (!s)
		return false;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->opened, NULL);
	pthread_mutex_init(&s->mover, NULL);
	pthread_mutex_init(&s->backer, NULL);
	for (i = 0; i < MIR_DEVICES_MAX; i++) {
		s->gpu[i].m = m;
		s->gpu[i].device = i;
		pthread_mutex_init(&s->gpu[i].ask, NULL);
		pthread_mutex_init(&s->gpu[i].tell, NULL);
	}
	m->swap = s;
	m->cfg.options.resident = mir_swap_resident;
	return true;
}

void mir_swap_begin(struct mirror *m)
{
	const bool lent = m->cfg.options.store && m->devices < MIR_DEVICES_MAX;
	const struct store_owner owner = {.ctx = m,
					  .charge = charge_store,
					  .moved = count_moved,
					  .borrow = lent ? mir_swap_borrow : NULL,
					  .hand_back = mir_swap_hand_back};
	int file = m->cfg.store_file ? m->cfg.store_file : -1;

	if (!m->swap)
		return;
	store_init(&m->swap->store, m->cfg.ops, m->be, &owner, file);
	atomic_store(&m->swap_state, SWAP_ON);
	mir_swap_session(m);
}

void mir_swap_session(struct mirror *m)
{
	struct swap *s = m->swap;
	unsigned int i;

	for (i = s ? s->gpus : 0; s && i < m->turns.gpus; i++) {
		mir_swap_skip(&s->gpu[i]);
		s->gpu[i].running =
			!pthread_create(&s->gpu[i].thread, NULL, mir_swap_serve, &s->gpu[i]);
		s->gpus = i + 1;
	}
}

void mir_swap_stop(struct mirror *m)
{
	if (!m->swap)
		return;
	atomic_store(&m->swap->stop, true);
	/* What is under way ends soon. */
	pthread_mutex_lock(&m->swap->mover);
	pthread_mutex_unlock(&m->swap->mover);
}

void mir_swap_join(struct mirror *m)
{
	struct swap *s = m->swap;
	unsigned int i;

	for (i = 0; s && i < s->gpus; i++) {
		mir_swap_wake(&s->gpu[i]);
		if (s->gpu[i].running)
			pthread_join(s->gpu[i].thread, NULL);
		s->gpu[i].running = false;
	}
}

void mir_swap_end(struct mirror *m)
{
	if (m->swap)
		store_end(&m->swap->store);
}

void mir_swap_fini(struct mirror *m)
{
	struct swap *s = m->swap;
	unsigned int i;

	if (!s)
		return;
	for (i = 0; i < MIR_DEVICES_MAX; i++) {
		pthread_mutex_destroy(&s->gpu[i].ask);
		pthread_mutex_destroy(&s->gpu[i].tell);
	}
	if (atomic_load(&m->swap_state))
		store_fini(&s->store);
	pthread_mutex_destroy(&s->backer);
	pthread_mutex_destroy(&s->mover);
	pthread_cond_destroy(&s->opened);
	pthread_mutex_destroy(&s->lock);
	m->swap = NULL;
	free(s);
}

/* Brings back what is away on one device. The caller holds s->backer. */
static int bring_device_back(struct mirror *m, unsigned int device, struct swap_wait *w)
{
	uint64_t away = m->cfg.ops->mem_away(m->be, device), back = 0;
	int rc = QCU_ERR_MemoryAllocation;

	if (!away)
		return QCU_ERR_Success;
	if (mir_swap_fits(&m->swap->gpu[device], away))
		rc = m->cfg.ops->mem_return(m->be, device, &back);
	count_add(m->counts, COUNT_SWAP_IN, back);
	mir_swap_tell_fixed(&m->swap->gpu[device], false);
	if (rc == QCU_ERR_MemoryAllocation) {
		w->device = device;
		w->need = away - back;
		return MIR_SWAP_WAIT;
	}
	return rc;
}

static int bring_memory_back(struct mirror *m, struct swap_wait *w)
{
	struct swap *s = m->swap;
	unsigned int i;
	int rc = QCU_ERR_Success;

	pthread_mutex_lock(&s->backer);
	for (i = 0; !rc && i < m->devices && atomic_load(&m->swap_state) & SWAP_AWAY; i++)
		rc = bring_device_back(m, i, w);
	if (!rc) {
		atomic_fetch_and(&m->swap_state, ~SWAP_AWAY);
		atomic_store(&m->budget.usage->left_ns, 0);
	}
	pthread_mutex_unlock(&s->backer);
	return rc;
}

/* A command of any kind shows that the program is awake. */
static void note_work(struct mirror *m, const struct qCUcmd *cmd)
{
	struct timespec t;

	if (cmd->device >= m->turns.gpus)
		return;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	atomic_store_explicit(&mir_turn_report(&m->turns.gpu[cmd->device])->memory.worked_ns,
			      (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec,
			      memory_order_relaxed);
}

int mir_swap_enter(struct call *c, unsigned int traits, struct swap_wait *w)
{
	uint32_t state = atomic_load(&c->m->swap_state);

	w->need = 0;
	if (c->cmd->tid && !(traits & (QCU_ANY_DEVICE | QCU_LOOKS)))
		note_work(c->m, c->cmd);
	if (state & SWAP_CLOSED)
		return MIR_SWAP_WAIT;
	if (!(state & SWAP_AWAY) || !(traits & (QCU_MEMORY | QCU_BACK)) ||
	    atomic_load(&c->m->abandoned))
		return QCU_ERR_Success;
	return bring_memory_back(c->m, w);
}

static void wait_until_open(struct mirror *m)
{
	struct swap *s = m->swap;

	pthread_mutex_lock(&s->lock);
	while (atomic_load(&m->swap_state) & SWAP_CLOSED)
		pthread_cond_wait(&s->opened, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* Asks for the room that is missing. False: it cannot be had, or not in time. */
static bool wait_for_room(struct mirror *m, struct swap_wait *w, bool back, uint64_t longest_ns)
{
	uint64_t began = spin_clock();
	bool room;

	if (!w->since_ns)
		w->since_ns = began;
	if (!w->asking)
		atomic_fetch_add(&m->swap->gpu[w->device].asking, 1);
	w->asking = true;
	room = mir_swap_ask(&m->swap->gpu[w->device], w->need, back ? TURNS_BACK : 0,
			    w->since_ns + longest_ns);
	w->tries += room;
	count_add(m->counts, COUNT_ROOM_US, (spin_clock() - began) / 1000);
	return room;
}

/* Memory that was promised is waited for, also while nobody can give any. */
int mir_swap_wait(struct call *c, struct swap_wait *w)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	struct mirror *m = c->m;

	if (!w->need) {
		wait_until_open(m);
		return QCU_ERR_Success;
	}
	if (wait_for_room(m, w, true, BACK_NS))
		return QCU_ERR_Success;
	if (spin_clock() - w->since_ns < BACK_NS && !atomic_load(&m->swap->stop)) {
		nanosleep(&pause, NULL);
		return QCU_ERR_Success;
	}
	complain("%llu bytes that have left find no room on the GPU", (unsigned long long)w->need);
	return QCU_ERR_MemoryAllocation;
}

/* Levels add a third. */
static uint64_t array_bytes_wanted(const struct qcu_array_create *a)
{
	uint64_t n = (uint64_t)(a->bits[0] + a->bits[1] + a->bits[2] + a->bits[3]) / 8;

	n *= a->width;
	n *= a->height < ROWS ? ROWS : a->height;
	n *= a->depth ? a->depth : 1;
	n += a->levels > 1 ? n / 3 : 0;
	return n > UNIT / 2 ? (n + UNIT - 1) / UNIT * UNIT : n;
}

/* What a command takes of the GPU's memory; 0: nothing that can be known. */
static uint64_t bytes_wanted(const struct qCUcmd *cmd)
{
	switch (cmd->op) {
	case QCU_OP_MALLOC:
		return cmd->malloc.size;
	case QCU_OP_MALLOC_ASYNC:
		return cmd->malloc_async.size;
	case QCU_OP_PHYS_CREATE:
		return cmd->phys_create.size;
	case QCU_OP_MANAGED:
		return cmd->managed.bytes;
	case QCU_OP_ARRAY_CREATE:
		return array_bytes_wanted(&cmd->array_create);
	case QCU_OP_MODULE_LOAD:
		return MODULE;
	}
	return 0;
}

bool mir_swap_make_room(struct call *c, struct swap_wait *w)
{
	struct mirror *m = c->m;
	unsigned int device = c->cmd->device;
	uint64_t want = bytes_wanted(c->cmd), free_bytes = 0, total = 0, all;

	if (device >= m->turns.gpus || atomic_load(&m->abandoned))
		return false;
	/* Any command may be the first that needs a context. */
	if (!m->cfg.ops->memory && m->cfg.ops->mem_info(m->be, device, &free_bytes, &total))
		want += CONTEXT;
	if (!want)
		return false;
	/* Is a limit of the VM in the way? */
	if (budget_memory_left(&m->budget, device, UINT64_MAX) < bytes_wanted(c->cmd))
		return false;
	/* All memory of a program must fit together. */
	all = atomic_load(&m->budget.usage->memory[device]);
	if (m->cfg.ops->memory)
		total = atomic_load(&mir_turn_orders(&m->turns.gpu[device])->most);
	if (total && (want > total || all > total - want))
		return false;
	w->device = device;
	w->need = want > free_bytes && !w->tries ? want - free_bytes : want;
	if (free_bytes && !w->tries)
		w->need += SLACK;
	/* What was granted and is still there was not enough: sizes are rounded up. */
	if (w->tries)
		w->need += mir_swap_unused(&m->swap->gpu[device]);
	return wait_for_room(m, w, false, ALLOC_NS);
}

static void end_asking(struct mirror *m, struct swap_wait *w)
{
	if (!w->asking)
		return;
	atomic_fetch_sub(&m->swap->gpu[w->device].asking, 1);
	mir_swap_tell(&m->swap->gpu[w->device]);
}

void mir_swap_done(struct call *c, struct swap_wait *w)
{
	struct swap *s = c->m->swap;

	end_asking(c->m, w);
	if (c->cmd->device < s->gpus)
		mir_swap_tell_change(&s->gpu[c->cmd->device]);
}

void mir_swap_bring_back(struct mirror *m, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	struct swap_wait w = {0};

	while (m->swap && bring_memory_back(m, &w) == MIR_SWAP_WAIT) {
		w.since_ns = spin_clock();
		if (w.since_ns >= until_ns || atomic_load(&m->swap->stop))
			break;
		if (!wait_for_room(m, &w, true, until_ns - w.since_ns))
			nanosleep(&pause, NULL);
	}
	if (m->swap)
		end_asking(m, &w);
}

void mir_swap_stay(struct mirror *m, bool stay)
{
	if (!m->swap)
		return;
	if (stay)
		pthread_mutex_lock(&m->swap->mover);
	else
		pthread_mutex_unlock(&m->swap->mover);
}
