# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs with the runtime linked in, and what is done to them. cases.sh runs them.

LOADER_CASES := stripped_changed stripped_changed_plugin stripped_cut stripped stripped_plugin stripped_ways stripped_versions stripped_older stripped_programs stripped_shared lying_table unknown_version cuda_11 cuda_11_8 copy_spoiled copy other_architecture \
	refused_code check_bad_input wholly_static missing_library program audit_alone preloaded by_the_dynamic_linker no_pie \
	one_segment rdc per_thread threads plugins needed_library two_versions cuda_12 cuda_13_5 pages seccomp own_code \
	without_cuda wheel

# whole.py runs these.
LOADER_WHOLE := broken_zip zip_leads_out zip_bomb loop_of_links bad_programs facts_of_spoiled missing renamed in_turn calls runs by_name

LOADER_TEST := $(B)/tests/loader
LOADER_LINKED := $(addprefix $(LOADER_TEST)/,linked linked_no_pie linked_rdc linked_per_thread linked_one_segment \
	wholly_static shared plugin.so plugin2.so needs)
LOADER_C := $(addprefix $(LOADER_TEST)/,host no_exec edit)
LOADER_OTHERS := $(addprefix $(LOADER_TEST)/,linked_12 plugin_12.so linked_13_5)
LOADER_UNLINKED := $(addprefix $(LOADER_TEST)/,linked_12.o linked_13.o)
LOADER_BUILD := $(LOADER_LINKED) $(LOADER_OTHERS) $(LOADER_UNLINKED) $(LOADER_C) $(LOADER_TEST)/libcudart.so.12 $(LOADER_TEST)/wheel $(LOADER_TEST)/wheels/libcublas.so.13 \
	$(B)/loopback/libqcuda-loader.so $(B)/qcu-library/libcublas.so.13 \
	$(QCU_CHECK)

LOADER_NVCC := $(NVCC_TEST) -O1 -gencode arch=compute_75,code=compute_75
LOADER_SHARED := -Xcompiler -fPIC -shared -DPLUGIN

# The module finds the library beside itself, so for these tests it lies beside the loopback library.
$(B)/loopback/libqcuda-loader.so: $(LOADER_LIBRARY) $(LOOPBACK_LIBRARY)
	ln -sf ../qcu-library/libqcuda-loader.so $@

$(LOADER_TEST)/linked_no_pie: LOADER_FLAGS := -Xcompiler -fno-pie -Xlinker -no-pie
$(LOADER_TEST)/linked_one_segment: LOADER_FLAGS := -Xlinker -z -Xlinker noseparate-code
$(LOADER_TEST)/wholly_static: LOADER_FLAGS := -Xcompiler -static -Xlinker --no-warnings
$(LOADER_TEST)/linked_rdc: LOADER_FLAGS := -rdc=true -DRDC tests/loopback/loader/unit.cu
$(LOADER_TEST)/linked_per_thread: LOADER_FLAGS := --default-stream per-thread
$(LOADER_TEST)/shared: LOADER_FLAGS := -cudart shared
$(LOADER_TEST)/plugin.so $(LOADER_TEST)/plugin2.so: LOADER_FLAGS := $(LOADER_SHARED)
$(LOADER_TEST)/needs: LOADER_FLAGS := -DNEEDS -L$(LOADER_TEST) -l:plugin.so -Xlinker '-rpath=$$ORIGIN'
$(LOADER_TEST)/needs: $(LOADER_TEST)/plugin.so
$(LOADER_LINKED): tests/loopback/loader/linked.cu tests/loopback/loader/unit.cu | deps
	@mkdir -p $(@D)
	$(RUN) $(LOADER_NVCC) $(LOADER_FLAGS) -o $@ $<

# With the headers and the static runtimes of other versions, if these can be had (scripts/cuda-wheels).
CUDA135 := $(shell scripts/cuda-wheels --print-dir 13.5)
.PHONY: cuda135-headers
cuda135-headers: | deps
	@for v in 13.5 12.9.37 13.0 13.1 13.2 13.3 13.4.49 13.4; do \
		scripts/cuda-wheels $$v >/dev/null || { echo "programs for other versions of CUDA are left out"; break; }; \
	done
	@for v in 11.8 12.1 12.2 12.3 12.4 12.5 12.8; do scripts/cuda-wheels $$v >/dev/null || echo "programs for CUDA $$v are left out"; done
$(LOADER_TEST)/linked_12 $(LOADER_TEST)/plugin_12.so: LOADER_HOME = $(CUDA12)
$(LOADER_TEST)/linked_13_5: LOADER_HOME = $(CUDA135)
$(LOADER_TEST)/plugin_12.so: LOADER_FLAGS := $(LOADER_SHARED)
$(LOADER_OTHERS): tests/loopback/loader/linked.cu | deps cuda12-headers cuda135-headers
	@mkdir -p $(@D)
	[ ! -d $(LOADER_HOME) ] || $(RUN) $(LOADER_NVCC) $(LOADER_FLAGS) -I$(LOADER_HOME)/include -cudart none -o $@ $< \
		$(LOADER_HOME)/lib/libcudart_static.a -ldl -lrt -lpthread

# cases.sh links these.
$(LOADER_TEST)/linked_12.o: LOADER_HOME = $(CUDA12)
$(LOADER_UNLINKED): tests/loopback/loader/linked.cu | deps cuda12-headers cuda135-headers
	@mkdir -p $(@D)
	$(RUN) $(LOADER_NVCC) $(LOADER_HOME:%=-I%/include) -c -o $@ $<

$(LOADER_C): $(LOADER_TEST)/%: $(B)/tests/loopback/loader/%.o
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $< -ldl

$(LOADER_TEST)/libcudart.so.12: $(B)/tests/loopback/loader/other_runtime.o
	@mkdir -p $(@D)
	$(RUN) $(CC) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.12 -o $@ $<

# A program that finds a library by its RPATH, and what lies there.
$(LOADER_TEST)/wheel: tests/loopback/loader/wheel.c | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(CFLAGS) $(LDFLAGS) '-Wl,-rpath,$$ORIGIN/wheels' -Wl,--disable-new-dtags -o $@ $< -ldl
$(LOADER_TEST)/wheels/libcublas.so.13: tests/loopback/loader/wheel.c | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(CFLAGS) $(LDFLAGS) -DLIBRARY -shared -Wl,-soname,libcublas.so.13 -o $@ $<
