# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of the device process. They use the fake backend instead of a GPU.

DEVICE_FAKE := $(B)/tests/unit/device/mirror/test_device_fake.o
DEVICE_DRIVER := $(B)/tests/unit/device/host/test_device_driver.o

UNIT_TESTS += test_device_guestmem test_device_handles test_device_lanes test_device_order test_device_window \
	test_device_dispatch test_device_hostcalls test_device_copy test_device_held test_device_ring test_device_spin test_device_vhost test_device_main test_device_watch
UNIT_TESTS += test_device_sorted test_device_image test_device_numbers test_device_params test_device_greens test_device_complain test_device_text test_wire_check
UNIT_TESTS += test_device_managed test_device_arrays test_device_conds test_device_graphs test_device_ipc test_device_unmap test_device_carriers test_device_copiers

UNIT_TESTS += test_device_turns
test_device_turns_OBJS := $(B)/qcu-device/turns/turns.o
UNIT_TESTS += test_device_room
test_device_room_OBJS := $(B)/qcu-device/turns/room.o
UNIT_TESTS += test_device_store
test_device_store_OBJS := $(B)/qcu-device/memory/store.o $(B)/qcu-device/memory/store_file.o $(B)/qcu-device/base/complain.o
test_device_store_LIBS := -Wl,--wrap=pread -Wl,--wrap=pwrite
test_device_guestmem_OBJS := $(B)/qcu-device/memory/guestmem.o $(B)/qcu-device/memory/named.o
test_device_handles_OBJS := $(MIRROR_LIB)
test_device_lanes_OBJS := $(MIRROR_LIB)
test_device_image_OBJS := $(MIRROR_LIB)
test_device_text_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_text_LIBS := $(SOFT_LIBS)
test_device_complain_OBJS := $(B)/qcu-device/base/complain.o
test_device_sorted_OBJS := $(B)/qcu-device/base/sorted.o
test_device_params_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_greens_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_greens_LIBS := $(SOFT_LIBS)
test_device_numbers_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_carriers_OBJS := $(B)/qcu-device/base/carriers.o $(B)/qcu-device/base/spin.o
test_device_carriers_LIBS := -Wl,--wrap=pthread_create
test_device_order_OBJS := $(MIRROR_LIB)
test_device_window_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_dispatch_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_hostcalls_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_watch_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_unmap_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_held_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_copy_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_copiers_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_managed_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_managed_LIBS := $(SOFT_LIBS)
test_device_arrays_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_conds_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_arrays_LIBS := $(SOFT_LIBS)
test_device_conds_LIBS := $(SOFT_LIBS)
test_device_graphs_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_graphs_LIBS := $(SOFT_LIBS)
UNIT_TESTS += test_device_gap test_device_pass
test_device_pass_OBJS := $(B)/qcu-device/backend/pass.o $(B)/qcu-device/host/passes.o
test_device_pass_LIBS := -Wl,--wrap=clock_gettime
test_device_gap_OBJS := $(B)/qcu-device/base/gap.o
test_device_ipc_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_ipc_LIBS := $(SOFT_LIBS)
test_device_ring_OBJS := $(DEVICE_DRIVER) $(B)/qcu-device/memory/ring.o $(B)/qcu-device/memory/guestmem.o $(B)/qcu-device/memory/named.o
test_device_spin_OBJS := $(B)/qcu-device/base/spin.o
test_device_vhost_OBJS := $(B)/tests/unit/device/host/test_device_frontend.o $(DEVICE_FAKE) \
	$(DEVICE_DRIVER) \
	$(filter-out %/main.o,$(DEVICE_SRCS:%.c=$(B)/%.o)) $(MIRROR_LIB) $(VHOST_USER_LIB)
