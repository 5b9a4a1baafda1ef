// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Batches normalized by the three families of functions that cuDNN has for it: for each channel and
 * for each element, with averages over several batches, with and without what the forward pass saves,
 * and fused with a sum and an activation; beside the same on the CPU. Wrong calls come first.
 */
#include <cuda_fp16.h>

#include "dnn.h"

static cudnnHandle_t handle;

static const double epsilon = 1.0 / 128;

enum family { PLAIN, EXTENDED, NORM };

/* A layer with what it learns and what it returns; `each`: one scale for each element, not channel. */
template <typename T> struct layer {
	family functions;
	bool each;
	tensor<T> x, y, dy, dx;
	tensor<T> scale, bias, dscale, dbias, mean, var, saved, inverse;
	void *work, *reserve;
	size_t bytes[2], kept;

	layer(family functions, bool each, int n, int c, int h, int w)
	    : functions(functions), each(each), x(n, c, h, w), y(n, c, h, w), dy(n, c, h, w), dx(n, c, h, w),
	      scale(1, c, each ? h : 1, each ? w : 1), bias(1, c, scale.h, scale.w), dscale(1, c, scale.h, scale.w),
	      dbias(1, c, scale.h, scale.w), mean(1, c, scale.h, scale.w), var(1, c, scale.h, scale.w),
	      saved(1, c, scale.h, scale.w), inverse(1, c, scale.h, scale.w), bytes{0, 0}, kept(0)
	{
		if (functions == EXTENDED) {
			DNN(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
				handle, mode(), CUDNN_BATCHNORM_OPS_BN, x.desc, NULL, y.desc, scale.desc, NULL,
				&bytes[0]));
			DNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle, mode(), CUDNN_BATCHNORM_OPS_BN,
									      x.desc, y.desc, dy.desc, NULL, dx.desc,
									      scale.desc, NULL, &bytes[1]));
			DNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, mode(), CUDNN_BATCHNORM_OPS_BN,
										 NULL, x.desc, &kept));
		} else if (functions == NORM) {
			DNN(cudnnGetNormalizationForwardTrainingWorkspaceSize(
				handle, norm(), CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD, x.desc, NULL, y.desc,
				scale.desc, NULL, mean.desc, &bytes[0], 1));
			DNN(cudnnGetNormalizationBackwardWorkspaceSize(
				handle, norm(), CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD, x.desc, y.desc, dy.desc,
				NULL, dx.desc, scale.desc, NULL, mean.desc, &bytes[1], 1));
			DNN(cudnnGetNormalizationTrainingReserveSpaceSize(
				handle, norm(), CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD, NULL, x.desc, &kept, 1));
		}
		work = room(std::max(bytes[0], bytes[1]));
		reserve = room(kept);
	}
	~layer()
	{
		CHECK(cudaFree(work));
		CHECK(cudaFree(reserve));
	}
	cudnnBatchNormMode_t mode(void) const
	{
		return each ? CUDNN_BATCHNORM_PER_ACTIVATION : CUDNN_BATCHNORM_SPATIAL;
	}
	cudnnNormMode_t norm(void) const
	{
		return each ? CUDNN_NORM_PER_ACTIVATION : CUDNN_NORM_PER_CHANNEL;
	}
	cudnnStatus_t forward(double factor, bool save)
	{
		const T one = 1, zero = 0;
		T *m = save ? saved.gpu : NULL, *v = save ? inverse.gpu : NULL;

		if (functions == PLAIN)
			return cudnnBatchNormalizationForwardTraining(handle, mode(), &one, &zero, x.desc, x.gpu,
								      y.desc, y.gpu, scale.desc, scale.gpu, bias.gpu,
								      factor, mean.gpu, var.gpu, epsilon, m, v);
		if (functions == EXTENDED)
			return cudnnBatchNormalizationForwardTrainingEx(handle, mode(), CUDNN_BATCHNORM_OPS_BN, &one,
									&zero, x.desc, x.gpu, NULL, NULL, y.desc, y.gpu,
									scale.desc, scale.gpu, bias.gpu, factor,
									mean.gpu, var.gpu, epsilon, m, v, NULL, work,
									bytes[0], reserve, kept);
		return cudnnNormalizationForwardTraining(handle, norm(), CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD,
							 &one, &zero, x.desc, x.gpu, scale.desc, scale.gpu, bias.gpu,
							 factor, mean.desc, mean.gpu, var.gpu, epsilon, m, v, NULL,
							 NULL, NULL, y.desc, y.gpu, work, bytes[0], reserve, kept, 1);
	}
	cudnnStatus_t backward(bool save)
	{
		const T one = 1, zero = 0, half = 0.5, two = 2;
		T *m = save ? saved.gpu : NULL, *v = save ? inverse.gpu : NULL;

		if (functions == PLAIN)
			return cudnnBatchNormalizationBackward(handle, mode(), &one, &zero, &half, &two, x.desc, x.gpu,
							       dy.desc, dy.gpu, dx.desc, dx.gpu, scale.desc, scale.gpu,
							       dscale.gpu, dbias.gpu, epsilon, m, v);
		if (functions == EXTENDED)
			return cudnnBatchNormalizationBackwardEx(handle, mode(), CUDNN_BATCHNORM_OPS_BN, &one, &zero,
								 &half, &two, x.desc, x.gpu, NULL, NULL, dy.desc,
								 dy.gpu, NULL, NULL, dx.desc, dx.gpu, scale.desc,
								 scale.gpu, NULL, dscale.gpu, dbias.gpu, epsilon, m, v,
								 NULL, work, bytes[1], reserve, kept);
		return cudnnNormalizationBackward(handle, norm(), CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD, &one,
						  &zero, &half, &two, x.desc, x.gpu, NULL, NULL, dy.desc, dy.gpu, NULL,
						  NULL, dx.desc, dx.gpu, scale.desc, scale.gpu, NULL, dscale.gpu,
						  dbias.gpu, epsilon, mean.desc, m, v, NULL, work, bytes[1], reserve,
						  kept, 1);
	}
	cudnnStatus_t infer(void)
	{
		const T half = 0.5, two = 2;

		if (functions == NORM)
			return cudnnNormalizationForwardInference(handle, norm(), CUDNN_NORM_OPS_NORM,
								  CUDNN_NORM_ALGO_STANDARD, &two, &half, x.desc, x.gpu,
								  scale.desc, scale.gpu, bias.gpu, mean.desc, mean.gpu,
								  var.gpu, NULL, NULL, NULL, y.desc, y.gpu, epsilon, 1);
		return cudnnBatchNormalizationForwardInference(handle, mode(), &two, &half, x.desc, x.gpu, y.desc,
							       y.gpu, scale.desc, scale.gpu, bias.gpu, mean.gpu,
							       var.gpu, epsilon);
	}
	/* Which scale an element has. */
	int of(size_t i) const
	{
		return each ? (int)(i % scale.host.size()) : (int)(i / x.h / x.w) % x.c;
	}
	/* Forward and backward on the CPU; the averages become those of one more batch. */
	void on_cpu(double factor, bool save)
	{
		const int count = (int)scale.host.size(), per = (int)x.host.size() / count;
		std::vector<double> m(count), v(count), g(count), gx(count);

		for (size_t i = 0; i < x.host.size(); i++)
			m[of(i)] += x.host[i] / per;
		for (size_t i = 0; i < x.host.size(); i++)
			v[of(i)] += (x.host[i] - m[of(i)]) * (x.host[i] - m[of(i)]) / per;
		for (size_t i = 0; i < x.host.size(); i++) {
			const int k = of(i);
			const double hat = (x.host[i] - m[k]) / sqrt(v[k] + epsilon);

			y.host[i] = (T)(hat * scale.host[k] + bias.host[k]);
			g[k] += dy.host[i];
			gx[k] += dy.host[i] * hat;
		}
		for (size_t i = 0; i < x.host.size(); i++) {
			const int k = of(i);
			const double inv = 1 / sqrt(v[k] + epsilon), hat = (x.host[i] - m[k]) * inv;

			dx.host[i] = (T)(scale.host[k] * inv * (dy.host[i] - (g[k] + hat * gx[k]) / per));
		}
		for (int k = 0; k < count; k++) {
			mean.host[k] = (T)(m[k] * factor + mean.host[k] * (1 - factor));
			var.host[k] = (T)(v[k] * per / (per - 1) * factor + var.host[k] * (1 - factor));
			dscale.host[k] = (T)(gx[k] / 2 + 2 * dscale.host[k]);
			dbias.host[k] = (T)(g[k] / 2 + 2 * dbias.host[k]);
			if (save) {
				saved.host[k] = (T)m[k];
				inverse.host[k] = (T)(1 / sqrt(v[k] + epsilon));
			}
		}
	}
};

