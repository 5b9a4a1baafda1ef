// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The numbers that programs may learn of a GPU: who sees which, what is not believed, how old they
 * may be. Mirrors can write into the memory where they lie, so any number may be there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/base/sensors.h"

#define ALL ((1u << QCU_SENSOR_COUNT) - 1)

static struct gpu_sensors full(uint32_t value)
{
	struct gpu_sensors g = {.known = UINT32_MAX};
	unsigned int i;

	for (i = 0; i < QCU_SENSOR_COUNT; i++)
		g.value[i] = value;
	return g;
}

static void who_sees_what(void **state)
{
	const uint32_t of_all = 1u << QCU_SENSOR_celsius | 1u << QCU_SENSOR_milliwatts |
				1u << QCU_SENSOR_power_limit;
	struct gpu_sensors g = full(7);
	unsigned int i;

	(void)state;
	sensors_check(&g, SENSORS_ALL);
	assert_int_equal(g.known, ALL);
	g = full(7);
	sensors_check(&g, SENSORS_OWN);
	assert_int_equal(g.known, ALL & ~of_all);
	for (i = 0; i < QCU_SENSOR_COUNT; i++)
		assert_int_equal(g.value[i], of_all >> i & 1 ? 0 : 7);
	g = full(7);
	sensors_check(&g, SENSORS_NONE);
	assert_int_equal(g.known, 0);
	for (i = 0; i < QCU_SENSOR_COUNT; i++)
		assert_int_equal(g.value[i], 0);
}

static void bounds(void **state)
{
	struct gpu_sensors g = full(UINT32_MAX);

	(void)state;
	sensors_check(&g, SENSORS_ALL);
	assert_int_equal(g.known, 1u << QCU_SENSOR_driver);
	assert_int_equal(g.value[QCU_SENSOR_driver], UINT32_MAX);
	assert_int_equal(g.value[QCU_SENSOR_busy], 0);
#define OWN SENSORS_OWN
#define X(name, greatest, whose)                       \
	g = full((greatest));                          \
	sensors_check(&g, SENSORS_ALL);                \
	assert_true(g.known >> QCU_SENSOR_##name & 1); \
	g = full((greatest) + 1u);                     \
	sensors_check(&g, SENSORS_ALL);                \
	assert_int_equal(g.known >> QCU_SENSOR_##name & 1, (greatest) == 0xffffffffu);
	QCU_SENSORS(X)
#undef X
#undef OWN
}

static void age(void **state)
{
	const uint64_t bus = sensors_bus(0, 3, 0), start = 1000000;
	static struct sensors s;
	struct gpu_sensors g = full(7), got;

	(void)state;
	assert_true(sensors_get(NULL, bus, start, &got));
	assert_int_equal(got.known, 0);
	/* Nobody writes numbers: nothing is on its way, and nobody is asked. */
	assert_true(sensors_get(&s, bus, start, &got));
	assert_int_equal(got.known, 0);
	assert_false(sensors_wanted(&s, start));
	atomic_store(&s.on, true);
	assert_false(sensors_get(&s, bus, start, &got));
	assert_true(sensors_wanted(&s, start));
	assert_true(sensors_wanted(&s, start + SENSORS_WANTED_MS - 1));
	assert_false(sensors_wanted(&s, start + SENSORS_WANTED_MS));

	sensors_put(&s, 5, bus, &g);
	atomic_store(&s.taken, start);
	assert_true(sensors_get(&s, bus, start, &got));
	assert_int_equal(got.known, UINT32_MAX);
	assert_int_equal(got.value[QCU_SENSOR_busy], 7);
	assert_true(sensors_get(&s, sensors_bus(0, 4, 0), start, &got));
	assert_int_equal(got.known, 0);
	assert_true(sensors_get(&s, bus, start + SENSORS_OLD_MS - 2, &got));
	assert_false(sensors_get(&s, bus, start + SENSORS_OLD_MS, &got));
	assert_int_equal(got.known, 0);
	/* Times that nobody has had yet. */
	atomic_store(&s.taken, start + 1000);
	assert_false(sensors_get(&s, bus, start, &got));
	atomic_store(&s.taken, UINT64_MAX);
	assert_false(sensors_get(&s, bus, start, &got));
	atomic_store(&s.wanted, start + 1);
	assert_false(sensors_wanted(&s, start));
}

/* A place on the bus is never the one of an empty slot. */
static void places(void **state)
{
	(void)state;
	assert_int_not_equal(sensors_bus(0, 0, 0), 0);
	assert_int_not_equal(sensors_bus(1, 0, 0), sensors_bus(0, 1, 0));
	assert_int_not_equal(sensors_bus(0, 1, 0), sensors_bus(0, 0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_sees_what),
		cmocka_unit_test(bounds),
		cmocka_unit_test(age),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
