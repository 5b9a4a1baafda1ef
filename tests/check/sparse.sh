#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# sparse (address spaces, endianness, lock balance) finds nothing in the driver.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v sparse >/dev/null || { echo "sparse is not installed"; exit 77; }
out=$(make B=build/sparse KBUILD_FLAGS='C=2 CF=-Wno-unknown-attribute' driver 2>&1) || {
	echo "$out"
	exit 1
}
if grep -E "qcuda[a-z_]*\.[ch]:[0-9]+:[0-9]+: (warning|error)" <<<"$out"; then
	exit 1
fi
echo "no findings"
