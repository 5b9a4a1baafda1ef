# SPDX-License-Identifier: GPL-2.0-or-later
# Fuzz targets: tests/fuzz/fuzz_NAME.c. `make fuzz` links them with libFuzzer (clang). The tests link
# them with replay.c, which gives them the saved corpus. Adds to: FUZZ_TARGETS.

FUZZ_TARGETS := ptx fatbin image mirror elf broker letters state ahead saved handover dump
FUZZ := $(B)/tests/fuzz
FUZZ_MUTATE := $(FUZZ)/mutate_ptx.o

fuzz_ptx_OBJS := $(FUZZ)/images.o $(PTX_SRCS:%.c=$(B)/%.o)
fuzz_fatbin_OBJS := $(FUZZ)/fatbin.o $(SOFT_LIB)
fuzz_image_OBJS := $(FUZZ)/fatbin.o $(SOFT_LIB)
fuzz_mirror_OBJS := $(FUZZ)/choose.o $(FUZZ)/recorded.o $(MIRROR_LIB) $(SOFT_LIB)
fuzz_saved_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
fuzz_elf_OBJS := $(LOADER_FIND) $(LOADER)/gpus.o $(B)/qcu-library/driver_api/link_host.o
fuzz_broker_OBJS := $(addprefix $(B)/qcu-device/turns/,broker.o room.o turns.o) $(B)/qcu-device/base/spin.o
fuzz_letters_OBJS := $(B)/qcu-device/backend/pass.o $(B)/qcu-device/host/passes.o
fuzz_handover_OBJS := $(B)/qcu-device/moving/handover.o
fuzz_dump_OBJS := $(B)/qcu-device/backend/fault_dump.o
fuzz_ahead_OBJS := $(B)/qcu-device/memory/ahead.o
fuzz_state_OBJS := $(B)/qcu-device/moving/state.o $(fuzz_ahead_OBJS)
$(FUZZ)/fuzz_elf.o: override CFLAGS += -isystem $(dir $(CUDART_INC))
$(FUZZ)/fuzz_elf.o: | cudart-header

# The messages of libraries, from the shims themselves and the library's packing.
RECORD_OBJS := $(FUZZ)/record.o $(addprefix $(B)/qcu-library/libs/,pack.o object.o create.o) \
	$(filter-out %_copy.o %_xt.o,$(sort $(foreach s,cublas cublaslt cufft curand,$(SHIM_OBJS_$(s)))))
$(FUZZ)/record.o: override CFLAGS += -isystem $(dir $(CUDART_INC))
$(FUZZ)/record.o: | cudart-header
$(FUZZ)/record: $(RECORD_OBJS)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^
$(FUZZ)/recorded.c: $(FUZZ)/record
	$< >$@
$(FUZZ)/recorded.o: $(B)/%.o: $(B)/%.c | deps
	$(RUN) $(CC) $(CFLAGS) -MMD -MP -c $< -o $@

define FUZZ_RULES
$(FUZZ)/replay_$(1): $(FUZZ)/fuzz_$(1).o $(FUZZ)/replay.o $(FUZZ_MUTATE) $(fuzz_$(1)_OBJS)
	$$(RUN) $$(CC) $$(LDFLAGS) -o $$@ $$^ $(SOFT_LIBS) -ldl
$(FUZZ)/fuzz_$(1): $(FUZZ)/fuzz_$(1).o $(FUZZ_MUTATE) $(fuzz_$(1)_OBJS)
	$$(RUN) $$(CC) $$(LDFLAGS) -fsanitize=fuzzer -o $$@ $$^ $(SOFT_LIBS) -ldl
endef
$(foreach t,$(FUZZ_TARGETS),$(eval $(call FUZZ_RULES,$(t))))

$(FUZZ)/seeds: $(FUZZ)/seeds.o $(SOFT_LIB)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ $(SOFT_LIBS)

# tests-build builds these, and tests/run runs them.
FUZZ_REPLAYS = $(FUZZ_TARGETS:%=$(FUZZ)/replay_%) $(FUZZ)/libraries/made $(FUZZ_LIBS)

# Calls of libraries, which are numbered anew with each change of the remarks: not saved, but made.
$(FUZZ)/libraries/made: $(FUZZ)/record
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$< $(@D)
	@touch $@

.PHONY: fuzz fuzz-build
fuzz-build: $(FUZZ_TARGETS:%=$(FUZZ)/fuzz_%)

# The seeds are made from the test programs, so the test programs are built first.
fuzz: $(FUZZ)/seeds $(FUZZ)/record $(FUZZ_LIBS) $(GUEST_PROGRAMS:%=$(B)/tests/guest/%)
	@$(MAKE) B=$(B)/fuzz CC=clang SAN=fuzzer-no-link,address,undefined fuzz-build >/dev/null
	@tests/fuzz/run.sh $(B)/fuzz $(FUZZ)/seeds $(FUZZ)/record $(B)/tests/guest $(FUZZ_TARGETS)
	$(FUZZ_LIBS_RUN) --seconds $${FUZZ_SECONDS:-60} --seed $$(date +%s) --list
	tests/fuzz/trace.py --seconds $${FUZZ_SECONDS:-60} --seed $$(date +%s)

# The fuzzer of calls of NVIDIA's libraries, which is made from the remarks, too.
FUZZ_LIBS := $(FUZZ)/libs/fuzz_libs
FUZZ_LIBS_RUN := env LD_LIBRARY_PATH=$(CUDA_HOME)/lib64:$(CUDA_HOME)/lib $(FUZZ_LIBS)
FUZZ_LIBS_MADE := $(SHIMS:%=$(FUZZ)/libs/%_fuzz.o)
FUZZ_LIBS_OBJS := $(addprefix $(FUZZ)/libs/,catch.o fence.o fuzz_libs.o guard.o hand.o pack.o worker.o \
	$(if $(filter cudnn,$(SHIMS)),hand_cudnn.o))
# What the stubs get of a message, and where they call the library.
FUZZ_LIBS_WRAPPED := lib_in lib_out lib_inout lib_text lib_bytes lib_scalar lib_scratch lib_scalars_back lib_ready \
	mir_do_lib_ask mir_do_lib_call
$(FUZZ_LIBS_MADE): $(B)/%.o: $(MADE_IN)/%.c | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(CFLAGS) -O0 -g0 -MMD -MP -c $< -o $@
$(FUZZ_LIBS_MADE) $(FUZZ_LIBS_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC)) $(SHIMS:%=-DLIB_HAVE_%)
$(FUZZ_LIBS_OBJS): | cudart-header
$(FUZZ_LIBS): $(FUZZ_LIBS_OBJS) $(FUZZ_LIBS_MADE) $(DEVICE_FAKE) $(MIRROR_LIB)
	$(RUN) $(CC) $(LDFLAGS) -rdynamic $(FUZZ_LIBS_WRAPPED:%=-Wl,--wrap=%) -o $@ $^ $(MIRROR_LIBS) -lm -ldl
