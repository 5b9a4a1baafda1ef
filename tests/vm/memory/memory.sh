#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that a GPU uses while its process forks, memory that is registered, and mappings that end while
# the GPU is busy. Then the same with room for only a few registrations.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$tools"/{fork,register,unmap} "$guest"/{host_register,fork_child}
boot --map cvm "${with[@]}" <<'END'
for tool in register fork unmap; do
	for test in $($tool --list); do
		expect "$tool/$test" 0 $tool "$test"
	done
done
expect host_register 0 host_register
expect fork_child 0 fork_child
END

programs=(host_register fork_child big_copies async_copies pinned_zero_copy scattered_pages)
with "$tools/"{register,unmap} "${programs[@]/#/$guest/}"
for mode in pin-limit=8M map=ncvm,copiers=1 map=ncvm,pin-limit=6M; do
	args=() unmap='many posted same_addresses refused killed'
	# With a pin limit, a registration that needs room also waits for the GPU. So the unmap tests are
	# left out.
	[[ $mode != *pin-limit* ]] || unmap=
	for word in ${mode//,/ }; do
		args+=(--device-arg "--$word")
	done
	boot "${args[@]}" "${with[@]}" <<END
for test in in_place chunks many killed; do
	expect "$mode/register/\$test" 0 register "\$test"
done
for test in $unmap; do
	expect "$mode/unmap/\$test" 0 unmap "\$test"
done
for program in ${programs[*]}; do
	expect "$mode/\$program" 0 "\$program"
done
END
done
