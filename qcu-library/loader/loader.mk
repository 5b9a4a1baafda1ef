# SPDX-License-Identifier: LGPL-2.1-or-later
# libqcuda-loader.so, through which a program with the runtime linked in uses our library, and
# qcu-check, which says how a program was linked. They share the reader of ELF files.

LOADER := $(B)/qcu-library/loader
LOADER_FIND := $(addprefix $(LOADER)/,elf.o linked.o fingerprint.o)
LOADER_OBJS := $(addprefix $(LOADER)/,audit.o bind.o patch.o say.o traced.o) $(LOADER_FIND)
LOADER_LIBRARY := $(B)/qcu-library/libqcuda-loader.so

# CUDA 13.0's functions. Later ones have their version at the end of the line.
$(LOADER)/runtime_names.inc: qcu-library/cudart.syms qcu-library/loader/loader.mk
	@mkdir -p $(@D)
	awk '!/^#/ && NF == 2 { print "\"" $$1 "\"," }' $< | LC_ALL=C sort >$@

$(LOADER)/linked.o: $(LOADER)/runtime_names.inc
$(LOADER)/linked.o: override CFLAGS += -I$(LOADER)

$(LOADER_LIBRARY): $(LOADER_OBJS)
	$(RUN) $(CC) $(LDFLAGS) -shared -Wl,-soname,libqcuda-loader.so -Wl,-z,relro,-z,now \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $^ -ldl

QCU_CHECK := $(B)/qcu-library/qcu-check

# The functions that our libraries export and do not serve.
LOADER_UNSERVED := $(B)/qcu-library/unsupported.inc $(B)/qcu-library/driver_unsupported.inc $(NCCL)/unsupported.inc \
	$(NVML)/unknown.inc $(CUFILE)/unsupported.inc $(SHIMS:%=$(SHIM_MADE_IN)/%_unserved.c)
$(LOADER)/unserved_names.inc: $(LOADER_UNSERVED) qcu-library/loader/loader.mk
	@mkdir -p $(@D)
	sed -n -E 's/^(UNSUPPORTED|QCUL_LIB_UNSERVED)\((.*, )?(\w+)\)$$/"\3",/p' $(LOADER_UNSERVED) | LC_ALL=C sort -u >$@

$(LOADER)/calls.o: $(LOADER)/unserved_names.inc
$(LOADER)/calls.o: override CFLAGS += -I$(LOADER)

$(QCU_CHECK): $(addprefix $(LOADER)/,check.o calls.o gpus.o) $(LOADER_FIND)
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^

PARTS += $(LOADER_LIBRARY) $(QCU_CHECK)
