// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dropout by cuDNN: what stays is scaled, about as much as asked goes, and the backward pass drops the
 * same. A seed decides what is dropped; states that are saved and restored repeat it. Wrong calls come
 * first.
 */
#include "dnn.h"

enum { N = 8, C = 16, H = 18, W = 20, COUNT = N * C * H * W };

static cudnnHandle_t handle;
static size_t states_size;

typedef std::vector<bool> mask;

static void wrong_calls(void *states)
{
	tensor<float> x(2, 3, 4, 5), y(2, 3, 4, 5), other(2, 3, 5, 5);
	cudnnDropoutDescriptor_t desc;
	size_t bytes = 0;
	void *reserve;

	DNN(cudnnCreateDropoutDescriptor(&desc));
	DNN_FAILS(cudnnCreateDropoutDescriptor(NULL));
	DNN_FAILS(cudnnSetDropoutDescriptor(desc, handle, 0.5f, states, states_size / 2, 1));
	DNN(cudnnSetDropoutDescriptor(desc, handle, 0.5f, states, states_size, 1));
	DNN(cudnnDropoutGetReserveSpaceSize(x.desc, &bytes));
	REQUIRE(bytes > 0, "no reserve space");
	reserve = room(bytes);
	DNN_FAILS(cudnnDropoutForward(handle, desc, x.desc, x.gpu, other.desc, other.gpu, reserve, bytes));
	DNN_FAILS(cudnnDropoutForward(handle, desc, x.desc, x.gpu, y.desc, y.gpu, reserve, 0));
	DNN_FAILS(cudnnDropoutBackward(handle, desc, x.desc, x.gpu, y.desc, y.gpu, NULL, 0));
	y.check("after wrong calls");
	other.check("after wrong calls");
	DNN(cudnnDestroyDropoutDescriptor(desc));
	CHECK(cudaFree(reserve));
}

/* Forward and backward. Returns which elements stayed. */
template <typename T> static mask drop(cudnnDropoutDescriptor_t desc, double probability)
{
	tensor<T> x(N, C, H, W), y(N, C, H, W), dy(N, C, H, W), dx(N, C, H, W);
	size_t bytes = 0;
	void *reserve;
	int dropped = 0;
	mask stayed(COUNT);

	for (T &v : x.host)
		v = v == 0 ? 1 : v;
	x.up();
	DNN(cudnnDropoutGetReserveSpaceSize(x.desc, &bytes));
	reserve = room(bytes);
	DNN(cudnnDropoutForward(handle, desc, x.desc, x.gpu, y.desc, y.gpu, reserve, bytes));
	DNN(cudnnDropoutBackward(handle, desc, dy.desc, dy.gpu, dx.desc, dx.gpu, reserve, bytes));
	CHECK(cudaMemcpy(y.host.data(), y.gpu, COUNT * sizeof(T), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++) {
		stayed[i] = y.host[i] != 0;
		dropped += !stayed[i];
		y.host[i] = stayed[i] ? (T)(x.host[i] / (1 - probability)) : 0;
		dx.host[i] = stayed[i] ? (T)(dy.host[i] / (1 - probability)) : 0;
	}
	y.check("what stayed", 1e-6);
	dx.check("the gradient of what stayed", 1e-6);
	/* Twenty deviations, so never by chance. */
	REQUIRE(fabs(dropped - probability * COUNT) <= 20 * sqrt(COUNT * probability * (1 - probability)),
		"%d of %d are dropped", dropped, COUNT);
	CHECK(cudaFree(reserve));
	return stayed;
}

int main(void)
{
	cudnnDropoutDescriptor_t desc, second;
	void *states, *saved;
	mask a, b;

	handle = dnn_handle();
	DNN(cudnnDropoutGetStatesSize(handle, &states_size));
	REQUIRE(states_size > 1, "states of %zu bytes", states_size);
	states = room(states_size);
	saved = room(states_size);
	wrong_calls(states);
	DNN(cudnnCreateDropoutDescriptor(&desc));
	DNN(cudnnCreateDropoutDescriptor(&second));
	for (float probability : {0.25f, 0.875f}) {
		DNN(cudnnSetDropoutDescriptor(desc, handle, probability, states, states_size, 1234));
		CHECK(cudaMemcpy(saved, states, states_size, cudaMemcpyDeviceToDevice));
		a = drop<float>(desc, probability);
		b = drop<float>(desc, probability);
		REQUIRE(a != b, "the same is dropped again, at %g", probability);
		/* The states as they were, in the same descriptor and in another one. */
		CHECK(cudaMemcpy(states, saved, states_size, cudaMemcpyDeviceToDevice));
		REQUIRE(drop<float>(desc, probability) == a, "the first mask is not repeated, at %g", probability);
		DNN(cudnnRestoreDropoutDescriptor(second, handle, probability, saved, states_size, 1234));
		REQUIRE(drop<float>(second, probability) == a, "a restored descriptor drops other elements, at %g",
			probability);
		REQUIRE(drop<float>(second, probability) == b, "and the second time, at %g", probability);
		DNN(cudnnSetDropoutDescriptor(desc, handle, probability, states, states_size, 1234));
		REQUIRE(drop<float>(desc, probability) == a, "a seed is not repeated, at %g", probability);
		DNN(cudnnSetDropoutDescriptor(desc, handle, probability, states, states_size, 1235));
		REQUIRE(drop<float>(desc, probability) != a, "another seed drops the same, at %g", probability);
		drop<double>(desc, probability);
	}
	DNN(cudnnSetDropoutDescriptor(desc, handle, 0, states, states_size, 7));
	a = drop<float>(desc, 0);
	REQUIRE(std::find(a.begin(), a.end(), false) == a.end(), "something is dropped");
	DNN(cudnnDestroyDropoutDescriptor(desc));
	DNN(cudnnDestroyDropoutDescriptor(second));
	DNN(cudnnDestroy(handle));
	CHECK(cudaFree(states));
	CHECK(cudaFree(saved));
	printf("dropout with seeds and with saved states, forward and backward\n");
	return 0;
}
