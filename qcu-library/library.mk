# SPDX-License-Identifier: LGPL-2.1-or-later
# libcudart.so.13 over /dev/qcuda. For tests, tests/transport/transport.mk builds another one from the
# same files, with a mirror in the program's own process. cudart.syms lists what is exported. A
# function in that list that no file implements gets a body that says so.

# From the lowest layer to the highest (tests/check/layers.txt).
LIBRARY_SRCS := $(addprefix qcu-library/link/,args.c ask.c capture.c devices.c env.c errors.c fork.c \
	handles.c logs.c misc.c print.c progress.c session.c thread.c trace.c trace_about.c trace_calls.c trace_ranges.c)
LIBRARY_SRCS += $(addprefix qcu-library/device/,choose.c describe.c limits.c peer.c properties.c)
LIBRARY_SRCS += $(addprefix qcu-library/malloc/,arena.c malloc_hook.c malloc_region.c \
	malloc_tree.c memmap.c ranges.c recycle.c register.c reserve.c window.c)
LIBRARY_SRCS += $(addprefix qcu-library/memory/,array.c managed.c managed_alloc.c managed_copy.c managed_var.c \
	ahead.c fault.c memory.c pinned.c slab.c pool.c texture.c)
LIBRARY_SRCS += $(addprefix qcu-library/module/,by_host.c func.c module.c no_code.c occupancy.c symbol.c)
LIBRARY_SRCS += $(addprefix qcu-library/stream/,event.c green.c hostfunc.c launch.c query.c stream.c)
LIBRARY_SRCS += $(addprefix qcu-library/libs/,call.c create.c object.c pack.c seen.c)
LIBRARY_SRCS += $(addprefix qcu-library/copy/,array_copy.c array_memcpy.c batch.c copy.c copy3d.c \
	memcpy.c peer_copy.c symbol_copy.c)
LIBRARY_SRCS += $(addprefix qcu-library/graph/,graph.c graph_attr.c graph_capture.c graph_change.c graph_cond.c \
	graph_dot.c graph_exec.c graph_memory.c graph_memory_query.c graph_node.c graph_object.c graph_order.c graph_query.c \
	graph_run.c graph_sent.c)
LIBRARY_SRCS += $(addprefix qcu-library/api/,compiling.c device.c execution.c for_cuda12.c ipc.c later.c library.c notify.c per_thread.c pool_share.c \
	unsupported.c)
include qcu-library/driver_api/driver_api.mk
LIBRARY_OBJS := $(LIBRARY_SRCS:%.c=$(B)/%.o) $(DRIVER_THUNKS)
LIBRARY_DEV_OBJS := $(LIBRARY_OBJS) $(B)/qcu-library/link/transport_dev.o
LIBRARY_MAP := $(B)/qcu-library/cudart.map

$(LIBRARY_DEV_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC)) -I$(B)/qcu-library

# If the header is missing, say so. The compiler's messages would be less clear.
.PHONY: cudart-header
cudart-header:
ifeq ($(CUDART_INC),)
	@echo "CUDA Toolkit 13 not found: no cuda_runtime_api.h under $(CUDA_HOME)." \
		"Install the toolkit, put nvcc on PATH, or set CUDA_HOME=DIR." >&2; exit 1
else
	@grep -q '^#define CUDART_VERSION *13' $(CUDART_INC) || { \
		echo "CUDA Toolkit 13 not found: $(CUDART_INC) is of another version." \
		"Set CUDA_HOME=DIR to a CUDA 13 toolkit." >&2; exit 1; }
endif

$(LIBRARY_DEV_OBJS): | cudart-header

# For scripts/api-table.
.PHONY: print-cudart-include print-library-sources
print-cudart-include: | cudart-header
	@echo $(dir $(CUDART_INC))
print-library-sources:
	@printf '%s\n' $(patsubst $(B)/%.o,%.c,$(filter-out $(DRIVER_THUNKS),$(LIBRARY_DEV_OBJS)))

$(B)/qcu-library/unsupported.inc: qcu-library/cudart.syms
	@mkdir -p $(@D)
	awk '$$2 == "unsupported" { print "UNSUPPORTED(" $$1 ")" }' $< >$@

# No "local: *" here: malloc and its family are exported without a version, so that they replace
# libc's, which have a different version. The compiler's -fvisibility hides what is not public.
$(LIBRARY_MAP): qcu-library/cudart.syms qcu-library/library.mk $(DRIVER_SYMS)
	@mkdir -p $(@D)
	awk 'BEGIN { print "libcudart.so.13 {\nglobal:" } !/^#/ { print "\t" $$1 ";" } \
		END { print "};" }' $< >$@
	awk 'BEGIN { print "QCUDA_PRIVATE {\nglobal:" } !/^#/ { print "\tqcul_drv_" $$1 ";" } \
		BEGIN { print "\tqcul_lib_*;\n\tqcul_call_*;\n\tInitializeInjectionNvtx2;" } \
		END { print "} libcudart.so.13;" }' $(DRIVER_SYMS) >>$@

$(B)/qcu-library/api/unsupported.o: $(B)/qcu-library/unsupported.inc

# No -z defs with a sanitizer: its runtime comes with the program, so its symbols stay undefined here.
LIBRARY_LDFLAGS = -shared -Wl,-soname,libcudart.so.13 -Wl,--version-script=$(LIBRARY_MAP) \
	-Wl,-z,relro,-z,now $(if $(SAN),,-Wl,-z,defs $(LIBRARY_WRAP))

# The library's own allocations must not come from its own malloc (malloc_hook.c).
LIBRARY_WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

$(B)/qcu-library/libcudart.so.13: $(LIBRARY_DEV_OBJS) $(LIBRARY_MAP)
	$(RUN) $(CC) $(LDFLAGS) $(LIBRARY_LDFLAGS) -o $@ $(LIBRARY_DEV_OBJS)
	ln -sf libcudart.so.13 $(@D)/libcudart.so

PARTS += $(B)/qcu-library/libcudart.so.13

include qcu-library/driver_api/libcuda.mk
include qcu-library/cuda12/cuda12.mk
include qcu-library/nvml/nvml.mk
include qcu-library/nccl/nccl.mk
include qcu-library/cufile/cufile.mk
include qcu-library/shims/shims.mk
