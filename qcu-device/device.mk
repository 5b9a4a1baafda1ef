# SPDX-License-Identifier: GPL-2.0-or-later
# qcu-device, the host process. The mirror is a library of its own, because the tests' loopback
# transport links it, too.

# The folders are layers: each uses only what lies in those above it in this list.
MIRROR_SRCS := $(addprefix qcu-device/base/,busy.c carriers.c complain.c libraries.c limits.c sensors.c spin.c usage.c write_file.c)
MIRROR_SRCS += qcu-device/turns/keeper.c
MIRROR_SRCS += $(addprefix qcu-device/backend/,image.c image_elf.c image_names.c image_ptx.c complete.c)
MIRROR_SRCS += $(addprefix qcu-device/memory/,ahead.c guestmem.c held.c named.c registered.c shares.c staging.c store.c store_file.c window.c)
MIRROR_SRCS += $(addprefix qcu-device/lanes/,handles.c kept.c lanes.c order.c)
MIRROR_SRCS += $(addprefix qcu-device/commands/,arrays.c call.c charges.c copy.c devices.c hostcalls.c ipc.c \
	kerneltime.c managed.c memory.c memset.c modules.c output.c pools.c rects.c results.c stream_ref.c streams.c textures.c tokens.c \
	turn.c turns.c watch.c)
MIRROR_SRCS += $(addprefix qcu-device/commands/graph/,conds.c graph_read.c graphs.c)
MIRROR_SRCS += $(addprefix qcu-device/commands/driver/,greens.c links.c tensors.c values.c virtual.c)
MIRROR_SRCS += $(addprefix qcu-device/commands/swap/,ask.c leave.c swap.c)
MIRROR_SRCS += $(addprefix qcu-device/mirror/,dispatch.c going.c keep_calls.c keeping.c made.c mirror.c restore.c save.c save_graph.c save_memory.c save_virtual.c archive.c module_names.c sums.c)
# The stubs of libraries. Those made by scripts/shims/generate have no file in the tree: qcu-library/shims/shims.mk.
LIBS_SRCS := $(addprefix qcu-device/libs/,call.c cublas.c cublaslt.c cublaslt_algos.c cufft.c curand.c cusolver.c cusolver_factors.c cusparse.c descriptor.c guard.c load.c object.c scratch.c \
	take.c) \
	$(if $(filter cudnn,$(SHIMS)),$(addprefix qcu-device/libs/,cudnn.c cudnn_attributes.c cudnn_backend.c cudnn_ctc.c))
MIRROR_SRCS += $(LIBS_SRCS)
LIBS_MADE := $(SHIMS:%=$(B)/qcu-device/libs/%_mirror.o)
$(LIBS_MADE): $(B)/%.o: $(MADE_IN)/%.c | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(CFLAGS) -MMD -MP -c $< -o $@
$(LIBS_MADE) $(LIBS_SRCS:%.c=$(B)/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(LIBS_MADE) $(LIBS_SRCS:%.c=$(B)/%.o): | cudart-header
$(B)/qcu-device/libs/call.o: override CFLAGS += $(SHIMS:%=-DLIB_HAVE_%)
MIRROR_LIB := $(B)/qcu-device/libmirror.a
MIRROR_LIBS := -llz4 -lzstd
DEVICE_SRCS := $(addprefix qcu-device/jail/,gpus.c groups.c jail.c jail_calls.c jail_files.c jail_lacks.c jail_spaces.c)
DEVICE_SRCS += $(addprefix qcu-device/moving/,dirty.c handover.c service.c state.c)
DEVICE_SRCS += $(addprefix qcu-device/front/,front.c ramfiles.c)
DEVICE_SRCS += $(addprefix qcu-device/host/,ahead.c birth.c board.c board_print.c hold.c main.c memwatch.c metrics.c mirror_vq.c nursery.c passes.c plugin.c poll.c \
	sessions.c spares.c status.c take_over.c transfer.c vhost.c)
DEVICE_SRCS += $(addprefix qcu-device/memory/,ring.c store_pool.c)
# Static: a mirror loads its libraries as a user that may not be allowed to read every folder.
DEVICE_LIBS := $(patsubst %,-l:lib%.a,seccomp cap lz4 zstd) -lm -ldl
PARTS += $(B)/qcu-device/qcu-device

$(MIRROR_LIB): $(MIRROR_SRCS:%.c=$(B)/%.o) $(LIBS_MADE)
	@rm -f $@
	$(RUN) $(AR) rcs $@ $^

# The broker of a GPU.
SHARE := $(B)/qcu-device/qcu-share
PARTS += $(SHARE)
$(SHARE): $(addprefix $(B)/qcu-device/turns/,broker.o keeper.o room.o share.o turns.o) $(B)/qcu-device/base/spin.o
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^

# QEMU's own libvhost-user, for which no QEMU is built. Only the script knows where it is, so the files are
# copied to a fixed place. QEMU_DIR names another build.
VHOST_USER := $(B)/qcu-device/vhost-user
VHOST_USER_LIB := $(VHOST_USER)/libvhost-user.a
$(VHOST_USER_LIB): scripts/build-qemu | deps
	@mkdir -p $(VHOST_USER)
	dir=$(or $(QEMU_DIR),$$(scripts/build-qemu --library | tail -n 1)) && [ -n "$$dir" ] && \
		cp -r "$$dir/include" $(VHOST_USER) && cp "$$dir/lib/libvhost-user.a" $@

# Only these objects see the library's headers, which are not written for our warning flags.
VHOST_OBJS := $(addprefix $(B)/qcu-device/front/,front.o ramfiles.o) $(addprefix $(B)/qcu-device/host/,ahead.o birth.o hold.o memwatch.o nursery.o poll.o sessions.o spares.o status.o take_over.o transfer.o vhost.o)
$(VHOST_OBJS): $(VHOST_USER_LIB)
$(VHOST_OBJS): override CFLAGS += -isystem $(VHOST_USER)/include

$(B)/qcu-device/qcu-device: $(DEVICE_SRCS:%.c=$(B)/%.o) $(MIRROR_LIB) \
		$(B)/qcu-device/soft/libsoft.a $(VHOST_USER_LIB)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ $(DEVICE_LIBS)
