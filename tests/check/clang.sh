#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All user-space code also builds with clang, without a warning. `make` itself uses gcc. Nothing of it runs, and clang
# warns before it optimises.
set -euo pipefail
cd "$(dirname "$0")/../.."
# NCCL's kernels are those of the other build: nvcc compiles them, with gcc.
kernels=("${B:-build}"/qcu-library/nccl/{copies,reduce_*}.o)
make -j"$(nproc)" B=build/clang MADE_IN="${B:-build}" CC=clang CFLAGS=-O0 NCCL_KERNELS="${kernels[*]}" userspace
