# SPDX-License-Identifier: GPL-2.0-or-later
# The cuda backend, and a tool that tries any backend alone. The backend is a plugin that qcu-device
# loads from its own folder. To build it, the CUDA toolkit is needed, but no GPU and no driver.
# Without the toolkit it is not built, and qcu-device runs with the soft backend only.

CUDA_INC := $(firstword $(wildcard $(CUDA_HOME)/include $(CUDA_HOME)/targets/x86_64-linux/include))
CUDA_STATIC := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a \
	$(CUDA_HOME)/targets/x86_64-linux/lib/libcudart_static.a))

CUDA_SRCS := $(addprefix qcu-device/backend/cuda/,be_cuda.c be_cuda_array.c be_cuda_plot.c be_cuda_copy.c be_cuda_host.c be_cuda_mem.c be_cuda_slabs.c be_cuda_lot.c \
	be_cuda_module.c be_cuda_pool.c be_cuda_print.c be_cuda_stream.c)
CUDA_SRCS += $(addprefix qcu-device/backend/cuda/,be_cuda_texture.c be_cuda_ipc.c be_cuda_kept.c be_cuda_move.c be_cuda_place.c be_cuda_cond.c be_cuda_graph.c \
	be_cuda_use.c be_cuda_jit.c be_cuda_library.c be_cuda_virtual.c \
	be_cuda_green.c be_cuda_saved.c be_cuda_fault.c) $(addprefix qcu-device/backend/,fault_dump.c pass.c) \
	$(addprefix qcu-device/base/,gap.c sorted.c spin.c)
CUDA_OBJS := $(CUDA_SRCS:%.c=$(B)/%.o)

$(CUDA_OBJS): override CFLAGS += -isystem $(CUDA_INC)

$(B)/qcu-device/be_cuda.so: $(CUDA_OBJS)
	@mkdir -p $(@D)
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL $(if $(SAN),,-Wl,-z,defs) -o $@ $^ $(CUDA_STATIC) \
		-ldl -lrt -lpthread

$(B)/qcu-device/be_check: $(addprefix $(B)/qcu-device/backend/cuda/check/,be_check.o be_check_driver.o be_check_graph.o be_check_move.o be_check_place.o \
		be_check_report.o be_check_saved.o be_check_time.o) \
		$(SOFT_LIB)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ $(SOFT_LIBS) -ldl

# A plain fat binary for be_check: machine code for sm_75, and PTX for every later GPU.
$(B)/qcu-device/be_check.fatbin: qcu-device/backend/cuda/check/be_check_kernels.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -fatbin -arch=sm_75 -o $@ $<

PARTS += $(B)/qcu-device/be_check
ifneq ($(and $(CUDA_INC),$(CUDA_STATIC)),)
PARTS += $(B)/qcu-device/be_cuda.so $(B)/qcu-device/be_check.fatbin
endif
