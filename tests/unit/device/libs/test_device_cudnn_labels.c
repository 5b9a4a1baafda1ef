// SPDX-License-Identifier: GPL-2.0-or-later
/* CTC losses with labels in host memory: cuDNN gets only arrays that are as long as it takes them
 * for. */
#include <cudnn.h>

#include "tests/unit/device/libs/test_device_stand_in.h"

#define HANDLE 2

/* Probabilities of 5 times, 2 labels and 3 letters. */
static cudnnStatus_t tensor_of_ctc(cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t *type,
				   int *dims, int *dim, int *stride)
{
	const int all[] = {5, 2, 3};

	assert_true(tensor && room >= 3 && type && stride);
	*dims = 3;
	memcpy(dim, all, sizeof(all));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t ctc_size(cudnnHandle_t handle, cudnnTensorDescriptor_t probs,
			      cudnnTensorDescriptor_t gradients, const int *label,
			      const int *length, const int *input, cudnnCTCLossAlgo_t algo,
			      cudnnCTCLossDescriptor_t desc, size_t *size)
{
	assert_true(handle && probs && !gradients && !algo && desc);
	assert_true(label[0] == 2 && label[2] == 1 && length[1] == 2 && input[1] == 5);
	*size = 77;
	calls++;
	return CUDNN_STATUS_SUCCESS;
}

static void *own_function(const char *name)
{
	if (!strcmp(name, "cudnnGetTensorNdDescriptor"))
		return (void *)tensor_of_ctc;
	return strcmp(name, "cudnnGetCTCLossWorkspaceSize") ? NULL : (void *)ctc_size;
}

/* NULL: ones. */
static void ints(const int *from, unsigned int n)
{
	if (!from) {
		array_of(n * sizeof(int));
		return;
	}
	word(QCU_LIB_HOST);
	word(n * sizeof(int));
	memcpy(&words[count], from, n * sizeof(int));
	count += (n + 1) / 2;
}

static int ask_ctc(const int *label, unsigned int labels, const int *length, unsigned int lengths,
		   const int *input, unsigned int inputs)
{
	begin();
	object(HANDLE);
	word(1); /* a tensor in which nothing is set, and none */
	word(0);
	ints(label, labels);
	ints(length, lengths);
	ints(input, inputs);
	word(0);
	word(1);
	room_of(sizeof(size_t));
	return send_to(QCU_LIB_CUDNN, number(&lib_cudnn, "cudnnGetCTCLossWorkspaceSize"));
}

/* cuDNN reads as many labels as their lengths say, whatever the guest has sent. */
static void labels_of_ctc(void **state)
{
	const int label[] = {2, 2, 1, 0}, length[] = {1, 2, 0}, input[] = {3, 5, 0};
	const int below[] = {-1, 2}, much[] = {1, 1 << 30}, wraps[] = {1 << 30, 1 << 30};
	const int late[] = {3, 6}, letter[] = {2, 3, 1}, other[] = {2, 2, -1};

	(void)state;
	make_object(QCU_LIB_CUDNN, HANDLE, QCU_LIB_CUDNN_HANDLE);
	assert_int_equal(ask_ctc(label, 2, length, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 4, length, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, length, 1, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, NULL, 3, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, length, 2, input, 1), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, below, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, much, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 0, wraps, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, length, 2, late, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(label, 3, length, 2, below, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(letter, 3, length, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_ctc(other, 3, length, 2, input, 2), QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(ask_ctc(label, 3, length, 2, input, 2), 0);
	assert_int_equal(words[count + 1], 77);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(labels_of_ctc)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
