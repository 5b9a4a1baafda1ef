// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuFFT that the guest carries out itself: they create and destroy plans, set a plan's
 * stream, and make a plan in one step. A plan is the number of its object.
 */
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
