// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls of cuDNN that the mirror unpacks by hand: its backend API, and few others. */
#include <cudnn.h>
#include <string.h>

#include "include/qculib_cudnn.h"
#include "tests/fuzz/libs/worker.h"

void fuzz_hand_cudnnGetVersion(struct fuzz_call *f);
void fuzz_hand_cudnnGetMaxDeviceVersion(struct fuzz_call *f);
void fuzz_hand_cudnnGetCudartVersion(struct fuzz_call *f);
void fuzz_hand_cudnnGetLastErrorString(struct fuzz_call *f);
void fuzz_hand_cudnnSetDropoutDescriptor(struct fuzz_call *f);
void fuzz_hand_cudnnRestoreDropoutDescriptor(struct fuzz_call *f);
void fuzz_hand_cudnnGetRNNWeightParams(struct fuzz_call *f);
void fuzz_hand_cudnnGetCTCLossWorkspaceSize(struct fuzz_call *f);
void fuzz_hand_cudnnCTCLoss(struct fuzz_call *f);
void fuzz_hand_cudnnBackendSetAttribute(struct fuzz_call *f);
void fuzz_hand_cudnnBackendGetAttribute(struct fuzz_call *f);
void fuzz_hand_cudnnBackendFinalize(struct fuzz_call *f);
void fuzz_hand_cudnnBackendExecute(struct fuzz_call *f);
void fuzz_hand_cudnnBackendCreateDescriptor(struct fuzz_call *f);
void fuzz_hand_cudnnBackendDestroyDescriptor(struct fuzz_call *f);

/* Made by scripts/shims/generate. */
extern const uint64_t fuzz_cudnn_cudnnBackendAttributeName_t[];
extern const unsigned int fuzz_cudnn_cudnnBackendAttributeName_t_count;

static uint32_t below(struct fuzz_call *f, uint32_t n)
{
	return fuzz_random(&f->random, n);
}

void fuzz_hand_cudnnGetVersion(struct fuzz_call *f)
{
	fuzz_out(f, sizeof(size_t));
}

void fuzz_hand_cudnnGetMaxDeviceVersion(struct fuzz_call *f)
{
	fuzz_out(f, sizeof(size_t));
}

void fuzz_hand_cudnnGetCudartVersion(struct fuzz_call *f)
{
	fuzz_out(f, sizeof(size_t));
}

void fuzz_hand_cudnnGetLastErrorString(struct fuzz_call *f)
{
	fuzz_out(f, 1 + below(f, 300));
}

static void dropout(struct fuzz_call *f)
{
	fuzz_word(f, fuzz_real(f));
	fuzz_device(f, false);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 64) : 4u << 20);
	fuzz_word(f, below(f, 100));
}

void fuzz_hand_cudnnSetDropoutDescriptor(struct fuzz_call *f)
{
	fuzz_object(f, QCU_LIB_CUDNN_HANDLE);
	dropout(f);
}

void fuzz_hand_cudnnRestoreDropoutDescriptor(struct fuzz_call *f)
{
	fuzz_descriptor(f, QCU_LIB_CUDNN_DROPOUT);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 64) : 1);
	fuzz_word(f,
		  fuzz_is_odd(f) ? fuzz_number(f, 16) : fuzz_world.object[QCU_LIB_CUDNN_HANDLE][0]);
	dropout(f);
}

void fuzz_hand_cudnnGetRNNWeightParams(struct fuzz_call *f)
{
	fuzz_object(f, QCU_LIB_CUDNN_HANDLE);
	fuzz_descriptor(f, QCU_LIB_CUDNN_RNN);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : below(f, 3));
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 64) : 1u << 20);
	fuzz_device(f, false);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : below(f, 8));
	fuzz_out(f, 2 * sizeof(struct qcu_cudnn_weights));
}

