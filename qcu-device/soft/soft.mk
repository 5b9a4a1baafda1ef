# SPDX-License-Identifier: GPL-2.0-or-later
# The software GPU. The runtime's files and those of the PTX machine make one library, which
# qcu-device and the tests link. PTX_SRCS comes from ptx.mk.

SOFT_SRCS := $(addprefix qcu-device/soft/code/,fatbin.c link.c)
SOFT_SRCS += $(addprefix qcu-device/soft/gpu/, \
	access.c array.c be_soft.c cell.c check.c cond.c copy.c event.c graph.c hostfunc.c jit.c launch.c limits.c \
	mem.c module.c peer.c pool.c print.c props.c range.c share.c stream.c stream_attr.c \
	texture.c value.c virtual.c watchdog.c)
# These are also part of the mirror, but tests run the software GPU without a mirror.
SOFT_SRCS += qcu-device/base/complain.c qcu-device/backend/image.c qcu-device/backend/image_elf.c
SOFT_OBJS := $(SOFT_SRCS:%.c=$(B)/%.o)
SOFT_LIB := $(B)/qcu-device/soft/libsoft.a
SOFT_LIBS := -llz4 -lzstd -lm

$(SOFT_LIB): $(SOFT_OBJS) $(PTX_SRCS:%.c=$(B)/%.o)
	@mkdir -p $(@D)
	@rm -f $@
	$(RUN) $(AR) rcs $@ $^