template <typename T> static void batches(family functions, bool each)
{
	layer<T> l(functions, each, 8, 3, 4, 6);
	const double tolerance = sizeof(T) == 8 ? 1e-8 : 2e-3;

	for (int batch = 0; batch < 3; batch++) {
		const bool save = batch != 1;

		for (T &v : l.x.host)
			v = dnn_number();
		l.x.up();
		DNN(l.forward(1.0 / (1 + batch), save));
		DNN(l.backward(save));
		l.on_cpu(1.0 / (1 + batch), save);
		l.y.check("normalized", tolerance);
		l.dx.check("the gradient", tolerance);
		for (tensor<T> *t : {&l.mean, &l.var, &l.saved, &l.inverse, &l.dscale, &l.dbias})
			t->check("what is learnt", tolerance);
	}
	DNN(l.infer());
	for (size_t i = 0; i < l.x.host.size(); i++) {
		const int k = l.of(i);
		double hat = (l.x.host[i] - l.mean.host[k]) / sqrt(l.var.host[k] + epsilon);

		l.y.host[i] = (T)(2 * (hat * l.scale.host[k] + l.bias.host[k]) + l.y.host[i] / 2);
	}
	l.y.check("normalized by the averages, and half of what was there", tolerance);
}

static void wrong_calls(void)
{
	layer<float> l(PLAIN, false, 4, 3, 5, 6);
	tensor<float> other(1, 4, 1, 1);
	const float one = 1, zero = 0;
	cudnnTensorDescriptor_t derived;

	DNN(cudnnCreateTensorDescriptor(&derived));
	DNN_FAILS(cudnnDeriveBNTensorDescriptor(derived, l.x.desc, (cudnnBatchNormMode_t)30));
	DNN(cudnnDestroyTensorDescriptor(derived));
	DNN_FAILS(cudnnBatchNormalizationForwardInference(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, l.x.desc,
							  l.x.gpu, l.y.desc, l.y.gpu, other.desc, other.gpu, other.gpu,
							  other.gpu, other.gpu, epsilon));
	DNN_FAILS(cudnnBatchNormalizationForwardTraining(
		handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, l.x.desc, l.x.gpu, l.y.desc, l.y.gpu, l.scale.desc,
		l.scale.gpu, l.bias.gpu, 1, l.mean.gpu, l.var.gpu, epsilon, l.saved.gpu, NULL));
	for (tensor<float> *t : {&l.y, &l.mean, &l.var, &l.saved})
		t->check("after wrong calls");
}