/* Mostly of one label of `usual` letters, for a batch of one. */
static void labels(struct fuzz_call *f)
{
	const uint32_t letters = 1 + below(f, 4), batch = fuzz_is_odd(f) ? below(f, 4) : 1;
	int length[4] = {0}, input[4] = {0}, label[16] = {0};
	uint32_t i;

	for (i = 0; i < batch; i++) {
		length[i] = fuzz_is_odd(f) ? (int)fuzz_number(f, 32) : (int)letters;
		input[i] = fuzz_is_odd(f) ? (int)fuzz_number(f, 32) : (int)below(f, 8);
	}
	for (i = 0; i < letters * batch; i++)
		label[i] = fuzz_is_odd(f) ? (int)fuzz_number(f, 32) : (int)below(f, 3);
	fuzz_in_bytes(f, label, letters * batch * sizeof(int));
	fuzz_in_bytes(f, length, batch * sizeof(int));
	fuzz_in_bytes(f, input, batch * sizeof(int));
}

void fuzz_hand_cudnnGetCTCLossWorkspaceSize(struct fuzz_call *f)
{
	fuzz_object(f, QCU_LIB_CUDNN_HANDLE);
	fuzz_descriptor(f, QCU_LIB_CUDNN_TENSOR);
	fuzz_descriptor(f, QCU_LIB_CUDNN_TENSOR);
	labels(f);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : below(f, 2));
	fuzz_descriptor(f, QCU_LIB_CUDNN_CTC_LOSS);
	fuzz_out(f, sizeof(size_t));
}

void fuzz_hand_cudnnCTCLoss(struct fuzz_call *f)
{
	fuzz_object(f, QCU_LIB_CUDNN_HANDLE);
	fuzz_descriptor(f, QCU_LIB_CUDNN_TENSOR);
	fuzz_device(f, false);
	labels(f);
	fuzz_device(f, false);
	fuzz_descriptor(f, QCU_LIB_CUDNN_TENSOR);
	fuzz_device(f, false);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : below(f, 2));
	fuzz_descriptor(f, QCU_LIB_CUDNN_CTC_LOSS);
	fuzz_device(f, false);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 64) : 1u << 20);
}

/* ---- the backend API ---- */

#define ANY (-1)

/*
 * Attributes that make a descriptor of a type complete: the attribute, its elements' type and their
 * number (0: as many as there are dimensions). `of`: the type of a descriptor; or a value.
 */
struct recipe {
	int16_t type;
	uint16_t name;
	uint8_t element, count;
	int16_t of;
	bool may_miss;
};

#define OBJECT CUDNN_TYPE_BACKEND_DESCRIPTOR
#define INT    CUDNN_TYPE_INT64
#define TENSOR CUDNN_BACKEND_TENSOR_DESCRIPTOR
#define FLOATS CUDNN_TYPE_DATA_TYPE

