// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptors of cuDNN's backend API, with a cuDNN that writes down what it gets. What could make
 * the real one follow an address of the guest's, or run its code, does not reach it. How many
 * references a descriptor holds is bounded; none ends while another one uses it; and all are given
 * back. An exception of the library ends the call, and nothing else.
 */
#include <unwind.h>

#include <cudnn.h>

#include "include/qculib_cudnn.h"
#include "qcu-device/libs/cudnn.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HANDLE 2
#define CHILD  3
#define PARENT 4
#define FIRST  10 /* of those that a test makes */

static struct be_ops ops;
static unsigned int handles, descriptors, sets, finalized, packs;
static int64_t elements, asked;
static bool throws;
/* Of the last execution. */
static int64_t ids[QCU_CUDNN_TENSORS];
static const void *addresses[QCU_CUDNN_TENSORS];
static int64_t id_count, address_count;
static unsigned int executions;

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
	*descriptor = malloc(1);
	assert_non_null(*descriptor);
	descriptors++;
	packs += type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor)
{
	free(descriptor);
	descriptors--;
	return CUDNN_STATUS_SUCCESS;
}

static void end_exception(_Unwind_Reason_Code why, struct _Unwind_Exception *exception)
{
	(void)why;
	free(exception);
}

/* As `throw` in C++. If nobody catches it, the process ends. */
static void throw_one(void)
{
	struct _Unwind_Exception *e = aligned_alloc(16, (sizeof(*e) + 15) & ~15ul);

	assert_non_null(e);
	memset(e, 0, sizeof(*e));
	e->exception_cleanup = end_exception;
	_Unwind_RaiseException(e);
	abort();
}

