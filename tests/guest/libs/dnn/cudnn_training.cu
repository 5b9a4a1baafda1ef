// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A small network of cuDNN's layers learns to tell stripes from each other: on the default stream, in
 * two threads at once, each with a handle and a stream of its own, and as a graph that holds one step
 * and is launched again and again. The loss goes down, and all of them learn the same.
 */
#include <thread>

#include "dnn.h"

enum { BATCH = 12, SIZE = 8, MAPS = 4, KINDS = 3, STEPS = 40 };

/* A convolution with a bias, and its gradients. */
struct layer {
	tensor<float> w, b, dw, db;
	std::vector<float> first;
	cudnnFilterDescriptor_t filter;
	cudnnConvolutionDescriptor_t conv;

	layer(int outputs, int inputs, int size, int pad)
	    : w(outputs, inputs, size, size), b(1, outputs, 1, 1), dw(outputs, inputs, size, size), db(1, outputs, 1, 1)
	{
		dnn_seed = (unsigned int)(outputs + size);
		for (float &v : w.host)
			v = dnn_number() / 8;
		first = w.host;
		DNN(cudnnCreateFilterDescriptor(&filter));
		DNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, outputs, inputs, size,
					       size));
		DNN(cudnnCreateConvolutionDescriptor(&conv));
		DNN(cudnnSetConvolution2dDescriptor(conv, pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
						    CUDNN_DATA_FLOAT));
		DNN(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
		reset();
	}
	~layer()
	{
		DNN(cudnnDestroyConvolutionDescriptor(conv));
		DNN(cudnnDestroyFilterDescriptor(filter));
	}
	void reset(void)
	{
		w.host = first;
		w.up();
		b.fill(0);
	}
};

struct network {
	cudnnHandle_t handle;
	tensor<float> x, maps, dmaps, active, dactive, pooled, dpooled, y, dy, target;
	layer one, two;
	cudnnActivationDescriptor_t relu;
	cudnnPoolingDescriptor_t pool;
	size_t bytes;
	void *space;

	explicit network(cudnnHandle_t handle)
	    : handle(handle), x(BATCH, 1, SIZE, SIZE), maps(BATCH, MAPS, SIZE, SIZE), dmaps(BATCH, MAPS, SIZE, SIZE),
	      active(BATCH, MAPS, SIZE, SIZE), dactive(BATCH, MAPS, SIZE, SIZE),
	      pooled(BATCH, MAPS, SIZE / 2, SIZE / 2), dpooled(BATCH, MAPS, SIZE / 2, SIZE / 2), y(BATCH, KINDS, 1, 1),
	      dy(BATCH, KINDS, 1, 1), target(BATCH, KINDS, 1, 1), one(MAPS, 1, 3, 1), two(KINDS, MAPS, SIZE / 2, 0),
	      bytes(0)
	{
		/* Stripes that lie, stand or lean, each kind at four places. */
		for (int n = 0; n < BATCH; n++) {
			for (int i = 0; i < SIZE * SIZE; i++) {
				const int at[] = {i / SIZE, i % SIZE, i / SIZE + i % SIZE};

				x.at(n, 0, i / SIZE, i % SIZE) = (at[n % KINDS] + n / KINDS) % 4 < 2 ? 1 : -0.5f;
			}
			for (int k = 0; k < KINDS; k++)
				target.at(n, k, 0, 0) = n % KINDS == k;
		}
		x.up();
		target.up();
		DNN(cudnnCreateActivationDescriptor(&relu));
		DNN(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
		DNN(cudnnCreatePoolingDescriptor(&pool));
		DNN(cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX_DETERMINISTIC, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0,
						0, 2, 2));
		sizes(one, x, maps);
		sizes(two, pooled, y);
		space = room(bytes);
	}
	~network()
	{
		DNN(cudnnDestroyActivationDescriptor(relu));
		DNN(cudnnDestroyPoolingDescriptor(pool));
		CHECK(cudaFree(space));
	}
	void sizes(layer &l, tensor<float> &in, tensor<float> &out)
	{
		size_t need[3];

		DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, in.desc, l.filter, l.conv, out.desc,
							    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, need));
		DNN(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, l.filter, out.desc, l.conv, in.desc,
								 CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, need + 1));
		DNN(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, in.desc, out.desc, l.conv, l.filter,
								   CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, need + 2));
		bytes = std::max({bytes, need[0], need[1], need[2]});
	}
	void forward(layer &l, tensor<float> &in, tensor<float> &out)
	{
		const float yes = 1, no = 0;

		DNN(cudnnConvolutionForward(handle, &yes, in.desc, in.gpu, l.filter, l.w.gpu, l.conv,
					    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, space, bytes, &no,
					    out.desc, out.gpu));
		DNN(cudnnAddTensor(handle, &yes, l.b.desc, l.b.gpu, &yes, out.desc, out.gpu));
	}
	/* The gradients of a layer; then a small step against them. */
	void learn(layer &l, tensor<float> &in, tensor<float> &slope)
	{
		const float yes = 1, no = 0, rate = -0.125f;

		DNN(cudnnConvolutionBackwardFilter(handle, &yes, in.desc, in.gpu, slope.desc, slope.gpu, l.conv,
						   CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, space, bytes, &no, l.filter,
						   l.dw.gpu));
		DNN(cudnnConvolutionBackwardBias(handle, &yes, slope.desc, slope.gpu, &no, l.db.desc, l.db.gpu));
		DNN(cudnnAddTensor(handle, &rate, l.dw.desc, l.dw.gpu, &yes, l.w.desc, l.w.gpu));
		DNN(cudnnAddTensor(handle, &rate, l.db.desc, l.db.gpu, &yes, l.b.desc, l.b.gpu));
	}
	void step(void)
	{
		const float yes = 1, no = 0, part = 1.0f / BATCH, minus = -1.0f / BATCH;

		forward(one, x, maps);
		DNN(cudnnActivationForward(handle, relu, &yes, maps.desc, maps.gpu, &no, active.desc, active.gpu));
		DNN(cudnnPoolingForward(handle, pool, &yes, active.desc, active.gpu, &no, pooled.desc, pooled.gpu));
		forward(two, pooled, y);
		DNN(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &yes, y.desc, y.gpu,
					&no, y.desc, y.gpu));
		DNN(cudnnTransformTensor(handle, &part, y.desc, y.gpu, &no, dy.desc, dy.gpu));
		DNN(cudnnAddTensor(handle, &minus, target.desc, target.gpu, &yes, dy.desc, dy.gpu));
		DNN(cudnnConvolutionBackwardData(handle, &yes, two.filter, two.w.gpu, dy.desc, dy.gpu, two.conv,
						 CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, space, bytes, &no, dpooled.desc,
						 dpooled.gpu));
		learn(two, pooled, dy);
		DNN(cudnnPoolingBackward(handle, pool, &yes, pooled.desc, pooled.gpu, dpooled.desc, dpooled.gpu,
					 active.desc, active.gpu, &no, dactive.desc, dactive.gpu));
		DNN(cudnnActivationBackward(handle, relu, &yes, active.desc, active.gpu, dactive.desc, dactive.gpu,
					    maps.desc, maps.gpu, &no, dmaps.desc, dmaps.gpu));
		learn(one, x, dmaps);
	}
	/* Of the last step's forward pass. */
	double loss(void)
	{
		double sum = 0;

		CHECK(cudaMemcpy(y.host.data(), y.gpu, y.host.size() * sizeof(float), cudaMemcpyDeviceToHost));
		for (int n = 0; n < BATCH; n++)
			sum -= log(y.at(n, n % KINDS, 0, 0)) / BATCH;
		return sum;
	}
	void same(const char *what, network &other)
	{
		for (std::pair<tensor<float> *, tensor<float> *> p :
		     {std::make_pair(&one.w, &other.one.w), std::make_pair(&one.b, &other.one.b),
		      std::make_pair(&two.w, &other.two.w), std::make_pair(&two.b, &other.two.b)}) {
			CHECK(cudaMemcpy(p.second->host.data(), p.second->gpu, p.second->host.size() * sizeof(float),
					 cudaMemcpyDeviceToHost));
			p.first->host = p.second->host;
			p.first->check(what, 1e-3);
		}
	}
};

