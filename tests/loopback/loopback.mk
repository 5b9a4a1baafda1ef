# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests of the whole library without a VM, on the library that has its mirror in the program's own
# process. They are plain C programs, or CUDA programs if a kernel must run.

LOOPBACK_C := bad_input callbacks copies devices fork $(if $(SAN),,mem_large) pinned pool_share pools posted recycle \
	streams threads
LOOPBACK_C += bad_fatbin array_handles cuda135 graph_conditional graph_memory library_options logs notify
# Under ThreadSanitizer the memory of a GPU is not at its usual addresses, so no session can be saved.
LOOPBACK_C += $(if $(findstring thread,$(SAN)),,saved_logs)
# These tests load a backend as the transport does. This does not work with the sanitizers.
LOOPBACK_C += $(if $(SAN),,driver_malloc exit)
# libcudart.so.12 is not built with them.
LOOPBACK_C += $(if $(SAN),,cuda12)
LOOPBACK_CU := answers asker check_exit filler hog holder fault_places graph_commands graph_host kernels memory_check per_thread plugin turner window_taken
LOOPBACK_TESTS += $(LOOPBACK_C) $(if $(SAN),,$(filter-out asker filler hog holder turner,$(LOOPBACK_CU)))

# Tests of malloc. Not under a sanitizer: its own malloc would be called instead of ours.
MALLOC_C := bad_memory malloc_api malloc_cuda malloc_fork malloc_registered malloc_spawn malloc_threads \
	malloc_programs
LOOPBACK_TESTS += $(if $(SAN),,$(MALLOC_C))

LOOPBACK_LINK := -L$(B)/loopback -lcudart
LOOPBACK_SRCS := $(wildcard tests/loopback/*.c tests/loopback/*/*.c)
# The object files of tests, which are in any of the folders.
loopback_objs = $(patsubst %.c,$(B)/%.o,$(foreach t,$(1),$(filter %/$(t).c,$(LOOPBACK_SRCS))))

# In the sanitizers' builds, too, they are optimised: some compare many megabytes.
$(call loopback_objs,$(LOOPBACK_C) $(MALLOC_C)): override CFLAGS += -isystem $(dir $(CUDART_INC)) $(SOFT_CFLAGS)
$(call loopback_objs,$(LOOPBACK_C) $(MALLOC_C)): | cudart-header
$(call loopback_objs,$(MALLOC_C)): override CFLAGS += -fno-builtin
$(call loopback_objs,malloc_programs): override CFLAGS += -DBUILD='"$(B)"'

$(foreach t,$(LOOPBACK_C) $(MALLOC_C),$(eval $(B)/tests/loopback/$(t): $(call loopback_objs,$(t))))
$(addprefix $(B)/tests/loopback/,$(LOOPBACK_C) $(MALLOC_C)): $(B)/loopback/libcudart.so.13
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LOOPBACK_LINK) '-Wl,-rpath,$$ORIGIN/../../loopback'

# The same as malloc_api, in a program that knows only the other library.
LOOPBACK_TESTS += $(if $(SAN),,malloc_api_12)
$(B)/tests/loopback/malloc_api_12: $(call loopback_objs,malloc_api) $(B)/loopback/libcudart.so.12
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/loopback -l:libcudart.so.12 \
		'-Wl,-rpath,$$ORIGIN/../../loopback' -Wl,-rpath-link,$(B)/loopback

# This test loads the other library, too.
$(B)/tests/loopback/cuda12: $(B)/loopback/libcudart.so.12

# malloc_programs preloads this file into programs, together with the library.
$(B)/tests/loopback/malloc_programs: $(B)/tests/loopback/malloc_arm.so $(B)/qcu-library/libcudart.so.13
$(B)/tests/loopback/malloc_arm.so: $(call loopback_objs,malloc_arm)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -shared -o $@ $<

LOOPBACK_OBJECTS := $(B)/tests/loopback-objects
MEMORY_CHECK := $(LOOPBACK_OBJECTS)/memory_check.o $(LOOPBACK_OBJECTS)/memory_check_unit.o
$(MEMORY_CHECK): NVCC_FLAGS := -rdc=true -lineinfo $(WITHOUT_CODE)
$(B)/tests/loopback/memory_check: $(MEMORY_CHECK)
$(B)/tests/loopback/memory_check: NVCC_LINK := -rdc=true $(WITHOUT_CODE)
# It compares each word of many megabytes.
$(LOOPBACK_OBJECTS)/filler.o: NVCC_FLAGS := -O1
$(LOOPBACK_OBJECTS)/fault_places.o: NVCC_FLAGS := -lineinfo $(WITHOUT_CODE)
$(LOOPBACK_OBJECTS)/per_thread.o: NVCC_FLAGS := --default-stream per-thread
LOOPBACK_CU_SRCS := $(wildcard tests/loopback/*.cu tests/loopback/*/*.cu)
$(foreach t,$(LOOPBACK_CU) memory_check_unit,$(eval $(LOOPBACK_OBJECTS)/$(t).o: $(filter %/$(t).cu,$(LOOPBACK_CU_SRCS))))
$(LOOPBACK_OBJECTS)/%.o: tests/guest/check.h tests/loopback/check.h tests/loopback/commands.h | cudart-header
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -I. $(NVCC_FLAGS) -c -o $@ $(filter %.cu,$^)
$(LOOPBACK_CU:%=$(B)/tests/loopback/%): $(B)/tests/loopback/%: $(LOOPBACK_OBJECTS)/%.o $(B)/loopback/libcudart.so.13
	@mkdir -p $(@D)
	$(RUN) $(NVCC) -cudart shared $(or $(NVCC_LINK),-nodlink) -o $@ $(filter %.o,$^) $(LOOPBACK_LINK) \
		-Xlinker '-rpath=$$ORIGIN/../../loopback'