test_device_vhost_LIBS := $(DEVICE_LIBS)
UNIT_TESTS += test_device_moving test_device_handover
test_device_handover_OBJS := $(B)/qcu-device/moving/handover.o
test_device_moving_OBJS = $(test_device_vhost_OBJS)
test_device_moving_LIBS := $(DEVICE_LIBS)
UNIT_TESTS += test_device_lies
test_device_lies_OBJS := $(B)/qcu-device/host/ahead.o $(B)/qcu-device/memory/ahead.o $(addprefix $(B)/qcu-device/base/,complain.o spin.o)
$(B)/tests/unit/device/moving/test_device_lies.o: $(VHOST_USER_LIB)
$(B)/tests/unit/device/moving/test_device_lies.o: override CFLAGS += -isystem $(VHOST_USER)/include
UNIT_TESTS += test_device_shown
test_device_shown_OBJS = $(test_device_vhost_OBJS)
test_device_shown_LIBS := $(DEVICE_LIBS)
UNIT_TESTS += test_device_front
test_device_front_OBJS = $(test_device_vhost_OBJS)
test_device_front_LIBS := $(DEVICE_LIBS)
ifneq ($(CUDA_INC),)
UNIT_TESTS += test_cuda_print test_cuda_fault test_cuda_slabs test_cuda_move test_cuda_arrays test_cuda_pool test_cuda_saved test_cuda_saved_pool
CUDA_STAND_IN := $(addprefix $(B)/tests/unit/device/cuda/,cuda_stand_in.o cuda_addresses.o cuda_modules.o)
test_cuda_slabs_OBJS := $(addprefix $(B)/qcu-device/backend/cuda/,be_cuda_mem.o be_cuda_array.o be_cuda_slabs.o be_cuda_lot.o be_cuda_pool.o be_cuda_kept.o be_cuda_plot.o be_cuda_move.o be_cuda_saved.o) \
	$(B)/qcu-device/backend/pass.o $(addprefix $(B)/qcu-device/base/,sorted.o spin.o) $(CUDA_STAND_IN)
test_cuda_move_OBJS := $(test_cuda_slabs_OBJS)
test_cuda_arrays_OBJS := $(test_cuda_slabs_OBJS)
test_cuda_saved_OBJS := $(test_cuda_slabs_OBJS)
test_cuda_saved_pool_OBJS := $(test_cuda_slabs_OBJS)
test_cuda_pool_OBJS := $(test_cuda_slabs_OBJS)
$(CUDA_STAND_IN) $(addprefix $(B)/tests/unit/device/cuda/,test_cuda_slabs.o test_cuda_move.o test_cuda_arrays.o test_cuda_pool.o test_cuda_saved.o test_cuda_saved_pool.o test_cuda_fault.o): override CFLAGS += -isystem $(CUDA_INC)
test_cuda_print_OBJS := $(B)/qcu-device/backend/cuda/be_cuda_print.o $(B)/qcu-device/base/complain.o
test_cuda_fault_OBJS := $(B)/qcu-device/backend/cuda/be_cuda_fault.o $(B)/qcu-device/backend/fault_dump.o
endif
# The test does not link this file, it runs it.
test_device_main_OBJS = $(B)/qcu-device/qcu-device $(JAIL_BACKEND)

# Tests of limits.
UNIT_TESTS += test_device_limits test_device_quota test_device_quota_soft test_device_quota_shared test_device_image_memory test_device_carry test_device_vhost_limits test_device_queued test_device_kerneltime
test_device_limits_OBJS := $(MIRROR_LIB)
test_device_quota_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_quota_shared_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_image_memory_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)
test_device_quota_soft_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_quota_soft_LIBS := $(SOFT_LIBS)
test_device_carry_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_carry_LIBS := $(SOFT_LIBS)
test_device_vhost_limits_OBJS = $(test_device_vhost_OBJS)
test_device_vhost_limits_LIBS := $(DEVICE_LIBS)
test_device_queued_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_queued_LIBS := $(SOFT_LIBS)

# Tests the sandbox: qcu-device runs with a backend that tries what the sandbox must refuse.
UNIT_TESTS += test_device_jail
JAIL_BACKEND := $(B)/tests/jail/be_cuda.so
$(JAIL_BACKEND): $(B)/tests/unit/device/host/jail_backend.o $(SOFT_LIB)
	@mkdir -p $(@D)
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL -o $@ $^ $(SOFT_LIBS) -ldl
test_device_jail_OBJS := $(B)/tests/unit/device/host/test_device_frontend.o $(DEVICE_DRIVER) \
	$(filter-out %/main.o,$(DEVICE_SRCS:%.c=$(B)/%.o)) $(MIRROR_LIB) $(SOFT_LIB) $(VHOST_USER_LIB) \
	$(B)/qcu-device/qcu-device $(JAIL_BACKEND)
