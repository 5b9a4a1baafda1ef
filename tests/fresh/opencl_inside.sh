#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# opencl.sh runs this in the other Debian: /qcuda is the repository, /build is what was built of it.
set -euo pipefail
cd /qcuda
scripts/deps --no-cuda --opencl
pocl=$(scripts/opencl/build-pocl)
mkdir -p /root/build
make -s B=/root/build opencl-tests
grep -a -o -m1 'LLVM version [0-9.]*' "$pocl/lib/pocl/libpocl.so.2" || true
export LD_LIBRARY_PATH=/build/loopback OCL_ICD_VENDORS=$pocl/vendors POCL_CUDA_TOOLKIT_PATH=$pocl
clinfo | grep 'Platform Version'
bad=0
for group in bad_calls buffers events kernels programs query queues svm; do
	/root/build/tests/opencl/"$group" || { echo "opencl: $group ended with $?" && bad=1; }
done
exit $bad