int main(void)
{
	cudnnHandle_t handle = dnn_handle(), other[3];
	cudaStream_t stream[3];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	double before, after;

	network plain(handle);

	plain.step();
	before = plain.loss();
	for (int i = 1; i < STEPS; i++)
		plain.step();
	after = plain.loss();
	REQUIRE(before > 0.5 && before < 3 && after < before / 4, "the loss was %g and is %g", before, after);

	for (int i = 0; i < 3; i++) {
		DNN(cudnnCreate(&other[i]));
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
		DNN(cudnnSetStream(other[i], stream[i]));
	}

	network first(other[0]), second(other[1]), third(other[2]);
	std::thread threads[2];

	CHECK(cudaDeviceSynchronize());
	for (network *n : {&first, &second})
		threads[n == &second] = std::thread([n] {
			for (int i = 0; i < STEPS; i++)
				n->step();
		});
	for (std::thread &t : threads)
		t.join();

	/* What a step needs is loaded before the capture. */
	third.step();
	CHECK(cudaDeviceSynchronize());
	third.one.reset();
	third.two.reset();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(stream[2], cudaStreamCaptureModeThreadLocal));
	third.step();
	CHECK(cudaStreamEndCapture(stream[2], &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	for (int i = 0; i < STEPS; i++)
		CHECK(cudaGraphLaunch(exec, stream[2]));
	CHECK(cudaDeviceSynchronize());
	first.same("a thread has learnt something else", plain);
	second.same("the other thread has learnt something else", plain);
	third.same("the graph has learnt something else", plain);
	REQUIRE(fabs(third.loss() - after) < 1e-3, "the loss of the graph is %g, not %g", third.loss(), after);
	CHECK(cudaGraphExecDestroy(exec));
	for (int i = 0; i < 3; i++) {
		DNN(cudnnDestroy(other[i]));
		CHECK(cudaStreamDestroy(stream[i]));
	}
	DNN(cudnnDestroy(handle));
	printf("a network has learnt, alone, in two threads and as a graph\n");
	return 0;
}
