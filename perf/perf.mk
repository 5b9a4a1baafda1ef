# SPDX-License-Identifier: GPL-2.0-or-later
# The benchmarks: one CUDA program each, compiled once, with the runtime as a shared library, so that
# the same file runs natively, over the loopback library and in the VM. PTX for a GPU in software,
# and machine code for the GPU that the published figures are from, so that none waits for a compiler: made from the same PTX,
# because none asks for the GPU.

PERF_PROGRAMS := $(patsubst perf/%.cu,%,$(sort $(wildcard perf/*.cu)))
PERF_FLAGS ?= -O3 -gencode 'arch=compute_75,code=[compute_75,sm_90]'
PERF_OBJS := $(B)/perf/bench.o $(B)/perf/bench_out.o

$(PERF_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(PERF_OBJS): | cudart-header

$(B)/perf/%.o: perf/%.cu $(wildcard perf/*.h perf/*.cuh) | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) $(PERF_FLAGS) -I. -c -o $@ $<

$(B)/perf/%: $(B)/perf/%.o $(PERF_OBJS)
	$(RUN) $(NVCC) -cudart shared -nodlink -o $@ $^ -lm -lpthread $(PERF_LINK)

$(B)/perf/blas: PERF_LINK := -lcublas
$(B)/perf/nccl: PERF_LINK := -Xlinker $(NCCL_LIBRARY)
$(B)/perf/nccl: | $(NCCL_LIBRARY)

# One benchmark a second time, as nvcc links by default: init starts it with qCUDA's loader module.
$(B)/perf/linked/init_linked: $(B)/perf/init.o $(PERF_OBJS)
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -nodlink -o $@ $^ -lm -lpthread
$(B)/perf/linked/init_linked_stripped: $(B)/perf/linked/init_linked
	strip -o $@ $<

.PHONY: perf perf-smoke
perf: $(PERF_PROGRAMS:%=$(B)/perf/%) $(B)/perf/linked/init_linked_stripped

# Every benchmark, small, over the loopback library and in one VM.
perf-smoke: all vm perf $(B)/loopback/libcudart.so.13 $(LOOPBACK_SHIMS) $(B)/tests/list
	@tests/run perf

# The emulator's plugin that counts instructions. perf/cost/run has it built.
$(B)/perf/cost/count.so: perf/cost/count.c scripts/build-qemu | deps
	@mkdir -p $(@D)
	dir=$$(scripts/build-qemu | tail -n 1) && [ -n "$$dir" ] && $(RUN) $(CC) $(CFLAGS) -shared -fPIC \
		-isystem "$$dir/include" $$(pkg-config --cflags glib-2.0) -o $@ $<
