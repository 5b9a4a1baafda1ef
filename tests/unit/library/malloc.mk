# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests of malloc: the arena on the test's own memory, the hook in a whole library without a VM, and
# real programs with the hook.

MALLOC_UNIT := test_library_arena test_library_malloc
UNIT_TESTS += $(MALLOC_UNIT)

test_library_arena_OBJS := $(addprefix $(B)/qcu-library/,arena.o malloc_region.o malloc_tree.o)
test_library_malloc_OBJS := $(B)/qcu-library/libcudart.so.13

$(MALLOC_UNIT:%=$(B)/tests/unit/library/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC)) \
	-DCUDART_OURS='"$(B)/qcu-library/libcudart.so.13"'
$(MALLOC_UNIT:%=$(B)/tests/unit/library/%.o): | cudart-header

# Not under a sanitizer: its own malloc would be called instead of ours.
MALLOC_C := bad_memory malloc_api malloc_cuda malloc_fork malloc_registered malloc_spawn malloc_threads \
	malloc_programs
ifeq ($(SAN),)
LOOPBACK_TESTS += $(MALLOC_C)
endif

$(MALLOC_C:%=$(B)/tests/loopback/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC)) -fno-builtin
$(MALLOC_C:%=$(B)/tests/loopback/%.o): | cudart-header

$(MALLOC_C:%=$(B)/tests/loopback/%): $(B)/tests/loopback/%: $(B)/tests/loopback/%.o \
		$(B)/loopback/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $< -L$(B)/loopback -lcudart '-Wl,-rpath,$$ORIGIN/../../loopback'

# malloc_programs preloads this file into programs, together with the library.
$(B)/tests/loopback/malloc_arm.so: $(B)/tests/loopback/malloc_arm.o
	$(CC) $(LDFLAGS) -shared -o $@ $<

$(B)/tests/loopback/malloc_programs: $(B)/tests/loopback/malloc_arm.so $(B)/qcu-library/libcudart.so.13
$(B)/tests/loopback/malloc_programs.o: override CFLAGS += -DBUILD='"$(B)"'
