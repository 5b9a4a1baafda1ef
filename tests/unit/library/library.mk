# SPDX-License-Identifier: LGPL-2.1-or-later
# Unit tests of the library: the parts that need no mirror, and the finished file, as a program loads it.

LIBRARY_TESTS := test_library_ranges test_library_args test_library_env test_library_errors \
	test_library_exports test_library_no_device test_library_reserve \
	test_library_transport test_library_posted test_library_known test_library_capture test_library_fork
UNIT_TESTS += $(LIBRARY_TESTS)

test_library_ranges_OBJS := $(B)/qcu-library/malloc/ranges.o
test_library_reserve_OBJS := $(addprefix $(B)/qcu-library/,malloc/reserve.o malloc/ranges.o link/fork.o)
test_library_transport_OBJS := $(addprefix $(B)/qcu-library/link/,transport_dev.o errors.o env.o logs.o fork.o)
test_library_transport_LIBS := -Wl,--wrap=open,--wrap=close,--wrap=ioctl
# The whole library except the transport to the mirror, which mirror.c replaces, and the malloc hook.
LIBRARY_MIRROR := $(B)/tests/unit/library/mirror.o
test_library_posted_OBJS := $(filter-out %/malloc_hook.o,$(LIBRARY_OBJS)) $(LIBRARY_MIRROR)
test_library_posted_LIBS := -Wl,--wrap=clock_gettime
test_library_capture_OBJS := $(addprefix $(B)/qcu-library/,graph/graph_capture.o graph/graph.o graph/graph_order.o link/capture.o)
test_library_known_OBJS := $(test_library_posted_OBJS)
test_library_known_LIBS := $(test_library_posted_LIBS)
test_library_fork_OBJS := $(B)/qcu-library/link/fork.o
test_library_args_OBJS := $(B)/qcu-library/link/args.o
test_library_env_OBJS := $(B)/qcu-library/link/env.o
test_library_errors_OBJS := $(addprefix $(B)/qcu-library/link/,errors.o logs.o fork.o)
test_library_errors_LIBS := -ldl
test_library_exports_OBJS := $(B)/qcu-library/libcudart.so.13
test_library_no_device_OBJS := $(B)/qcu-library/libcudart.so.13
test_library_no_device_LIBS := -L$(B)/qcu-library -lcudart '-Wl,-rpath,$$ORIGIN/../../qcu-library'

# NVIDIA's own library. The tests compare ours with it where it is installed.
CUDART_NVIDIA := $(CUDA_HOME)/lib64/libcudart.so.13

LIBRARY_TEST_OBJS := $(LIBRARY_TESTS:%=$(B)/tests/unit/library/%.o) $(LIBRARY_MIRROR)
$(LIBRARY_TEST_OBJS): override CFLAGS += -isystem $(dir $(CUDART_INC)) \
	-DCUDART_NVIDIA='"$(CUDART_NVIDIA)"' -DCUDART_OURS='"$(B)/qcu-library/libcudart.so.13"'
$(LIBRARY_TEST_OBJS): | cudart-header
