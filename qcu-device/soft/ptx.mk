# SPDX-License-Identifier: GPL-2.0-or-later
# The PTX machine. Sets: PTX_SRCS.

PTX_SRCS := $(addprefix qcu-device/soft/, \
	ptx_addr.c ptx_arena.c ptx_atom.c ptx_bar.c ptx_block.c ptx_body.c ptx_build.c \
	ptx_build_atom.c ptx_build_call.c ptx_build_ctl.c ptx_build_cvt.c ptx_build_float.c \
	ptx_build_int.c ptx_build_mem.c ptx_build_mixed.c ptx_build_sync.c ptx_build_video.c \
	ptx_check.c \
	ptx_cvt.c ptx_cvt_small.c ptx_exec.c ptx_fault.c ptx_frame.c ptx_grid.c ptx_heap.c \
	ptx_lex.c ptx_link.c ptx_matrix.c ptx_mbar.c ptx_mem.c ptx_misc.c ptx_module.c \
	ptx_ops_avx2.c ptx_ops_base.c ptx_parse.c ptx_pool.c ptx_regs.c ptx_sched.c \
	ptx_slots.c ptx_stack.c ptx_sym.c ptx_sys.c ptx_types.c ptx_var.c ptx_video.c ptx_warpop.c)
PTX_SRCS += $(addprefix qcu-device/soft/,ptx_build_tex.c ptx_sample.c ptx_surf.c ptx_tex.c)

$(PTX_SRCS:%.c=$(B)/%.o): override CFLAGS += -fno-math-errno -ffp-contract=off
