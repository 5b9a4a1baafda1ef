# SPDX-License-Identifier: GPL-2.0-or-later
# One Makefile for all four parts. Each part has a fragment that lists its sources. `make help` lists
# the targets.

B ?= build
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc 2>/dev/null))),/usr/local/cuda)
NVCC ?= $(CUDA_HOME)/bin/nvcc
# For test programs, benchmarks and NCCL's kernels. With C++17, nvcc's default, <cmath> brings special functions, and four
# passes of the compiler read them: a third of their time.
NVCC_STD := -std=c++14
NVCC_TEST = $(NVCC) $(NVCC_STD)
# Goes before a compiler: asks ccache, and says so when the disk is full.
RUN := scripts/run-compiler $(B)

# ThreadSanitizer does not model fences, and GCC warns about each one: hence -Wno-tsan.
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all) \
	$(if $(findstring thread,$(SAN)),-Wno-tsan)
CFLAGS ?= -O2 -g
# A debugger looks for sources in its own folder: so what is compiled is the same in each clone.
override CFLAGS += -std=gnu11 -fPIC -fvisibility=hidden -pthread -Wall -Wextra -Werror \
	$(SAN_FLAGS) -fdebug-prefix-map=$(CURDIR)=. -I. -Iinclude
override LDFLAGS += -pthread $(SAN_FLAGS)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
MAKEFLAGS += --no-print-directory --no-builtin-rules
# Use all processors, unless the caller gives -j.
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif

PARTS :=
UNIT_TESTS :=
LOOPBACK_TESTS :=

# What NVIDIA's libraries need to run in a VM. The sources that are made for it are the same in each build: those with
# sanitizers or clang take another build's folder.
MADE_IN ?= $(B)
CUDART_INC := $(firstword $(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h \
	$(CUDA_HOME)/targets/x86_64-linux/include/cuda_runtime_api.h))
# Those that come with the toolkit; and cuDNN, where its headers are.
SHIMS := cublas cublaslt cufft curand cusolver cusparse $(if $(wildcard $(dir $(CUDART_INC))cudnn.h),cudnn)
PYTHON := /usr/bin/python3
SHIM_PARTS := scripts/shims/generate $(wildcard scripts/shims/*.py)

include qcu-device/soft/ptx.mk
include qcu-device/soft/soft.mk
include qcu-device/device.mk
include qcu-device/backend/cuda/cuda.mk
include qcu-library/library.mk
include qcu-library/loader/loader.mk
include qcu-driver/driver.mk
include scripts/scripts.mk
include perf/perf.mk
include tests/tests.mk

# deps installs the packages, so every compilation comes after it. An older object file goes first: if the
# compiler fails, it may leave an empty list of headers, and the older file would count as up to date.
$(B)/%.o: %.c | deps
	@mkdir -p $(@D) && rm -f $@
	$(RUN) $(CC) $(CFLAGS) -MMD -MP -c $< -o $@

-include $(shell [ -d $(B) ] && find $(B) -type f -name '*.d' -not -path '*/qcu-driver/*')

.PHONY: all userspace driver deps vm demo test check deb gpu-bundle gpu-bundle-vulkan generated format clean help

all: $(PARTS)

# Libraries that are not linked with a sanitizer: its run time would have to come with the program.
UNLINKED := $(if $(SAN),$(NCCL_OBJS) $(CUDA12_OBJS) $(SHIMS_12:%=$(SHIM_DIR)/%_12.o) \
	$(if $(filter cudnn,$(SHIMS)),$(CUDNN_PARTS:%=$(SHIM_DIR)/cudnn_%.o)))

# For the static checks: userspace is everything except the kernel module, with the unit tests compiled but not linked;
# driver is only the module.
userspace: $(filter-out %.ko,$(PARTS)) $(UNLINKED) $(UNIT_OBJS) $(PERF_OBJS) $(FUZZ_REPLAYS)
driver: $(B)/qcu-driver/qcuda.ko

deps:
	@scripts/deps

# Builds QEMU with our front end, unless this machine's own QEMU will do, and the guest's kernel and
# initramfs. Both are in the cache.
vm: | deps
	@scripts/build-qemu --if-needed >/dev/null
	@scripts/build-guest >/dev/null

DEMO_PROGRAMS := device_query vector_add matmul bandwidth
demo: all vm $(DEMO_PROGRAMS:%=$(B)/tests/guest/%)
	@tests/demo/demo.sh

test: all vm tests-build perf
	@tests/run

# What takes a few minutes of `make test`: formats, headers, both compilers, sparse, and the unit and loopback tests.
check: all tests-build
	@tests/run --quick check unit loopback

# Debian packages for a host and for guests, in $(B)/deb.
deb: all
	@scripts/deps --no-cuda --deb
	@QCU_BUILD=$(abspath $(B)) scripts/deb/make-deb

gpu-bundle: all vm tests-build-nightly perf
	@scripts/gpu-bundle

gpu-bundle-vulkan: all
	@tests/gpu/vulkan_bundle.sh

# What is made from include/commands.list and lies in the tree.
generated:
	scripts/commands/generate
	scripts/commands/table >docs/commands.md

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf $(B) .bundle

help:
	@echo 'make             build driver, device and library'
	@echo 'make demo        build all, boot a VM and run four CUDA programs in it'
	@echo 'make test        static checks, unit, loopback, sanitizers, VM, other Debians'
	@echo 'make check       static checks, unit and loopback: a few minutes'
	@echo 'tests/run nightly  the tests that take long, and are not in make test'
	@echo 'make fuzz        run the fuzzers, FUZZ_SECONDS (60) each'
	@echo 'make vm          build QEMU and the guest image (cached outside the tree)'
	@echo 'make deb         Debian packages for hosts and guests, in build/deb/'
	@echo 'make gpu-bundle  collect what a GPU machine without network needs into .bundle/'
	@echo 'make gpu-bundle-vulkan  the same for --vulkan, as an archive in build/'
	@echo 'make perf        build the benchmarks; perf/run runs them'
	@echo 'make perf-smoke  every benchmark, small, on the software GPU'
	@echo 'make soft-bench  how fast the software GPU is, beside what it promises'
	@echo 'make generated   write what is made from include/commands.list'
	@echo 'make format      clang-format every C file'
	@echo 'make clean       remove build/ and .bundle/ (the cache stays)'
	@echo
	@echo 'Variables: B=DIR, CC=gcc|clang, SAN=address,undefined, CUDA_HOME, KDIR, QCU_CACHE'