test_device_jail_LIBS := $(DEVICE_LIBS)

# A control group for each mirror. tests/vm/machine/groups.sh runs this test where there are such groups.
UNIT_TESTS += test_device_groups
test_device_groups_OBJS := $(test_device_jail_OBJS)
test_device_groups_LIBS := $(DEVICE_LIBS)
# Memory that leaves the GPU for a file.
UNIT_TESTS += test_device_filed
test_device_filed_OBJS := $(test_device_jail_OBJS) $(B)/qcu-device/qcu-share
test_device_filed_LIBS := $(DEVICE_LIBS)
UNIT_TESTS += test_device_calls
test_device_calls_OBJS := $(test_device_jail_OBJS)
test_device_calls_LIBS := $(DEVICE_LIBS)
UNIT_TESTS += test_device_ahead
test_device_ahead_OBJS := $(test_device_jail_OBJS)
test_device_ahead_LIBS := $(DEVICE_LIBS)
UNIT_TESTS += test_device_made
test_device_made_OBJS := $(test_device_jail_OBJS)
test_device_made_LIBS := $(DEVICE_LIBS)

# What programs may learn of a GPU.
UNIT_TESTS += test_device_sensors
test_device_sensors_OBJS := $(addprefix $(B)/qcu-device/base/,busy.o sensors.o spin.o)

# A program's device memory as NVML sees it, which is a stand-in here.
UNIT_TESTS += test_device_memwatch
FAKE_NVML := $(B)/tests/memwatch/libnvidia-ml.so.1
$(FAKE_NVML): $(B)/tests/unit/device/host/fake_nvml.o
	@mkdir -p $(@D)
	$(RUN) $(CC) -shared $(LDFLAGS) -o $@ $^
test_device_memwatch_OBJS := $(test_device_jail_OBJS) $(FAKE_NVML) $(B)/qcu-device/qcu-share
test_device_memwatch_LIBS := $(DEVICE_LIBS)
test_device_kerneltime_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)

# Metrics.
UNIT_TESTS += test_device_board test_device_metrics
test_device_board_OBJS := $(B)/qcu-device/host/board.o $(B)/qcu-device/host/board_print.o $(MIRROR_LIB)
test_device_metrics_OBJS := $(B)/qcu-device/qcu-device

# What the driver API adds.
UNIT_TESTS += test_device_jit test_device_links test_device_virtual test_device_values test_device_tensors
test_device_jit_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_jit_LIBS := $(SOFT_LIBS)
test_device_links_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_links_LIBS := $(SOFT_LIBS)
test_device_virtual_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_virtual_LIBS := $(SOFT_LIBS)
test_device_tensors_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_tensors_LIBS := $(SOFT_LIBS)
test_device_values_OBJS := $(MIRROR_LIB) $(SOFT_LIB)
test_device_values_LIBS := $(SOFT_LIBS)

# Calls of libraries.
LIB_TESTS := test_device_libs test_device_lib_allowed test_device_lib_graphs test_device_lib_time test_device_lt test_device_sparse test_device_domains \
	$(if $(filter cudnn,$(SHIMS)),test_device_cudnn test_device_cudnn_labels test_device_cudnn_real test_device_counts)
UNIT_TESTS += $(LIB_TESTS)
$(foreach t,$(LIB_TESTS),$(eval $(t)_OBJS := $(DEVICE_FAKE) $(MIRROR_LIB)))
test_device_cudnn_real_LIBS := -ldl
$(LIB_TESTS:%=$(B)/tests/unit/device/libs/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC))

# Sessions that are saved.
SAVED_TESTS := test_device_saved test_device_saved_ahead test_device_saved_driver test_device_saved_libs test_device_saved_managed test_device_saved_virtual
UNIT_TESTS += $(SAVED_TESTS)
$(foreach t,$(SAVED_TESTS),$(eval $(t)_OBJS := $(MIRROR_LIB) $(SOFT_LIB))$(eval $(t)_LIBS := $(SOFT_LIBS)))
