# SPDX-License-Identifier: LGPL-2.1-or-later
# The driver API's part of libcudart.so.13: its functions are there under the names qcul_drv_cuX.
# cuda.syms lists them. Sets: DRIVER_SYMS, DRIVER_THUNKS.

DRIVER_SYMS := qcu-library/driver_api/cuda.syms
DRIVER_THUNKS := $(B)/qcu-library/driver_thunks.o
DRIVER_SRCS := $(addprefix qcu-library/driver_base/,args.c context.c context_state.c device.c errors.c green.c \
	function.c init.c launch.c module.c old_launch.c stream.c)
DRIVER_SRCS += $(addprefix qcu-library/driver_api/,array.c copy.c entries.c format.c forwards.c graph.c graph_node.c memory.c \
	memset.c pointer.c pool.c proc.c shape.c table.c texture.c unsupported.c)
DRIVER_SRCS += $(addprefix qcu-library/driver_api/,link.c link_host.c tensor.c)
# The reader of ELF files, for object files that are linked.
DRIVER_SRCS += $(addprefix qcu-library/loader/,elf.c gpus.c)
DRIVER_SRCS += $(addprefix qcu-library/driver_virtual/,external_memory.c external_semaphore.c semaphore_work.c value.c virtual.c virtual_share.c)
LIBRARY_SRCS += $(DRIVER_SRCS)

# The header of CUDA declares a function under its public name; this gives it its symbol: qcul_drv_cuX is where the
# program comes in, and qcul_do_cuX the function behind an entry.
$(B)/qcu-library/driver_names.h: $(DRIVER_SYMS) qcu-library/driver_api/driver_api.mk
	@mkdir -p $(@D)
	awk '!/^#/ && $$2 != "graphics" { \
			behind = $$4 != "" && $$4 != "nothing"; \
			printf "#undef %s\nextern __typeof__(%s) %s __asm__(\"qcul_%s_%s\") __attribute__((visibility(\"%s\")));\n", \
				$$1, $$1, $$1, behind ? "do" : "drv", $$1, behind ? "hidden" : "default" \
		}' $< >$@

# What the declarations of both APIs say about the functions.
$(B)/qcu-library/driver_calls.inc: qcu-library/driver_api/calls.awk $(DRIVER_SYMS) $(B)/qcu-library/driver_names.h | deps cudart-header
	@mkdir -p $(@D)
	echo '#include "qcu-library/driver_base/driver.h"' | $(CC) -E -P $(CFLAGS) -I$(B)/qcu-library \
		-isystem $(dir $(CUDART_INC)) -x c -o $@.headers -
	awk -f $< RS=';' $@.headers RS='\n' $(DRIVER_SYMS) >$@

$(B)/qcu-library/driver_unsupported.inc: $(DRIVER_SYMS) qcu-library/driver_api/driver_api.mk
	@mkdir -p $(@D)
	awk '!/^#/ && $$2 ~ /^(unsupported|graphics)$$/ { print "UNSUPPORTED(" $$1 ")" }' $< >$@

$(B)/qcu-library/driver_table.inc: $(DRIVER_SYMS) qcu-library/driver_api/driver_api.mk
	@mkdir -p $(@D)
	awk '!/^#/ { \
			name = $$1; own = sub(/_pt[sd][sz]$$/, "", name) ? "QCUL_OWN_STREAM" : "QCUL_ANY_STREAM"; \
			sub(/_v[0-9]$$/, "", name); \
			printf "FUNCTION(%s, %s, %s, %s)\n", $$1, name, $$3, own \
		}' $< >$@

# Functions that are the same as another, and those that take stream 0 for the thread's own stream.
$(B)/qcu-library/driver_thunks.S: $(DRIVER_SYMS) qcu-library/driver_api/driver_api.mk
	@mkdir -p $(@D)
	awk 'BEGIN { split("rdi rsi rdx rcx r8 r9", register) } \
		function begin(name) { printf "\t.globl qcul_drv_%s\n\t.type qcul_drv_%s, @function\nqcul_drv_%s:\n", name, name, name } \
		function go(name) { printf "\tjmp *qcul_drv_%s@GOTPCREL(%%rip)\n", name } \
		/^#/ { next } \
		$$2 ~ /^same:/ { begin($$1); sub(/^same:/, "", $$2); go($$2) } \
		$$2 ~ /^stream:/ { \
			begin($$1); base = $$1; sub(/_pt[sd][sz]$$/, "", base); n = $$2; sub(/^stream:/, "", n); \
			place = n <= 6 ? "%" register[n] : 8 * (n - 6) "(%rsp)"; \
			printf "\tcmpq $$0, %s\n\tjne 1f\n\tmovq $$2, %s\n1:", place, place; go(base) \
		} \
		END { print ".section .note.GNU-stack, \"\", @progbits" }' $< >$@

$(DRIVER_THUNKS): $(B)/qcu-library/driver_thunks.S | deps
	$(RUN) $(CC) -c $< -o $@

$(DRIVER_SRCS:%.c=$(B)/%.o): $(B)/qcu-library/driver_names.h
$(B)/qcu-library/driver_api/entries.o $(B)/qcu-library/driver_api/forwards.o: $(B)/qcu-library/driver_calls.inc
$(B)/qcu-library/driver_api/unsupported.o: $(B)/qcu-library/driver_unsupported.inc
$(B)/qcu-library/driver_api/table.o: $(B)/qcu-library/driver_table.inc
