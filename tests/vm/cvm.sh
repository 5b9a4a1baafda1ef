#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every test program through the whole stack as users get it: chunks of the driver's size, remapped
# side by side on the host. Those that move data once more with other chunks.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest"/*
boot --map cvm "${with[@]}" <<'END'
programs ''
for chunk in 64K 1M 16M; do
	export QCU_CHUNK=$chunk
	expect chunks-$chunk/big_copies 0 big_copies
	expect chunks-$chunk/pinned_zero_copy 0 pinned_zero_copy
	expect chunks-$chunk/async_copies 0 async_copies
done
unset QCU_CHUNK
END
