// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Elements divided by what is around them: local response normalization across the channels, and
 * divisive normalization within each channel, in planes and in space, forward and backward; beside the
 * same on the CPU. Wrong calls come first.
 */
#include "dnn.h"

static cudnnHandle_t handle;

static const double alpha = 0.75, beta = 0.75, k = 1.5;

static void wrong_calls(void)
{
	const float one = 1, zero = 0;
	tensor<float> x(2, 3, 4, 5), y(2, 3, 4, 5), other(2, 3, 5, 4);
	cudnnLRNDescriptor_t desc;
	unsigned int n = 0;
	double a = 0, b = 0, c = 0;

	DNN(cudnnCreateLRNDescriptor(&desc));
	DNN_FAILS(cudnnSetLRNDescriptor(desc, CUDNN_LRN_MAX_N + 1, alpha, beta, k));
	DNN_FAILS(cudnnSetLRNDescriptor(desc, 5, alpha, beta, 0));
	DNN_FAILS(cudnnSetLRNDescriptor(desc, 5, alpha, 0, k));
	DNN(cudnnSetLRNDescriptor(desc, 7, 0.5, 0.25, 3));
	DNN(cudnnGetLRNDescriptor(desc, &n, &a, &b, &c));
	REQUIRE(n == 7 && a == 0.5 && b == 0.25 && c == 3, "%u %g %g %g", n, a, b, c);
	DNN_FAILS(cudnnLRNCrossChannelForward(handle, desc, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, x.desc, x.gpu, &zero,
					      other.desc, other.gpu));
	DNN_FAILS(cudnnDivisiveNormalizationForward(handle, desc, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &one, x.desc, x.gpu,
						    NULL, NULL, NULL, &zero, y.desc, y.gpu));
	y.check("after wrong calls");
	other.check("after wrong calls");
	DNN(cudnnDestroyLRNDescriptor(desc));
}

/* Four numbers that say where an element is: channel, depth, height, width. */
struct place {
	int at[4];
};

/*
 * An element is a neighbour of another one, if they differ by at most `reach` in those dimensions that
 * are `free`, and not in the others. The scale of an element is k + alpha / (window) * the sum of its
 * neighbours' squares; the element is divided by scale ^ beta.
 */
template <typename T> struct neighbours {
	const int n, c, d, h, w, size;
	const bool across;

	bool near(int i, int j) const
	{
		const int image = c * d * h * w, reach = (size - 1) / 2;
		place a = of(i), b = of(j);

		if (i / image != j / image)
			return false;
		for (int k = 0; k < 4; k++)
			if (abs(a.at[k] - b.at[k]) > ((k == 0) == across ? reach : 0))
				return false;
		return true;
	}
	place of(int i) const
	{
		return {{i / (d * h * w) % c, i / (h * w) % d, i / w % h, i % w}};
	}
	/* What a sum is divided by: also at the edge, where there are fewer neighbours. */
	double window(void) const
	{
		return across ? size : d > 1 ? size * size * size : size * size;
	}
	void run(void)
	{
		const T one = 1, zero = 0, two = 2, half = 0.5;
		tensor<T> x(n, c, d * h, w), y(n, c, d * h, w), dy(n, c, d * h, w), dx(n, c, d * h, w),
			temp(n, c, d * h, w);
		tensor<T> temp2(n, c, d * h, w);
		const int count = (int)x.host.size(), dim[] = {n, c, d, h, w};
		std::vector<double> scale(count, k), value(count);
		cudnnLRNDescriptor_t desc;

		for (int i = 0; i < count; i++)
			for (int j = 0; j < count; j++)
				if (near(i, j))
					scale[i] += alpha / window() * x.host[j] * x.host[j];
		if (d > 1)
			for (tensor<T> *t : {&x, &y, &dy, &dx, &temp, &temp2})
				DNN(cudnnSetTensorNdDescriptorEx(t->desc, CUDNN_TENSOR_NCHW, data_type<T>(), 5, dim));
		for (int i = 0; i < count; i++)
			value[i] = x.host[i] * pow(scale[i], -beta);
		DNN(cudnnCreateLRNDescriptor(&desc));
		DNN(cudnnSetLRNDescriptor(desc, size, alpha, beta, k));
		for (int pass = 0; pass < 2; pass++) {
			const T *a = pass ? &one : &two, *b = pass ? &zero : &half;

			if (across)
				DNN(cudnnLRNCrossChannelForward(handle, desc, CUDNN_LRN_CROSS_CHANNEL_DIM1, a, x.desc,
								x.gpu, b, y.desc, y.gpu));
			else
				DNN(cudnnDivisiveNormalizationForward(handle, desc, CUDNN_DIVNORM_PRECOMPUTED_MEANS, a,
								      x.desc, x.gpu, NULL, temp.gpu, temp2.gpu, b,
								      y.desc, y.gpu));
			for (int i = 0; i < count; i++)
				y.host[i] = (T)(*a * value[i] + *b * y.host[i]);
			y.check(pass ? "forward" : "forward, and half of what was there", 1e-4);
		}
		if (across)
			DNN(cudnnLRNCrossChannelBackward(handle, desc, CUDNN_LRN_CROSS_CHANNEL_DIM1, &two, y.desc,
							 y.gpu, dy.desc, dy.gpu, x.desc, x.gpu, &half, dx.desc,
							 dx.gpu));
		else
			DNN(cudnnDivisiveNormalizationBackward(handle, desc, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &two,
							       x.desc, x.gpu, NULL, dy.gpu, temp.gpu, temp2.gpu, &half,
							       dx.desc, dx.gpu, NULL));
		for (int i = 0; i < count; i++) {
			double sum = dy.host[i] * pow(scale[i], -beta);

			for (int j = 0; j < count; j++)
				if (near(i, j))
					sum -= 2 * alpha * beta / window() * x.host[i] * dy.host[j] * value[j] /
					       scale[j];
			dx.host[i] = (T)(2 * sum + dx.host[i] / 2);
		}
		dx.check("backward", 1e-3);
		DNN(cudnnDestroyLRNDescriptor(desc));
	}
};

template <typename T> static void all(void)
{
	neighbours<T>{2, 11, 1, 4, 5, 5, true}.run();
	neighbours<T>{2, 16, 1, 3, 3, 5, true}.run();
	neighbours<T>{1, 9, 1, 3, 4, 7, true}.run();
	neighbours<T>{2, 3, 1, 7, 6, 3, false}.run();
	neighbours<T>{1, 2, 1, 9, 8, 5, false}.run();
	neighbours<T>{1, 2, 4, 5, 6, 3, false}.run();
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	all<float>();
	all<double>();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("normalized by channels around and by pixels around, forward and backward, in two types\n");
	return 0;
}
