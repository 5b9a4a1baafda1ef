// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of attributes of cuDNN's backend API against NVIDIA's own library, which needs no GPU
 * for this: each attribute has the type that the library wants; what the table leaves out does not
 * reach the library; and answers end where their room ends.
 */
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>

#include "include/qculib_cudnn.h"
#include "qcu-device/libs/cudnn.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define TENSOR 10

static struct be_ops ops;
static void *cudnn;

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be, (void)soname, (void)why, (void)size;
	return cudnn;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	(void)be;
	return dlsym(library, name);
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
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	return mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops});
}

/* ---- messages ---- */

static uint64_t words[64];
static unsigned int count, outs;

static void word(uint64_t w)
{
	assert_true(count < 48);
	words[count++] = w;
}

static void begin(void)
{
	count = 1;
	outs = 0;
}

/* Returns the mirror's status, or the negative one of the library. */
static int send(uint16_t function, uint64_t *answers)
{
	struct qcu_lib_head head = {.args = 8 * (count - 1), .outs = outs};
	struct qcu_seg seg = {(uintptr_t)words, 8 * count + sizeof(struct qcu_lib_answer) + outs};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = QCU_LIB_CUDNN,
			      .function = function);
	struct qcu_lib_answer answer;
	int rc;

	memcpy(words, &head, sizeof(head));
	memset(words + count, 0, sizeof(words) - 8 * count);
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&answer, words + count, sizeof(answer));
	if (answers)
		memcpy(answers, words + count + 1, outs);
	return rc ? rc : -answer.status;
}

/* A new descriptor with one attribute of one element. */
static int set_one(uint64_t of, uint64_t name, uint64_t type, uint64_t element)
{
	begin();
	word(2);
	word(0);
	word(of);
	word(1);
	word(name);
	word(type);
	word(1);
	word(element);
	return send(lib_number_cudnnBackendSetAttribute, NULL);
}

static int make_tensor(void)
{
	static const struct {
		uint64_t name, type, count, element[4];
	} all[] = {
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, {77}},
		{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, {CUDNN_DATA_FLOAT}},
		{CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, {2, 3, 4, 5}},
		{CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, {60, 20, 5, 1}},
		{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, {16}},
	};
	size_t i, k;

	begin();
	word(TENSOR);
	word(0);
	word(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	word(5);
	for (i = 0; i < 5; i++) {
		word(all[i].name);
		word(all[i].type);
		word(all[i].count);
		for (k = 0; k < all[i].count; k++)
			word(all[i].element[k]);
	}
	return send(lib_number_cudnnBackendFinalize, NULL);
}

static int question(uint64_t name, uint64_t wanted, uint64_t *answers)
{
	begin();
	word(TENSOR);
	word(name);
	word(CUDNN_TYPE_INT64);
	word(wanted);
	word(0);
	word(QCU_LIB_ROOM);
	word(8);
	word(QCU_LIB_ROOM);
	word(8 * wanted);
	outs = 8 + 8 * (unsigned int)wanted;
	return send(lib_number_cudnnBackendGetAttribute, answers);
}

/* ---- tests ---- */

/* With the real library, these read memory at the address of the guest's. */
static void refused(void **state)
{
	const uint64_t at = 0x414141410000;

	(void)state;
	assert_int_equal(set_one(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
				 CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR, at),
			 -CUDNN_STATUS_NOT_SUPPORTED);
	assert_int_equal(set_one(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
				 CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR, at),
			 -CUDNN_STATUS_NOT_SUPPORTED);
	/* It would follow a null pointer. */
	begin();
	word(2);
	word(0);
	word(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	word(0);
	assert_int_equal(send(lib_number_cudnnBackendFinalize, NULL), -CUDNN_STATUS_BAD_PARAM);
}

static void answers(void **state)
{
	uint64_t a[1 + QCU_CUDNN_DIMS];

	(void)state;
	assert_int_equal(make_tensor(), 0);
	assert_int_equal(question(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, a), 0);
	assert_int_equal(a[0], 1);
	assert_int_equal(a[1], 77);
	/* The library writes 16 bytes here. */
	assert_int_equal(question(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 1, a), 0);
	assert_int_equal(question(CUDNN_ATTR_TENSOR_DIMENSIONS, QCU_CUDNN_DIMS, a), 0);
	assert_int_equal(a[0], 4);
	assert_int_equal(a[1], 2);
	assert_int_equal(a[4], 5);
}

/* The library is asked itself, with zeros: of a wrong type it says so first. */
static void types(void **state)
{
	__typeof__(&cudnnBackendCreateDescriptor) create = NULL;
	__typeof__(&cudnnBackendDestroyDescriptor) destroy = NULL;
	__typeof__(&cudnnBackendSetAttribute) set = NULL;
	static const uint64_t zeros[512];
	unsigned int of, name, type, found = 0;

	(void)state;
	*(void **)&create = dlsym(cudnn, "cudnnBackendCreateDescriptor");
	*(void **)&destroy = dlsym(cudnn, "cudnnBackendDestroyDescriptor");
	*(void **)&set = dlsym(cudnn, "cudnnBackendSetAttribute");
	assert_true(create && destroy && set);
	for (of = 0; of < 64; of++) {
		cudnnBackendDescriptor_t d = NULL;

		if (!lib_cudnn_descriptor(of))
			continue;
		assert_int_equal(create((cudnnBackendDescriptorType_t)of, &d), 0);
		for (name = 0; name < 3000; name++)
			for (type = 0; type < 31; type++) {
				if (!lib_cudnn_attribute(of, name, type, LIB_SET))
					continue;
				found++;
				assert_int_not_equal(set(d, (cudnnBackendAttributeName_t)name,
							 (cudnnBackendAttributeType_t)type, 1,
							 zeros),
						     CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
			}
		destroy(d);
	}
	assert_true(found > 250);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, mirror_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(refused), TEST(answers), TEST(types)};

	cudnn = dlopen("libcudnn.so.9", RTLD_NOW);
	if (!cudnn)
		cudnn = dlopen("/usr/local/cuda/lib64/libcudnn.so.9", RTLD_NOW);
	if (!cudnn) {
		puts("no libcudnn.so.9 on this machine");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
