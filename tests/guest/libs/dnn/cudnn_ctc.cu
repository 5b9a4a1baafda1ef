// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The CTC loss of cuDNN with labels in the GPU's memory and in the host's, and its gradient, for labels of several
 * lengths, with repetitions: beside the sum over all paths that spell a label, one by one, and the
 * derivative by definition. By both algorithms, with softmax in front and without. Wrong calls first.
 */
#include "dnn.h"
#include "ours.h"

enum { TIMES = 6, BATCH = 4, LETTERS = 4, LONGEST = 3 };

static cudnnHandle_t handle;

/* 0 is the blank. */
static const std::vector<int> labels[BATCH] = {{1, 2, 3}, {2, 2}, {3}, {1, 3, 1}};

static void wrong_calls(void)
{
	cudnnLossNormalizationMode_t mode;
	cudnnNanPropagation_t nan;
	cudnnCTCLossDescriptor_t desc;
	cudnnCTCGradMode_t grad;
	cudnnDataType_t type;
	int longest = 0;

	DNN_FAILS(cudnnCreateCTCLossDescriptor(NULL));
	DNN(cudnnCreateCTCLossDescriptor(&desc));
	DNN_FAILS(cudnnSetCTCLossDescriptor(NULL, CUDNN_DATA_FLOAT));
	DNN(cudnnSetCTCLossDescriptor_v8(desc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_NONE, CUDNN_PROPAGATE_NAN,
					 9));
	DNN(cudnnGetCTCLossDescriptor_v8(desc, &type, &mode, &nan, &longest));
	REQUIRE(type == CUDNN_DATA_FLOAT && mode == CUDNN_LOSS_NORMALIZATION_NONE && nan == CUDNN_PROPAGATE_NAN &&
			longest == 9,
		"%d %d %d %d", (int)type, (int)mode, (int)nan, longest);
	DNN(cudnnSetCTCLossDescriptorEx(desc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
					CUDNN_NOT_PROPAGATE_NAN));
	DNN(cudnnGetCTCLossDescriptorEx(desc, &type, &mode, &nan));
	REQUIRE(mode == CUDNN_LOSS_NORMALIZATION_SOFTMAX && nan == CUDNN_NOT_PROPAGATE_NAN, "%d %d", (int)mode,
		(int)nan);
	DNN(cudnnSetCTCLossDescriptor_v9(desc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_NONE,
					 CUDNN_CTC_ZERO_OOB_GRADIENTS, LONGEST));
	DNN(cudnnGetCTCLossDescriptor_v9(desc, &type, &mode, &grad, &longest));
	REQUIRE(mode == CUDNN_LOSS_NORMALIZATION_NONE && grad == CUDNN_CTC_ZERO_OOB_GRADIENTS && longest == LONGEST,
		"%d %d %d", (int)mode, (int)grad, longest);
	DNN(cudnnDestroyCTCLossDescriptor(desc));
}

/* What a path of letters spells: repetitions count once, and blanks not at all. */
static bool spells(int path, const std::vector<int> &label)
{
	size_t found = 0;
	int last = 0;

	for (int t = 0; t < TIMES; t++, path /= LETTERS) {
		int letter = path % LETTERS;

		if (letter && letter != last && (found == label.size() || label[found++] != letter))
			return false;
		last = letter;
	}
	return found == label.size();
}

/* The probability of a label, and for each time and letter, of the paths that have this letter then. */
static double probability(const std::vector<double> &p, const std::vector<int> &label, std::vector<double> &at)
{
	double all = 0;
	int paths = 1;

	for (int t = 0; t < TIMES; t++)
		paths *= LETTERS;
	at.assign(TIMES * LETTERS, 0);
	for (int path = 0; path < paths; path++) {
		double product = 1;

		if (!spells(path, label))
			continue;
		for (int t = 0, rest = path; t < TIMES; t++, rest /= LETTERS)
			product *= p[t * LETTERS + rest % LETTERS];
		for (int t = 0, rest = path; t < TIMES; t++, rest /= LETTERS)
			at[t * LETTERS + rest % LETTERS] += product;
		all += product;
	}
	return all;
}

static int *up(const std::vector<int> &v)
{
	int *gpu = (int *)room(v.size() * sizeof(int));

	CHECK(cudaMemcpy(gpu, v.data(), v.size() * sizeof(int), cudaMemcpyHostToDevice));
	return gpu;
}

