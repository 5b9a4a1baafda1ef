# SPDX-License-Identifier: LGPL-2.1-or-later
# libcudart.so.12: the functions of CUDA 12, each of them a jump to libcudart.so.13, which must lie in the
# same folder, or a conversion. cudart12.syms lists them.

CUDA12_SRCS := $(addprefix qcu-library/cuda12/,cuda11.c device.c external.c graph.c launch.c memory.c)
CUDA12_OBJS := $(CUDA12_SRCS:%.c=$(B)/%.o)
CUDA12_SYMS := qcu-library/cuda12/cudart12.syms
CUDA11_SYMS := qcu-library/cuda12/cudart11.syms
CUDA12_B := $(B)/qcu-library/cuda12
CUDA12_LIBRARY := $(B)/qcu-library/libcudart.so.12

$(CUDA12_B)/cudart12.map: $(CUDA12_SYMS) $(CUDA11_SYMS) qcu-library/cuda12/cuda12.mk
	@mkdir -p $(@D)
	awk 'BEGIN { print "libcudart.so.12 {\nglobal:" } !/^#/ { print "\t" (NF == 1 ? "qcul_11_" : "") $$1 ";" } \
		END { print "};" }' $(CUDA12_SYMS) $(CUDA11_SYMS) >$@

# Both libraries have a cudaMalloc. What the conversions call is always the other library's.
$(CUDA12_B)/symbols13.h: qcu-library/cudart.syms qcu-library/cuda12/cuda12.mk
	@mkdir -p $(@D)
	awk '!/^#/ { printf "__asm__(\".symver %s, %s@libcudart.so.13\");\n", $$1, $$1 }' $< >$@

$(CUDA12_B)/jumps.S: $(CUDA12_SYMS) $(CUDA11_SYMS) qcu-library/cuda12/cuda12.mk
	@mkdir -p $(@D)
	awk -v family='$(MALLOC_FAMILY)' ' \
		function jump(name, to) { printf "\t.globl %s\n\t.type %s, @function\n%s:\n\tjmp %s\n", name, name, name, to } \
		function other(name) { return "*" name "@GOTPCREL(%rip)" } \
		/^#/ { next } \
		NF == 1 { own = $$1; sub(/cuda/, "", own); jump("qcul_11_" $$1, "cuda11_" own); next } \
		$$2 == "converted" { own = $$1; sub(/cuda/, "", own); jump($$1, "cuda12_" own); next } \
		{ printf ".symver to13_%s, %s@libcudart.so.13\n", $$1, $$2; jump($$1, other("to13_" $$1)) } \
		END { \
			n = split(family, names); \
			for (i = 1; i <= n; i++) jump(names[i], other("qcul_12_" names[i])); \
			print ".section .note.GNU-stack, \"\", @progbits" \
		}' $(CUDA12_SYMS) $(CUDA11_SYMS) >$@

$(CUDA12_B)/jumps.o: $(CUDA12_B)/jumps.S | deps
	$(RUN) $(CC) -c $< -o $@

$(CUDA12_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC)) -include $(CUDA12_B)/symbols13.h
$(CUDA12_OBJS): $(CUDA12_B)/symbols13.h | cudart-header

# It finds the other library in its own folder, before NVIDIA's, which may be on the loader's path.
$(CUDA12_LIBRARY): $(CUDA12_OBJS) $(CUDA12_B)/jumps.o $(CUDA12_B)/cudart12.map $(B)/qcu-library/libcudart.so.13
	$(RUN) $(CC) -shared -Wl,-soname,libcudart.so.12 -Wl,--version-script=$(CUDA12_B)/cudart12.map \
		-Wl,-z,relro,-z,now,-z,defs '-Wl,-rpath,$$ORIGIN' -Wl,--disable-new-dtags -o $@ $(filter %.o,$^) \
		$(B)/qcu-library/libcudart.so.13

PARTS += $(if $(SAN),,$(CUDA12_LIBRARY))
