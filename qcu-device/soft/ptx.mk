# SPDX-License-Identifier: GPL-2.0-or-later
# The PTX machine. Sets: PTX_SRCS.

# The folders are layers: each uses only what lies in those above it in this list.
PTX_SRCS := $(addprefix qcu-device/soft/ptx/base/,ptx_arena.c ptx_fault.c ptx_types.c)
# With PTX_BASE_OPS_ONLY=1 there is one table of handlers (tests/run). The other is the same source, which takes ten seconds to
# compile with sanitizers.
PTX_SRCS += $(addprefix qcu-device/soft/ptx/ops/, \
	ptx_cvt.c ptx_cvt_small.c ptx_misc.c $(if $(PTX_BASE_OPS_ONLY),,ptx_ops_avx2.c) ptx_ops_base.c ptx_video.c)
PTX_SRCS += $(addprefix qcu-device/soft/ptx/memory/, \
	ptx_addr.c ptx_atom.c ptx_bulk.c ptx_heap.c ptx_matrix.c ptx_mbar.c ptx_mem.c ptx_mma.c ptx_sample.c ptx_surf.c \
	ptx_tex.c)
PTX_SRCS += $(addprefix qcu-device/soft/ptx/exec/, \
	ptx_bar.c ptx_block.c ptx_check.c ptx_exec.c ptx_frame.c ptx_grid.c ptx_limits.c ptx_link.c ptx_pool.c ptx_runtime.c \
	ptx_sched.c ptx_shared.c ptx_stack.c ptx_sys.c ptx_warpop.c)
PTX_SRCS += $(addprefix qcu-device/soft/ptx/text/,ptx_lex.c ptx_operand.c ptx_sym.c)
PTX_SRCS += $(addprefix qcu-device/soft/ptx/build/, \
	ptx_build.c ptx_build_atom.c ptx_build_call.c ptx_build_ctl.c ptx_build_cvt.c ptx_build_float.c \
	ptx_build_int.c ptx_build_mem.c ptx_build_mixed.c ptx_build_mma.c ptx_build_sync.c ptx_build_tex.c \
	ptx_build_video.c ptx_emit.c ptx_place.c ptx_refs.c ptx_regs.c ptx_regalloc.c ptx_visit.c)
PTX_SRCS += $(addprefix qcu-device/soft/ptx/load/,ptx_body.c ptx_module.c ptx_parse.c ptx_var.c)

$(PTX_SRCS:%.c=$(B)/%.o): override CFLAGS += -fno-math-errno -ffp-contract=off
$(B)/qcu-device/soft/ptx/load/ptx_module.o: override CFLAGS += $(if $(PTX_BASE_OPS_ONLY),-DPTX_BASE_OPS_ONLY)
