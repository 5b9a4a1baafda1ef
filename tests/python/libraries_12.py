# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads NVIDIA's libraries by the names of CUDA 12, as TensorFlow and JAX do, and looks at their versions first."""
import ctypes as c

cudart, blas, lt, fft, solver = (c.CDLL(name) for name in (
    'libcudart.so.12', 'libcublas.so.12', 'libcublasLt.so.12', 'libcufft.so.11', 'libcusolver.so.11'))


def right(status):
    assert status == 0, status


def asked(call, *arguments):
    number = c.c_int(-1)
    right(call(*arguments, c.byref(number)))
    return number.value


# What is wrong comes first.
assert blas.cublasGetProperty(3, None) == 7
assert blas.cublasGetVersion_v2(None, None) == 7
assert solver.cusolverDnSpolar() == 9
lt.cublasLtGetVersion.restype = c.c_size_t
assert lt.cublasLtGetVersion() // 10000 == asked(blas.cublasGetVersion_v2, None) // 10000 == 12
assert asked(cudart.cudaRuntimeGetVersion) // 1000 == asked(blas.cublasGetProperty, 0) == 12
assert asked(fft.cufftGetVersion) // 1000 == asked(fft.cufftGetProperty, 0) == 11
assert asked(solver.cusolverGetVersion) // 1000 == asked(solver.cusolverGetProperty, 0) == 11

numbers = (c.c_float * 4)(1, 2, 3, 4)
product = (c.c_float * 4)()
matrix, handle, one, zero = c.c_void_p(), c.c_void_p(), c.c_float(1), c.c_float(0)
right(cudart.cudaMalloc(c.byref(matrix), c.c_size_t(2 * c.sizeof(numbers))))
right(cudart.cudaMemcpy(matrix, numbers, c.c_size_t(c.sizeof(numbers)), 1))
result = c.c_void_p(matrix.value + c.sizeof(numbers))
right(blas.cublasCreate_v2(c.byref(handle)))
right(blas.cublasSgemm_v2(handle, 0, 0, 2, 2, 2, c.byref(one), matrix, 2, matrix, 2, c.byref(zero), result, 2))
right(cudart.cudaMemcpy(product, result, c.c_size_t(c.sizeof(product)), 2))
assert list(product) == [7, 10, 15, 22], list(product)

# Two complex numbers: their sum and their difference.
plan = c.c_int()
right(fft.cufftPlan1d(c.byref(plan), 2, 0x29, 1))
right(fft.cufftExecC2C(plan, matrix, result, -1))
right(cudart.cudaMemcpy(product, result, c.c_size_t(c.sizeof(product)), 2))
assert list(product) == [4, 6, -2, -2], list(product)
right(fft.cufftDestroy(plan))
right(blas.cublasDestroy_v2(handle))
print('cuBLAS', lt.cublasLtGetVersion())
