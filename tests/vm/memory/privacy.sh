#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that a program gets from the driver is zero, whichever program had it before: one that has
# ended or was killed, the same program, or one that ran before the module was loaded again.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$tools/leftover" "$guest"/vector_add
boot --mem 512M "${with[@]}" <<'END'
expect first 0 vector_add
# Two programs that each use more than half of the memory must get some of the same pages.
memory
size=$((value / 1024 * 6 / 10))
echo "$size of $((value / 1024)) MB"

expect fill 0 leftover fill $size
expect another-program 0 leftover look $size
expect fill-for-the-device 0 leftover fill $size
expect untouched-on-the-device 0 leftover device $size
expect unmapped-and-mapped-anew 0 leftover again $size

begin module-loaded-anew
leftover fill $size >>$log 2>&1 && rmmod qcuda >>$log 2>&1 && insmod /qcu/run/qcuda.ko >>$log 2>&1 &&
	leftover look $size >>$log 2>&1 && pass || fail 'see above'

for chunk in 64 65536; do
	rmmod qcuda && insmod /qcu/run/qcuda.ko chunk_kb=$chunk
	expect chunks-$chunk-fill 0 leftover fill $size
	expect chunks-$chunk-look 0 leftover look $size
done
END
