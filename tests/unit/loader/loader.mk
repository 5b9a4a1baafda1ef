# SPDX-License-Identifier: LGPL-2.1-or-later
# Unit tests of the loader module: its reader of programs, on files made by hand. Also of what links read with it.

LOADER_UNIT := test_loader_elf test_loader_linked test_loader_fingerprint test_link_host
UNIT_TESTS += $(LOADER_UNIT)

ELF_FILE := $(B)/tests/unit/loader/elf_file.o
test_loader_elf_OBJS := $(ELF_FILE) $(LOADER)/elf.o
test_loader_fingerprint_OBJS := $(ELF_FILE) $(addprefix $(LOADER)/,elf.o fingerprint.o)
test_loader_linked_OBJS := $(ELF_FILE) $(LOADER_FIND) $(LOADER)/gpus.o

test_link_host_OBJS := $(ELF_FILE) $(LOADER)/elf.o $(B)/qcu-library/driver_api/link_host.o
$(B)/tests/unit/loader/test_link_host.o: override CFLAGS += -isystem $(dir $(CUDART_INC))
$(B)/tests/unit/loader/test_link_host.o: | cudart-header

$(ELF_FILE): $(LOADER)/runtime_names.inc
$(ELF_FILE): override CFLAGS += -D_GNU_SOURCE -I$(LOADER)
