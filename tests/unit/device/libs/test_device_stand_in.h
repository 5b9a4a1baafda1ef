/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library that has every function, and only counts the calls; and messages to it. A test may give
 * functions of its own for some names.
 */
#ifndef TEST_DEVICE_STAND_IN_H
#define TEST_DEVICE_STAND_IN_H

#include "qcu-device/libs/libs.h"
#include "tests/unit/device/libs/test_device_addresses.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

static struct be_ops ops;
static unsigned int calls, objects;

static int stand_in_create(void **object)
{
	*object = malloc(1);
	assert_non_null(*object);
	objects++;
	return 0;
}

static int stand_in_destroy(void *object)
{
	free(object);
	objects--;
	return 0;
}

static int stand_in_set(void)
{
	return 0;
}

static int stand_in_other(void)
{
	calls++;
	return 0;
}

/* A function of the test's own, or NULL. */
static void *own_function(const char *name);

static void *open_stand_in(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be;
	(void)soname;
	(void)why;
	(void)size;
	return &ops;
}

static void *symbol_of_stand_in(struct be *be, void *library, const char *name)
{
	void *own = own_function(name);

	(void)be;
	assert_ptr_equal(library, &ops);
	if (own)
		return own;
	if (strstr(name, "Create"))
		return (void *)stand_in_create;
	if (strstr(name, "Destroy"))
		return (void *)stand_in_destroy;
	return strstr(name, "SetStream") || strstr(name, "SetPointerMode") ? (void *)stand_in_set
									   : (void *)stand_in_other;
}

static int native_of_stand_in(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	*stream = s;
	return 0;
}

static int start(void **state)
{
	(void)state;
	fake_reset();
	calls = objects = 0;
	ops = fake_ops;
	ops.lib_open = open_stand_in;
	ops.lib_symbol = symbol_of_stand_in;
	ops.native = native_of_stand_in;
	ops.mem_valid = low_address_valid;
	return mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops});
}

static int stop(void **state)
{
	return mirror_stop(state) || objects;
}

/* ---- messages ---- */

static uint64_t words[1 << 16];
static unsigned int count;
static uint32_t outs;

static void begin(void)
{
	count = 1; /* the head */
	outs = 0;
}

static void word(uint64_t w)
{
	assert_true(count < sizeof(words) / sizeof(words[0]));
	words[count++] = w;
}

static void object(uint64_t number)
{
	word(number);
	word(1);
	word(0);
}

/* An array that the library reads: ones. */
static void array_of(uint64_t len)
{
	uint64_t i;

	word(QCU_LIB_HOST);
	word(len);
	for (i = 0; i < len; i += 8)
		word(0x0000000100000001);
}

static void room_of(uint64_t len)
{
	word(QCU_LIB_ROOM);
	word(len);
	outs += (uint32_t)((len + 7) & ~7ull);
}

static uint16_t number(const struct lib_library *lib, const char *name)
{
	uint16_t i = 0;

	while (strcmp(lib->functions[i].name, name) != 0)
		assert_true(++i < lib->count);
	return i;
}

/* Returns the mirror's status, or -1 if the library did not accept the call. */
static int send_to(uint16_t library, uint16_t function)
{
	struct qcu_lib_head head = {.args = 8 * (count - 1), .outs = outs};
	struct qcu_lib_answer answer = {0};
	struct qcu_seg seg = {(uintptr_t)words, 8 * count + sizeof(answer) + outs};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = library,
			      .function = function);
	int rc;

	assert_true(seg.len <= sizeof(words));
	memcpy(words, &head, sizeof(head));
	memset(words + count, 0, sizeof(answer) + outs);
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&answer, words + count, sizeof(answer));
	return rc ? rc : answer.status ? -1 : 0;
}

static void make_object(uint16_t library, uint64_t number_of, uint32_t kind)
{
	begin();
	word(number_of);
	word(kind);
	word(0);
	assert_int_equal(send_to(library, QCU_LIB_CREATE), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

#endif
