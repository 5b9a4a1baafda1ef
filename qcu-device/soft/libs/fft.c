// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cuFFT on the software GPU: transforms of complex and real numbers in float and double, of one to
 * three dimensions, in batches and in any layout, in the order of the stream. FFTW computes them.
 *
 * What a call needs depends on whether it works in place, so FFTW's plan is made when the call
 * runs, without measuring. FFTW's planner may be used by one thread at a time.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cufft.h>
#include <cufftXt.h>

#include "qcu-device/soft/libs/libs.h"

#define RANK	  3
#define ELEMENTS  (1ll << 40) /* no GPU has more */
#define ESTIMATE  (1u << 6)
#define UNALIGNED (1u << 1)

/* FFTW's own: a dimension, and its distances in elements. */
struct iodim {
	ptrdiff_t n, is, os;
};

/* One of the types of transforms. Real numbers lie on the side that this says. */
struct kind {
	cufftType type;
	bool twice, real_in, real_out; /* twice: double */
};

static const struct kind kinds[] = {
	{CUFFT_C2C, false, false, false}, {CUFFT_R2C, false, true, false},
	{CUFFT_C2R, false, false, true},  {CUFFT_Z2Z, true, false, false},
	{CUFFT_D2Z, true, true, false},	  {CUFFT_Z2D, true, false, true},
};

/* How the elements of one side lie. */
struct side {
	bool given; /* by the program; if not: without gaps, and in place with padding */
	int64_t embed[RANK], stride, dist;
};

struct plan {
	struct be *be;
	struct be_stream *stream;
	const struct kind *kind; /* NULL: not made yet */
	int rank;
	int64_t n[RANK], batch;
	struct side in, out;
};

struct transform {
	struct soft_work work;
	struct plan plan;
	void *in, *out;
	int direction;
};

/* ---- plans ---- */

/* A plan is an int for programs. The mirror keeps it as a handle of which this is the lower half.
 */
#define PLANS 16384

