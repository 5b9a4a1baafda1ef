# SPDX-License-Identifier: LGPL-2.1-or-later
# libnccl.so.2: a library of the guest, built on the runtime's public functions alone, as a program would. nccl.syms
# lists what is exported. Its kernels have PTX for all GPUs, and machine code for the two that are most used.
# Sets: NCCL_LIBRARY.

NCCL := $(B)/qcu-library/nccl
NCCL_SYMS := qcu-library/nccl/nccl.syms
NCCL_LIBRARY := $(B)/qcu-library/libnccl.so.2
NCCL_OBJS := $(addprefix $(NCCL)/,calls.o carry.o comm.o end.o errors.o far.o group.o host.o init.o launch.o meet.o memory.o \
	net.o order.o resize.o unsupported.o)
NCCL_TYPES := int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16
NCCL_KERNELS := $(NCCL)/copies.o $(NCCL_TYPES:%=$(NCCL)/reduce_%.o)
# The machine code is made from the PTX: the kernels ask for no GPU, so that the PTX for these two would be the same.
NCCL_NVCC = $(RUN) $(NVCC) $(NVCC_STD) -O3 -I. -Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics \
	-gencode 'arch=compute_75,code=[compute_75,sm_80,sm_90]'

$(NCCL)/unsupported.inc: $(NCCL_SYMS) qcu-library/nccl/nccl.mk
	@mkdir -p $(@D)
	awk '!/^#/ && $$2 == "unsupported" { print "UNSUPPORTED(" $$1 ")" }' $< >$@

$(NCCL)/unsupported.o: $(NCCL)/unsupported.inc
$(NCCL)/unsupported.o: override CFLAGS += -I$(NCCL)
$(NCCL_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(NCCL_OBJS): | cudart-header

NCCL_HEADERS := $(addprefix qcu-library/nccl/kernels/,device.cuh kernels.h layout.h values.cuh)
$(NCCL)/copies.o: qcu-library/nccl/kernels/copies.cu $(NCCL_HEADERS) | deps cudart-header
	@mkdir -p $(@D)
	$(NCCL_NVCC) -c -o $@ $<
$(NCCL_TYPES:%=$(NCCL)/reduce_%.o): $(NCCL)/reduce_%.o: qcu-library/nccl/kernels/reduce.cu $(NCCL_HEADERS) | deps cudart-header
	@mkdir -p $(@D)
	$(NCCL_NVCC) -DQCCL_TYPE=$* -c -o $@ $<

# Each function's second name.
$(NCCL)/second.opts: $(NCCL_SYMS) qcu-library/nccl/nccl.mk
	@mkdir -p $(@D)
	awk '!/^#/ { print "--defsym=p" $$1 "=" $$1 }' $< >$@

$(NCCL_LIBRARY): $(NCCL_OBJS) $(NCCL_KERNELS) $(NCCL)/second.opts $(B)/qcu-library/libcudart.so.13
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,-soname,libnccl.so.2 -Wl,-z,relro,-z,now,-z,defs '-Wl,-rpath,$$ORIGIN' \
		-Wl,--disable-new-dtags -Wl,@$(NCCL)/second.opts -o $@ $(NCCL_OBJS) $(NCCL_KERNELS) \
		$(B)/qcu-library/libcudart.so.13
	ln -sf libnccl.so.2 $(@D)/libnccl.so

# A sanitizer's run time would have to come with the program.
PARTS += $(if $(SAN),,$(NCCL_LIBRARY))
