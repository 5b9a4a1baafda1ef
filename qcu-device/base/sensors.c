// SPDX-License-Identifier: GPL-2.0-or-later
/* The numbers of sensors.h: bounds, age, and who may see them. */
#include <string.h>
#include <time.h>

#include "qcu-device/base/sensors.h"

uint64_t sensors_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sensors_check(struct gpu_sensors *g, enum sensors_for whose)
{
	static const struct {
		uint32_t greatest;
		bool all;
	} rules[QCU_SENSOR_COUNT] = {
#define OWN			    false
#define ALL			    true
#define X(name, greatest, whose_is) {greatest, whose_is},
		QCU_SENSORS(X)
#undef X
#undef ALL
#undef OWN
	};
	unsigned int i;

	g->known &= whose == SENSORS_NONE ? 0 : (1u << QCU_SENSOR_COUNT) - 1;
	for (i = 0; i < QCU_SENSOR_COUNT; i++) {
		if (g->value[i] > rules[i].greatest || (rules[i].all && whose != SENSORS_ALL))
			g->known &= ~(1u << i);
		if (!(g->known >> i & 1))
			g->value[i] = 0;
	}
}

void sensors_put(struct sensors *s, unsigned int slot, uint64_t bus, const struct gpu_sensors *g,
		 const struct gpu_work *shares)
{
	unsigned int i, kind;

	for (i = 0; i < BUSY_SESSIONS; i++)
		for (kind = 0; kind < BUSY_KINDS; kind++)
			atomic_store(&s->gpu[slot].share[i][kind], shares->of[i].of[kind]);
	atomic_store(&s->gpu[slot].shares_known, shares->known);

	for (i = 0; i < QCU_SENSOR_COUNT; i++)
		atomic_store(&s->gpu[slot].value[i], g->value[i]);
	atomic_store(&s->gpu[slot].known, g->known);
	atomic_store(&s->gpu[slot].bus, bus);
}

/* A time in the future, which only a forger writes, is long ago. */
static bool is_within(uint64_t when, uint64_t now, uint64_t ms)
{
	return when && now - when < ms;
}

bool sensors_wanted(const struct sensors *s, uint64_t now)
{
	return is_within(atomic_load(&s->wanted), now, SENSORS_WANTED_MS);
}

bool sensors_get(struct sensors *s, uint64_t bus, uint64_t now, struct gpu_sensors *g)
{
	unsigned int slot, i;

	memset(g, 0, sizeof(*g));
	if (!s || !atomic_load(&s->on))
		return true;
	atomic_store(&s->wanted, now);
	/* The next look at the clock may be one of a moment before. */
	if (!is_within(atomic_load(&s->taken), now + 1, SENSORS_OLD_MS))
		return false;
	for (slot = 0; slot < SENSORS_GPUS; slot++) {
		if (atomic_load(&s->gpu[slot].bus) != bus)
			continue;
		g->known = atomic_load(&s->gpu[slot].known);
		for (i = 0; i < QCU_SENSOR_COUNT; i++)
			g->value[i] = atomic_load(&s->gpu[slot].value[i]);
	}
	return true;
}

uint64_t sensors_shares(const struct sensors *s, uint64_t bus, uint64_t now, struct gpu_work *to)
{
	uint64_t taken = s && atomic_load(&s->on) ? atomic_load(&s->taken) : 0;
	unsigned int slot, i, kind;

	memset(to, 0, sizeof(*to));
	/* As above. */
	if (!is_within(taken, now + 1, SENSORS_OLD_MS))
		return 0;
	for (slot = 0; slot < SENSORS_GPUS; slot++) {
		if (atomic_load(&s->gpu[slot].bus) != bus)
			continue;
		to->known = atomic_load(&s->gpu[slot].shares_known);
		for (i = 0; i < BUSY_SESSIONS; i++)
			for (kind = 0; kind < BUSY_KINDS; kind++)
				to->of[i].of[kind] = atomic_load(&s->gpu[slot].share[i][kind]);
	}
	return taken < now ? now - taken : 0;
}
