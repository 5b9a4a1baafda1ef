// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cufftXt's descriptors on one GPU: memory that fits a plan, of each format, copies to it, from it
 * and between two, and transforms, which are compared with those by the definition. Wrong plans,
 * formats, copies and GPUs come first.
 */
#include "fft.h"
#include "ours.h"

#define ROW   60
#define BATCH 3
#define A     6
#define B     5
#define LAST  9
#define HALF  (LAST / 2 + 1)

#define IS(call, want)                                                          \
	do {                                                                    \
		int got_ = (int)(call);                                         \
		REQUIRE(got_ == (want), "%s: %d, not %d", #call, got_, (want)); \
	} while (0)

static void wrong(void)
{
	cufftHandle plan, none = 77;
	int one[] = {0}, many[] = {0, 99};
	cudaLibXtDesc *d = NULL;
	size_t size;
	C host[ROW];
	void *callback = NULL;

	OK(cufftCreate(&plan));
	IS(cufftXtSetGPUs(plan, 2, NULL), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(none, 2, many), CUFFT_INVALID_PLAN);
	IS(cufftXtSetGPUs(plan, 0, one), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 1, one), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 17, one), CUFFT_INVALID_VALUE);
	IS(cufftXtSetGPUs(plan, 2, many), CUFFT_INVALID_DEVICE);
	IS(cufftXtMalloc(plan, NULL, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_VALUE);
	/* Nothing is known of the plan. */
	IS(cufftXtMalloc(plan, &d, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	IS(cufftXtMalloc(none, &d, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	IS(cufftXtMemcpy(none, host, host, CUFFT_COPY_HOST_TO_DEVICE), CUFFT_INVALID_PLAN);
	IS(cufftXtExecDescriptorC2C(none, NULL, NULL, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftXtSetWorkArea(plan, NULL), CUFFT_INVALID_VALUE);
	IS(cufftXtSetCallback(plan, &callback, CUFFT_CB_LD_COMPLEX, NULL), CUFFT_NOT_IMPLEMENTED);
	IS(cufftXtClearCallback(plan, CUFFT_CB_LD_COMPLEX), CUFFT_NOT_IMPLEMENTED);
	FAILS(cufftMakePlan1d(plan, 0, CUFFT_C2C, 1, &size));
	IS(cufftXtMalloc(plan, &d, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	REQUIRE(!d, "a descriptor of nothing");
	OK(cufftXtFree(NULL));
	OK(cufftDestroy(plan));
}

static void is_memory(const cudaLibXtDesc *d, size_t size, int format)
{
	int device;

	CHECK(cudaGetDevice(&device));
	REQUIRE(d && d->descriptor && d->subFormat == format && d->library == LIB_FORMAT_CUFFT,
		"not a descriptor of cuFFT");
	REQUIRE(d->descriptor->nGPUs == 1 && d->descriptor->GPUs[0] == device &&
			d->descriptor->data[0] && d->descriptor->size[0] == size,
		"%zu bytes, not %zu", d->descriptor->size[0], size);
}

/* Rows of complex numbers, in place, and from one descriptor to another. */
static void rows(void)
{
	std::vector<C> x = numbers<C>(ROW * BATCH), got(ROW * BATCH), want;
	cudaLibXtDesc *in, *out, *both;
	const size_t bytes = x.size() * sizeof(C);
	int which[] = {0, 0};
	cufftHandle plan;

	for (int b = 0; b < BATCH; b++) {
		const std::vector<Z> one = transform(&x[b * ROW], ROW, -1);

		want.insert(want.end(), one.begin(), one.end());
	}
	OK(cufftPlan1d(&plan, ROW, CUFFT_C2C, BATCH));
	IS(cufftXtSetGPUs(plan, 2, which), CUFFT_INVALID_PLAN);
	OK(cufftXtMalloc(plan, &in, CUFFT_XT_FORMAT_INPUT));
	OK(cufftXtMalloc(plan, &out, CUFFT_XT_FORMAT_OUTPUT));
	OK(cufftXtMalloc(plan, &both, CUFFT_XT_FORMAT_INPLACE));
	is_memory(in, bytes, CUFFT_XT_FORMAT_INPUT);
	is_memory(out, bytes, CUFFT_XT_FORMAT_OUTPUT);
	is_memory(both, bytes, CUFFT_XT_FORMAT_INPLACE);
	IS(cufftXtMemcpy(plan, in, in, CUFFT_COPY_DEVICE_TO_DEVICE), CUFFT_INVALID_VALUE);
	IS(cufftXtMemcpy(plan, in, x.data(), CUFFT_COPY_UNDEFINED), CUFFT_INVALID_VALUE);
	FAILS(cufftXtExecDescriptorC2C(plan, in, NULL, CUFFT_FORWARD));
	OK(cufftXtMemcpy(plan, in, x.data(), CUFFT_COPY_HOST_TO_DEVICE));
	OK(cufftXtMemcpy(plan, both, in, CUFFT_COPY_DEVICE_TO_DEVICE));
	OK(cufftXtExecDescriptorC2C(plan, in, out, CUFFT_FORWARD));
	OK(cufftXtMemcpy(plan, got.data(), out, CUFFT_COPY_DEVICE_TO_HOST));
	compare("from one to another", got, want);
	OK(cufftXtExecDescriptorC2C(plan, both, both, CUFFT_FORWARD));
	OK(cufftXtMemcpy(plan, got.data(), both, CUFFT_COPY_DEVICE_TO_HOST));
	compare("in place", got, want);
	OK(cufftXtExecDescriptor(plan, both, both, CUFFT_INVERSE));
	OK(cufftXtMemcpy(plan, got.data(), both, CUFFT_COPY_DEVICE_TO_HOST));
	compare("and back", got, x, 1.0 / ROW);
	for (cudaLibXtDesc *d : {in, out, both})
		OK(cufftXtFree(d));
	OK(cufftDestroy(plan));
}

/* A box of real numbers: its last row is longer where the result replaces it. */
static void box(void)
{
	std::vector<double> x = numbers<double>(A * B * LAST), padded(A * B * 2 * HALF), back(A * B * LAST);
	std::vector<Z> want = transform(x, {A, B, LAST}, -1), got(A * B * HALF);
	cudaLibXtDesc *in, *out, *both;
	cufftHandle there, home;

	for (int i = 0; i < A * B * LAST; i++)
		padded[i / LAST * 2 * HALF + i % LAST] = x[i];
	OK(cufftPlan3d(&there, A, B, LAST, CUFFT_D2Z));
	OK(cufftPlan3d(&home, A, B, LAST, CUFFT_Z2D));
	OK(cufftXtMalloc(there, &in, CUFFT_XT_FORMAT_INPUT));
	OK(cufftXtMalloc(there, &out, CUFFT_XT_FORMAT_OUTPUT));
	OK(cufftXtMalloc(there, &both, CUFFT_XT_FORMAT_INPLACE));
	is_memory(in, x.size() * sizeof(double), CUFFT_XT_FORMAT_INPUT);
	is_memory(out, got.size() * sizeof(Z), CUFFT_XT_FORMAT_OUTPUT);
	is_memory(both, got.size() * sizeof(Z), CUFFT_XT_FORMAT_INPLACE);
	for (bool place : {false, true}) {
		OK(cufftXtMemcpy(there, place ? both : in, place ? padded.data() : x.data(),
				 CUFFT_COPY_HOST_TO_DEVICE));
		OK(cufftXtExecDescriptorD2Z(there, place ? both : in, place ? both : out));
		OK(cufftXtMemcpy(there, got.data(), place ? both : out, CUFFT_COPY_DEVICE_TO_HOST));
		for (int i = 0; i < A * B; i++)
			compare(place ? "a box in place" : "a box", &got[i * HALF], &want[i * LAST], HALF);
	}
	OK(cufftXtExecDescriptorZ2D(home, out, in));
	OK(cufftXtMemcpy(home, back.data(), in, CUFFT_COPY_DEVICE_TO_HOST));
	compare("a box, and back", back, x, 1.0 / (A * B * LAST));
	for (cudaLibXtDesc *d : {in, out, both})
		OK(cufftXtFree(d));
	OK(cufftDestroy(there));
	OK(cufftDestroy(home));
}

/* Columns of a matrix. Their numbers lie apart, and the plan says how large all of it is. */
static void layouts(void)
{
	long long n[] = {ROW}, embed[] = {ROW};
	int n32[] = {ROW}, embed32[] = {ROW};
	std::vector<C> x = numbers<C>(ROW * BATCH), got(ROW * BATCH), column(ROW), is(ROW);
	cudaLibXtDesc *d;
	cufftHandle plan;
	size_t size;

	for (int way = 0; way < 3; way++) {
		OK(cufftCreate(&plan));
		OK(way == 0   ? cufftMakePlanMany(plan, 1, n32, embed32, BATCH, 1, embed32, BATCH, 1,
						  CUFFT_C2C, BATCH, &size)
		   : way == 1 ? cufftMakePlanMany64(plan, 1, n, embed, BATCH, 1, embed, BATCH, 1,
						    CUFFT_C2C, BATCH, &size)
			      : cufftXtMakePlanMany(plan, 1, n, embed, BATCH, 1, CUDA_C_32F, embed,
						    BATCH, 1, CUDA_C_32F, BATCH, &size, CUDA_C_32F));
		OK(cufftXtMalloc(plan, &d, CUFFT_XT_FORMAT_INPLACE_SHUFFLED));
		REQUIRE(d->descriptor->size[0] >= x.size() * sizeof(C) &&
				d->descriptor->size[0] < (x.size() + BATCH) * sizeof(C),
			"%zu bytes", d->descriptor->size[0]);
		x.resize(d->descriptor->size[0] / sizeof(C));
		got.resize(x.size());
		OK(cufftXtMemcpy(plan, d, x.data(), CUFFT_COPY_HOST_TO_DEVICE));
		OK(cufftXtExecDescriptorC2C(plan, d, d, CUFFT_FORWARD));
		OK(cufftXtMemcpy(plan, got.data(), d, CUFFT_COPY_DEVICE_TO_HOST));
		for (int b = 0; b < BATCH; b++) {
			for (int i = 0; i < ROW; i++) {
				column[i] = x[i * BATCH + b];
				is[i] = got[i * BATCH + b];
			}
			compare("a column", is, transform(column.data(), ROW, -1));
		}
		OK(cufftXtFree(d));
		OK(cufftDestroy(plan));
	}
}

int main(void)
{
	begin();
	if (!is_ours("cudaMalloc")) {
		printf("skipped: with one GPU, NVIDIA's library makes descriptors without memory\n");
		return 77;
	}
	wrong();
	rows();
	box();
	layouts();
	printf("transforms of descriptors\n");
	return 0;
}
