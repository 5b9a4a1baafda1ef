#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: device memory that leaves and comes back. First all checks of the backend, with memory that can
# leave and without. Then how fast it leaves and comes back, beside plain copies of registered memory and NVIDIA's
# checkpoints of a process, and what allocations cost beside the driver's own.
#
#	memory.sh [OUT [GIB]]	GIB: at most this much device memory and host memory is moved (40)
#
# OUT (default: the current folder) gets memory.out.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd)/memory.out
most=${2:-40}
device=$root/build/qcu-device

# be_check [NAME=VALUE...]: prints what is not as it should be, and the timings.
be_check() {
	env "$@" timeout 400 "$device/be_check" "$device/be_cuda.so" "$device/be_check.fatbin" "${seconds:-0}" 2>&1 | grep -v '^ok '
	echo "exit code ${PIPESTATUS[0]}"
}

{
	echo "== without the option"
	seconds=0.1 be_check
	echo "== with it"
	seconds=0.1 be_check BE_CHECK_MOVABLE=1
	echo "== $most GiB"
	be_check BE_CHECK_MOVABLE=1 BE_CHECK_GIB="$most"
} | tee "$out"
