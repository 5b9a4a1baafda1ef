# SPDX-License-Identifier: LGPL-2.1-or-later
# Unit tests of the loader module: its reader of programs, on files made by hand.

LOADER_UNIT := test_loader_elf test_loader_linked test_loader_fingerprint
UNIT_TESTS += $(LOADER_UNIT)

ELF_FILE := $(B)/tests/unit/loader/elf_file.o
test_loader_elf_OBJS := $(ELF_FILE) $(LOADER)/elf.o
test_loader_fingerprint_OBJS := $(ELF_FILE) $(addprefix $(LOADER)/,elf.o fingerprint.o)
test_loader_linked_OBJS := $(ELF_FILE) $(LOADER_FIND) $(LOADER)/gpus.o

$(ELF_FILE): $(LOADER)/runtime_names.inc
$(ELF_FILE): override CFLAGS += -D_GNU_SOURCE -I$(LOADER)
