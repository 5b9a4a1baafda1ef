# SPDX-License-Identifier: GPL-2.0-or-later
# The compiled programs of the launcher: qcu-confine runs QEMU behind a system call filter and Landlock,
# qcu-enter starts a program in the guest with another root, qcu-pty starts one on a terminal there, qcu-tsc measures the
# host's time-stamp counter, qcu-net is the network between the VMs of a job, qcu-fits says whether our libraries can be
# used in the root of a container.

PARTS += $(addprefix $(B)/scripts/qcu-,confine enter fits net pty tsc)

$(B)/scripts/qcu-confine: $(B)/scripts/confine.o
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ -lseccomp

$(B)/scripts/qcu-net: $(B)/scripts/launcher/net.o $(B)/scripts/launcher/munge.o
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^

# Static, because the root that they start a program in may have any C library, or none.
$(B)/scripts/qcu-enter: scripts/enter.c
$(B)/scripts/qcu-pty: scripts/pty.c
$(B)/scripts/qcu-tsc: scripts/launcher/tsc.c
$(B)/scripts/qcu-fits: scripts/container/fits.c
$(B)/scripts/qcu-enter $(B)/scripts/qcu-pty $(B)/scripts/qcu-tsc $(B)/scripts/qcu-fits: | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(filter-out -fsanitize=% -fno-sanitize% -fPIC,$(CFLAGS)) -static -o $@ $<
