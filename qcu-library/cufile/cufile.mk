# SPDX-License-Identifier: LGPL-2.1-or-later
# libcufile.so.0: says that it is not served. cufile.syms lists what is exported.
# Sets: CUFILE_LIBRARY.

CUFILE := $(B)/qcu-library/cufile
CUFILE_LIBRARY := $(B)/qcu-library/libcufile.so.0

$(CUFILE)/functions.inc: qcu-library/cufile/cufile.syms qcu-library/cufile/cufile.mk
	@mkdir -p $(@D)
	awk '!/^#/ { print toupper($$2) "(" $$1 ")" }' $< >$@

$(CUFILE)/cufile.o: $(CUFILE)/functions.inc
$(CUFILE)/cufile.o: override CFLAGS += -I$(CUFILE)

$(CUFILE_LIBRARY): $(CUFILE)/cufile.o
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,-soname,libcufile.so.0 -Wl,-z,relro,-z,now -o $@ $<

PARTS += $(CUFILE_LIBRARY)
