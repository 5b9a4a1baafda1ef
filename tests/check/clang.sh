#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All user-space code also builds with clang, without a warning. `make` itself uses gcc. Nothing of it runs, and clang
# warns before it optimises. The unit tests are compiled only: linking them takes as long, and says nothing new. So does the
# second table of the software GPU's handlers.
set -euo pipefail
cd "$(dirname "$0")/../.."
# NCCL's kernels are those of the other build: nvcc compiles them, with gcc.
kernels=("${B:-build}"/qcu-library/nccl/{copies,reduce_*}.o)
make -j"$(nproc)" B=build/clang MADE_IN="${B:-build}" PTX_BASE_OPS_ONLY=1 CC=clang CFLAGS=-O0 NCCL_KERNELS="${kernels[*]}" userspace
