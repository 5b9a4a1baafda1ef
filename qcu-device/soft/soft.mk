# SPDX-License-Identifier: GPL-2.0-or-later
# The software GPU. The runtime's files and those of the PTX machine make one library, which
# qcu-device and the tests link. PTX_SRCS comes from ptx.mk.

SOFT_SRCS := $(addprefix qcu-device/soft/,be_soft.c check.c props.c mem.c range.c stream.c event.c copy.c \
	module.c launch.c hostfunc.c fatbin.c link.c print.c watchdog.c limits.c pool.c cond.c peer.c stream_attr.c)
SOFT_SRCS += $(addprefix qcu-device/soft/,array.c texture.c share.c cell.c)
# These are also part of the mirror, but tests run the software GPU without a mirror.
SOFT_SRCS += qcu-device/base/complain.c qcu-device/backend/image.c qcu-device/backend/image_elf.c
SOFT_OBJS := $(SOFT_SRCS:%.c=$(B)/%.o)
SOFT_LIB := $(B)/qcu-device/soft/libsoft.a
SOFT_LIBS := -llz4 -lzstd -lm

$(SOFT_LIB): $(SOFT_OBJS) $(PTX_SRCS:%.c=$(B)/%.o)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^
