// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuFFT that the guest carries out itself: they create and destroy plans, set a plan's
 * stream, and make a plan in one step. A plan is the number of its object. The calls that make a
 * plan also say how large what it reads and writes is, and the guest keeps that.
 */
#include <stdlib.h>

#include "qcu-library/shims/cufft.h"

cufftResult cufftCreate(cufftHandle *plan)
{
	struct qcul_object *o;
	void *made = NULL;
	int status;

	if (!plan)
		return CUFFT_INVALID_VALUE;
	status = qcul_lib_create(&qcul_cufft, KIND_cufftHandle, &made);
	if (status)
		return (cufftResult)status;
	o = made;
	*plan = (cufftHandle)o->number;
	return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle plan)
{
	struct qcul_object *o = qcul_lib_find(qcul_lib_by_number(plan), KIND_cufftHandle);

	if (o)
		qcul_cufft_forget(o);
	return (cufftResult)qcul_lib_destroy(&qcul_cufft, KIND_cufftHandle, o);
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream)
{
	struct qcul_object *o = qcul_lib_find(qcul_lib_by_number(plan), KIND_cufftHandle);

	if (!o)
		return CUFFT_INVALID_PLAN;
	o->stream = stream;
	return CUFFT_SUCCESS;
}

/* `status` says whether the new plan could be made ready. */
static cufftResult finish_new_plan(cufftHandle *plan, cufftHandle h, cufftResult status)
{
	if (status == CUFFT_SUCCESS)
		*plan = h;
	else
		cufftDestroy(h);
	return status;
}

cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch)
{
	cufftHandle h;
	cufftResult status = plan ? cufftCreate(&h) : CUFFT_INVALID_VALUE;
	size_t size;

	return status ? status
		      : finish_new_plan(plan, h, cufftMakePlan1d(h, nx, type, batch, &size));
}

cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type)
{
	cufftHandle h;
	cufftResult status = plan ? cufftCreate(&h) : CUFFT_INVALID_VALUE;
	size_t size;

	return status ? status : finish_new_plan(plan, h, cufftMakePlan2d(h, nx, ny, type, &size));
}

cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type)
{
	cufftHandle h;
	cufftResult status = plan ? cufftCreate(&h) : CUFFT_INVALID_VALUE;
	size_t size;

	return status ? status
		      : finish_new_plan(plan, h, cufftMakePlan3d(h, nx, ny, nz, type, &size));
}

cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist,
			  int *onembed, int ostride, int odist, cufftType type, int batch)
{
	cufftHandle h;
	cufftResult status = plan ? cufftCreate(&h) : CUFFT_INVALID_VALUE;
	size_t size;

	return status ? status
		      : finish_new_plan(plan, h,
					cufftMakePlanMany(h, rank, n, inembed, istride, idist,
							  onembed, ostride, odist, type, batch,
							  &size));
}

/* ---- how large a plan is ---- */

void qcul_cufft_forget(struct qcul_object *o)
{
	free(o->own);
	o->own = NULL;
}

/* One side of a transform. embed is NULL: its numbers lie one behind the other. */
struct plan_numbers {
	const long long *embed;
	long long stride, dist;
	unsigned int size; /* of a number; 0: there is no such type */
	bool real;
};

