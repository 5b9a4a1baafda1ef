# SPDX-License-Identifier: LGPL-2.1-or-later
# Unit tests of malloc: the arena on the test's own memory, and the hook in the finished library.

MALLOC_UNIT := test_library_arena test_library_malloc
UNIT_TESTS += $(MALLOC_UNIT)

test_library_arena_OBJS := $(addprefix $(B)/qcu-library/malloc/,arena.o malloc_region.o malloc_tree.o)
test_library_malloc_OBJS := $(B)/qcu-library/libcudart.so.13

$(MALLOC_UNIT:%=$(B)/tests/unit/library/%.o): override CFLAGS += -isystem $(dir $(CUDART_INC)) \
	-DCUDART_OURS='"$(B)/qcu-library/libcudart.so.13"'
$(MALLOC_UNIT:%=$(B)/tests/unit/library/%.o): | cudart-header
