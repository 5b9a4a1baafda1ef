#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh BUILD GROUP [TEST]..., or run.sh BUILD /PROGRAM: runs an OpenCL program with the library that has its mirror in the
# program's own process.
set -euo pipefail
cd "$(dirname "$0")/../.."
pocl=$(scripts/opencl/build-pocl --print-dir) || {
	echo 'there is no PoCL (scripts/opencl/build-pocl builds it)'
	exit 77
}
export OCL_ICD_VENDORS=$pocl/vendors POCL_CUDA_TOOLKIT_PATH=$pocl
[[ $2 == /* ]] && program=$2 || program=$1/tests/opencl/$2
LD_LIBRARY_PATH=$PWD/$1/loopback exec "$program" "${@:3}"
