# SPDX-License-Identifier: GPL-2.0-or-later
# The only compiled program of the launcher: it runs QEMU behind a system call filter and Landlock.

PARTS += $(B)/scripts/qcu-confine

$(B)/scripts/qcu-confine: $(B)/scripts/confine.o
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ -lseccomp