static const struct recipe recipes[] = {
	{TENSOR, CUDNN_ATTR_TENSOR_DATA_TYPE, FLOATS, 1, CUDNN_DATA_FLOAT, false},
	{TENSOR, CUDNN_ATTR_TENSOR_DIMENSIONS, INT, 0, 8, false},
	{TENSOR, CUDNN_ATTR_TENSOR_STRIDES, INT, 0, ANY, false},
	{TENSOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, INT, 1, ANY, false},
	{TENSOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, INT, 1, 16, false},
	{TENSOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 0, true},
	{TENSOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, true},
	{TENSOR, CUDNN_ATTR_TENSOR_VECTOR_COUNT, INT, 1, 1, true},
	{TENSOR, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, INT, 1, 1, true},
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
	 1, CUDNN_POINTWISE_RELU_FWD, false},
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, FLOATS, 1,
	 CUDNN_DATA_FLOAT, false},
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP,
	 CUDNN_TYPE_DOUBLE, 1, 0, true},
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, INT, 1, 1, true},
	{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
	 OBJECT, 1, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, false},
	{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, OBJECT,
	 1, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, OBJECT,
	 1, TENSOR, true},
	{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, OBJECT,
	 1, TENSOR, false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, INT, 1, 2,
	 false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, FLOATS, 1,
	 CUDNN_DATA_FLOAT, false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
	 CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, INT, 2, 0,
	 false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, INT, 2, 0,
	 false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, INT, 2, 1, false},
	{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, INT, 2, 1,
	 false},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, OBJECT, 1,
	 CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, false},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, OBJECT, 1, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, OBJECT, 1, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, OBJECT, 1, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 0, false},
	{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 0, false},
	{CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, FLOATS, 1, CUDNN_DATA_FLOAT,
	 false},
	{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC, OBJECT, 1,
	 TENSOR, false},
	{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC, OBJECT, 1,
	 TENSOR, false},
	{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC, OBJECT, 1,
	 TENSOR, false},
	{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, OBJECT, 1,
	 CUDNN_BACKEND_MATMUL_DESCRIPTOR, false},
	{CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
	 CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 0, false},
	{CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, FLOATS, 1,
	 CUDNN_DATA_FLOAT, false},
	{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, OBJECT,
	 1, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, OBJECT,
	 1, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC, OBJECT,
	 1, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, false},
	{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, OBJECT, 1,
	 TENSOR, false},
	{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, OBJECT, 1,
	 TENSOR, false},
	{CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONCAT_AXIS, INT, 1, 1,
	 false},
	{CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, OBJECT,
	 2, TENSOR, false},
	{CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, OBJECT,
	 1, TENSOR, false},
	{CUDNN_BACKEND_RNG_DESCRIPTOR, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1,
	 1, false},
	{CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, CUDNN_ATTR_OPERATION_RNG_YDESC, OBJECT, 1, TENSOR,
	 false},
	{CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, CUDNN_ATTR_OPERATION_RNG_SEED, INT, 1, 5, false},
	{CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, CUDNN_ATTR_OPERATION_RNG_DESC, OBJECT, 1,
	 CUDNN_BACKEND_RNG_DESCRIPTOR, false},
	{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
	 CUDNN_TYPE_HANDLE, 1, 0, false},
	{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, OBJECT, 1,
	 CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, false},
	{CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, OBJECT, 1,
	 CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, false},
	{CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, INT, 1, 0, false},
	{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, OBJECT, 1,
	 CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, false},
	{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
	 CUDNN_HEUR_MODE_A, false},
	{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, OBJECT, 1,
	 CUDNN_BACKEND_ENGINE_DESCRIPTOR, false},
	{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, OBJECT, 1,
	 CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, true},
	{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
	 CUDNN_TYPE_KNOB_TYPE, 1, 2, false},
	{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, INT, 1, 1, false},
	{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
	 CUDNN_TYPE_HANDLE, 1, 0, false},
	{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, OBJECT,
	 1, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, false},
	/* What no program sends. */
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, INT, 1, ANY,
	 true},
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
	 CUDNN_TYPE_VOID_PTR, 1, ANY, true},
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES,
	 CUDNN_TYPE_VOID_PTR, 1, ANY, true},
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES,
	 CUDNN_TYPE_VOID_PTR, 1, ANY, true},
	{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
	 CUDNN_TYPE_CHAR, 40, ANY, true},
	{CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION,
	 CUDNN_TYPE_CHAR, 40, ANY, true},
};

#define RECIPES (sizeof(recipes) / sizeof(recipes[0]))
#define NAMES	fuzz_cudnn_cudnnBackendAttributeName_t_count

static unsigned int dims_of(struct fuzz_call *f)
{
	return f->usual & 1 ? 3 : 4;
}

static uint64_t one_element(struct fuzz_call *f, const struct recipe *r, unsigned int i,
			    unsigned int self)
{
	static const uint64_t strides[2][4] = {{256, 64, 8, 1}, {64, 8, 1, 1}};
	static const uint64_t four[4] = {2, 4, 8, 8}, three[4] = {2, 8, 8, 1};
	const bool is_three = dims_of(f) == 3;

	if (r->element == CUDNN_TYPE_HANDLE)
		return fuzz_is_odd(f) ? fuzz_number(f, 16)
				      : fuzz_world.object[QCU_LIB_CUDNN_HANDLE][0];
	if (r->element == OBJECT)
		return fuzz_is_odd(f) ? fuzz_backend_pick(f, ANY, false)
				      : fuzz_backend_pick(f, r->of, true);
	if (r->element == CUDNN_TYPE_VOID_PTR)
		return fuzz_address(f, false);
	if (r->element == CUDNN_TYPE_DOUBLE)
		return fuzz_real(f);
	if (fuzz_is_odd(f))
		return fuzz_number(f, 64);
	if (r->name == CUDNN_ATTR_TENSOR_UNIQUE_ID)
		return self;
	if (r->name == CUDNN_ATTR_TENSOR_DIMENSIONS)
		return is_three ? three[i % 4] : four[i % 4];
	if (r->name == CUDNN_ATTR_TENSOR_STRIDES)
		return strides[is_three][i % 4];
	if (r->element == FLOATS && !below(f, 8))
		return below(f, 12);
	if (r->element == CUDNN_TYPE_POINTWISE_MODE ||
	    r->element == CUDNN_TYPE_REDUCTION_OPERATOR_TYPE)
		return below(f, 40);
	return r->of == ANY ? below(f, 64) : (uint64_t)r->of;
}

