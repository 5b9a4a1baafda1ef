# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests of the whole library without a VM, on the library that has its mirror in the program's own
# process. They are plain C programs, or CUDA programs if a kernel must run.

LOOPBACK_C := bad_input callbacks copies devices fork $(if $(SAN),,mem_large) pinned pools posted recycle \
	streams threads
LOOPBACK_C += bad_fatbin array_handles graph_conditional graph_memory library_options logs
# These tests load a backend as the transport does. This does not work with the sanitizers.
LOOPBACK_C += $(if $(SAN),,driver_malloc exit)
LOOPBACK_CU := answers kernels memory_check per_thread plugin window_taken
LOOPBACK_TESTS += $(LOOPBACK_C) $(if $(SAN),,$(LOOPBACK_CU))

LOOPBACK_LINK := -L$(B)/loopback -lcudart

$(LOOPBACK_C:%=$(B)/tests/loopback/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(LOOPBACK_C:%=$(B)/tests/loopback/%.o): | cudart-header

$(LOOPBACK_C:%=$(B)/tests/loopback/%): $(B)/tests/loopback/%: $(B)/tests/loopback/%.o \
		$(B)/loopback/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $< $(LOOPBACK_LINK) '-Wl,-rpath,$$ORIGIN/../../loopback'

$(B)/tests/loopback/memory_check: NVCC_FLAGS := -rdc=true -lineinfo -gencode arch=compute_75,code=compute_75 \
	tests/loopback/memory_check_unit.cu
$(B)/tests/loopback/memory_check: tests/loopback/memory_check_unit.cu
$(B)/tests/loopback/per_thread: NVCC_FLAGS := --default-stream per-thread
$(LOOPBACK_CU:%=$(B)/tests/loopback/%): $(B)/tests/loopback/%: tests/loopback/%.cu \
		tests/loopback/check.h $(B)/loopback/libcudart.so.13 | cudart-header
	@mkdir -p $(@D)
	$(NVCC) -cudart shared $(NVCC_FLAGS) -o $@ $< $(LOOPBACK_LINK) \
		-Xlinker '-rpath=$$ORIGIN/../../loopback'

$(B)/tests/loopback/plugin: $(B)/tests/loopback/plugin.so
$(B)/tests/loopback/plugin.so: tests/loopback/plugin.cu tests/loopback/check.h \
		$(B)/loopback/libcudart.so.13 | cudart-header
	@mkdir -p $(@D)
	$(NVCC) -DPLUGIN -Xcompiler -fPIC -shared -cudart shared -o $@ $< $(LOOPBACK_LINK)

$(B)/tests/loopback/driver_malloc: $(B)/tests/loopback/driver_malloc_backend.so
$(B)/tests/loopback/exit: $(B)/tests/loopback/exit_backend.so
$(B)/tests/loopback/%_backend.so: $(B)/tests/loopback/%_backend.o $(SOFT_LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -o $@ $^ $(SOFT_LIBS)