static struct plan *plans[PLANS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct plan *find_plan(cufftHandle h)
{
	struct plan *p = NULL;

	pthread_mutex_lock(&lock);
	if (h > 0 && h < PLANS)
		p = plans[h];
	pthread_mutex_unlock(&lock);
	return p;
}

static cufftResult soft_cufftCreate(cufftHandle *h)
{
	struct plan *p = calloc(1, sizeof(*p));
	int i = 1;

	if (!p)
		return CUFFT_ALLOC_FAILED;
	p->be = soft_library_be;
	pthread_mutex_lock(&lock);
	while (i < PLANS && plans[i])
		i++;
	if (i < PLANS)
		plans[i] = p;
	pthread_mutex_unlock(&lock);
	if (i == PLANS) {
		free(p);
		return CUFFT_ALLOC_FAILED;
	}
	*h = i;
	return CUFFT_SUCCESS;
}

static cufftResult soft_cufftDestroy(cufftHandle h)
{
	struct plan *p = find_plan(h);

	if (!p)
		return CUFFT_INVALID_PLAN;
	pthread_mutex_lock(&lock);
	plans[h] = NULL;
	pthread_mutex_unlock(&lock);
	free(p);
	return CUFFT_SUCCESS;
}

static cufftResult soft_cufftSetStream(cufftHandle h, cudaStream_t stream)
{
	struct plan *p = find_plan(h);

	if (!p)
		return CUFFT_INVALID_PLAN;
	p->stream = (struct be_stream *)stream;
	return CUFFT_SUCCESS;
}

/* How many elements of the last dimension there are on a side. */
static int64_t last(const struct plan *p, bool real, bool complex_transform)
{
	int64_t n = p->n[p->rank - 1];

	return real || complex_transform ? n : n / 2 + 1;
}

/* The distances of a side. *need: how many elements it takes. False: too large. */
static bool layout(const struct plan *p, const struct side *s, bool real, bool in_place,
		   ptrdiff_t step[RANK], ptrdiff_t *dist, uint64_t *need)
{
	const bool complex_transform = !p->kind->real_in && !p->kind->real_out;
	int64_t at = s->given ? s->stride : 1, end = 0, span;
	int i;

	for (i = p->rank - 1; i >= 0; i--) {
		const bool inner = i == p->rank - 1;
		int64_t size = inner ? last(p, real, complex_transform) : p->n[i], room = size;

		step[i] = at;
		if (__builtin_mul_overflow(size - 1, at, &span) || span > ELEMENTS)
			return false;
		end += span;
		if (s->given)
			room = i ? s->embed[i] : 1;
		else if (inner && real && in_place)
			room = 2 * (p->n[i] / 2 + 1);
		if (__builtin_mul_overflow(at, room, &at) || at > ELEMENTS)
			return false;
	}
	*dist = s->given ? s->dist : at;
	if (__builtin_mul_overflow((int64_t)*dist, p->batch - 1, &span) || span > ELEMENTS)
		return false;
	*need = (uint64_t)(end + span + 1);
	return true;
}

/* FFTW's dimensions. */
static bool describe_dimensions(const struct plan *p, bool in_place, struct iodim dim[RANK],
				struct iodim *batch, uint64_t *need_in, uint64_t *need_out)
{
	ptrdiff_t is[RANK], os[RANK], in_dist, out_dist;
	int i;

	if (!layout(p, &p->in, p->kind->real_in, in_place, is, &in_dist, need_in) ||
	    !layout(p, &p->out, p->kind->real_out, in_place, os, &out_dist, need_out))
		return false;
	for (i = 0; i < p->rank; i++)
		dim[i] = (struct iodim){p->n[i], is[i], os[i]};
	*batch = (struct iodim){p->batch, in_dist, out_dist};
	return true;
}

static bool take_side(struct side *s, int rank, const long long *embed, int64_t stride,
		      int64_t dist)
{
	int i;

	s->given = embed;
	s->stride = stride;
	s->dist = dist;
	if (!embed)
		return true;
	for (i = 0; i < rank; i++) {
		s->embed[i] = embed[i];
		/* The first one is not used. */
		if (i && embed[i] < 1)
			return false;
	}
	return stride > 0 && stride <= ELEMENTS && dist >= 0 && dist <= ELEMENTS;
}

static cufftResult fill_in_plan(cufftHandle h, int rank, const long long *n,
				const long long *inembed, int64_t istride, int64_t idist,
				const long long *onembed, int64_t ostride, int64_t odist,
				cufftType type, int64_t batch, size_t *size)
{
	struct plan *p = find_plan(h), made;
	struct iodim dim[RANK], many;
	uint64_t in, out;
	size_t i;

	if (!p)
		return CUFFT_INVALID_PLAN;
	if (rank < 1 || rank > RANK || !n || p->kind)
		return CUFFT_INVALID_VALUE;
	made = *p;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			made.kind = &kinds[i];
	if (!made.kind)
		return CUFFT_INVALID_TYPE;
	made.rank = rank;
	made.batch = batch;
	for (i = 0; i < (size_t)rank; i++) {
		made.n[i] = n[i];
		if (n[i] < 1 || n[i] > ELEMENTS)
			return CUFFT_INVALID_SIZE;
	}
	/* Without both, neither counts. */
	if (!inembed || !onembed)
		inembed = onembed = NULL;
	if (batch < 1 || batch > ELEMENTS || !take_side(&made.in, rank, inembed, istride, idist) ||
	    !take_side(&made.out, rank, onembed, ostride, odist) ||
	    !describe_dimensions(&made, true, dim, &many, &in, &out))
		return CUFFT_INVALID_SIZE;
	*p = made;
	/* Nothing here needs a workspace. */
	if (size)
		*size = 0;
	return CUFFT_SUCCESS;
}

static cufftResult soft_cufftMakePlan1d(cufftHandle h, int nx, cufftType type, int batch,
					size_t *size)
{
	const long long n[] = {nx};

	return fill_in_plan(h, 1, n, NULL, 1, 0, NULL, 1, 0, type, batch, size);
}

static cufftResult soft_cufftMakePlan2d(cufftHandle h, int nx, int ny, cufftType type, size_t *size)
{
	const long long n[] = {nx, ny};

	return fill_in_plan(h, 2, n, NULL, 1, 0, NULL, 1, 0, type, 1, size);
}

static cufftResult soft_cufftMakePlan3d(cufftHandle h, int nx, int ny, int nz, cufftType type,
					size_t *size)
{
	const long long n[] = {nx, ny, nz};

	return fill_in_plan(h, 3, n, NULL, 1, 0, NULL, 1, 0, type, 1, size);
}

static const long long *widen_sizes(const int *from, int rank, long long to[RANK])
{
	int i;

	for (i = 0; from && i < rank && i < RANK; i++)
		to[i] = from[i];
	return from ? to : NULL;
}

static cufftResult soft_cufftMakePlanMany(cufftHandle h, int rank, int *n, int *inembed,
					  int istride, int idist, int *onembed, int ostride,
					  int odist, cufftType type, int batch, size_t *size)
{
	long long wn[RANK], wi[RANK], wo[RANK];

	return fill_in_plan(h, rank, widen_sizes(n, rank, wn), widen_sizes(inembed, rank, wi),
			    istride, idist, widen_sizes(onembed, rank, wo), ostride, odist, type,
			    batch, size);
}

static cufftResult soft_cufftMakePlanMany64(cufftHandle h, int rank, long long *n,
					    long long *inembed, long long istride, long long idist,
					    long long *onembed, long long ostride, long long odist,
					    cufftType type, long long batch, size_t *size)
{
	return fill_in_plan(h, rank, n, inembed, istride, idist, onembed, ostride, odist, type,
			    batch, size);
}

/* The type of a transform whose elements have these types, or 0. */
static cufftType typed(cudaDataType in, cudaDataType out, cudaDataType with)
{
	if (in == CUDA_C_32F && with == CUDA_C_32F)
		return out == CUDA_C_32F ? CUFFT_C2C : out == CUDA_R_32F ? CUFFT_C2R : 0;
	if (in == CUDA_C_64F && with == CUDA_C_64F)
		return out == CUDA_C_64F ? CUFFT_Z2Z : out == CUDA_R_64F ? CUFFT_Z2D : 0;
	if (in == CUDA_R_32F && out == CUDA_C_32F && with == CUDA_C_32F)
		return CUFFT_R2C;
	return in == CUDA_R_64F && out == CUDA_C_64F && with == CUDA_C_64F ? CUFFT_D2Z : 0;
}

static cufftResult soft_cufftXtMakePlanMany(cufftHandle h, int rank, long long *n,
					    long long *inembed, long long istride, long long idist,
					    cudaDataType in, long long *onembed, long long ostride,
					    long long odist, cudaDataType out, long long batch,
					    size_t *size, cudaDataType with)
{
	cufftType type = typed(in, out, with);

	return type ? fill_in_plan(h, rank, n, inembed, istride, idist, onembed, ostride, odist,
				   type, batch, size)
		    : CUFFT_NOT_SUPPORTED;
}

/* ---- transforms ---- */

/* FFTW's function, in one of its two libraries. */
static void *function(const struct transform *t, const char *name)
{
	return soft_fftw(t->plan.kind->twice, name);
}

static void *make_fftw(const struct transform *t, int rank, const struct iodim *dim,
		       const struct iodim *batch)
{
	const unsigned int flags = ESTIMATE | UNALIGNED;
	void *(*complex_one)(int, const struct iodim *, int, const struct iodim *, void *, void *,
			     int, unsigned int) = NULL;
	void *(*real_one)(int, const struct iodim *, int, const struct iodim *, void *, void *,
			  unsigned int) = NULL;

	if (t->plan.kind->real_in || t->plan.kind->real_out) {
		*(void **)&real_one = function(t, t->plan.kind->real_in ? "plan_guru64_dft_r2c"
									: "plan_guru64_dft_c2r");
		return real_one ? real_one(rank, dim, 1, batch, t->in, t->out, flags) : NULL;
	}
	*(void **)&complex_one = function(t, "plan_guru64_dft");
	return complex_one ? complex_one(rank, dim, 1, batch, t->in, t->out, t->direction, flags)
			   : NULL;
}

static int run_transform(struct soft_work *w)
{
	static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;
	struct transform *t = (struct transform *)w;
	const struct kind *kind = t->plan.kind;
	const uint64_t number = kind->twice ? 8 : 4;
	struct iodim dim[RANK], batch;
	uint64_t in, out;
	void (*execute)(void *plan) = NULL, (*destroy)(void *plan) = NULL;
	void *plan;

	if (!describe_dimensions(&t->plan, t->in == t->out, dim, &batch, &in, &out))
		return QCU_ERR_InvalidValue;
	in *= number * (kind->real_in ? 1 : 2);
	out *= number * (kind->real_out ? 1 : 2);
	if (!soft_mem_usable(t->plan.be, (uint64_t)(uintptr_t)t->in, in) ||
	    !soft_mem_usable(t->plan.be, (uint64_t)(uintptr_t)t->out, out))
		return QCU_ERR_IllegalAddress;
	if (((uintptr_t)t->in | (uintptr_t)t->out) % number)
		return QCU_ERR_MisalignedAddress;
	*(void **)&execute = function(t, "execute");
	*(void **)&destroy = function(t, "destroy_plan");
	pthread_mutex_lock(&planner);
	plan = make_fftw(t, t->plan.rank, dim, &batch);
	pthread_mutex_unlock(&planner);
	if (!plan || !execute || !destroy)
		return QCU_ERR_Unknown;
	execute(plan);
	pthread_mutex_lock(&planner);
	destroy(plan);
	pthread_mutex_unlock(&planner);
	return 0;
}

static cufftResult transform(cufftHandle h, cufftType type, void *in, void *out, int direction)
{
	struct plan *p = find_plan(h);
	struct transform *t;

	if (!p || !p->kind)
		return CUFFT_INVALID_PLAN;
	if (type && p->kind->type != type)
		return CUFFT_INVALID_TYPE;
	if (!in || !out || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE))
		return CUFFT_INVALID_VALUE;
	t = calloc(1, sizeof(*t));
	if (!t)
		return CUFFT_ALLOC_FAILED;
	t->work = (struct soft_work){.run = run_transform,
				     .busy = BE_BUSY_KERNELS,
				     .free = soft_work_free,
				     .bytes = sizeof(*t) - sizeof(t->work)};
	t->plan = *p;
	t->in = in;
	t->out = out;
	t->direction = direction;
	return soft_submit(p->stream, &t->work, SOFT_QUEUE, NULL) ? CUFFT_EXEC_FAILED
								  : CUFFT_SUCCESS;
}