$(B)/tests/loopback/plugin: $(B)/tests/loopback/plugin.so
$(B)/tests/loopback/plugin.so: tests/loopback/plugin.cu tests/loopback/check.h \
		$(B)/loopback/libcudart.so.13 | cudart-header
	@mkdir -p $(@D)
	$(RUN) $(NVCC_TEST) -I. -DPLUGIN -Xcompiler -fPIC -shared -cudart shared -o $@ $< $(LOOPBACK_LINK)

$(B)/tests/loopback/driver_malloc: $(B)/tests/loopback/driver_malloc_backend.so
$(B)/tests/loopback/exit: $(B)/tests/loopback/exit_backend.so
$(B)/tests/loopback/filler: $(if $(SAN),,$(B)/tests/loopback/counted_backend.so)
LOOPBACK_BACKENDS := driver_malloc exit counted
$(foreach t,$(LOOPBACK_BACKENDS),$(eval $(B)/tests/loopback/$(t)_backend.so: $(call loopback_objs,$(t)_backend)))
$(LOOPBACK_BACKENDS:%=$(B)/tests/loopback/%_backend.so): $(SOFT_LIB)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) $(SOFT_LIB) $(SOFT_LIBS)

# Another library, which has a mirror of its own. It loads a backend that is not there.
LOOPBACK_TESTS += $(if $(SAN),,nvml)
$(B)/tests/loopback/nvml: $(call loopback_objs,nvml) $(B)/loopback/libnvidia-ml.so.1
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/loopback -l:libnvidia-ml.so.1 -ldl \
		'-Wl,-rpath,$$ORIGIN/../../loopback'

# Every function of the driver API.
LOOPBACK_TESTS += driver_needs
$(call loopback_objs,driver_needs): override CFLAGS += -isystem $(dir $(CUDART_INC)) -I$(B)/qcu-library
$(call loopback_objs,driver_needs): $(B)/qcu-library/driver_calls.inc | cudart-header
$(B)/tests/loopback/driver_needs: $(call loopback_objs,driver_needs) $(B)/loopback/libcuda.so.1
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/loopback -l:libcuda.so.1 '-Wl,-rpath,$$ORIGIN/../../loopback'

# With the shims.
LOOPBACK_TESTS += library_calls
$(call loopback_objs,library_calls): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(call loopback_objs,library_calls): | cudart-header
$(B)/tests/loopback/library_calls: $(call loopback_objs,library_calls) $(LOOPBACK_SHIMS)
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LOOPBACK_LINK) -l:libcublas.so.13 -l:libcublasLt.so.13 \
		'-Wl,-rpath,$$ORIGIN/../../loopback'

# With a library of NVIDIA's whose stand-in is in the backend. Not under the sanitizers: as driver_malloc.
# own_library TEST SONAME...
define own_library
LOOPBACK_TESTS += $(if $(SAN),,$(1))
$(call loopback_objs,$(1) $(1)_backend): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(call loopback_objs,$(1) $(1)_backend): | cudart-header
$(B)/tests/loopback/$(1): $(call loopback_objs,$(1)) $(LOOPBACK_SHIMS) $(B)/tests/loopback/$(1)_backend.so
	@mkdir -p $$(@D)
	$$(RUN) $$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) $$(LOOPBACK_LINK) -Wl,--no-as-needed $(2:%=-l:%) \
		'-Wl,-rpath,$$$$ORIGIN/../../loopback' -Wl,-rpath-link,$(B)/loopback
$(B)/tests/loopback/$(1)_backend.so: $(call loopback_objs,$(1)_backend) $(SOFT_LIB)
	@mkdir -p $$(@D)
	$$(RUN) $$(CC) $$(LDFLAGS) -shared -o $$@ $$(filter %.o,$$^) $$(SOFT_LIB) $$(SOFT_LIBS)
endef
$(eval $(call own_library,sparse_calls,libcusparse.so.12))
$(eval $(call own_library,solver_calls,libcusolver.so.12 libcusparse.so.12))
$(eval $(call own_library,factor_calls,libcusolver.so.12 libcusparse.so.12))
$(eval $(call own_library,curand_native,libcurand.so.10))
$(if $(filter cudnn,$(SHIMS)),$(eval $(call own_library,cudnn_rnn,$(or $(CUDNN_LIBRARIES),libcudnn.so.9))))
# Under the names of CUDA 12, which a sanitizer's build does not have.
$(if $(SAN),,$(eval $(call own_library,names_12,$(SHIM_LIBRARIES_12))))
