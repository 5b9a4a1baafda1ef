# SPDX-License-Identifier: GPL-2.0-or-later
# The tests that tests/run runs, and the rules that build them. Each part has a fragment beside its unit
# and loopback tests, which names them: UNIT_TESTS += NAME with NAME_OBJS and NAME_LIBS, and
# LOOPBACK_TESTS += NAME with a rule for $(B)/tests/loopback/NAME. CUDA programs and the guest's own
# tools are not listed: make finds their files.

# For nvcc: PTX, and no machine code.
WITHOUT_CODE := -gencode arch=compute_75,code=compute_75

include tests/transport/transport.mk
include $(addprefix tests/unit/,ptx/ptx.mk soft/soft.mk device/device.mk library/library.mk library/malloc.mk \
	launcher/launcher.mk loader/loader.mk)
include tests/loopback/loopback.mk tests/loopback/loader/loader.mk
include tests/opencl/opencl.mk

# A folder for each topic. All programs are built into one folder, so each has a name of its own.
LIBRARY_SRCS := $(filter-out $(if $(filter cudnn,$(SHIMS)),,tests/guest/libs/dnn/%),$(wildcard tests/guest/libs/*/*.cu))
GUEST_SRCS := $(sort $(wildcard tests/guest/*/*.cu) $(LIBRARY_SRCS))
GUEST_PROGRAMS := $(sort $(notdir $(GUEST_SRCS:.cu=)))
ifneq ($(words $(GUEST_SRCS)),$(words $(GUEST_PROGRAMS)))
$(error two files in tests/guest/ have the same name)
endif
VM_TOOLS := $(patsubst tests/vm/programs/%.c,%,$(sort $(wildcard tests/vm/programs/*.c)))

# The software GPU lacks some libraries. One program for each of them runs and says so. The others need a GPU:
# they are built for the GPU bundle, and at night.
GPU_PROGRAMS := $(filter-out cudnn_bare cudnn_layers cusolver_dense cusparse_products,$(filter cudnn_% cusolver_% cusparse_%,$(GUEST_PROGRAMS)))

include tests/nightly.mk

# The programs that run without a VM: all except those that end by a signal or wait for input.
LOOPBACK_PROGRAMS := $(filter-out crash sleeper illegal_access nccl_vms $(GPU_PROGRAMS),$(GUEST_PROGRAMS))
# Not under a sanitizer: libnccl.so.2 is built without.
LOOPBACK_PROGRAMS := $(if $(SAN),$(filter-out nccl_%,$(LOOPBACK_PROGRAMS)),$(LOOPBACK_PROGRAMS))

include tests/fuzz/fuzz.mk
include tests/hostile/hostile.mk

# Unmodified CUDA programs, built twice: optimised, and for a debugger, which gives different host code
# and different PTX. The debugger's build has no machine code: it runs in software, and the machine
# code would take half of nvcc's time. The optimised ones are linked twice: with the runtime as a shared
# library, and as nvcc does by default, with the runtime in them. -O is for the host's code only, whose compilation
# takes a quarter less with -O1 than with -O3; the GPU's code is always optimised.
vpath %.cu $(sort $(dir $(GUEST_SRCS)))
GUEST_OBJECTS := $(B)/tests/guest-objects
O0_OBJECTS := $(B)/tests/guest-O0-objects
CUDA12_OBJECTS := $(B)/tests/guest-12-objects
# The toolkit's own C++ headers, also those of cooperative groups, want C++17.
CXX17_PROGRAMS := cooperative_grid cooperative_groups scoped_atomics thrust_cub thrust_cub_rdc thrust_types
$(CXX17_PROGRAMS:%=$(GUEST_OBJECTS)/%.o) $(CXX17_PROGRAMS:%=$(O0_OBJECTS)/%.o): NVCC_STD :=
$(GUEST_OBJECTS)/per_thread_%.o $(O0_OBJECTS)/per_thread_%.o: GUEST_FLAGS := --default-stream per-thread
$(GUEST_OBJECTS)/%.o: %.cu tests/guest/check.h | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -O1 -Itests/guest $(GUEST_FLAGS) -c -o $@ $<

# Programs of libraries that have no kernel of their own. As a CUDA program nvcc would read them twice, for host and
# GPU. Their templates compute what is expected, and the compiler needs long for more than -O1.
PLAIN_PROGRAMS := $(basename $(notdir $(shell grep -L -e __global__ -e __device__ -e '<<<' $(LIBRARY_SRCS))))
$(PLAIN_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): $(GUEST_OBJECTS)/%.o: %.cu tests/guest/check.h | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -x c++ -O1 -Itests/guest $(GUEST_FLAGS) -c -o $@ $<

# Code for GPUs that was compiled as a whole (not with -rdc) needs no link. nvcc would compile a file for it.
DEVICE_LINK = $(if $(findstring -rdc,$(GUEST_LINK)),,-nodlink)
$(B)/tests/guest/%: $(GUEST_OBJECTS)/%.o
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -cudart shared $(DEVICE_LINK) $(GUEST_LINK) -o $@ $^

# Programs that use the driver API only are linked with libcuda.so.1 and with no runtime. Their kernels are
# PTX text, which they load themselves. mixed_*: programs that use both.
DRIVER_PROGRAMS := $(filter driver_%,$(GUEST_PROGRAMS))
MIXED_PROGRAMS := $(filter mixed_%,$(GUEST_PROGRAMS))
DRIVER_STUB := -L$(CUDA_HOME)/lib64/stubs -lcuda
DRIVER_PTX := $(B)/tests/driver_kernels.h
$(B)/tests/driver_kernels.ptx: tests/guest/driver_kernels.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -ptx -arch=compute_75 -o $@ $<

# The PTX text as a C string.
$(DRIVER_PTX): $(B)/tests/driver_kernels.ptx
	sed -e 's/\\/&&/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' -e '1i static const char driver_kernels[] =' -e '$$a ;' $< >$@

# An object file with device code, and an archive with it, as numbers.
DRIVER_UNIT := $(B)/tests/driver_unit
$(DRIVER_UNIT).o: tests/guest/driver_unit.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -rdc=true -gencode arch=compute_75,code=compute_75 -c -o $@ $<
$(DRIVER_UNIT).h: $(DRIVER_UNIT).o
	rm -f $(DRIVER_UNIT).a
	ar rcs $(DRIVER_UNIT).a $<
	for f in o a; do \
		echo "static const unsigned char driver_unit_$$f[] = {" && od -An -v -tu1 $(DRIVER_UNIT).$$f | sed 's/[0-9][0-9]*/&,/g' && \
			echo '};' || exit; \
	done >$@
$(GUEST_OBJECTS)/driver_link.o: $(DRIVER_UNIT).h

MIXED_OBJECTS := $(MIXED_PROGRAMS:%=$(GUEST_OBJECTS)/%.o)
$(MIXED_OBJECTS): $(DRIVER_PTX) tests/guest/driver.h tests/guest/ours.h
$(MIXED_OBJECTS): GUEST_FLAGS := -I$(B)/tests
$(MIXED_PROGRAMS:%=$(B)/tests/guest/%): GUEST_LINK := $(DRIVER_STUB)
$(DRIVER_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): $(GUEST_OBJECTS)/%.o: %.cu $(DRIVER_PTX) tests/guest/driver.h tests/guest/ours.h tests/guest/check.h | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -x c++ -O1 -Itests/guest -I$(B)/tests -c -o $@ $<

$(DRIVER_PROGRAMS:%=$(B)/tests/guest/%): $(B)/tests/guest/%: $(GUEST_OBJECTS)/%.o
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -cudart none $(DEVICE_LINK) -o $@ $^ $(DRIVER_STUB)

$(B)/tests/guest-static/%: $(GUEST_OBJECTS)/%.o
	@mkdir -p $(@D)
	$(RUN) $(NVCC) $(GUEST_LINK) -o $@ $^

# Compiled and linked one after the other, here and below, because ccache keeps only what is compiled alone.
O0_COMPILE = $(RUN) $(NVCC_TEST) -G -O0 -Itests/guest $(GUEST_FLAGS) $(WITHOUT_CODE) -c
$(O0_OBJECTS)/%.o: %.cu tests/guest/check.h | deps
	@mkdir -p $(@D)
	$(O0_COMPILE) -o $@ $<

$(B)/tests/guest-O0/%: $(O0_OBJECTS)/%.o
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -cudart shared $(DEVICE_LINK) $(GUEST_LINK) -o $@ $^

$(foreach t,ipc_event ipc_killed ipc_memory shared_pool,$(foreach o,$(GUEST_OBJECTS) $(O0_OBJECTS) $(CUDA12_OBJECTS),$(o)/$(t).o)): tests/guest/processes/ipc.h

$(addprefix $(GUEST_OBJECTS)/,driver_virtual_share.o mixed_external.o mixed_external_arrays.o): tests/guest/processes/ipc.h
$(GUEST_OBJECTS)/bad_calls.o $(O0_OBJECTS)/bad_calls.o: tests/guest/ours.h

# Programs that use NVIDIA's libraries. At run time they get the shims.
LIBRARY_PROGRAMS := $(notdir $(basename $(LIBRARY_SRCS)))
$(LIBRARY_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): $(wildcard tests/guest/libs/*.h tests/guest/libs/*/*.h)
$(foreach d,guest guest-static,$(LIBRARY_PROGRAMS:%=$(B)/tests/$(d)/%)): GUEST_LINK := -lcublas -lcublasLt
$(foreach l,cudnn cufft curand cusolver cusparse,$(foreach d,guest guest-static,$(patsubst %,$(B)/tests/$(d)/%,$(filter $(l)_%,$(LIBRARY_PROGRAMS))))): \
	GUEST_LINK = -l$(firstword $(subst _, ,$(@F)))
$(foreach d,guest guest-static,$(B)/tests/$(d)/libraries_bare): GUEST_LINK += -lcufft -lcurand -lcusolver -lcusparse
$(foreach d,guest guest-static,$(addprefix $(B)/tests/$(d)/cusolver_,factors sparse)): GUEST_LINK += -lcusparse

# NCCL's header may be missing: then our own declares the same.
NCCL_PROGRAMS := $(filter nccl_%,$(LIBRARY_PROGRAMS))
$(NCCL_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): GUEST_FLAGS := -I.
$(NCCL_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): $(wildcard qcu-library/nccl/*.h qcu-library/nccl/kernels/*.h)
$(foreach d,guest guest-static,$(NCCL_PROGRAMS:%=$(B)/tests/$(d)/%)): GUEST_LINK := -Xlinker $(NCCL_LIBRARY)
$(foreach d,guest guest-static,$(NCCL_PROGRAMS:%=$(B)/tests/$(d)/%)): | $(NCCL_LIBRARY)

# The same for cuFile.
CUFILE_PROGRAMS := $(filter cufile_%,$(LIBRARY_PROGRAMS))
$(CUFILE_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): GUEST_FLAGS := -I.
$(CUFILE_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): qcu-library/cufile/api.h
$(foreach d,guest guest-static,$(CUFILE_PROGRAMS:%=$(B)/tests/$(d)/%)): GUEST_LINK := -Xlinker $(CUFILE_LIBRARY)
$(foreach d,guest guest-static,$(CUFILE_PROGRAMS:%=$(B)/tests/$(d)/%)): | $(CUFILE_LIBRARY)

# Launches from kernels.
$(GUEST_OBJECTS)/device_launch.o $(O0_OBJECTS)/device_launch.o: GUEST_FLAGS := -rdc=true
$(addprefix $(B)/tests/,guest/device_launch guest-static/device_launch): GUEST_LINK := -rdc=true -lcudadevrt
$(B)/tests/guest-O0/device_launch: GUEST_LINK := -rdc=true $(WITHOUT_CODE) -lcudadevrt

# A program of two compilation units.
UNITS := $(foreach o,$(GUEST_OBJECTS) $(O0_OBJECTS) $(CUDA12_OBJECTS),$(o)/managed_units.o $(o)/units/managed_units.o)
$(UNITS): GUEST_FLAGS := -rdc=true
$(UNITS): $(wildcard tests/guest/managed/units/*)
$(foreach d,guest guest-static,$(B)/tests/$(d)/managed_units): $(GUEST_OBJECTS)/units/managed_units.o
$(B)/tests/guest-O0/managed_units: $(O0_OBJECTS)/units/managed_units.o
$(B)/tests/guest-12/managed_units: $(CUDA12_OBJECTS)/units/managed_units.o
$(foreach d,guest guest-static,$(B)/tests/$(d)/managed_units): GUEST_LINK := -rdc=true
$(foreach d,guest-O0 guest-12,$(B)/tests/$(d)/managed_units): GUEST_LINK := -rdc=true $(WITHOUT_CODE)
$(GUEST_OBJECTS)/units/managed_units.o: tests/guest/managed/units/managed_units.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -O1 -Itests/guest $(GUEST_FLAGS) -c -o $@ $<
$(O0_OBJECTS)/units/managed_units.o: tests/guest/managed/units/managed_units.cu | deps
	@mkdir -p $(@D)
	$(O0_COMPILE) -o $@ $<
$(CUDA12_OBJECTS)/units/managed_units.o: tests/guest/managed/units/managed_units.cu | deps cuda12-headers
	@mkdir -p $(@D)
	$(CUDA12_COMPILE) -o $@ $<

# Thrust and CUB take long to compile: without machine code, and not for a debugger.
THRUST_PROGRAMS := thrust_cub thrust_cub_rdc thrust_types
DEBUG_PROGRAMS := $(filter-out $(THRUST_PROGRAMS) $(LIBRARY_PROGRAMS) $(DRIVER_PROGRAMS) $(MIXED_PROGRAMS),$(GUEST_PROGRAMS))
$(THRUST_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): GUEST_FLAGS := -gencode arch=compute_75,code=compute_75
$(GUEST_OBJECTS)/thrust_cub_rdc.o: GUEST_FLAGS += -rdc=true
$(addsuffix /thrust_cub_rdc,$(addprefix $(B)/tests/,guest guest-static)): GUEST_LINK := -rdc=true -gencode arch=compute_75,code=compute_75
$(THRUST_PROGRAMS:%=$(GUEST_OBJECTS)/%.o): tests/guest/parallel/thrust_cub.h

# Programs built with approximate division, roots and exponentials, denormals flushed to zero, and fused
# multiplies.
FAST_PROGRAMS := black_scholes mandelbrot nbody
$(B)/tests/guest-fast/%: %.cu tests/guest/check.h | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -cudart shared -O3 -Itests/guest --use_fast_math $(WITHOUT_CODE) -o $@ $<

# The same programs for CUDA 12: nvcc compiles them with the headers of CUDA 12 and links them with its
# library, if these can be had. Left out are those that use calls in the form of 13, calls that are new
# in 13, or the toolkit's own C++ headers, which refuse other versions.
CUDA12 := $(shell scripts/cuda-wheels --print-dir 12.9)
CUDA12_NOT := bad_calls batch_copies graph_conditional graph_memory graph_memory_full graph_moved graph_parameters graph_random_memory graphs managed_advice managed_graphs managed_moves managed_random \
	memory_pools peer_access per_thread_copies per_thread_streams stream_capture \
	cooperative_grid cooperative_groups scoped_atomics device_launch $(THRUST_PROGRAMS)
CUDA12_PROGRAMS := $(filter-out $(CUDA12_NOT) $(LIBRARY_PROGRAMS) $(DRIVER_PROGRAMS) $(MIXED_PROGRAMS),$(GUEST_PROGRAMS))
.PHONY: cuda12-headers
cuda12-headers: | deps
	@scripts/cuda-wheels 12.9 >/dev/null || echo "the programs for CUDA 12 are left out"
CUDA12_COMPILE = [ ! -d $(CUDA12) ] || $(RUN) $(NVCC_TEST) -O1 -Itests/guest -I$(CUDA12)/include $(GUEST_FLAGS) $(WITHOUT_CODE) -c
$(CUDA12_OBJECTS)/per_thread_%.o: GUEST_FLAGS := --default-stream per-thread
$(CUDA12_OBJECTS)/%.o: %.cu tests/guest/check.h | deps cuda12-headers
	@mkdir -p $(@D)
	$(CUDA12_COMPILE) -o $@ $<

$(B)/tests/guest-12/%: $(CUDA12_OBJECTS)/%.o
	@mkdir -p $(@D)
	[ ! -d $(CUDA12) ] || $(RUN) $(NVCC) -cudart shared $(DEVICE_LINK) -L$(CUDA12)/lib $(GUEST_LINK) -o $@ $^

# Programs of libraries that have another name in CUDA 12, with its headers, linked with ours under these names. At
# night only: NVIDIA's wheels with the headers have more than a gigabyte.
CUDA12_LIBRARIES := $(shell scripts/cuda-wheels --print-dir libraries-12.9)
CUDA12_LIBRARY_PROGRAMS := $(filter-out $(GPU_PROGRAMS),$(filter cublas_% cublaslt_% cufft_% cusolver_%,$(LIBRARY_PROGRAMS)))
.PHONY: cuda12-libraries
cuda12-libraries: | deps
	@scripts/cuda-wheels libraries-12.9 >/dev/null || echo "the programs for CUDA 12's libraries are left out"
$(B)/tests/guest-12-libs/%: %.cu tests/guest/check.h $(SHIM_LIBRARIES_12:%=$(B)/qcu-library/%) | deps cuda12-headers cuda12-libraries
	@mkdir -p $(@D)
	[ ! -d $(CUDA12) ] || [ ! -d $(CUDA12_LIBRARIES) ] || $(RUN) $(NVCC) -cudart shared -O1 -Itests/guest -I$(CUDA12)/include \
		-I$(CUDA12_LIBRARIES)/include -L$(CUDA12)/lib -gencode arch=compute_75,code=compute_75 -o $@ $< \
		$(addprefix -Xlinker ,$(filter %.so.11 %.so.12,$^)) -Xlinker -rpath-link=$(B)/qcu-library

# Measures the software GPU's speed on two cores. It is also a test, with the promised times as limits.
SOFT_BENCH := $(B)/perf/soft/kernels
$(SOFT_BENCH): perf/soft/kernels.cu tests/guest/check.h | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -cudart shared -O3 -gencode arch=compute_75,code=compute_75 -I. -o $@ $<

.PHONY: soft-bench
soft-bench: $(SOFT_BENCH) $(LOOPBACK_LIBRARY)
	@LD_LIBRARY_PATH=$(B)/loopback taskset -c 0,1 $(SOFT_BENCH)

# These are static, because the guest has no libraries of its own.
$(B)/tests/vm/%: tests/vm/programs/%.c $(wildcard tests/vm/programs/*.h) $(wildcard include/*.h) | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(filter-out -fsanitize=% -fPIC,$(CFLAGS)) -static -o $@ $<

# A library and a device with another wire version than all other parts.
WIRE := $(B)/tests/wire
WIRE_PARTS := $(WIRE)/libcudart.so.13 $(WIRE)/qcu-device/qcu-device

$(WIRE)/include/qcucmd.h: include/qcucmd.h
	@mkdir -p $(@D)
	sed 's/^#define QCU_WIRE_VERSION .*/#define QCU_WIRE_VERSION 9999u/' $< >$@

$(WIRE)/%.o: %.c $(WIRE)/include/qcucmd.h | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) -I$(WIRE) $(CFLAGS) -c $< -o $@

$(WIRE)/qcu-library/link/transport_dev.o: override CFLAGS += -isystem $(dir $(CUDART_INC))
$(WIRE)/libcudart.so.13: $(WIRE)/qcu-library/link/transport_dev.o $(LIBRARY_OBJS) $(LIBRARY_MAP)
	$(RUN) $(CC) $(LDFLAGS) $(LIBRARY_LDFLAGS) -o $@ $(filter %.o,$^)

$(WIRE)/qcu-device/host/vhost.o: $(VHOST_USER_LIB)
$(WIRE)/qcu-device/host/vhost.o: override CFLAGS += -isystem $(VHOST_USER)/include
$(WIRE)/qcu-device/qcu-device: $(WIRE)/qcu-device/host/vhost.o $(B)/qcu-device/qcu-device
	$(RUN) $(CC) $(LDFLAGS) -o $@ $< $(filter-out %/vhost.o,$(DEVICE_SRCS:%.c=$(B)/%.o)) $(MIRROR_LIB) \
		$(SOFT_LIB) $(VHOST_USER_LIB) $(DEVICE_LIBS)

# Programs with the runtime linked in, also without a VM.
STATIC_PROGRAMS := $(filter-out $(DRIVER_PROGRAMS) $(MIXED_PROGRAMS) $(GPU_PROGRAMS),$(GUEST_PROGRAMS))
STATIC_ENV := env LD_AUDIT=$(abspath $(B))/loopback/libqcuda-loader.so \
	LD_PRELOAD=$(abspath $(B))/loopback/libcudart.so.13

# Libraries of others that compile at run time, from the Python package index. tests/vm/python.sh runs some, too.
PYTHON_PROGRAMS := bindings_launch bindings_runtime cupy_kernels cupy_arrays libraries_12 numba_kernels numba_cuda_kernels \
	numba_own

# The list of tests, one per line: group, name, when it runs (test: in `make test`, or nightly), command. Lines of the
# group "program" name the programs that VMs run, in each of their builds.
# when NAME DAILY: NAME, and when it runs; DAILY are those of `make test`.
when = $(1) $(if $(filter $(1),$(2)),test,nightly)
listed = $(foreach t,$(3),$(1) $(call when,$(2)/$(t),$(addprefix $(2)/,$(4)))$(if $(5), $(5)/$(t));)

# Programs that share a GPU's memory. Under the sanitizers the CUDA programs are those of the normal build.
MEMORY_CASES := idle evicted stores guaranteed turns odd real killed gone $(if $(SAN),,context) moving forged steps full gpu file file_full file_spoiled coldest
MEMORY_DAILY := $(if $(SAN),real moving steps gpu file_spoiled,$(filter-out full,$(MEMORY_CASES)))
MEMORY_FEWER := env $(if $(SAN),QCU_MEMORY_STEPS=24 QCU_MEMORY_KILLS=2,QCU_MEMORY_STEPS=60 QCU_MEMORY_KILLS=3)
MEMORY_RUN := env QCU_PROGRAMS=$(MADE_IN) python3 tests/loopback/share/memory.py $(B)

define TEST_LIST
$(foreach t,$(UNIT_TESTS),unit $(t) test $(B)/tests/unit/$(t);)
$(if $(SAN),,$(foreach t,$(RANDOM_UNITS),unit $(t)_long nightly env QCU_NIGHTLY=1 $(B)/tests/unit/$(t);))
$(foreach t,$(FUZZ_TARGETS),unit fuzz_$(t) test $(FUZZ)/replay_$(t) tests/fuzz/corpus/$(t);)
$(if $(SAN),,unit fuzz_trace test tests/fuzz/trace.py;)
unit fuzz_libraries test $(FUZZ)/replay_mirror $(FUZZ)/libraries;
unit fuzz_libs test $(FUZZ_LIBS_RUN) --calls $(if $(SAN),10000,20000 --seed 4);
$(if $(SAN),unit fuzz_libs_long nightly $(FUZZ_LIBS_RUN) --calls 150000;)
$(if $(SAN),,unit fuzz_libs_long nightly $(FUZZ_LIBS_RUN) --seed 3 --calls 500000;)
$(if $(SAN),,unit fuzz_libs_fenced nightly $(FUZZ_LIBS_RUN) --fence --seed 2 --calls 60000;)
$(foreach t,$(HOSTILE_ATTACKS),unit $(call when,hostile_$(t),$(HOSTILE_DAILY:%=hostile_%)) $(HOSTILE) $(t);)
unit hostile_random test $(HOSTILE) --seed 1 --commands $(if $(SAN),2000,8000);
unit hostile_random_long nightly $(HOSTILE) --seed 2 --commands 40000;
$(if $(SAN),,unit faults test $(SWEEP) --device $(FAULTY) --every;)
$(foreach t,$(LOOPBACK_TESTS),loopback $(t) test $(B)/tests/loopback/$(t);)
$(call listed,loopback,guest,$(LOOPBACK_PROGRAMS),$(filter-out $(if $(SAN),$(NOT_SANITIZED)) $(if $(findstring thread,$(SAN)),$(COMPUTING_PROGRAMS) $(SLOW_RACES)),$(DAILY_PROGRAMS)),$(B)/tests/guest)
$(call listed,loopback,guest-O0,$(filter $(DEBUG_PROGRAMS),$(LOOPBACK_PROGRAMS)),$(if $(SAN),$(DEBUG_SANITIZED),$(DEBUG_DAILY)),$(B)/tests/guest-O0)
$(if $(SAN),,loopback cuda12_libraries nightly tests/cuda12/libraries.sh $(B);)
$(if $(SAN),,$(foreach t,$(CUDA12_LIBRARY_PROGRAMS),loopback guest-12-libs/$(t) nightly tests/cuda12/program.sh $(B)/tests/guest-12-libs/$(t);))
$(if $(SAN),,loopback soft_bench test $(SOFT_BENCH);)
$(if $(SAN),,loopback api_pages nightly scripts/api-table --check;)
$(if $(SAN),,loopback smi test python3 tests/nvml/smi.py $(B);)
$(if $(SAN),,$(foreach t,$(filter-out $(LIBRARY_PROGRAMS),$(STATIC_DAILY)),loopback guest-static/$(t) test $(STATIC_ENV) $(B)/tests/guest-static/$(t);))
$(if $(SAN),,$(foreach t,$(LOADER_CASES),loopback loader/$(t) test tests/loopback/loader/cases.sh $(B) $(t);))\
	$(if $(SAN),,$(foreach t,$(LOADER_WHOLE),loopback loader/whole_$(t) test python3 tests/loopback/loader/whole.py $(B) $(t);))
$(if $(SAN),,$(foreach t,$(PYTHON_PROGRAMS),loopback python/$(t) test tests/python/loopback.sh $(B) $(t);))
$(if $(SAN),,loopback python/numba_own_long nightly env QCU_NIGHTLY=1 tests/python/loopback.sh $(B) numba_own;)
$(foreach t,$(FAST_PROGRAMS),loopback guest-fast/$(t) test $(B)/tests/guest-fast/$(t);)
$(foreach t,peer_access two_devices driver_two_devices,loopback guest/$(t)-2 test env QCU_LOOPBACK_GPUS=2 $(B)/tests/guest/$(t);)
$(if $(SAN),,$(foreach t,$(filter $(LOOPBACK_PROGRAMS),$(NCCL_PROGRAMS)),$(foreach n,2 3,loopback guest/$(t)-$(n) test env QCU_LOOPBACK_GPUS=$(n) $(B)/tests/guest/$(t);)))
$(if $(SAN),,$(foreach t,$(filter-out nccl_far,$(filter $(LOOPBACK_PROGRAMS),$(NCCL_PROGRAMS))),loopback guest/$(t)-tcp test env NCCL_P2P_DISABLE=1 QCU_LOOPBACK_GPUS=3 $(B)/tests/guest/$(t);))
$(if $(SAN),loopback guest/managed_moves-threads test $(B)/tests/guest/managed_moves threads;)
$(if $(SAN),,$(foreach t,weights alone stops broker_dies strangers forged programs many,loopback share/$(t) test python3 tests/loopback/share/shares.py $(B) $(t);))
$(if $(findstring thread,$(SAN)),,$(foreach t,$(MEMORY_CASES),loopback share/memory_$(t) $(if $(filter $(t),$(MEMORY_DAILY)),test,nightly) $(MEMORY_FEWER) $(MEMORY_RUN) $(t);))
$(if $(SAN),,$(foreach t,killed moving,loopback share/memory_$(t)_long nightly env QCU_MEMORY_KILLS=10 $(MEMORY_RUN) $(t);))
$(if $(findstring thread,$(SAN)),,$(foreach n,1 2 3 4,loopback share/memory_steps_$(n) nightly env QCU_MEMORY_STEPS=850 $(MEMORY_RUN) steps $(n);))
$(foreach t,vector_add array_copies texture_2d surface_write mipmap async_copies mem_semantics graph_memory memory_pools shared_pool,$(if $(filter $(t),$(LOOPBACK_PROGRAMS)),loopback guest/$(t)-evicted $(if $(findstring thread,$(SAN)),$(if $(filter $(t),$(SLOW_EVICTED)),nightly,test),test) env QCU_LOOPBACK_EVICT=20 QCU_LOOPBACK_SWAP_GPU=3000000 $(B)/tests/guest/$(t);))
$(if $(SAN),,loopback saved test tests/loopback/saved/saved.sh $(B) 1;)
$(if $(SAN),,loopback saved_often nightly tests/loopback/saved/saved.sh $(B) 500-rounds;)
loopback guest/ipc_killed-event test $(B)/tests/guest/ipc_killed event;
loopback guest/mixed_apis-driver test $(B)/tests/guest/mixed_apis driver;
$(foreach n,0 1 2 3,loopback guest/illegal_access-$(n) test $(B)/tests/guest/illegal_access $(n);)
$(call listed,program,guest,$(filter-out $(GPU_PROGRAMS),$(GUEST_PROGRAMS)),$(filter-out $(COMPUTING_PROGRAMS),$(DAILY_PROGRAMS)))
$(call listed,program,guest-static,$(STATIC_PROGRAMS),$(STATIC_DAILY))
$(call listed,program,guest-O0,$(DEBUG_PROGRAMS),$(DEBUG_DAILY))
$(call listed,program,ncvm,$(DEBUG_PROGRAMS),$(filter-out $(COMPUTING_PROGRAMS),$(DEBUG_PROGRAMS)))
$(call listed,program,guest-12,$(CUDA12_PROGRAMS),$(CUDA12_DAILY))
endef

$(B)/tests/list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ; ,' ',$(strip $(TEST_LIST)))' | sed 's/;$$//' >$@

UNIT_BINARIES := $(sort $(UNIT_TESTS:%=$(B)/tests/unit/%))
LOOPBACK_BINARIES := $(sort $(LOOPBACK_TESTS:%=$(B)/tests/loopback/%) $(if $(SAN),,$(addprefix $(B)/tests/loopback/,asker filler hog holder turner)))

UNIT_SRCS := $(wildcard tests/unit/*/*.c tests/unit/*/*/*.c)
# What they test is optimised. They themselves hardly run, and their compilation takes a third with -O0.
$(UNIT_SRCS:%.c=$(B)/%.o): override CFLAGS += -O0

# Those of cuDNN need its header.
UNIT_OBJS := $(patsubst %.c,$(B)/%.o,$(filter-out $(if $(filter cudnn,$(SHIMS)),,%_cudnn.c %_cudnn_labels.c %_cudnn_real.c %_counts.c),$(UNIT_SRCS)))

define UNIT_RULE
$(B)/tests/unit/$(1): $(patsubst %.c,$(B)/%.o,$(filter %/$(1).c,$(UNIT_SRCS))) $($(1)_OBJS)
	@mkdir -p $$(@D)
	$$(RUN) $$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o %.a,$$^) -lcmocka $$($(1)_LIBS) $$(if $$(filter %/libmirror.a,$$^),$(MIRROR_LIBS)) -lm
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call UNIT_RULE,$(t))))

.PHONY: loopback-build tests-build tests-build-host tests-build-nightly FORCE
loopback-build: $(B)/tests/list $(B)/qcu-device/qcu-share $(LOOPBACK_BINARIES) $(LOOPBACK_LIBRARY) $(LOOPBACK_SHIMS) $(B)/loopback/libcuda.so.1
# The sanitizers build this target a second time.
tests-build-host: $(B)/tests/list $(B)/qcu-device/qcu-share $(UNIT_BINARIES) $(HOSTILE) $(if $(SAN),,$(SWEEP) $(FAULTY) $(COST)) $(FUZZ_REPLAYS) $(LOOPBACK_BINARIES) $(LOOPBACK_LIBRARY) $(LOOPBACK_SHIMS) $(B)/loopback/libcuda.so.1 $(if $(SAN),,$(LOADER_BUILD) $(B)/loopback/qcu-smi)
tests-build: tests-build-host $(DAILY_PROGRAMS:%=$(B)/tests/guest/%) $(STATIC_DAILY:%=$(B)/tests/guest-static/%) \
	$(DEBUG_DAILY:%=$(B)/tests/guest-O0/%) $(CUDA12_DAILY:%=$(B)/tests/guest-12/%) \
	$(FAST_PROGRAMS:%=$(B)/tests/guest-fast/%) $(SOFT_BENCH) \
	$(addprefix $(B)/tests/vm/,$(VM_TOOLS)) $(HOSTILE_KO) $(WIRE_PARTS)
# What tests/run nightly and the GPU bundle need besides.
tests-build-nightly: tests-build $(GUEST_PROGRAMS:%=$(B)/tests/guest/%) $(STATIC_PROGRAMS:%=$(B)/tests/guest-static/%) \
	$(DEBUG_PROGRAMS:%=$(B)/tests/guest-O0/%) $(CUDA12_PROGRAMS:%=$(B)/tests/guest-12/%) \
	$(CUDA12_LIBRARY_PROGRAMS:%=$(B)/tests/guest-12-libs/%)
