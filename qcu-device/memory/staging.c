// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Staging memory, see staging.h. Slots are searched in the order of their cost: a free slot, then
 * one whose work has ended, then one that has to be made first. The search holds the lock. What
 * takes time is done by the slot's owner, without the lock.
 */
#include <sys/mman.h>

#include "qcu-device/memory/staging.h"

#define EVENT_DISABLE_TIMING 2u /* cudaEventDisableTiming */

void staging_init(struct staging *st, const struct be_ops *ops, struct be *be)
{
	*st = (struct staging){.ops = ops, .be = be};
	pthread_mutex_init(&st->lock, NULL);
}

static void drop_mark(struct staging *st, struct stage_slot *slot)
{
	if (slot->mark)
		st->ops->event_destroy(st->be, slot->mark);
	slot->mark = NULL;
}

/* Called by the owner. False: there is no memory, or the backend registers no more of it. */
static bool make_stage_buffer(struct staging *st, struct stage_slot *slot)
{
	void *p = mmap(NULL, STAGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	if (st->ops->host_register(st->be, p, STAGE_BYTES)) {
		munmap(p, STAGE_BYTES);
		return false;
	}
	slot->buf = p;
	return true;
}

static void set_state(struct staging *st, struct stage_slot *slot, enum stage_state state)
{
	pthread_mutex_lock(&st->lock);
	slot->state = state;
	pthread_mutex_unlock(&st->lock);
}

/* Called under the lock. Among slots of one state, prefers one with a mark on this device. */
static struct stage_slot *find_slot_in_state(struct staging *st, enum stage_state state,
					     unsigned int device)
{
	struct stage_slot *found = NULL;
	unsigned int i;

	for (i = 0; i < STAGE_SLOTS; i++) {
		struct stage_slot *slot = &st->slots[i];

		if (slot->state != state)
			continue;
		if (slot->mark && slot->device == device)
			return slot;
		if (!found)
			found = slot;
	}
	return found;
}

/*
 * Called under the lock. Slots whose work has ended become free. If the backend reports an error
 * here, the caller must pass it on; it also means that the work has ended.
 */
static int free_ended_slots(struct staging *st)
{
	int rc = QCU_ERR_Success;
	unsigned int i;

	for (i = 0; i < STAGE_SLOTS && !rc; i++) {
		struct stage_slot *slot = &st->slots[i];

		if (slot->state != STAGE_LEFT)
			continue;
		rc = st->ops->event_query(st->be, slot->mark);
		if (rc == QCU_ERR_NotReady)
			rc = QCU_ERR_Success;
		else
			slot->state = STAGE_FREE;
	}
	return rc;
}

int staging_take(struct staging *st, unsigned int device, struct stage_slot **out)
{
	struct stage_slot *slot;
	int rc = QCU_ERR_Success;

	*out = NULL;
	pthread_mutex_lock(&st->lock);
	slot = find_slot_in_state(st, STAGE_FREE, device);
	if (!slot) {
		rc = free_ended_slots(st);
		slot = find_slot_in_state(st, STAGE_FREE, device);
	}
	if (!slot)
		slot = find_slot_in_state(st, STAGE_UNMADE, device);
	if (slot && !rc)
		slot->state = STAGE_OWNED;
	pthread_mutex_unlock(&st->lock);
	if (!slot || rc)
		return rc;

	if (slot->mark && slot->device != device)
		drop_mark(st, slot);
	/*
	 * Create the event first. This sets the thread's device, and memory is registered on that
	 * device.
	 */
	if (!slot->mark)
		rc = st->ops->event_create(st->be, device, EVENT_DISABLE_TIMING, &slot->mark);
	slot->device = device;
	if (rc) {
		slot->mark = NULL;
		set_state(st, slot, slot->buf ? STAGE_FREE : STAGE_UNMADE);
		return rc;
	}
	if (!slot->buf && !make_stage_buffer(st, slot)) {
		drop_mark(st, slot);
		set_state(st, slot, STAGE_UNMADE);
		return rc;
	}
	*out = slot;
	return rc;
}

int staging_mark(struct staging *st, struct stage_slot *slot, struct be_stream *s)
{
	return st->ops->event_record(st->be, slot->mark, s, 0);
}

int staging_wait(struct staging *st, struct stage_slot *slot)
{
	return st->ops->event_sync(st->be, slot->mark);
}

void staging_give(struct staging *st, struct stage_slot *slot)
{
	set_state(st, slot, STAGE_FREE);
}

void staging_leave(struct staging *st, struct stage_slot *slot)
{
	set_state(st, slot, STAGE_LEFT);
}

/*
 * An error of the wait is ignored: there is no caller to report it to, and it means that there is
 * nothing to wait for.
 */
static void settle(struct staging *st, struct stage_slot *slot)
{
	if (slot->state == STAGE_LEFT)
		staging_wait(st, slot);
	drop_mark(st, slot);
	if (slot->state != STAGE_UNMADE)
		slot->state = STAGE_FREE;
}

void staging_reset(struct staging *st, unsigned int device)
{
	unsigned int i;

	pthread_mutex_lock(&st->lock);
	for (i = 0; i < STAGE_SLOTS; i++)
		if (st->slots[i].mark && st->slots[i].device == device)
			settle(st, &st->slots[i]);
	pthread_mutex_unlock(&st->lock);
}

void staging_fini(struct staging *st)
{
	unsigned int i;

	for (i = 0; i < STAGE_SLOTS; i++) {
		struct stage_slot *slot = &st->slots[i];

		settle(st, slot);
		if (!slot->buf)
			continue;
		st->ops->host_unregister(st->be, slot->buf);
		munmap(slot->buf, STAGE_BYTES);
	}
	pthread_mutex_destroy(&st->lock);
}
