# SPDX-License-Identifier: GPL-2.0-or-later
# Builds qcuda.ko. Kbuild writes its output beside the sources, so it gets copies of the sources in
# the build folder.

# The headers of the kernel that the module is for. Evaluated only when the module is built.
KDIR ?= $(shell scripts/build-guest --print-kdir)

driver-dir := $(B)/qcu-driver
driver-src := $(patsubst qcu-driver/%,$(driver-dir)/%,$(wildcard qcu-driver/*.[ch] \
	qcu-driver/probes/*.c qcu-driver/Kbuild qcu-driver/dkms.conf))

PARTS += $(driver-dir)/qcuda.ko

$(driver-src): $(driver-dir)/%: qcu-driver/%
	@mkdir -p $(@D)
	@$(RUN) cp $< $@

driver-wire := $(patsubst include/%,$(driver-dir)/%,$(wildcard include/qcucmd*.h))
$(driver-wire): $(driver-dir)/%.h: include/%.h
	@mkdir -p $(@D)
	@$(RUN) cp $< $@

# The compiler and flags of this build are for user space. So the variables of make's command line
# are not passed on to kbuild. Flags for kbuild: KBUILD_FLAGS=W=1, KBUILD_FLAGS='C=2 CHECK=sparse'.
$(driver-dir)/qcuda.ko: $(driver-src) $(driver-wire) | deps
	@kdir="$(KDIR)"; [ -n "$$kdir" ] || { \
		echo "no kernel headers: install linux-headers-amd64 or set KDIR" >&2; exit 1; }; \
	export MAKEFLAGS="$${MAKEFLAGS%% -- *}"; \
	$(RUN) env -u CC -u LD -u CFLAGS -u LDFLAGS -u CPPFLAGS \
		$(MAKE) -C "$$kdir" M="$(abspath $(driver-dir))" $(KBUILD_FLAGS) modules
	@touch $@
