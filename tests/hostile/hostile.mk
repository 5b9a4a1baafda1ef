# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of the real qcu-device with hostile guests. Adds to: HOSTILE_ATTACKS, which run as
# unit/hostile_NAME, also under the sanitizers.

HOSTILE := $(B)/tests/hostile/hostile
HOSTILE_OBJS := $(addprefix $(B)/tests/hostile/,hostile.o guest.o host.o commands.o good.o random.o \
	attacks_map.o attacks_image.o attacks_handle.o attacks_ring.o attacks_wear.o attacks_log.o attacks_read.o attacks_graph.o) \
	$(B)/tests/fuzz/choose.o $(B)/tests/fuzz/recorded.o

HOSTILE_ATTACKS := map_bad map_tail map_tail_close map_oracle unmap_wrap map_race
HOSTILE_ATTACKS += image_pointer image_malformed image_length image_changes
HOSTILE_ATTACKS += graph_wrong graph_many graph_random graph_changes
HOSTILE_ATTACKS += op_flags handle_numbers handle_kinds handle_twice handle_devices tokens host_next
HOSTILE_ATTACKS += ring_shapes ring_control ring_indices ring_changes ring_indices_change ring_self storm
HOSTILE_ATTACKS += segs_repeat small_copies queued_work module_flood rect_carry lane_flood object_flood print_flood \
	session_flood
HOSTILE_ATTACKS += log_control log_sessions log_commands log_kernels
HOSTILE_ATTACKS += read_addresses read_memory
# Thousands of sessions, or floods whose bounds are the same without the sanitizers: with them minutes, so at night.
HOSTILE_DAILY := $(filter-out $(if $(SAN),op_flags %_flood log_sessions log_kernels queued_work),$(HOSTILE_ATTACKS))

$(HOSTILE): $(HOSTILE_OBJS) $(B)/qcu-device/qcu-device
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(HOSTILE_OBJS)

# The hostile guest kernel's module. It is built like qcuda.ko, with the kernel features that the build
# of qcuda.ko has probed (qcuda_probed.h).
HOSTILE_KO := $(B)/tests/hostile/module/hostile_guest.ko
hostile-ko-dir := $(B)/tests/hostile/module

$(HOSTILE_KO): tests/hostile/module/hostile_guest.c tests/hostile/module/Kbuild $(wildcard include/qcucmd*.h) \
		$(driver-dir)/qcuda.ko
	@mkdir -p $(@D)
	@cp tests/hostile/module/hostile_guest.c tests/hostile/module/Kbuild $(wildcard include/qcucmd*.h) \
		$(driver-dir)/qcuda_probed.h $(@D)
	@kdir="$(KDIR)"; export MAKEFLAGS="$${MAKEFLAGS%% -- *}"; \
	env -u CC -u LD -u CFLAGS -u LDFLAGS -u CPPFLAGS \
		$(MAKE) -C "$$kdir" M="$(abspath $(hostile-ko-dir))" $(KBUILD_FLAGS) modules
	@touch $@

# A qcu-device in which chosen calls fail, and the program sweep, which makes them fail one after the
# other. Not under the sanitizers, which replace some of these calls themselves.
SWEEP := $(B)/tests/hostile/sweep
FAULTY := $(B)/tests/hostile/qcu-device-faults
FAULT_CALLS := malloc calloc realloc aligned_alloc strdup strndup tsearch mmap mmap64 mremap fork execve socketpair sendmsg \
	recvmsg eventfd pipe2 memfd_create dup2 pthread_create be_soft

# Third-party libraries are linked dynamically here, so that calls inside them do not fail. How they
# behave without memory is not tested.
FAULTY_LIBS = $(or $(patsubst -l:lib%.a,-l%,$(DEVICE_LIBS)),-llz4 -lzstd -lm -ldl)

$(FAULTY): $(DEVICE_SRCS:%.c=$(B)/%.o) $(B)/tests/hostile/faults.o $(MIRROR_LIB) $(B)/qcu-device/soft/libsoft.a \
		$(VHOST_USER_LIB)
	$(RUN) $(CC) $(LDFLAGS) $(FAULT_CALLS:%=-Wl,--wrap=%) -o $@ $^ $(FAULTY_LIBS)

$(SWEEP): $(addprefix $(B)/tests/hostile/,sweep.o guest.o host.o commands.o good.o) $(FAULTY)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)

# What the sandbox costs (docs/sandbox.md).
COST := $(B)/tests/hostile/cost

$(COST): $(addprefix $(B)/tests/hostile/,cost.o guest.o host.o commands.o good.o) $(B)/qcu-device/qcu-device
	$(RUN) $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)
