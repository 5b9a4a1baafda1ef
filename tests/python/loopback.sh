#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# loopback.sh BUILD PROGRAM: runs a program of this folder with the library that has its mirror in the
# program's own process.
set -euo pipefail
cd "$(dirname "$0")/../.."
why=$(mktemp)
trap 'rm -f "$why"' EXIT
wheels=$(scripts/python-wheels 2>"$why") || {
	cat "$why"
	exit 77
}
home=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")
export PYTHONPATH=$wheels PYTHONDONTWRITEBYTECODE=1 CUDA_HOME=$home CUDA_PATH=$home
LD_LIBRARY_PATH=$PWD/$1/loopback LD_AUDIT=$PWD/$1/loopback/libqcuda-loader.so python3 "tests/python/$2.py"
