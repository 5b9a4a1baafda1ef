#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs test programs that were compiled with CUDA 12's headers and linked with its library, on libcudart.so.12 in the
# guest.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

programs_of guest-12
[ -x "${programs[0]}" ] || {
	echo "@skip programs CUDA 12's headers could not be fetched (scripts/cuda-wheels 12.9)"
	exit
}
needs=$(for p in "${programs[@]}"; do readelf -d "$p" | grep -o 'libcudart[^]]*'; done | sort | uniq -c)
[ "$(wc -l <<<"$needs")" = 1 ] && [[ $needs == *" ${#programs[@]} libcudart.so.12" ]] ||
	echo "@FAIL linked these programs need $needs"
with "${programs[@]}"
boot "${with[@]}" <<'END'
programs ''
END
