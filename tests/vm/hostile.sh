#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A hostile guest kernel attacks its device (tests/hostile/module/). Another VM, with its own
# qcu-device, runs at the same time and must not notice: its programs go on, with right results.
#
# With HOSTILE_SECONDS=600 the attack runs for that time, each VM has its own processors, and the test
# prints how much of its throughput the other VM keeps. Without it the attack has a fixed number of
# steps, and no time is measured.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

module=$B/tests/hostile/module/hostile_guest.ko
how="steps=${HOSTILE_STEPS:-3000}" apart_hostile=() apart_other=()
if [ -n "${HOSTILE_SECONDS:-}" ]; then
	how="seconds=$HOSTILE_SECONDS"
	cpus=$(nproc)
	if [ "$cpus" -gt 1 ]; then
		apart_hostile=(taskset -c "0-$((cpus / 2 - 1))")
		apart_other=(taskset -c "$((cpus / 2))-$((cpus - 1))")
	fi
fi
limit=$((${HOSTILE_SECONDS:-0} + 440))

cat >"$tmp/hostile-script" <<END
insmod /qcu/bin/hostile_guest.ko $how seed=${HOSTILE_SEED:-1} || exit 1
dmesg | grep 'hostile:' | tail -n 1
dmesg | grep -q 'hostile: .* resets: 0\$'
END

# The other VM's script prints "round N" after each right copy, and goes on until it reads a line.
with "$guest"/{bandwidth,vector_add,sleeper}
guest_script "$tmp/script" <<'END'
vector_add >$log 2>&1 || echo "@FAIL before-it vector_add ended with $?"
n=0
echo ready
while ! read -r -t 0 _; do
	bandwidth 16 >$log 2>&1 || {
		cat $log
		echo "@FAIL other-vm bandwidth ended with $?"
	}
	n=$((n + 1))
	echo "round $n"
done
read -r _
expect other-vm-afterwards 0 vector_add
END

mkfifo "$tmp/in"
mkdir "$tmp/other" "$tmp/hostile"
TMPDIR=$tmp/other "${apart_other[@]}" "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--timeout $limit "${with[@]}" <"$tmp/in" >"$tmp/other.out" 2>&1 &
other=$!
exec 3>"$tmp/in"

rounds() {
	grep -c '^round' "$tmp/other.out"
}

# until_other PATTERN COUNT: waits until the other VM has printed COUNT lines that match PATTERN.
until_other() {
	local tries=0
	until [ "$(grep -c "$1" "$tmp/other.out")" -ge "$2" ]; do
		sleep 0.2
		tries=$((tries + 1))
		[ $tries -lt $((1000 * slow)) ] && kill -0 $other 2>/dev/null || return 1
	done
}

until_other '^round' 2 || echo '@FAIL before-it the other VM does not work'
quiet=0
if [ -n "${HOSTILE_SECONDS:-}" ]; then
	from=$(rounds)
	sleep 60
	quiet=$(($(rounds) - from))
fi

# Keep all messages of the hostile VM's qcu-device. The launcher would keep only a part.
mkdir -p "$tmp/build/qcu-device"
ln -s "$root/$B"/{scripts,qcu-driver,qcu-library} "$tmp/build/"
mkfifo "$tmp/said"
cat >"$tmp/build/qcu-device/qcu-device" <<END
#!/bin/sh
exec "$root/$B/qcu-device/qcu-device" "\$@" 2>"$tmp/said"
END
chmod +x "$tmp/build/qcu-device/qcu-device"
cat "$tmp/said" >"$tmp/device.log" &
log=$!

from=$(rounds) start=${EPOCHREALTIME/./}
QCU_BUILD=$tmp/build TMPDIR=$tmp/hostile "${apart_hostile[@]}" "$qcu" vm --no-module --script "$tmp/hostile-script" --share "$tmp/share" \
	--klog "$tmp/hostile-klog" --sessions 4 --device-arg --verbose --device-arg --vram --device-arg 256M \
	--timeout $limit --with "$module" >"$tmp/hostile.out" 2>&1 </dev/null &
hostile=$!
wait $hostile
rc=$?
exec {x}<>"$tmp/said" {x}>&- # ends the reader if its writer never opened the pipe
wait $log
us=$((${EPOCHREALTIME/./} - start))
during=$(($(rounds) - from))
cat "$tmp/hostile.out"
if [ $rc -ne 0 ]; then
	tail -n 20 "$tmp/hostile-klog"
	echo "@FAIL hostile-kernel the VM ended with $rc"
else
	echo "@ok hostile-kernel $((us / 1000000)).$((us / 100000 % 10))"
fi

# The guest breaks rules all the time, and its sessions end. But no mirror may crash.
begun=$(grep -c ': open$' "$tmp/device.log")
if grep -a -E 'signal (4|5|6|7|8|11|31) |Sanitizer|runtime error' "$tmp/device.log"; then
	echo '@FAIL mirrors a mirror has crashed'
elif [ "$begun" -lt 10 ]; then
	tail -n 20 "$tmp/device.log"
	echo "@FAIL mirrors only $begun sessions were opened"
else
	echo "@ok mirrors"
fi

until_other '^round' $((from + during + 2)) || echo '@FAIL other-vm it has come to a halt'
echo >&3
echo >&3
wait $other
rc=$?
exec 3>&-
grep -v '^round' "$tmp/other.out"
if [ $rc -ne 0 ]; then
	echo "@FAIL other-vm the VM ended with $rc"
elif ! grep -q '^@FAIL' "$tmp/other.out"; then
	echo "@ok other-vm"
fi
if [ $quiet -gt 0 ]; then
	echo "the other VM's rounds per minute: $quiet alone, $((during * 60000000 / us)) beside the hostile one"
fi
scan_klog
