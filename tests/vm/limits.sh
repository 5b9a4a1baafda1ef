#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The VM has a quota that is smaller than the GPU's memory. Programs see the quota, reach it, and go on.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest"/{device_query,out_of_memory,memory_pools,streams_events}
boot --device-arg --limit --device-arg vm-device-memory=512M --device-arg --limit --device-arg streams=64 \
	"${with[@]}" <<'END'
for program in device_query out_of_memory memory_pools streams_events; do
	expect $program 0 $program
done
begin quota
device_query | grep -q '512 MiB' && pass || fail "$(device_query | grep MiB)"
END
