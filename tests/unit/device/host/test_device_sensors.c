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
	struct gpu_work shares = {.known = true, .of[2] = {{30, 5}}}, shown;
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

	sensors_put(&s, 5, bus, &g, &shares);
	atomic_store(&s.taken, start);
	assert_true(sensors_get(&s, bus, start, &got));
	assert_int_equal(got.known, UINT32_MAX);
	assert_int_equal(got.value[QCU_SENSOR_busy], 7);
	assert_int_equal(sensors_shares(&s, bus, start + 20, &shown), 20);
	assert_true(shown.known);
	assert_memory_equal(shown.of, shares.of, sizeof(shares.of));
	sensors_shares(&s, bus, start + SENSORS_OLD_MS, &shown);
	assert_false(shown.known || shown.of[2].of[BUSY_KERNELS]);
	sensors_shares(NULL, bus, start, &shown);
	assert_false(shown.known);
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

/* ---- how busy sessions keep a GPU ---- */

static void clock_of_a_session(void **state)
{
	struct busy_time t = {0};

	(void)state;
	assert_int_equal(busy_spent(&t, 5000), 0);
	busy_begin(&t, 5000);
	assert_int_equal(busy_spent(&t, 5000), 0);
	assert_int_equal(busy_spent(&t, 5300), 300);
	busy_end(&t, 5400);
	assert_int_equal(busy_spent(&t, 9000), 400);
	busy_begin(&t, 10000);
	assert_int_equal(busy_spent(&t, 10001), 401);
	busy_end(&t, 10600);
	assert_int_equal(busy_spent(&t, 10600), 1000);
}

/* A mirror writes what it likes into its own clock. */
static void forged_clock(void **state)
{
	static const uint64_t forged[] = {0, 1, 2, 3, UINT64_MAX, UINT64_MAX - 1, 1ull << 63};
	struct busy_time t;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		atomic_store(&t.v, forged[i]);
		assert_in_range(busy_spent(&t, 5000), 0, 5000);
		busy_begin(&t, 5000);
		assert_in_range(busy_spent(&t, 6000), 1000, 6000);
		busy_end(&t, 6000);
		assert_in_range(busy_spent(&t, 7000), 1000, 6000);
	}
}

static void meter(void **state)
{
	struct busy_reading now_of[BUSY_SESSIONS] = {[1] = {11, {700000, 0}}, [2] = {22, {0, 9}}};
	const uint64_t start = 5000000, next = start + 200000;
	static struct busy_meter m;

	(void)state;
	assert_false(busy_measure(&m, now_of, start));
	/* Too short to tell. */
	now_of[1].spent[BUSY_KERNELS] += 1000;
	assert_false(busy_measure(&m, now_of, start + BUSY_LEAST_US - 1));
	now_of[1].spent[BUSY_KERNELS] += 49000;
	now_of[1].spent[BUSY_COPIES] += 400000;
	/* Another program has the session now. Another clock goes backwards. */
	now_of[2] = (struct busy_reading){23, {100000, 0}};
	now_of[3] = (struct busy_reading){33, {UINT64_MAX, UINT64_MAX}};
	assert_true(busy_measure(&m, now_of, next));
	assert_int_equal(m.taken, next);
	assert_int_equal(m.session[1].share.of[BUSY_KERNELS], 25);
	assert_int_equal(m.session[1].share.of[BUSY_COPIES], 100);
	assert_int_equal(m.session[2].share.of[BUSY_KERNELS], 50);
	assert_int_equal(m.session[3].share.of[BUSY_KERNELS], 100);
	now_of[3].spent[BUSY_KERNELS] = 0;
	/* The same shares for who asks again at once. */
	assert_true(busy_measure(&m, now_of, next + 1));
	assert_int_equal(m.taken, next);
	assert_true(busy_measure(&m, now_of, next + BUSY_LEAST_US));
	assert_int_equal(m.session[1].share.of[BUSY_KERNELS], 0);
	assert_int_equal(m.session[3].share.of[BUSY_KERNELS], 0);
	/* After a long pause it begins anew. */
	assert_false(busy_measure(&m, now_of, next + BUSY_LEAST_US + BUSY_MOST_US + 1));
	assert_true(busy_measure(&m, now_of, next + 2 * BUSY_LEAST_US + BUSY_MOST_US + 1));
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
		cmocka_unit_test(clock_of_a_session),
		cmocka_unit_test(forged_clock),
		cmocka_unit_test(meter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
