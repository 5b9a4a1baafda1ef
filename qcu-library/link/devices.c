// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which devices the program sees, and which of them it has used. */
#include <stdlib.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"

static struct {
	unsigned int visible[QCUL_DEVICES];
	int visible_count;
	/* A bit for each device that this session has used, and whose primary context it uses. */
	_Atomic uint64_t used, bound;
} session;
_Static_assert(QCUL_DEVICES <= 64, "a bit for each device");

static struct {
	atomic_int first_choice; /* for threads that choose no device themselves */
} process;
QCUL_AT_FORK(QCUL_FORK_DEVICES, QCUL_SESSION)

/* CUDA_VISIBLE_DEVICES is a list of numbers; as in CUDA, the first wrong number ends the list. */
void qcul_devices_start(unsigned int count)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	unsigned int i;

	if (count > QCUL_DEVICES)
		count = QCUL_DEVICES;
	session.visible_count = 0;
	atomic_store_explicit(&session.used, 0, memory_order_relaxed);
	if (!text) {
		for (i = 0; i < count; i++)
			session.visible[session.visible_count++] = i;
		return;
	}
	while (*text && session.visible_count < QCUL_DEVICES) {
		char *end;
		unsigned long n = strtoul(text, &end, 10);

		if (end == text || (*end && *end != ',') || n >= count)
			break;
		for (i = 0; i < (unsigned int)session.visible_count; i++) {
			/* If a device is named twice, the whole list is void. */
			if (session.visible[i] == n) {
				session.visible_count = 0;
				return;
			}
		}
		session.visible[session.visible_count++] = (unsigned int)n;
		text = *end ? end + 1 : end;
	}
}

int qcul_device_count(void)
{
	return session.visible_count;
}

uint8_t qcul_device_ordinal(int device)
{
	return device < session.visible_count ? (uint8_t)session.visible[device] : 0;
}

int qcul_device_with_ordinal(uint64_t ordinal)
{
	int i;

	for (i = 0; i < qcul_device_count(); i++)
		if (qcul_device_ordinal(i) == ordinal)
			return i;
	return -1;
}

void qcul_device_used(int device)
{
	uint64_t bit = (uint64_t)1 << device;

	if (!(atomic_load_explicit(&session.used, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&session.used, bit, memory_order_relaxed);
}

uint64_t qcul_devices_used(void)
{
	return atomic_load_explicit(&session.used, memory_order_relaxed);
}

atomic_uint qcul_bindings = 1;

void qcul_device_bind(void)
{
	uint64_t bit = (uint64_t)1 << qcul_self.device;

	qcul_self.bound = true;
	qcul_self.counted = atomic_load(&qcul_bindings);
	if (!(atomic_load_explicit(&session.bound, memory_order_relaxed) & bit))
		atomic_fetch_or(&session.bound, bit);
}

uint64_t qcul_devices_bound(void)
{
	return atomic_load(&session.bound);
}

void qcul_bindings_changed(void)
{
	if (!++qcul_bindings)
		qcul_bindings = 1;
}

void qcul_device_unbind(int device)
{
	atomic_fetch_and(&session.bound, device < 0 ? 0 : ~((uint64_t)1 << device));
	qcul_bindings_changed();
}

int qcul_device_default(void)
{
	return atomic_load_explicit(&process.first_choice, memory_order_relaxed);
}

void qcul_device_set_default(int device)
{
	atomic_store(&process.first_choice, device);
}
