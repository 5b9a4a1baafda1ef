// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The spatial transformer of cuDNN: a grid from matrices, images sampled at its points, and the
 * gradients of both, also with points far outside; beside the same on the CPU. Wrong calls come first.
 */
#include "dnn.h"

/* Images of 5 x 9 become images of 9 x 5, so that all coordinates are exact numbers. */
enum { N = 2, C = 3, H = 5, W = 9, OUT_H = 9, OUT_W = 5 };

static cudnnHandle_t handle;

template <typename T> static cudnnSpatialTransformerDescriptor_t described(void)
{
	const int dim[] = {N, C, OUT_H, OUT_W};
	cudnnSpatialTransformerDescriptor_t desc;

	DNN(cudnnCreateSpatialTransformerDescriptor(&desc));
	DNN(cudnnSetSpatialTransformerNdDescriptor(desc, CUDNN_SAMPLER_BILINEAR, data_type<T>(), 4, dim));
	return desc;
}

static void wrong_calls(void)
{
	const int dim[] = {N, C, OUT_H, OUT_W};
	const float one = 1, zero = 0;
	cudnnSpatialTransformerDescriptor_t desc = described<float>();
	tensor<float> x(N, C, H, W), y(N, C, OUT_H, OUT_W), other(N, C, H, W), grid(N, OUT_H, OUT_W, 2);

	DNN_FAILS(cudnnSetSpatialTransformerNdDescriptor(desc, (cudnnSamplerType_t)5, CUDNN_DATA_FLOAT, 4, dim));
	DNN_FAILS(cudnnSetSpatialTransformerNdDescriptor(desc, CUDNN_SAMPLER_BILINEAR, CUDNN_DATA_INT8, 4, dim));
	DNN_FAILS(cudnnSpatialTfGridGeneratorForward(handle, desc, NULL, grid.gpu));
	DNN_FAILS(cudnnSpatialTfSamplerForward(handle, desc, &one, x.desc, x.gpu, NULL, &zero, y.desc, y.gpu));
	DNN_FAILS(cudnnSpatialTfSamplerBackward(handle, desc, &one, x.desc, x.gpu, &zero, x.desc, x.gpu, &one,
						other.desc, other.gpu, grid.gpu, &zero, grid.gpu));
	for (tensor<float> *t : {&x, &y, &other, &grid})
		t->check("after wrong calls");
	DNN(cudnnDestroySpatialTransformerDescriptor(desc));
}

/* From -1 to 1, both ends included. */
static double coordinate(int i, int count)
{
	return -1 + 2.0 * i / (count - 1);
}

template <typename T> static void grids(void)
{
	cudnnSpatialTransformerDescriptor_t desc = described<T>();
	tensor<T> theta(N, 1, 2, 3), grid(N, OUT_H, OUT_W, 2), dtheta(N, 1, 2, 3), dgrid(N, OUT_H, OUT_W, 2);

	DNN(cudnnSpatialTfGridGeneratorForward(handle, desc, theta.gpu, grid.gpu));
	DNN(cudnnSpatialTfGridGeneratorBackward(handle, desc, dgrid.gpu, dtheta.gpu));
	std::fill(dtheta.host.begin(), dtheta.host.end(), T(0));
	for (int i = 0; i < N * OUT_H * OUT_W * 2; i++) {
		const int axis = i % 2, w = i / 2 % OUT_W, h = i / 2 / OUT_W % OUT_H, n = i / 2 / OUT_W / OUT_H;
		const double at[] = {coordinate(w, OUT_W), coordinate(h, OUT_H), 1};
		double sum = 0;

		for (int k = 0; k < 3; k++) {
			sum += theta.at(n, 0, axis, k) * at[k];
			dtheta.at(n, 0, axis, k) += (T)(dgrid.at(n, h, w, axis) * at[k]);
		}
		grid.at(n, h, w, axis) = (T)sum;
	}
	grid.check("a grid", 1e-5);
	dtheta.check("the gradient of the matrices", 1e-5);
	DNN(cudnnDestroySpatialTransformerDescriptor(desc));
}

template <typename T> static void samples(void)
{
	const T one = 1, zero = 0, two = 2, half = 0.5;
	cudnnSpatialTransformerDescriptor_t desc = described<T>();
	tensor<T> x(N, C, H, W), y(N, C, OUT_H, OUT_W), dx(N, C, H, W), dy(N, C, OUT_H, OUT_W);
	tensor<T> grid(N, OUT_H, OUT_W, 2), dgrid(N, OUT_H, OUT_W, 2);

	/* Between the pixels; a few points lie outside, and no pixel is near them. */
	for (int i = 0; i < N * OUT_H * OUT_W; i++) {
		grid.host[2 * i] = i % 11 == 5 ? T(3) : (T)((i * 13 % 64 / 8.0 + 1.0 / 16) / (W - 1) * 2 - 1);
		grid.host[2 * i + 1] = i % 11 == 7 ? T(-4) : (T)((i * 11 % 32 / 8.0 + 1.0 / 16) / (H - 1) * 2 - 1);
	}
	grid.up();
	DNN(cudnnSpatialTfSamplerForward(handle, desc, &two, x.desc, x.gpu, grid.gpu, &half, y.desc, y.gpu));
	DNN(cudnnSpatialTfSamplerBackward(handle, desc, &one, x.desc, x.gpu, &zero, dx.desc, dx.gpu, &one, dy.desc,
					  dy.gpu, grid.gpu, &zero, dgrid.gpu));
	for (tensor<T> *t : {&dx, &dgrid})
		std::fill(t->host.begin(), t->host.end(), T(0));
	for (int i = 0; i < N * C * OUT_H * OUT_W; i++) {
		const int w = i % OUT_W, h = i / OUT_W % OUT_H, c = i / OUT_W / OUT_H % C, n = i / OUT_W / OUT_H / C;
		const double px = ((double)grid.at(n, h, w, 0) + 1) / 2 * (W - 1);
		const double py = ((double)grid.at(n, h, w, 1) + 1) / 2 * (H - 1);
		double sum = 0;

		for (int corner = 0; corner < 4; corner++) {
			const int q = (int)floor(px) + corner % 2, p = (int)floor(py) + corner / 2;
			const double u = 1 - fabs(px - q), v = 1 - fabs(py - p);

			if (p < 0 || p >= H || q < 0 || q >= W)
				continue;
			sum += u * v * x.at(n, c, p, q);
			dx.at(n, c, p, q) += (T)(u * v * dy.at(n, c, h, w));
			dgrid.at(n, h, w, 0) +=
				(T)((corner % 2 ? v : -v) * (W - 1) / 2 * dy.at(n, c, h, w) * x.at(n, c, p, q));
			dgrid.at(n, h, w, 1) +=
				(T)((corner / 2 ? u : -u) * (H - 1) / 2 * dy.at(n, c, h, w) * x.at(n, c, p, q));
		}
		y.at(n, c, h, w) = (T)(2 * sum + y.at(n, c, h, w) / 2);
	}
	y.check("samples, and half of what was there");
	dx.check("the gradient of the images");
	dgrid.check("the gradient of the grid");
	DNN(cudnnDestroySpatialTransformerDescriptor(desc));
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	grids<float>();
	samples<float>();
	grids<double>();
	samples<double>();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("grids and samples of a spatial transformer, forward and backward, in two types\n");
	return 0;
}
