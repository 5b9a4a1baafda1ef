# SPDX-License-Identifier: GPL-2.0-or-later
# What the launcher runs that is no script: QEMU behind a system call filter.

PARTS += $(B)/scripts/qcu-confine

$(B)/scripts/qcu-confine: $(B)/scripts/confine.o
	$(CC) $(LDFLAGS) -o $@ $^ -lseccomp
