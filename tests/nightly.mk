# SPDX-License-Identifier: GPL-2.0-or-later
# The CUDA programs that `make test` builds and runs, and in which builds. `tests/run nightly` adds the rest.
# docs/testing.md says how these were chosen.

# Thrust and CUB take half a minute each to compile; of three programs one runs.
NIGHTLY_PROGRAMS := $(GPU_PROGRAMS) thrust_cub_rdc thrust_types
DAILY_PROGRAMS := $(filter-out $(NIGHTLY_PROGRAMS),$(GUEST_PROGRAMS))

# Programs that compute: on the host's side each copies, launches or calls a library, and copies back. All of them run
# without a VM. For ThreadSanitizer and in a VM they are all alike, so some represent the others.
COMPUTING_PROGRAMS := $(filter-out matmul reduction transpose vector_add black_scholes mandelbrot nbody thrust_cub \
	atomics_histogram cooperative_grid scoped_atomics spin_lock device_launch printf_formats printf_kernel \
	cublas_matrices cublas_threads cublas_capture cublaslt_products \
	cufft_graph cufft_streams cufft_transforms curand_numbers curand_threads,$(basename $(notdir $(wildcard \
	$(patsubst %,tests/guest/%/*.cu,algorithms arithmetic kernels numeric parallel threads libs/blas libs/fft libs/rand)))))

# Under each sanitizer at night only. It has a malloc of its own, so the first two test nothing of ours there. Of
# managed_moves the case with threads runs; managed_random moves memory in one thread.
NOT_SANITIZED := malloc_pageable malloc_sparse managed_moves

# Under ThreadSanitizer these take up to a minute each. Others of their kind run there. driver_segments, host_register and pitched_copies have one thread, and copy what the loopback tests copies,
# pinned and posted copy, too.
SLOW_RACES := bandwidth driver_segments host_register managed_random pitched_copies thrust_cub

# Of the programs whose memory leaves at random moments. Gigabytes leave in these, and ThreadSanitizer notes each byte.
SLOW_EVICTED := graph_memory mem_semantics memory_pools

# The debugger's builds that reach parts of the software GPU which no optimised program reaches, and three that run
# under the sanitizers, too.
DEBUG_SANITIZED := matmul reduction transpose
DEBUG_DAILY := $(DEBUG_SANITIZED) assert_kernel device_clocks function_pointers integer_division managed_units \
	math_functions queries scoped_atomics tensor_cores texture_3d vector_types

# With the runtime linked in: one for each way in which programs use the runtime, and together every function of it that
# a test program calls; one for each kind of library; and one that other tests need.
STATIC_DAILY := bad_calls cooperative_grid device_limits fork_child graph_parameters graphs host_functions ipc_memory \
	libraries malloc_sparse managed_units managed_variables matmul memory_pools multi_thread per_thread_copies \
	per_thread_streams printf_kernel shared_pool stream_attributes stream_capture symbols texture_2d \
	cublas_matrices cublaslt_products cufft_transforms curand_numbers nccl_wrong vector_add

# For CUDA 12: all that call a function which differs there, and together every function that a test program calls.
CUDA12_DAILY := array_copies device_limits device_query dynamic_shared host_functions host_register ipc_event \
	launch_errors launch_registers libraries malloc_pageable managed_units managed_variables memory_errors memset \
	mipmap pinned_zero_copy pitched_copies shared_pool stream_attributes surface_write symbols texture_2d texture_3d \
	texture_errors texture_formats texture_linear two_devices

# Unit tests that take random steps: all of them at night, otherwise a quarter (random_rounds() in tests/rounds.h).
RANDOM_UNITS := test_cuda_move test_cuda_arrays test_library_arena test_soft_move
