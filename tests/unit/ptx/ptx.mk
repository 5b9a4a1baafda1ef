# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of the PTX machine. Adds to: UNIT_TESTS.

PTX_OBJS := $(PTX_SRCS:%.c=$(B)/%.o)

UNIT_TESTS += test_ptx_bad test_ptx_int test_ptx_float test_ptx_ctl test_ptx_nvcc \
	test_ptx_video test_ptx_small test_ptx_sync test_ptx_check \
	test_ptx_sm90 test_ptx_regs test_ptx_mma test_ptx_shared test_ptx_launch

UNIT_TESTS += test_ptx_tex
test_ptx_regs_OBJS := $(PTX_OBJS)
test_ptx_regs_LIBS := -lm
test_ptx_tex_OBJS := $(PTX_OBJS)
test_ptx_tex_LIBS := -lm
test_ptx_bad_OBJS := $(PTX_OBJS)
test_ptx_bad_LIBS := -lm
test_ptx_int_OBJS := $(PTX_OBJS)
test_ptx_int_LIBS := -lm
test_ptx_ctl_OBJS := $(PTX_OBJS)
test_ptx_ctl_LIBS := -lm
test_ptx_float_OBJS := $(PTX_OBJS)
test_ptx_float_LIBS := -lm
test_ptx_video_OBJS := $(PTX_OBJS)
test_ptx_video_LIBS := -lm
test_ptx_small_OBJS := $(PTX_OBJS)
test_ptx_small_LIBS := -lm
test_ptx_sync_OBJS := $(PTX_OBJS)
test_ptx_sync_LIBS := -lm
test_ptx_check_OBJS := $(PTX_OBJS)
test_ptx_check_LIBS := -lm
test_ptx_sm90_OBJS := $(PTX_OBJS)
test_ptx_sm90_LIBS := -lm
test_ptx_launch_OBJS := $(PTX_OBJS)
test_ptx_launch_LIBS := -lm
test_ptx_mma_OBJS := $(PTX_OBJS)
test_ptx_mma_LIBS := -lm
test_ptx_shared_OBJS := $(PTX_OBJS)
test_ptx_shared_LIBS := -lm
test_ptx_nvcc_OBJS := $(PTX_OBJS)
test_ptx_nvcc_LIBS := -lm

# The PTX that nvcc makes from one source: optimised, with fast math, and for a debugger.
PTX_KERNELS := $(MADE_IN)/tests/unit/ptx_kernels
$(PTX_KERNELS).fast.ptx: PTX_NVFLAGS := -O3
$(PTX_KERNELS).math.ptx: PTX_NVFLAGS := -O3 --use_fast_math -lineinfo
$(PTX_KERNELS).debug.ptx: PTX_NVFLAGS := -G -O0
$(PTX_KERNELS).%.ptx: tests/unit/ptx/test_ptx_kernels.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -ptx -arch=compute_75 $(PTX_NVFLAGS) $< -o $@

$(B)/tests/unit/ptx/test_ptx_nvcc.o $(B)/tests/unit/ptx/test_ptx_bad.o: override CFLAGS += -DPTX_KERNELS='"$(abspath $(PTX_KERNELS))"'
$(B)/tests/unit/ptx/test_ptx_nvcc.o $(B)/tests/unit/ptx/test_ptx_bad.o: $(PTX_KERNELS).fast.ptx $(PTX_KERNELS).math.ptx \
	$(PTX_KERNELS).debug.ptx
# The same for newer GPUs, which have more instructions.
$(PTX_KERNELS).sm80.ptx: PTX_ARCH := compute_80
$(PTX_KERNELS).sm90.ptx: PTX_ARCH := compute_90
$(PTX_KERNELS).sm80.ptx $(PTX_KERNELS).sm90.ptx: tests/unit/ptx/test_ptx_sm90.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -ptx -std=c++17 -O3 -arch=$(PTX_ARCH) $< -o $@

$(B)/tests/unit/ptx/test_ptx_sm90.o: override CFLAGS += -DPTX_KERNELS='"$(abspath $(PTX_KERNELS))"'
$(B)/tests/unit/ptx/test_ptx_sm90.o: $(PTX_KERNELS).sm80.ptx $(PTX_KERNELS).sm90.ptx
# The reference functions in these tests set their own rounding modes.
$(B)/tests/unit/ptx/test_ptx_float.o: override CFLAGS += -frounding-math -ffp-contract=off
$(B)/tests/unit/ptx/test_ptx_small.o: override CFLAGS += -frounding-math -ffp-contract=off