static cufftResult soft_cufftExecC2C(cufftHandle h, cufftComplex *in, cufftComplex *out,
				     int direction)
{
	return transform(h, CUFFT_C2C, in, out, direction);
}

static cufftResult soft_cufftExecR2C(cufftHandle h, cufftReal *in, cufftComplex *out)
{
	return transform(h, CUFFT_R2C, in, out, CUFFT_FORWARD);
}

static cufftResult soft_cufftExecC2R(cufftHandle h, cufftComplex *in, cufftReal *out)
{
	return transform(h, CUFFT_C2R, in, out, CUFFT_INVERSE);
}

static cufftResult soft_cufftExecZ2Z(cufftHandle h, cufftDoubleComplex *in, cufftDoubleComplex *out,
				     int direction)
{
	return transform(h, CUFFT_Z2Z, in, out, direction);
}

static cufftResult soft_cufftExecD2Z(cufftHandle h, cufftDoubleReal *in, cufftDoubleComplex *out)
{
	return transform(h, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}

static cufftResult soft_cufftExecZ2D(cufftHandle h, cufftDoubleComplex *in, cufftDoubleReal *out)
{
	return transform(h, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}

/* The direction counts only where both sides are complex. */
static cufftResult soft_cufftXtExec(cufftHandle h, void *in, void *out, int direction)
{
	return transform(h, 0, in, out, direction);
}

/* ---- what is asked and set ---- */

static cufftResult soft_cufftGetSize(cufftHandle h, size_t *size)
{
	if (!find_plan(h))
		return CUFFT_INVALID_PLAN;
	if (!size)
		return CUFFT_INVALID_VALUE;
	*size = 0;
	return CUFFT_SUCCESS;
}

static cufftResult soft_cufftSetWorkArea(cufftHandle h, void *area)
{
	(void)area;
	return find_plan(h) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

static cufftResult soft_cufftSetAutoAllocation(cufftHandle h, int automatic)
{
	(void)automatic;
	return find_plan(h) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* The version of cuFFT whose functions these are. */
static cufftResult soft_cufftGetVersion(int *version)
{
	/* Without a place for it, it succeeds natively, too. */
	if (version)
		*version = CUFFT_VERSION;
	return CUFFT_SUCCESS;
}

static cufftResult soft_cufftGetProperty(libraryPropertyType type, int *value)
{
	if (!value || (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL))
		return CUFFT_INVALID_VALUE;
	*value = type == MAJOR_VERSION	 ? CUFFT_VER_MAJOR
		 : type == MINOR_VERSION ? CUFFT_VER_MINOR
					 : CUFFT_VER_PATCH;
	return CUFFT_SUCCESS;
}

#define FFT(name)                                       \
	{                                               \
		"cufft" #name, (void *)soft_cufft##name \
	}

const struct soft_symbol soft_fft[] = {
	FFT(Create),	     FFT(Destroy),     FFT(SetStream),	       FFT(MakePlan1d),
	FFT(MakePlan2d),     FFT(MakePlan3d),  FFT(MakePlanMany),      FFT(MakePlanMany64),
	FFT(XtMakePlanMany), FFT(ExecC2C),     FFT(ExecR2C),	       FFT(ExecC2R),
	FFT(ExecZ2Z),	     FFT(ExecD2Z),     FFT(ExecZ2D),	       FFT(XtExec),
	FFT(GetSize),	     FFT(SetWorkArea), FFT(SetAutoAllocation), FFT(GetVersion),
	FFT(GetProperty),    {NULL, NULL}};
