#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# sparse (address spaces, endianness, lock balance) finds nothing in the driver. Where it is built, with C=2 kbuild has
# sparse read all files and compiles none.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v sparse >/dev/null || { echo "sparse is not installed"; exit 77; }
make driver
kdir=${KDIR:-$(scripts/build-guest --print-kdir)}
out=$(env -u MAKEFLAGS make -C "$kdir" M="$PWD/${B:-build}/qcu-driver" C=2 CF=-Wno-unknown-attribute modules 2>&1) || {
	echo "$out"
	exit 1
}
if grep -E "qcuda[a-z_]*\.[ch]:[0-9]+:[0-9]+: (warning|error)" <<<"$out"; then
	exit 1
fi
count=$(grep -c '^ *CHECK ' <<<"$out")
echo "no findings in $count files"
[ "$count" -gt 5 ]
