# SPDX-License-Identifier: GPL-2.0-or-later
# The compiled programs of the launcher: qcu-confine runs QEMU behind a system call filter and Landlock,
# qcu-enter starts a program in the guest with another root, qcu-pty starts one on a terminal there.

PARTS += $(B)/scripts/qcu-confine $(B)/scripts/qcu-enter $(B)/scripts/qcu-pty

$(B)/scripts/qcu-confine: $(B)/scripts/confine.o
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^ -lseccomp

# Static, because the root that they start a program in may have any C library, or none.
$(B)/scripts/qcu-enter $(B)/scripts/qcu-pty: $(B)/scripts/qcu-%: scripts/%.c | deps
	@mkdir -p $(@D)
	$(RUN) $(CC) $(filter-out -fsanitize=% -fno-sanitize% -fPIC,$(CFLAGS)) -static -o $@ $<
