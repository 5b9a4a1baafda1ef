# SPDX-License-Identifier: GPL-2.0-or-later
# The software GPU. The runtime's files and those of the PTX machine make one library, which
# qcu-device and the tests link. PTX_SRCS comes from ptx.mk.

SOFT_SRCS := $(addprefix qcu-device/soft/code/,fatbin.c link.c)
SOFT_SRCS += $(addprefix qcu-device/soft/gpu/, \
	array.c cell.c check.c cond.c copy.c event.c graph.c green.c hostfunc.c jit.c launch.c limits.c \
	mem.c module.c move.c peer.c pool.c print.c props.c range.c share.c stream.c stream_attr.c \
	texture.c value.c virtual.c watchdog.c)
SOFT_LIBRARY_SRCS := $(addprefix qcu-device/soft/libs/,blas.c blas1.c blas2.c blas3.c blaslt.c fft.c host.c libs.c rand.c)
SOFT_SRCS += $(SOFT_LIBRARY_SRCS) qcu-device/soft/be_soft.c
# These are also part of the mirror, but tests run the software GPU without a mirror.
SOFT_SRCS += qcu-device/base/complain.c qcu-device/backend/image.c qcu-device/backend/image_elf.c qcu-device/backend/image_names.c qcu-device/backend/image_ptx.c \
	qcu-device/backend/pass.c qcu-device/base/sorted.c
# They have the parameters of NVIDIA's functions, whose headers the shims need, too.
$(SOFT_LIBRARY_SRCS:%.c=$(B)/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(SOFT_LIBRARY_SRCS:%.c=$(B)/%.o): | cudart-header
SOFT_OBJS := $(SOFT_SRCS:%.c=$(B)/%.o)
# What computes, for a build in which the rest is not optimised (tests/run).
$(filter $(addprefix $(B)/qcu-device/soft/,libs/% ptx/exec/% ptx/memory/% ptx/ops/%),$(SOFT_OBJS) $(PTX_SRCS:%.c=$(B)/%.o)): \
	override CFLAGS += $(SOFT_CFLAGS)
SOFT_LIB := $(B)/qcu-device/soft/libsoft.a
SOFT_LIBS := -llz4 -lzstd -lm

$(SOFT_LIB): $(SOFT_OBJS) $(PTX_SRCS:%.c=$(B)/%.o)
	@mkdir -p $(@D)
	@rm -f $@
	$(RUN) $(AR) rcs $@ $^
