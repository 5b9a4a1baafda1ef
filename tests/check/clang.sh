#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All user-space code also builds with clang, without a warning. `make` itself uses gcc. Nothing of it runs, and clang
# warns before it optimises.
set -euo pipefail
cd "$(dirname "$0")/../.."
make -j"$(nproc)" B=build/clang CC=clang CFLAGS=-O0 NCCL_CODE= userspace