/* A size that is too large becomes the largest. */
static size_t multiply_sizes(size_t a, size_t b)
{
	size_t product;

	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static size_t bytes_of_side(const struct plan_numbers *s, int rank, const long long *n,
			    long long batch, bool other_real)
{
	size_t count = 1, all;
	int i;

	for (i = 0; i < rank; i++) {
		const bool half = other_real && !s->real && i == rank - 1;
		const size_t plain = (size_t)(half ? n[i] / 2 + 1 : n[i]);

		/* The first dimension of those that are embedded has no meaning. */
		count = multiply_sizes(count, s->embed && i ? (size_t)s->embed[i] : plain);
	}
	if (!s->embed)
		return multiply_sizes(multiply_sizes(count, (size_t)batch), s->size);
	count = multiply_sizes(count, (size_t)s->stride);
	all = multiply_sizes((size_t)s->dist, (size_t)batch - 1);
	return __builtin_add_overflow(all, count, &all) ? SIZE_MAX : multiply_sizes(all, s->size);
}

/* The library has accepted all numbers, if `status` is right. */
static cufftResult keep_layout(cufftHandle plan, cufftResult status, int rank, const long long *n,
			       const struct plan_numbers *in, const struct plan_numbers *out,
			       long long batch)
{
	struct qcul_object *o =
		status ? NULL : qcul_lib_find(qcul_lib_by_number(plan), KIND_cufftHandle);
	struct qcul_cufft_layout *l;

	if (!o || !in->size || !out->size)
		return status;
	l = o->own ? o->own : malloc(sizeof(*l));
	if (!l)
		return CUFFT_ALLOC_FAILED;
	l->in = bytes_of_side(in, rank, n, batch, out->real);
	l->out = bytes_of_side(out, rank, n, batch, in->real);
	o->own = l;
	return status;
}

/* The upper bit of a half byte says "double", the type's last digit which side is real. */
static void sides_of_type(cufftType type, struct plan_numbers *in, struct plan_numbers *out)
{
	const unsigned int one = (unsigned int)type & 0x40 ? 8 : 4;

	in->real = type == CUFFT_R2C || type == CUFFT_D2Z;
	out->real = type == CUFFT_C2R || type == CUFFT_Z2D;
	in->size = in->real ? one : 2 * one;
	out->size = out->real ? one : 2 * one;
}

static cufftResult keep_plain(cufftHandle plan, cufftResult status, int rank, long long a,
			      long long b, long long c, cufftType type, int batch)
{
	const long long n[] = {a, b, c};
	struct plan_numbers in = {0}, out = {0};

	sides_of_type(type, &in, &out);
	return keep_layout(plan, status, rank, n, &in, &out, batch);
}

cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *size)
{
	return keep_plain(plan, inner_cufftMakePlan1d(plan, nx, type, batch, size), 1, nx, 0, 0,
			  type, batch);
}

cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *size)
{
	return keep_plain(plan, inner_cufftMakePlan2d(plan, nx, ny, type, size), 2, nx, ny, 0, type,
			  1);
}

cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *size)
{
	return keep_plain(plan, inner_cufftMakePlan3d(plan, nx, ny, nz, type, size), 3, nx, ny, nz,
			  type, 1);
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *inembed,
				long long istride, long long idist, long long *onembed,
				long long ostride, long long odist, cufftType type, long long batch,
				size_t *size)
{
	struct plan_numbers in = {.embed = inembed, .stride = istride, .dist = idist};
	struct plan_numbers out = {.embed = onembed, .stride = ostride, .dist = odist};

	sides_of_type(type, &in, &out);
	return keep_layout(plan,
			   inner_cufftMakePlanMany64(plan, rank, n, inembed, istride, idist,
						     onembed, ostride, odist, type, batch, size),
			   rank, n, &in, &out, batch);
}

/* At most three numbers. NULL: there are none. */
static const long long *widen(const int *from, int rank, long long to[3])
{
	int i;

	for (i = 0; from && i < rank; i++)
		to[i] = from[i];
	return from ? to : NULL;
}

cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride,
			      int idist, int *onembed, int ostride, int odist, cufftType type,
			      int batch, size_t *size)
{
	cufftResult status = inner_cufftMakePlanMany(plan, rank, n, inembed, istride, idist,
						     onembed, ostride, odist, type, batch, size);
	long long wide[3][3];
	struct plan_numbers in = {.stride = istride, .dist = idist};
	struct plan_numbers out = {.stride = ostride, .dist = odist};

	if (status)
		return status;
	in.embed = widen(inembed, rank, wide[1]);
	out.embed = widen(onembed, rank, wide[2]);
	sides_of_type(type, &in, &out);
	return keep_layout(plan, status, rank, widen(n, rank, wide[0]), &in, &out, batch);
}

static void side_of_number(cudaDataType type, struct plan_numbers *s)
{
	static const struct {
		cudaDataType type;
		unsigned int size;
		bool real;
	} all[] = {
		{CUDA_R_16F, 2, true},	{CUDA_R_16BF, 2, true},	 {CUDA_R_32F, 4, true},
		{CUDA_R_64F, 8, true},	{CUDA_C_16F, 4, false},	 {CUDA_C_16BF, 4, false},
		{CUDA_C_32F, 8, false}, {CUDA_C_64F, 16, false},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].type == type) {
			s->size = all[i].size;
			s->real = all[i].real;
		}
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed,
				long long istride, long long idist, cudaDataType input,
				long long *onembed, long long ostride, long long odist,
				cudaDataType output, long long batch, size_t *size,
				cudaDataType execution)
{
	struct plan_numbers in = {.embed = inembed, .stride = istride, .dist = idist};
	struct plan_numbers out = {.embed = onembed, .stride = ostride, .dist = odist};

	side_of_number(input, &in);
	side_of_number(output, &out);
	return keep_layout(plan,
			   inner_cufftXtMakePlanMany(plan, rank, n, inembed, istride, idist, input,
						     onembed, ostride, odist, output, batch, size,
						     execution),
			   rank, n, &in, &out, batch);
}
