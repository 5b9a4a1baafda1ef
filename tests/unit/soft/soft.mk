# SPDX-License-Identifier: GPL-2.0-or-later
# Tests of the software GPU's runtime, with a fake PTX machine (test_soft_fake.c).

SOFT_TESTS := test_soft_mem test_soft_stream test_soft_event test_soft_launch test_soft_fatbin \
	test_soft_link test_soft_move test_soft_props test_soft_share
UNIT_TESTS += $(SOFT_TESTS)

$(foreach t,$(SOFT_TESTS),$(eval $(t)_OBJS := $(B)/tests/unit/soft/test_soft_fake.o $(SOFT_OBJS)) \
	$(eval $(t)_LIBS := $(SOFT_LIBS)))

# A test with the real PTX machine.
UNIT_TESTS += test_soft_run
test_soft_run_OBJS := $(SOFT_LIB)
test_soft_run_LIBS := $(SOFT_LIBS)
