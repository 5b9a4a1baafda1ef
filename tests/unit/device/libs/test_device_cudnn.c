// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptors of cuDNN's backend API, which hold references to each other, with a cuDNN that only
 * counts them. How many references one holds is bounded; none ends while another one uses it; and
 * all are given back.
 */
#include <cudnn.h>

#include "include/qculib_cudnn.h"
#include "qcu-device/libs/cudnn.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HANDLE 2
#define CHILD  3
#define PARENT 4

static struct be_ops ops;
static unsigned int handles, descriptors, sets;
static int64_t elements;

static cudnnStatus_t create(cudnnHandle_t *handle)
{
	*handle = (cudnnHandle_t)&handles;
	handles++;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(cudnnHandle_t handle)
{
	assert_ptr_equal(handle, &handles);
	handles--;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type,
				       cudnnBackendDescriptor_t *descriptor)
{
	(void)type;
	*descriptor = malloc(1);
	assert_non_null(*descriptor);
	descriptors++;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor)
{
	free(descriptor);
	descriptors--;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
			 cudnnBackendAttributeType_t type, int64_t count, const void *array)
{
	void *const *element = array;
	int64_t i;

	assert_non_null(descriptor);
	assert_int_equal(name, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	assert_int_equal(type, CUDNN_TYPE_BACKEND_DESCRIPTOR);
	for (i = 0; i < count; i++)
		assert_true(element[i] && element[i] != descriptor);
	sets++;
	elements += count;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t other(void)
{
	fail_msg("a function that nobody called");
	return CUDNN_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be;
	(void)why;
	(void)size;
	assert_string_equal(soname, "libcudnn.so.9");
	return &ops;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct {
		const char *name;
		void *fn;
	} all[] = {
		{"cudnnCreate", (void *)create},
		{"cudnnDestroy", (void *)destroy},
		{"cudnnBackendCreateDescriptor", (void *)create_descriptor},
		{"cudnnBackendDestroyDescriptor", (void *)destroy_descriptor},
		{"cudnnBackendSetAttribute", (void *)set},
	};
	size_t i;

	(void)be;
	assert_ptr_equal(library, &ops);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return all[i].fn;
	return (void *)other;
}

static int native(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	*stream = s;
	return 0;
}

static int start(void **state)
{
	(void)state;
	fake_reset();
	handles = descriptors = sets = 0;
	elements = 0;
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	return mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops});
}

static int stop(void **state)
{
	return mirror_stop(state) || handles || descriptors;
}

/* ---- messages ---- */

static uint64_t words[QCU_CUDNN_ELEMENTS + 32];
static unsigned int count;

static void word(uint64_t w)
{
	assert_true(count < sizeof(words) / sizeof(words[0]));
	words[count++] = w;
}

/* Returns the mirror's status, or -1 if the library did not accept it. */
static int send(uint16_t function)
{
	struct qcu_lib_head head = {.args = 8 * (count - 1)};
	struct qcu_lib_answer answer = {0};
	struct qcu_seg seg = {(uintptr_t)words, 8 * count + sizeof(answer)};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = QCU_LIB_CUDNN,
			      .function = function);
	int rc;

	word(0);
	memcpy(words, &head, sizeof(head));
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&answer, words + count - 1, sizeof(answer));
	return rc ? rc : answer.status ? -1 : 0;
}

static int make_handle(void)
{
	count = 1;
	word(HANDLE);
	word(QCU_LIB_CUDNN_HANDLE);
	word(0);
	return send(QCU_LIB_CREATE);
}

/* An attribute with this descriptor, `times` times. 0 times: none at all. */
static int set_attribute(uint64_t of, bool there, uint64_t to, uint64_t times)
{
	count = 1;
	word(of);
	word(there);
	word(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	word(times > 0);
	if (times) {
		word(CUDNN_ATTR_OPERATIONGRAPH_OPS);
		word(CUDNN_TYPE_BACKEND_DESCRIPTOR);
		word(times);
		while (times--)
			word(to);
	}
	return send(lib_number_cudnnBackendSetAttribute);
}

static int end(uint64_t number)
{
	count = 1;
	word(number);
	return send(QCU_LIB_DESTROY);
}

/* ---- tests ---- */

static void wrong(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(set_attribute(PARENT, true, CHILD, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(set_attribute(CHILD, false, 0, 0), 0);
	/* Itself, a handle, nothing, and more at once than is allowed. */
	assert_int_equal(set_attribute(CHILD, true, CHILD, 1), QCU_ERR_InvalidValue);
	assert_int_equal(set_attribute(CHILD, true, HANDLE, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(set_attribute(CHILD, true, 77, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(set_attribute(PARENT, false, CHILD, QCU_CUDNN_ELEMENTS + 1),
			 QCU_ERR_InvalidValue);
	/* What was wrong has left no descriptor behind. */
	assert_int_equal(descriptors, 1);
	assert_int_equal(sets, 0);
}

static void bounded(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(set_attribute(CHILD, false, 0, 0), 0);
	assert_int_equal(set_attribute(PARENT, false, 0, 0), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(set_attribute(PARENT, true, CHILD, QCU_CUDNN_ELEMENTS), 0);
	assert_int_equal(elements, 8192);
	for (i = 0; i < 3; i++)
		assert_int_equal(set_attribute(PARENT, true, CHILD, 1), QCU_ERR_MemoryAllocation);
	assert_int_equal(sets, 2);
	/* The bound is each descriptor's own. */
	assert_int_equal(set_attribute(PARENT + 1, false, CHILD, 1), 0);
	assert_int_equal(end(PARENT + 1), 0);
}

static void used(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(set_attribute(CHILD, false, 0, 0), 0);
	assert_int_equal(set_attribute(PARENT, false, CHILD, 2), 0);
	assert_int_equal(end(CHILD), 0);
	assert_int_equal(descriptors, 2);
	assert_int_equal(set_attribute(PARENT, true, CHILD, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(end(PARENT), 0);
	assert_int_equal(descriptors, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(wrong), TEST(bounded), TEST(used)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
