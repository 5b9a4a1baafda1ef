# SPDX-License-Identifier: LGPL-2.1-or-later
# libcuda.so.1: a jump to libcudart.so.13, which must lie in the same folder, for each function of cuda.h.
# Its symbols have no version, as with NVIDIA's. Sets: DRIVER_LIBRARY.

DRIVER_LIBRARY := $(B)/qcu-library/libcuda.so.1
MALLOC_FAMILY := malloc calloc realloc reallocarray free memalign aligned_alloc posix_memalign valloc pvalloc \
	malloc_usable_size

# malloc is here, too: a program that is linked with this library finds libcudart.so.13 only after the
# C library.
$(B)/qcu-library/driver_jumps.S: $(DRIVER_SYMS) qcu-library/driver_api/libcuda.mk
	@mkdir -p $(@D)
	awk -v family='$(MALLOC_FAMILY)' ' \
		function jump(name, to) { printf "\t.globl %s\n\t.type %s, @function\n%s:\n\tjmp *%s@GOTPCREL(%%rip)\n", name, name, name, to } \
		/^#/ { next } \
		{ printf ".symver to_%s, qcul_drv_%s@QCUDA_PRIVATE\n", $$1, $$1; jump($$1, "to_" $$1) } \
		END { \
			n = split(family, names); \
			for (i = 1; i <= n; i++) jump(names[i], "qcul_12_" names[i]); \
			print ".section .note.GNU-stack, \"\", @progbits" \
		}' $< >$@

$(B)/qcu-library/driver_jumps.o: $(B)/qcu-library/driver_jumps.S | deps
	$(RUN) $(CC) -c $< -o $@

# It finds the other library in its own folder, before NVIDIA's, which may be on the loader's path.
$(DRIVER_LIBRARY): $(B)/qcu-library/driver_jumps.o $(B)/qcu-library/libcudart.so.13
	$(RUN) $(CC) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,relro,-z,now '-Wl,-rpath,$$ORIGIN' \
		-Wl,--disable-new-dtags -o $@ $^ -Wl,--no-as-needed -lc
	ln -sf libcuda.so.1 $(@D)/libcuda.so

PARTS += $(DRIVER_LIBRARY)
