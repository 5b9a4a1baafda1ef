# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of the launcher's compiled program, qcu-confine.

UNIT_TESTS += test_confine
$(B)/tests/unit/launcher/test_confine.o: override CFLAGS += -DCONFINE='"$(B)/scripts/qcu-confine"'
$(B)/tests/unit/test_confine: | $(B)/scripts/qcu-confine
