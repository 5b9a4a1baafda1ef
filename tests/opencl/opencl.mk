# SPDX-License-Identifier: GPL-2.0-or-later
# OpenCL programs: a test program for each group of the API, and the benchmarks. They need OpenCL's headers and
# loader, so they are built only when asked for: tests/vm/opencl.sh does, after it has installed these.

OPENCL_PROGRAMS := bad_calls buffers chunks events faults kernels programs query queues svm
OPENCL_BINARIES := $(OPENCL_PROGRAMS:%=$(B)/tests/opencl/%)

$(OPENCL_BINARIES): $(B)/tests/opencl/%: $(B)/tests/opencl/%.o $(B)/tests/opencl/main.o
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ -lOpenCL -lm

OPENCL_BENCHES := apps bandwidth
OPENCL_PERF := $(OPENCL_BENCHES:%=$(B)/perf/opencl/%)
$(OPENCL_PERF): $(B)/perf/opencl/%: $(B)/perf/opencl/%.o
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ -lOpenCL -lm

.PHONY: opencl-tests
opencl-tests: $(OPENCL_BINARIES) $(OPENCL_PERF)
