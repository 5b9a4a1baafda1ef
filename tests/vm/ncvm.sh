#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs test programs again. There is no remapping on the host, the chunks are small, so that a copy has many pieces, and
# the guest has little memory and the oldest processor that Linux takes: x86-64 as it began. Some programs are compiled for a debugger (-G -O0), which gives different code for host
# and GPU; at night all of them are, and those run, too, that only compute.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

programs_of guest-O0
debug=" ${programs[*]##*/} "
for p in $(sed -n 's|^program ncvm/\([^ ]*\) test$|\1|p' "$B/tests/list"); do
	[[ $debug = *" $p "* ]] || programs+=("$guest/$p")
done
with "${programs[@]}"
boot --map ncvm --chunk 256K --mem 1G --qemu-arg -cpu --qemu-arg qemu64,-sse3,-cx16,-lahf_lm,-svm "${with[@]}" <<'END'
begin oldest-processor
grep -m1 '^flags' /proc/cpuinfo >>$log
! grep -qwE 'pni|ssse3|sse4_1|popcnt|avx|bmi1|cx16' $log && pass || fail 'it has more'
programs ''
END