static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
			 cudnnBackendAttributeType_t type, int64_t count, const void *array)
{
	void *const *element = array;
	int64_t i;

	assert_non_null(descriptor);
	switch ((int)name) {
	case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
		memcpy(ids, array, (size_t)count * sizeof(ids[0]));
		id_count = count;
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
		memcpy(addresses, array, (size_t)count * sizeof(addresses[0]));
		address_count = count;
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
		return CUDNN_STATUS_SUCCESS;
	}
	assert_int_not_equal(type, CUDNN_TYPE_VOID_PTR);
	assert_int_not_equal(type, CUDNN_TYPE_CHAR);
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (i = 0; i < count; i++)
			assert_true(element[i] && element[i] != descriptor);
	sets++;
	elements += count;
	if (throws)
		throw_one();
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get(const cudnnBackendDescriptor_t descriptor,
			 cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
			 int64_t wanted, int64_t *count, void *array)
{
	(void)descriptor, (void)name, (void)type;
	asked = wanted;
	*count = 1;
	/* As cuDNN does with some numbers: more than it is asked for. */
	if (wanted && type == CUDNN_TYPE_INT64)
		memset(array, 77, 2 * sizeof(int64_t));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor)
{
	assert_non_null(descriptor);
	finalized++;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
			     cudnnBackendDescriptor_t pack)
{
	assert_ptr_equal(handle, &handles);
	assert_non_null(plan);
	assert_non_null(pack);
	executions++;
	if (throws)
		throw_one();
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream)
{
	(void)stream;
	assert_ptr_equal(handle, &handles);
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
		{"cudnnBackendGetAttribute", (void *)get},
		{"cudnnBackendFinalize", (void *)finalize},
		{"cudnnBackendExecute", (void *)execute},
		{"cudnnSetStream", (void *)set_stream},
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

/* The tests' addresses are nobody's memory. */
static bool any_address(struct be *be, uint64_t address, uint64_t len)
{
	(void)be, (void)address, (void)len;
	return true;
}

static int start(void **state)
{
	(void)state;
	fake_reset();
	handles = descriptors = sets = finalized = packs = executions = 0;
	elements = asked = id_count = address_count = 0;
	throws = false;
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	ops.mem_valid = any_address;
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

/* A descriptor of this type, of which nothing but `count` attributes follow. */
static void begin(uint64_t number, bool there, uint64_t type, uint64_t attributes)
{
	count = 1;
	word(number);
	word(there);
	word(type);
	word(attributes);
}

static void attribute(uint64_t name, uint64_t type, uint64_t elements_of_it)
{
	word(name);
	word(type);
	word(elements_of_it);
}

static int finish(uint64_t number, uint64_t type)
{
	begin(number, false, type, 0);
	return send(lib_number_cudnnBackendFinalize);
}

/* A finalized operation, to be used by others. */
static int make_child(void)
{
	return finish(CHILD, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
}

/* An attribute with this descriptor, `times` times. 0 times: none at all. */
static int set_attribute(uint64_t of, bool there, uint64_t to, uint64_t times)
{
	begin(of, there, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, times > 0);
	if (times) {
		attribute(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, times);
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

/* One number as an attribute of a new descriptor. */
static int set_number(uint64_t type, uint64_t name, uint64_t element_type, uint64_t value)
{
	begin(FIRST, false, type, 1);
	attribute(name, element_type, 1);
	word(value);
	return send(lib_number_cudnnBackendSetAttribute);
}

/* ---- tests ---- */

static void wrong(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(set_attribute(PARENT, true, CHILD, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(make_child(), 0);
	assert_int_equal(set_attribute(PARENT, false, 0, 0), 0);
	/* Itself, a handle, nothing, and more at once than is allowed. */
	assert_int_equal(set_attribute(PARENT, true, PARENT, 1), QCU_ERR_InvalidValue);
	assert_int_equal(set_attribute(PARENT, true, HANDLE, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(set_attribute(PARENT, true, 77, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(set_attribute(FIRST, false, CHILD, QCU_CUDNN_ELEMENTS + 1), -1);
	/* One that is not finalized, one of another type, and one that is finalized already. */
	assert_int_equal(set_attribute(FIRST, false, PARENT, 1), -1);
	assert_int_equal(finish(FIRST, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), 0);
	assert_int_equal(set_attribute(PARENT, true, FIRST, 1), -1);
	assert_int_equal(set_attribute(CHILD, true, CHILD, 1), -1);
	/* What was wrong has left no descriptor behind. */
	assert_int_equal(descriptors, 3);
	assert_int_equal(sets, 0);
}

/* None of it reaches the library. */
static void refused(void **state)
{
	static const struct {
		uint64_t of, name, type, value;
	} all[] = {
		/* cuDNN would take the guest's words for a vector of vectors. */
		{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES,
		 CUDNN_TYPE_VOID_PTR, 0x414141410000},
		{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES,
		 CUDNN_TYPE_VOID_PTR, 0x414141410000},
		{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
		 CUDNN_TYPE_INT64, 1},
		{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
		 CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, '{'},
		{CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION,
		 CUDNN_TYPE_CHAR, '{'},
		{CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
		 CUDNN_TYPE_CHAR, '{'},
		/* Another descriptor's; a type that is not this one's; no boolean. */
		{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1},
		{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_VOID_PTR,
		 0x414141410000},
		{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN,
		 2},
		/* What is only read; what nobody knows. */
		{CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64,
		 1},
		{CUDNN_BACKEND_TENSOR_DESCRIPTOR, 914, CUDNN_TYPE_VOID_PTR, 0x414141410000},
		{CUDNN_BACKEND_TENSOR_DESCRIPTOR, 1 + (1ull << 32) * 906, CUDNN_TYPE_INT64, 1},
		{1000, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1},
		{CUDNN_BACKEND_TENSOR_DESCRIPTOR + (1ull << 32), CUDNN_ATTR_TENSOR_UNIQUE_ID,
		 CUDNN_TYPE_INT64, 1},
	};
	size_t i;

	(void)state;
	assert_int_equal(make_handle(), 0);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_int_equal(set_number(all[i].of, all[i].name, all[i].type, all[i].value), -1);
	/* No element: cuDNN would read one all the same. */
	begin(FIRST, false, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 1);
	attribute(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0);
	assert_int_equal(send(lib_number_cudnnBackendSetAttribute), -1);
	/* A configuration without an engine, at which cuDNN looks all the same. */
	assert_int_equal(finish(FIRST, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR), -1);
	/* More dimensions than cuDNN has. */
	begin(FIRST, false, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 1);
	attribute(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, QCU_CUDNN_DIMS + 1);
	for (i = 0; i <= QCU_CUDNN_DIMS; i++)
		word(1);
	assert_int_equal(send(lib_number_cudnnBackendSetAttribute), -1);
	assert_int_equal(sets, 0);
	assert_int_equal(packs, 0);
	assert_int_equal(descriptors, 0);
	assert_int_equal(set_number(CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID,
				    CUDNN_TYPE_INT64, 1),
			 0);
	assert_int_equal(sets, 1);
}

/* A question, with room for as many numbers as it wants. */
static int question(uint64_t number, uint64_t name, uint64_t type, uint64_t wanted)
{
	const unsigned int answer = 8 + 8 * (unsigned int)wanted;
	uint64_t words_of[32];
	struct qcu_lib_head head;
	struct qcu_seg seg;
	struct qCUcmd c;
	struct qcu_lib_answer status;
	int rc;

	count = 1;
	word(number);
	word(name);
	word(type);
	word(wanted);
	word(0);
	word(QCU_LIB_ROOM);
	word(8);
	word(QCU_LIB_ROOM);
	word(wanted * qcu_cudnn_attribute_size(type));
	head = (struct qcu_lib_head){.args = 8 * (count - 1), .outs = answer};
	memcpy(words, &head, sizeof(head));
	memcpy(words_of, words, 8 * count);
	memset(words_of + count, 0, sizeof(words_of) - 8 * count);
	seg = (struct qcu_seg){(uintptr_t)words_of, 8 * count + sizeof(status) + answer};
	c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = QCU_LIB_CUDNN,
		.function = lib_number_cudnnBackendGetAttribute);
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&status, words_of + count, sizeof(status));
	return rc ? rc : status.status ? -1 : 0;
}

static void questions(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(finish(FIRST, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0);
	/* A text; an address; another descriptor's; another type. */
	assert_int_equal(question(FIRST, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
				  CUDNN_TYPE_CHAR, 8),
			 -1);
	assert_int_equal(question(FIRST, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
				  CUDNN_TYPE_VOID_PTR, 1),
			 -1);
	assert_int_equal(question(FIRST, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1), -1);
	assert_int_equal(
		question(FIRST, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT32, 1), -1);
	assert_int_equal(asked, 0);
	/* More than there can be: the library hears of no more than there are. */
	assert_int_equal(
		question(FIRST, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 4), 0);
	assert_int_equal(asked, 1);
	/* What the library writes behind one element is not in the answer. */
	assert_int_equal(
		question(FIRST, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1), 0);
}

/* ---- executions ---- */

/* A tensor with this id, finalized. Returns send()'s result. */
static int make_tensor(uint64_t number, int64_t id, bool by_value, uint64_t dim, uint64_t type)
{
	begin(number, false, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 4);
	attribute(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1);
	word((uint64_t)id);
	attribute(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1);
	word(type);
	attribute(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2);
	word(1);
	word(dim);
	attribute(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1);
	word(by_value);
	return send(lib_number_cudnnBackendFinalize);
}

/* A finalized descriptor that knows one other one. */
static int make_above(uint64_t number, uint64_t type, uint64_t name, uint64_t below)
{
	begin(number, false, type, 1);
	attribute(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
	word(below);
	return send(lib_number_cudnnBackendFinalize);
}

/* A plan of one operation: FIRST + 7. Its tensors are FIRST and FIRST + 1. */
static int make_plan(void)
{
	begin(FIRST + 2, false, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 2);
	attribute(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
	word(FIRST);
	attribute(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
	word(FIRST + 1);
	assert_int_equal(send(lib_number_cudnnBackendFinalize), 0);
	assert_int_equal(make_above(FIRST + 3, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
				    CUDNN_ATTR_OPERATIONGRAPH_OPS, FIRST + 2),
			 0);
	assert_int_equal(make_above(FIRST + 4, CUDNN_BACKEND_ENGINE_DESCRIPTOR,
				    CUDNN_ATTR_ENGINE_OPERATION_GRAPH, FIRST + 3),
			 0);
	assert_int_equal(make_above(FIRST + 5, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
				    CUDNN_ATTR_ENGINECFG_ENGINE, FIRST + 4),
			 0);
	return make_above(FIRST + 7, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
			  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, FIRST + 5);
}

/* Executes the plan with two tensors, whose ids are 100 and `id`, in these forms. */
static int run_plan(uint64_t plan, uint64_t form_100, uint64_t id, uint64_t form)
{
	count = 1;
	word(HANDLE);
	word(1);
	word(0);
	word(plan);
	word(0x7000);
	word(2);
	word(100);
	word(form_100);
	if (form_100 != QCU_LIB_HOST)
		word(0x1000);
	if (form_100 != QCU_LIB_DEVICE) {
		word(111);
		word(0);
	}
	word(id);
	word(form);
	if (form != QCU_LIB_HOST)
		word(0x414141410000);
	if (form != QCU_LIB_DEVICE) {
		word(222);
		word(0);
	}
	return send(lib_number_cudnnBackendExecute);
}

/* cuDNN reads host memory where a tensor is by value, so the address there is never the guest's. */
static void by_value(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	/* More than the value that travels. */
	assert_int_equal(make_tensor(FIRST, 100, true, 64, CUDNN_DATA_FLOAT), -1);
	assert_int_equal(make_tensor(FIRST, 100, true, 1, CUDNN_DATA_INT8x32), -1);
	assert_int_equal(make_tensor(FIRST, 100, false, 64, CUDNN_DATA_FLOAT), 0);
	assert_int_equal(make_tensor(FIRST + 1, 101, true, 1, CUDNN_DATA_FLOAT), 0);
	/* Not a plan; not finalized. */
	assert_int_equal(run_plan(FIRST, QCU_LIB_DEVICE, 101, QCU_LIB_HOST), -1);
	assert_int_equal(make_plan(), 0);
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_DEVICE, 101, QCU_LIB_DEVICE),
			 QCU_ERR_InvalidValue);
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_HOST, 101, QCU_LIB_HOST),
			 QCU_ERR_InvalidValue);
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_DEVICE, 101, QCU_LIB_ROOM),
			 QCU_ERR_InvalidValue);
	assert_int_equal(executions, 0);

	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_DEVICE, 101, QCU_LIB_HOST), 0);
	assert_int_equal(executions, 1);
	assert_int_equal(id_count, 2);
	assert_int_equal(address_count, 2);
	assert_ptr_equal(addresses[0], 0x1000);
	assert_ptr_not_equal(addresses[1], 0x414141410000);
	/* Pinned memory: both. */
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_BOTH, 101, QCU_LIB_BOTH), 0);
	assert_ptr_equal(addresses[0], 0x1000);
	assert_ptr_not_equal(addresses[1], 0x414141410000);
	/* Of a tensor that the plan does not have, cuDNN hears nothing. */
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_DEVICE, 102, QCU_LIB_DEVICE), 0);
	assert_int_equal(id_count, 1);
	assert_int_equal(address_count, 1);
	assert_int_equal(ids[0], 100);
	assert_int_equal(executions, 3);
}

/* An id of two tensors, of which one is a value. */
static void ambiguous(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(make_tensor(FIRST, 100, false, 64, CUDNN_DATA_FLOAT), 0);
	assert_int_equal(make_tensor(FIRST + 1, 100, true, 1, CUDNN_DATA_FLOAT), 0);
	assert_int_equal(make_plan(), -1);
}

/* Returns what finalizing says. Two inputs of two dimensions. */
static int make_concat(uint64_t axis, uint64_t inplace)
{
	begin(FIRST + 2, false, CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, 4);
	attribute(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2);
	word(FIRST);
	word(FIRST);
	attribute(CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1);
	word(FIRST + 1);
	attribute(CUDNN_ATTR_OPERATION_CONCAT_AXIS, CUDNN_TYPE_INT64, 1);
	word(axis);
	attribute(CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, CUDNN_TYPE_INT64, 1);
	word(inplace);
	return send(lib_number_cudnnBackendFinalize);
}

/* cuDNN uses them as an index, whatever they are. */
static void indices(void **state)
{
	static const uint64_t wrong_axis[] = {UINT64_MAX, 2, 8, 1ull << 40, 1ull << 63};
	static const uint64_t wrong_index[] = {2, 1ull << 40, 1ull << 63, UINT64_MAX - 1};
	size_t i;

	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(make_tensor(FIRST, 100, false, 64, CUDNN_DATA_FLOAT), 0);
	assert_int_equal(make_tensor(FIRST + 1, 101, false, 128, CUDNN_DATA_FLOAT), 0);
	for (i = 0; i < sizeof(wrong_axis) / sizeof(wrong_axis[0]); i++)
		assert_int_equal(make_concat(wrong_axis[i], 0), -1);
	for (i = 0; i < sizeof(wrong_index) / sizeof(wrong_index[0]); i++)
		assert_int_equal(make_concat(1, wrong_index[i]), -1);
	assert_int_equal(finalized, 2);
	assert_int_equal(make_concat(1, 1), 0);
}

/* The lock, the references and the memory of a call that ends with an exception are given back. */
static void thrown(void **state)
{
	(void)state;
	assert_int_equal(make_handle(), 0);
	throws = true;
	assert_int_equal(make_tensor(FIRST, 100, false, 64, CUDNN_DATA_FLOAT), QCU_ERR_Unknown);
	assert_int_equal(descriptors, 0);
	throws = false;
	assert_int_equal(make_tensor(FIRST, 100, false, 64, CUDNN_DATA_FLOAT), 0);
	assert_int_equal(make_tensor(FIRST + 1, 101, true, 1, CUDNN_DATA_FLOAT), 0);
	assert_int_equal(make_plan(), 0);
	throws = true;
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_DEVICE, 101, QCU_LIB_HOST), QCU_ERR_Unknown);
	throws = false;
	assert_int_equal(run_plan(FIRST + 7, QCU_LIB_DEVICE, 101, QCU_LIB_HOST), 0);
	assert_int_equal(executions, 2);
}

static void bounded(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(make_child(), 0);
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
	assert_int_equal(make_child(), 0);
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
	const struct CMUnitTest tests[] = {TEST(wrong),	   TEST(refused),   TEST(questions),
					   TEST(by_value), TEST(ambiguous), TEST(indices),
					   TEST(bounded),  TEST(used),	    TEST(thrown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