static void loss(cudnnCTCLossAlgo_t algo, bool softmax)
{
	const int dim[] = {TIMES, BATCH, LETTERS}, stride[] = {BATCH * LETTERS, LETTERS, 1};
	std::vector<int> spelt, lengths, times(BATCH, TIMES);
	tensor<float> x(1, TIMES, BATCH, LETTERS), gradients(1, TIMES, BATCH, LETTERS), costs(1, 1, 1, BATCH);
	cudnnCTCLossDescriptor_t desc;
	size_t bytes = 0;
	int *gpu[3];
	void *space;

	for (const std::vector<int> &label : labels) {
		spelt.insert(spelt.end(), label.begin(), label.end());
		lengths.push_back((int)label.size());
	}
	gpu[0] = up(spelt), gpu[1] = up(lengths), gpu[2] = up(times);
	for (tensor<float> *t : {&x, &gradients})
		DNN(cudnnSetTensorNdDescriptor(t->desc, CUDNN_DATA_FLOAT, 3, dim, stride));
	for (int b = 0; b < BATCH; b++) {
		std::vector<double> p, at;

		for (int t = 0; t < TIMES; t++) {
			double sum = 0;

			for (int i = 0; i < LETTERS; i++)
				sum += exp(x.at(0, t, b, i));
			for (int i = 0; i < LETTERS; i++) {
				p.push_back(exp(x.at(0, t, b, i)) / sum);
				if (!softmax)
					x.at(0, t, b, i) = (float)p.back();
			}
		}

		const double all = probability(p, labels[b], at);

		costs.host[b] = (float)-log(all);
		/* By the input of softmax. */
		for (int i = 0; i < TIMES * LETTERS; i++)
			gradients.at(0, i / LETTERS, b, i % LETTERS) = (float)(p[i] - at[i] / all);
	}
	x.up();
	DNN(cudnnCreateCTCLossDescriptor(&desc));
	DNN(cudnnSetCTCLossDescriptor_v9(desc, CUDNN_DATA_FLOAT,
					 softmax ? CUDNN_LOSS_NORMALIZATION_SOFTMAX : CUDNN_LOSS_NORMALIZATION_NONE,
					 CUDNN_CTC_ZERO_OOB_GRADIENTS, LONGEST));
	DNN(cudnnGetCTCLossWorkspaceSize_v8(handle, algo, desc, x.desc, gradients.desc, &bytes));
	space = room(bytes);
	for (int i = 0; i < 2; i++) {
		costs.clear();
		DNN(cudnnCTCLoss_v8(handle, algo, desc, x.desc, x.gpu, gpu[0], gpu[1], gpu[2], costs.gpu,
				    gradients.desc, gradients.gpu, bytes, space));
		costs.check("the costs");
		if (softmax)
			gradients.check("the gradient", 1e-3);
	}
	/* The older function. NVIDIA's crashes if there is no place for the size. */
	if (is_ours("cudaMalloc"))
		DNN_FAILS(cudnnGetCTCLossWorkspaceSize(handle, x.desc, gradients.desc, spelt.data(), lengths.data(),
						       times.data(), algo, desc, NULL));
	CHECK(cudaFree(space));
	DNN(cudnnGetCTCLossWorkspaceSize(handle, x.desc, gradients.desc, spelt.data(), lengths.data(), times.data(), algo,
					 desc, &bytes));
	space = room(bytes);
	for (int i = 0; i < 2; i++) {
		costs.clear();
		DNN(cudnnCTCLoss(handle, x.desc, x.gpu, spelt.data(), lengths.data(), times.data(), costs.gpu,
				 gradients.desc, gradients.gpu, algo, desc, space, bytes));
		costs.check("the costs of labels in host memory");
		if (softmax)
			gradients.check("their gradient", 1e-3);
	}
	DNN(cudnnDestroyCTCLossDescriptor(desc));
	for (int *p : gpu)
		CHECK(cudaFree(p));
	CHECK(cudaFree(space));
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	for (bool softmax : {true, false}) {
		loss(CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, softmax);
		loss(CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC, softmax);
	}
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("the CTC loss of four labels and its gradient, by two algorithms\n");
	return 0;
}