/* y = max(0, scale * normalized x + z). z is far from 0, so rounding makes no difference to the sign. */
static void fused(void)
{
	const cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
	const cudnnBatchNormOps_t ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
	const cudnnTensorFormat_t last = CUDNN_TENSOR_NHWC;
	const float one = 1, zero = 0;
	tensor<__half> x(4, 16, 6, 8, last), y(4, 16, 6, 8, last), z(4, 16, 6, 8, last), dx(4, 16, 6, 8, last);
	tensor<__half> dy(4, 16, 6, 8, last), dz(4, 16, 6, 8, last);
	layer<float> cpu(PLAIN, false, 4, 16, 6, 8);
	cudnnActivationDescriptor_t relu;
	size_t forward = 0, backward = 0, kept = 0;
	void *work, *reserve;
	cudnnStatus_t status;

	DNN(cudnnCreateActivationDescriptor(&relu));
	DNN(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
	cpu.scale.fill(0.125f);
	cpu.bias.fill(0);
	cpu.dscale.fill(0);
	cpu.dbias.fill(0);
	for (size_t i = 0; i < z.host.size(); i++)
		z.host[i] = (__half)(i % 3 ? 2.0f : -2.0f);
	z.up();
	status = cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle, mode, ops, x.desc, z.desc, y.desc,
									  cpu.scale.desc, relu, &forward);
	if (!status)
		status = cudnnGetBatchNormalizationBackwardExWorkspaceSize(
			handle, mode, ops, x.desc, y.desc, dy.desc, dz.desc, dx.desc, cpu.scale.desc, relu, &backward);
	if (!status)
		status = cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, mode, ops, relu, x.desc, &kept);
	work = room(std::max(forward, backward));
	reserve = room(kept);
	if (!status)
		status = cudnnBatchNormalizationForwardTrainingEx(handle, mode, ops, &one, &zero, x.desc, x.gpu, z.desc,
								  z.gpu, y.desc, y.gpu, cpu.scale.desc, cpu.scale.gpu,
								  cpu.bias.gpu, 1, cpu.mean.gpu, cpu.var.gpu, epsilon,
								  cpu.saved.gpu, cpu.inverse.gpu, relu, work, forward,
								  reserve, kept);
	/* Not every GPU can, but both sides say the same. */
	printf("normalized, added and rectified: %s\n", cudnnGetErrorString(status));
	if (!status) {
		DNN(cudnnBatchNormalizationBackwardEx(
			handle, mode, ops, &one, &zero, &one, &zero, x.desc, x.gpu, y.desc, y.gpu, dy.desc, dy.gpu,
			dz.desc, dz.gpu, dx.desc, dx.gpu, cpu.scale.desc, cpu.scale.gpu, cpu.bias.gpu, cpu.dscale.gpu,
			cpu.dbias.gpu, epsilon, cpu.saved.gpu, cpu.inverse.gpu, relu, work, backward, reserve, kept));
		for (int i = 0; i < (int)x.host.size(); i++) {
			const int n = i / 768, c = i / 48 % 16, h = i / 8 % 6, w = i % 8;
			const bool on = (float)z.at(n, c, h, w) > 0;

			cpu.x.host[i] = (float)x.at(n, c, h, w);
			cpu.dy.host[i] = on ? (float)dy.at(n, c, h, w) : 0;
			dz.at(n, c, h, w) = on ? dy.at(n, c, h, w) : (__half)0.0f;
		}
		cpu.on_cpu(1, true);
		for (int i = 0; i < (int)x.host.size(); i++) {
			const int n = i / 768, c = i / 48 % 16, h = i / 8 % 6, w = i % 8;

			y.at(n, c, h, w) = (__half)fmaxf(0, cpu.y.host[i] + (float)z.at(n, c, h, w));
			dx.at(n, c, h, w) = (__half)cpu.dx.host[i];
		}
		y.check("fused");
		dz.check("the gradient of z");
		dx.check("the gradient of x");
		for (int c = 0; c < 16; c++) {
			cpu.dscale.host[c] *= 2;
			cpu.dbias.host[c] *= 2;
		}
		for (tensor<float> *t : {&cpu.mean, &cpu.var, &cpu.saved, &cpu.inverse, &cpu.dscale, &cpu.dbias})
			t->check("what is learnt", 2e-3);
	}
	DNN(cudnnDestroyActivationDescriptor(relu));
	CHECK(cudaFree(work));
	CHECK(cudaFree(reserve));
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	for (family functions : {PLAIN, EXTENDED, NORM})
		for (bool each : {false, true}) {
			batches<float>(functions, each);
			batches<double>(functions, each);
		}
	fused();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("batches normalized by channel and by element, by three families of functions\n");
	return 0;
}