static void attribute(struct fuzz_call *f, const struct recipe *r, unsigned int self)
{
	const uint64_t size = qcu_cudnn_attribute_size(r->element);
	uint64_t count = r->count ? r->count : dims_of(f), i, said;
	uint8_t bytes[1024] = {0};

	if (fuzz_is_odd(f) && !below(f, 4))
		count = below(f, 2) ? below(f, 12) : fuzz_number(f, 64);
	said = count;
	if (count > sizeof(bytes) / 16)
		count = sizeof(bytes) / 16;
	for (i = 0; i < count; i++) {
		uint64_t value = one_element(f, r, (unsigned int)i, self);
		float real = 1;

		if (r->element == CUDNN_TYPE_FLOAT)
			memcpy(&bytes[i * 4], &real, 4);
		else
			memcpy(&bytes[i * (size ? size : 4)], &value, size && size < 8 ? size : 8);
	}
	fuzz_word(f, r->name);
	fuzz_word(f, r->element);
	fuzz_word(f, said);
	fuzz_bytes(f, bytes, count * size);
}

static void random_attribute(struct fuzz_call *f, unsigned int self)
{
	struct recipe r = {
		.name = (uint16_t)fuzz_cudnn_cudnnBackendAttributeName_t[below(f, NAMES)],
		.element = (uint8_t)below(f, 31),
		.count = (uint8_t)(1 + below(f, 8)),
		.of = (int16_t)below(f, 44),
	};

	if (!below(f, 4))
		r.name = (uint16_t)below(f, 3000);
	attribute(f, &r, self);
}

/* Attributes of this type; how many. */
static void attributes(struct fuzz_call *f, int type, unsigned int self)
{
	const bool mixed = f->mood == FUZZ_WILD && below(f, 2);
	unsigned int at = f->used, n = 0;
	size_t i;

	fuzz_word(f, 0);
	for (i = 0; i < RECIPES; i++) {
		if (recipes[i].type != type)
			continue;
		if (recipes[i].may_miss ? below(f, 6) : fuzz_is_odd(f) && !below(f, 4))
			continue;
		attribute(f, &recipes[i], self);
		n++;
	}
	while (mixed && n < 8 && below(f, 4)) {
		random_attribute(f, self);
		n++;
	}
	if (fuzz_is_odd(f) && !below(f, 16))
		n = (unsigned int)fuzz_number(f, 32);
	if (!f->overflow)
		f->words[at] = n;
}

static void update(struct fuzz_call *f, bool final)
{
	int type = below(f, 6) ? recipes[below(f, RECIPES)].type : (int)below(f, 44);
	unsigned int number, i;
	bool there = !below(f, 12);

	if (fuzz_is_odd(f) && !below(f, 8))
		type = (int)fuzz_number(f, 32);
	number = there ? fuzz_backend_pick(f, ANY, false) : fuzz_backend_new(f);
	for (i = 0; i < FUZZ_BACKENDS && !there; i++)
		if (fuzz_world.backend[i].coming) {
			fuzz_world.backend[i].type = (uint16_t)type;
			fuzz_world.backend[i].final = final;
		}
	fuzz_word(f, number);
	fuzz_word(f, there);
	fuzz_word(f, (uint64_t)type);
	attributes(f, type, number);
}

void fuzz_hand_cudnnBackendSetAttribute(struct fuzz_call *f)
{
	update(f, false);
}

