# SPDX-License-Identifier: GPL-2.0-or-later
# qcu-device, the host process. The mirror is a library of its own, because the tests' loopback
# transport links it, too.

MIRROR_SRCS := $(addprefix qcu-device/,mirror.c dispatch.c memory.c copy.c memset.c staging.c streams.c modules.c image.c image_elf.c \
	lanes.c order.c spin.c handles.c hostcalls.c pools.c conds.c complain.c window.c registered.c guestmem.c watch.c carriers.c)
MIRROR_SRCS += $(addprefix qcu-device/,arrays.c rects.c textures.c ipc.c shares.c limits.c usage.c charges.c kerneltime.c call.c stream_ref.c tokens.c output.c devices.c)
MIRROR_LIB := $(B)/qcu-device/libmirror.a
MIRROR_LIBS := -llz4 -lzstd
DEVICE_SRCS := $(addprefix qcu-device/,main.c vhost.c sessions.c mirror_vq.c ring.c plugin.c spares.c status.c birth.c ramfiles.c poll.c)
DEVICE_SRCS += $(addprefix qcu-device/,jail.c jail_files.c jail_calls.c)
# Static: a mirror loads its libraries as a user that may not be allowed to read every folder.
DEVICE_LIBS := $(patsubst %,-l:lib%.a,seccomp cap lz4 zstd) -lm -ldl
PARTS += $(B)/qcu-device/qcu-device

$(MIRROR_LIB): $(MIRROR_SRCS:%.c=$(B)/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

# QEMU's own libvhost-user, from the same build as the QEMU that will connect. Only the script knows
# where that build is, so the files are copied to a fixed place. QEMU_DIR names another build.
VHOST_USER := $(B)/qcu-device/vhost-user
VHOST_USER_LIB := $(VHOST_USER)/libvhost-user.a
$(VHOST_USER_LIB): scripts/build-qemu | deps
	@mkdir -p $(VHOST_USER)
	dir=$(or $(QEMU_DIR),$$(scripts/build-qemu | tail -n 1)) && [ -n "$$dir" ] && \
		cp -r "$$dir/include" $(VHOST_USER) && cp "$$dir/lib/libvhost-user.a" $@

# Only these objects see the library's headers, which are not written for our warning flags.
VHOST_OBJS := $(addprefix $(B)/qcu-device/,vhost.o sessions.o spares.o status.o birth.o ramfiles.o poll.o)
$(VHOST_OBJS): $(VHOST_USER_LIB)
$(VHOST_OBJS): override CFLAGS += -isystem $(VHOST_USER)/include

$(B)/qcu-device/qcu-device: $(DEVICE_SRCS:%.c=$(B)/%.o) $(MIRROR_LIB) \
		$(B)/qcu-device/soft/libsoft.a $(VHOST_USER_LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(DEVICE_LIBS)
