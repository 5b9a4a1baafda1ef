# SPDX-License-Identifier: LGPL-2.1-or-later
# libcufile.so.0: a library of the guest, built on the runtime's public functions alone. cufile.syms lists what is
# exported.
# Sets: CUFILE_LIBRARY.

CUFILE := $(B)/qcu-library/cufile
CUFILE_LIBRARY := $(B)/qcu-library/libcufile.so.0
CUFILE_OBJS := $(addprefix $(CUFILE)/,driver.o files.o queued.o unsupported.o)

$(CUFILE)/unsupported.inc: qcu-library/cufile/cufile.syms qcu-library/cufile/cufile.mk
	@mkdir -p $(@D)
	awk '!/^#/ && $$2 == "unsupported" { print "UNSUPPORTED(" $$1 ")" }' $< >$@

$(CUFILE)/unsupported.o: $(CUFILE)/unsupported.inc
$(CUFILE)/unsupported.o: override CFLAGS += -I$(CUFILE)
$(CUFILE_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC))
$(CUFILE_OBJS): | cudart-header

$(CUFILE_LIBRARY): $(CUFILE_OBJS) $(B)/qcu-library/libcudart.so.13
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,-soname,libcufile.so.0 -Wl,-z,relro,-z,now '-Wl,-rpath,$$ORIGIN' \
		-Wl,--disable-new-dtags -o $@ $(CUFILE_OBJS) $(B)/qcu-library/libcudart.so.13

PARTS += $(CUFILE_LIBRARY)