void fuzz_hand_cudnnBackendFinalize(struct fuzz_call *f)
{
	update(f, true);
}

/* Questions: those that a program asks on its way to a plan, or any. */
static void question(struct fuzz_call *f, uint64_t name, uint64_t element, uint64_t wanted,
		     int made)
{
	const uint64_t size = qcu_cudnn_attribute_size(element);
	uint64_t i, count = element == OBJECT ? wanted : 0;
	unsigned int n;

	fuzz_word(f, name);
	fuzz_word(f, element);
	fuzz_word(f, fuzz_is_odd(f) && !below(f, 8) ? fuzz_number(f, 64) : wanted);
	fuzz_word(f, count);
	for (i = 0; i < count; i++) {
		unsigned int number = fuzz_backend_new(f);

		fuzz_word(f, number);
		fuzz_word(f, 0);
		fuzz_word(f, (uint64_t)made);
	}
	for (n = 0; n < FUZZ_BACKENDS && count; n++)
		if (fuzz_world.backend[n].coming) {
			fuzz_world.backend[n].type = (uint16_t)made;
			fuzz_world.backend[n].final = true;
		}
	fuzz_out(f, sizeof(int64_t));
	if (element == OBJECT)
		fuzz_word(f, QCU_LIB_NULL);
	else
		fuzz_out(f, wanted * size);
}

void fuzz_hand_cudnnBackendGetAttribute(struct fuzz_call *f)
{
	const struct recipe *r = &recipes[below(f, RECIPES)];
	unsigned int number;

	switch (below(f, 5)) {
	case 0:
		fuzz_word(f, fuzz_backend_pick(f, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, true));
		question(f, CUDNN_ATTR_ENGINEHEUR_RESULTS, OBJECT, 1 + below(f, 4),
			 CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
		return;
	case 1:
		fuzz_word(f, fuzz_backend_pick(f, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, true));
		question(f, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, INT, 1, 0);
		return;
	case 2:
		number = fuzz_backend_pick(f, r->type, false);
		fuzz_word(f, number);
		question(f, r->name, r->element, below(f, 10), below(f, 44));
		return;
	}
	number = fuzz_backend_pick(f, ANY, false);
	fuzz_word(f, number);
	question(f, fuzz_cudnn_cudnnBackendAttributeName_t[below(f, NAMES)],
		 below(f, 2) ? below(f, 32) : r->element, below(f, 20), (int)below(f, 44));
}

void fuzz_hand_cudnnBackendExecute(struct fuzz_call *f)
{
	uint64_t value[2] = {fuzz_number(f, 64), 0}, count = 0, at;
	unsigned int i;

	fuzz_object(f, QCU_LIB_CUDNN_HANDLE);
	fuzz_word(f, fuzz_is_odd(f)
			     ? fuzz_backend_pick(f, ANY, false)
			     : fuzz_backend_pick(f, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, true));
	fuzz_device(f, false);
	at = f->used;
	fuzz_word(f, 0);
	/* All tensors that there are: a plan looks for its own. */
	for (i = 0; i < FUZZ_BACKENDS && count < QCU_CUDNN_TENSORS; i++) {
		if (!fuzz_world.backend[i].number || fuzz_world.backend[i].type != TENSOR)
			continue;
		fuzz_word(f, fuzz_world.backend[i].number);
		if (below(f, 8)) {
			fuzz_word(f, QCU_LIB_DEVICE);
			fuzz_device(f, false);
		} else {
			fuzz_word(f, QCU_LIB_HOST);
			fuzz_bytes(f, value, QCU_CUDNN_VALUE);
		}
		count++;
	}
	if (!f->overflow)
		f->words[at] = fuzz_is_odd(f) && !below(f, 8) ? fuzz_number(f, 32) : count;
}

void fuzz_hand_cudnnBackendCreateDescriptor(struct fuzz_call *f)
{
	fuzz_word(f, below(f, 44));
}

void fuzz_hand_cudnnBackendDestroyDescriptor(struct fuzz_call *f)
{
	fuzz_word(f, fuzz_backend_pick(f, ANY, false));
}
