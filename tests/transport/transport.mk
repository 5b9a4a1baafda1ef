# SPDX-License-Identifier: LGPL-2.1-or-later
# The guest library with a mirror in the program's own process. Sets: LOOPBACK_LIBRARY.

LOOPBACK_LIBRARY := $(B)/loopback/libcudart.so.13
LOOPBACK_OBJS := $(addprefix $(B)/tests/transport/,evict.o loopback.o populate.o saved.o settings.o user_memory.o waits.o)

$(B)/tests/transport/loopback.o: override CFLAGS += -isystem $(dir $(CUDART_INC))
$(B)/tests/transport/loopback.o: | cudart-header

$(LOOPBACK_LIBRARY): $(LIBRARY_OBJS) $(LOOPBACK_OBJS) $(MIRROR_LIB) $(SOFT_LIB) $(LIBRARY_MAP)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) $(LIBRARY_LDFLAGS) -o $@ $(LIBRARY_OBJS) $(LOOPBACK_OBJS) \
		$(MIRROR_LIB) $(SOFT_LIB) $(SOFT_LIBS)
	ln -sf libcudart.so.13 $(@D)/libcudart.so

$(B)/loopback/libcuda.so.1: $(DRIVER_LIBRARY) $(LOOPBACK_LIBRARY)
	@mkdir -p $(@D)
	cp $< $@
	ln -sf $(@F) $(@D)/libcuda.so

# The shims of libraries and libnccl.so.2 take it from their own folder.
LOOPBACK_SHIMS := $(addprefix $(B)/loopback/,$(SHIM_LIBRARIES) $(SHIM_LIBRARIES_12) $(CUDNN_LIBRARIES)) $(if $(SAN),,$(B)/loopback/libnccl.so.2) $(B)/loopback/libcufile.so.0
$(LOOPBACK_SHIMS): $(B)/loopback/%: $(B)/qcu-library/% $(LOOPBACK_LIBRARY)
	@mkdir -p $(@D)
	cp $< $@

# It takes the other library from its own folder.
$(B)/loopback/libcudart.so.12: $(CUDA12_LIBRARY) $(LOOPBACK_LIBRARY)
	@mkdir -p $(@D)
	cp $< $@

# libnvidia-ml.so.1 with a mirror of its own in the program's process.
$(B)/loopback/libnvidia-ml.so.1: $(NVML_OBJS) $(addprefix $(B)/tests/transport/,nvml_host.o settings.o) \
		$(MIRROR_LIB) $(SOFT_LIB)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) $(NVML_LDFLAGS) -o $@ $^ $(SOFT_LIBS)

# qcu-smi, which has a mirror of its own, too.
$(B)/loopback/qcu-smi: $(QCU_SMI_OBJS) $(NVML_OBJS) $(addprefix $(B)/tests/transport/,nvml_host.o settings.o) \
		$(MIRROR_LIB) $(SOFT_LIB)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ $(SOFT_LIBS)
