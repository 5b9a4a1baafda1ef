// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Modules and libraries. Both are the runtime's libraries: a CUmodule is a CUlibrary, and a module
 * is loaded on each device on which something in it is used.
 */
#include "qcu-library/api/library.h"
#include "qcu-library/driver_base/driver.h"

static cudaLibrary_t library_of_module(CUmodule module)
{
	return (cudaLibrary_t)module;
}

/* ---- modules ---- */

/* A module that was loaded as one may be unloaded as one. That of a library belongs to it. */
static CUresult mark_module_alone(CUresult result, const CUmodule *module)
{
	if (!result)
		qcul_library_alone(library_of_module(*module));
	return result;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
			    CUjit_option *options, void **values)
{
	return mark_module_alone(QCUL_RUNTIME(cudaLibraryLoadData((cudaLibrary_t *)module, image,
								  (enum cudaJitOption *)options,
								  values, count, NULL, NULL, 0)),
				 module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *name)
{
	return mark_module_alone(
		QCUL_RUNTIME(name && !*name
				     ? cudaErrorInvalidValue
				     : cudaLibraryLoadFromFile((cudaLibrary_t *)module, name, NULL,
							       NULL, 0, NULL, NULL, 0)),
		module);
}

CUresult cuModuleUnload(CUmodule module)
{
	return qcul_library_shared(library_of_module(module))
		       ? CUDA_ERROR_NOT_PERMITTED
		       : QCUL_RUNTIME(cudaLibraryUnload(library_of_module(module)));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	return QCUL_RUNTIME(name && !*name ? cudaErrorInvalidValue
					   : cudaLibraryGetKernel((cudaKernel_t *)function,
								  library_of_module(module), name));
}

/* A managed variable has one address for all. */
static cudaError_t global(CUdeviceptr *address, size_t *bytes, cudaLibrary_t library,
			  const char *name)
{
	cudaError_t err;

	err = cudaLibraryGetManaged((void **)address, bytes, library, name);
	return err == cudaErrorSymbolNotFound
		       ? cudaLibraryGetGlobal((void **)address, bytes, library, name)
		       : err;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
			      const char *name)
{
	return QCUL_RUNTIME((!address && !bytes) || (name && !*name)
				    ? cudaErrorInvalidValue
				    : global(address, bytes, library_of_module(module), name));
}

/* ---- libraries ---- */

/* The count of kernels shows whether the handle is one. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	unsigned int count;
	CUresult result = QCUL_RUNTIME(module ? cudaLibraryGetKernelCount(&count, library)
					      : cudaErrorInvalidValue);

	if (!result)
		*module = (CUmodule)library;
	return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
			    const char *name)
{
	return QCUL_RUNTIME(address || bytes
				    ? cudaLibraryGetGlobal((void **)address, bytes, library, name)
				    : cudaErrorInvalidValue);
}

/* ---- from a kernel to what it belongs to ---- */

static CUresult owner(const void *function, struct CUlib_st **library)
{
	struct CUkern_st *kernel;
	CUresult result =
		QCUL_RUNTIME(library ? qcul_kernel(function, &kernel) : cudaErrorInvalidValue);

	if (result)
		return result;
	*library = qcul_library_of(kernel->module);
	return *library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	return owner(kernel, library);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	return function ? owner(function, (struct CUlib_st **)module) : CUDA_ERROR_INVALID_VALUE;
}
