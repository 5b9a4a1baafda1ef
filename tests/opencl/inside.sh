# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash disable=SC2154
# Runs in the guest: tests/vm/opencl.sh puts what it needs in front.
export POCL_CACHE_DIR=$share/cache
expect clinfo 0 clinfo
cp $log /tmp/printed
begin clinfo-says
grep -q 'Platform Name *Portable Computing Language' /tmp/printed &&
	grep -q 'Device Vendor *NVIDIA Corporation' /tmp/printed &&
	pass || fail 'it shows no device of PoCL'

for g in $groups; do
	expect "$g" 0 "$g"
	cp $log /tmp/printed
	begin "$g-same"
	cmp -s /tmp/printed "$share/$g" && pass || {
		diff /tmp/printed "$share/$g"
		fail 'it prints something else than without a VM'
	}
done

# Without a cache: the compiler runs here.
export POCL_CACHE_DIR=/tmp/kernels
expect compiled-here 0 programs build_callback ${QCU_NIGHTLY:+options errors_and_the_log}
export POCL_CACHE_DIR=$share/cache

# A fault ends one program. Another one goes on meanwhile.
queues threads_with_queues >/tmp/other 2>&1 </dev/null &
other=$!
expect fault 134 faults write_nowhere
cp $log /tmp/printed
begin fault-said
grep -q ' before: ok' /tmp/printed && ! grep -q 'no error was seen' /tmp/printed && pass || fail 'the fault was not seen'
begin fault-alone
wait $other && grep -q '^ok threads_with_queues' /tmp/other && pass || fail "another program ended with $?"
expect without-end 134 faults without_end
expect after-faults 0 queues in_order
