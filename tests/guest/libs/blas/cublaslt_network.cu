// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A network of three layers by cuBLASLt, each one product with a bias and, but for the last, ReLU behind
 * it. Two halves of the inputs go through it side by side, in two streams; all of it is captured into a
 * graph, which is launched again and again: with other inputs, and with other weights. Wrong calls first.
 */
#include "blaslt.h"

#define LAYERS 3
#define HALVES 2
#define COLS   24

static const int sizes[LAYERS + 1] = {32, 48, 40, 16};
static const float scale = 0.125f, zero = 0;
static const size_t workspace_size = 2 << 20;
static cublasLtHandle_t handle;

/* out = relu(scale * weights * in + bias), with an algorithm that is chosen once. */
struct stage {
	int rows, inner;
	array<float> weights, bias;
	layout lw, lin, lout;
	cublasLtMatmulDesc_t desc;
	cublasLtMatmulAlgo_t algo;
	bool relu;
	stage(int i)
	    : rows(sizes[i + 1]), inner(sizes[i]), weights(rows * inner), bias(rows),
	      lw(CUDA_R_32F, inner, rows, inner), lin(CUDA_R_32F, inner, COLS, inner),
	      lout(CUDA_R_32F, rows, COLS, rows), relu(i < LAYERS - 1)
	{
		const cublasLtEpilogue_t epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
		const cublasOperation_t op = CUBLAS_OP_T;

		BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof(op)));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.gpu,
						    sizeof(bias.gpu)));
		algo = choose(handle, workspace_size, desc, lw.l, lin.l, lout.l, lout.l);
	}
	~stage()
	{
		BLAS(cublasLtMatmulDescDestroy(desc));
	}
	void run(const float *in, float *out, void *workspace, cudaStream_t stream)
	{
		BLAS(cublasLtMatmul(handle, desc, &scale, weights.gpu, lw.l, in, lin.l, &zero, out, lout.l, out, lout.l,
				    &algo, workspace, workspace_size, stream));
	}
	std::vector<float> expect(const std::vector<float> &in)
	{
		std::vector<float> out(rows * COLS);

		reference<float>(CUBLAS_OP_T, CUBLAS_OP_N, rows, COLS, inner, scale, weights.host.data(), inner,
				 in.data(), inner, 0, out.data(), rows);
		for (int i = 0; i < rows * COLS; i++) {
			out[i] += bias.host[i % rows];
			if (relu && out[i] < 0)
				out[i] = 0;
		}
		return out;
	}
};

struct branch {
	array<float> in, hidden, more, out;
	char *workspace;
	cudaStream_t stream;
	branch() : in(sizes[0] * COLS), hidden(sizes[1] * COLS), more(sizes[2] * COLS), out(sizes[3] * COLS)
	{
		CHECK(cudaMalloc(&workspace, workspace_size));
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	}
	~branch()
	{
		CHECK(cudaFree(workspace));
		CHECK(cudaStreamDestroy(stream));
	}
};

static void wrong_calls(stage &s, branch &h)
{
	/* The input has the output's shape. */
	BLAS_IS(cublasLtMatmul(handle, s.desc, &scale, s.weights.gpu, s.lw.l, h.in.gpu, s.lout.l, &zero, h.hidden.gpu,
			       s.lout.l, h.hidden.gpu, s.lout.l, NULL, NULL, 0, 0),
		CUBLAS_STATUS_INVALID_VALUE);
	h.hidden.check("after wrong calls");
}

static cudaGraphExec_t capture(stage *network, branch *halves)
{
	cudaGraphExec_t exec;
	cudaEvent_t event;
	cudaGraph_t graph;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CHECK(cudaStreamBeginCapture(halves[0].stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaEventRecord(event, halves[0].stream));
	CHECK(cudaStreamWaitEvent(halves[1].stream, event, 0));
	for (int i = 0; i < HALVES; i++) {
		branch &h = halves[i];

		network[0].run(h.in.gpu, h.hidden.gpu, h.workspace, h.stream);
		network[1].run(h.hidden.gpu, h.more.gpu, h.workspace, h.stream);
		network[2].run(h.more.gpu, h.out.gpu, h.workspace, h.stream);
	}
	CHECK(cudaEventRecord(event, halves[1].stream));
	CHECK(cudaStreamWaitEvent(halves[0].stream, event, 0));
	CHECK(cudaStreamEndCapture(halves[0].stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(event));
	return exec;
}

static void renew(array<float> &a)
{
	for (float &v : a.host)
		v = (float)small_number();
	a.up();
}

int main(void)
{
	cudaGraphExec_t exec;
	cudaStream_t stream;

	BLAS(cublasLtCreate(&handle));
	{
		stage network[LAYERS] = {0, 1, 2};
		branch halves[HALVES];

		wrong_calls(network[0], halves[0]);
		exec = capture(network, halves);
		halves[0].out.check("nothing has run");
		CHECK(cudaStreamCreate(&stream));
		for (int round = 0; round < 5; round++) {
			for (branch &h : halves)
				renew(h.in);
			if (round == 3) {
				renew(network[1].weights);
				renew(network[2].bias);
			}
			CHECK(cudaGraphLaunch(exec, stream));
			CHECK(cudaStreamSynchronize(stream));
			for (branch &h : halves) {
				h.out.host = network[2].expect(network[1].expect(network[0].expect(h.in.host)));
				h.out.check("a network");
			}
		}
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaStreamDestroy(stream));
	}
	BLAS(cublasLtDestroy(handle));
	return verified("%d layers by cuBLASLt, two halves side by side in a graph", LAYERS);
}
