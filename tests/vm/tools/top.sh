#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu top: wrong calls, devices that are not there or are no devices, names that two VMs have, and then
# a VM whose numbers are known. Other tests may run devices of this user at the same time, so each call
# names its own.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export TMPDIR=$tmp
device=$B/qcu-device/qcu-device

# expect_that NAME CONDITION: CONDITION is Python about `t`, what the last command printed as JSON.
expect_that() {
	if python3 -c '
import json, sys
t = json.loads(open(sys.argv[1]).read().splitlines()[-1])
vm = t["vms"][0] if t["vms"] else None
if not eval(sys.argv[2]):
    sys.exit(json.dumps(t, indent=1) + "\nnot true: " + sys.argv[2])' "$tmp/out" "$2"; then
		echo "@ok $1 0.0"
	else
		echo "@FAIL $1"
	fi
}

# serve NAME SOCKET: starts a device that waits for QEMU.
pids=()
serve() {
	"$device" --gpu soft --name "$1" --socket "$2" 2>/dev/null </dev/null &
	pids+=($!)
	until [ -S "$2" ]; do sleep 0.05; done
}
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

# ---- wrong calls ----

expect_host unknown-option 2 'unrecognized arguments: --speed .try --help' $qcu top --speed
expect_host no-argument-wanted 2 'unrecognized arguments: now' $qcu top now
expect_host shortened-option 2 'unrecognized arguments: --js' $qcu top --js
expect_host interval-no-number 2 '--interval: invalid' $qcu top --interval soon
expect_host interval-nan 2 '--interval: invalid' $qcu top --interval nan
expect_host interval-too-short 2 '--interval: invalid' $qcu top --interval 0
expect_host count-zero 2 '--count: invalid' $qcu top --count 0
expect_host device-without-value 2 'expected one argument' $qcu top --device
expect_host help 0 'Exit codes: 0 good' $qcu top --help
expect_host commands-are-listed 2 'run, shell, vm, check, tune, top, trace, doctor, attach and detach' $qcu nonsense

# ---- no device, and what is no device ----

expect_host device-not-there 1 "$tmp/none: no such socket" $qcu top --once --device "$tmp/none"
: >"$tmp/file"
expect_host device-is-a-file 1 'that is no socket' $qcu top --once --device "$tmp/file"
expect_host name-not-there 1 'no VM of this name runs here|no device of this user' \
	$qcu top --once --vm "none-of-$$"

# A server that answers with the text in a file, or that never comes to an end.
python3 - "$tmp" <<'END' &
import socket, sys, threading
def serve(name, answer):
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{sys.argv[1]}/{name}.metrics")
    s.listen(8)
    while True:
        c, _ = s.accept()
        try:
            c.sendall(answer)
        except OSError:
            pass
        c.close()
evil = (b'qcuda_device{vm="\x1b[31mevil\x07",pid="1",gpu="soft",wire="1"} 1\nqcuda_connected 1\n'
        b'qcuda_session_launches_total{session="1",pid="2",program="\x1b]0;x\\"}\\\\"} 5\n'
        b'qcuda_copied_bytes_total{direction="up",path="stairs"} 5\nqcuda_launches_total -3\n'
        b'qcuda_launches_total 1e9\n}{ "\nqcuda_x{session="1} 4\n')
for name, answer in (("garbage", b"\0\1\2 no metrics\n" * 100), ("silent", b""), ("evil", evil)):
    threading.Thread(target=serve, args=(name, answer)).start()
END
pids+=($!)
for s in garbage silent evil; do
	until [ -S "$tmp/$s.metrics" ]; do sleep 0.05; done
done
expect_host garbage 1 'it is no qcu-device' $qcu top --once --device "$tmp/garbage.metrics"
expect_host silent 1 'it is no qcu-device' $qcu top --once --device "$tmp/silent"
expect_host names-with-escapes 0 '\?\[31mevil\?' $qcu top --once --device "$tmp/evil"
if grep -q "[[:cntrl:]]" <<<"$(tr -d '\n' <"$tmp/out")"; then
	echo '@FAIL no-escape-gets-through'
else
	echo '@ok no-escape-gets-through 0.0'
fi
expect_host wrong-numbers 0 '"launches": 0' $qcu top --once --json --device "$tmp/evil"

if [ "$(id -u)" -eq 0 ]; then
	serve alone "$tmp/alone.sock"
	chmod 711 "$tmp"
	# Not every user may read the checkout.
	install -m 755 scripts/top "$tmp/top"
	nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups "$tmp/top")
	expect_host another-users-device 1 'Permission denied' \
		"${nobody[@]}" --once --device "$tmp/alone.sock"
	expect_host no-device-of-this-user 1 'no device of this user runs here; qcu run starts one' \
		"${nobody[@]}" --once
	chmod 700 "$tmp"
else
	echo '@skip another-users-device needs root'
fi

# ---- devices without a VM ----

twin=twin-$$
serve "$twin" "$tmp/a.sock"
serve "$twin" "$tmp/b.sock"
expect_host two-of-one-name 1 "2 VMs have this name; name one with --device: $tmp/a.sock.metrics $tmp/b" \
	$qcu top --once --vm "$twin"
expect_host one-of-two 0 "VM $twin .*waits for QEMU" $qcu top --once --device "$tmp/b.sock"
expect_host found-by-itself 0 "$tmp/a.sock.metrics.*$tmp/b.sock.metrics" $qcu top --once --json
expect_host both-named 0 vms $qcu top --once --json --device "$tmp/a.sock" --device "$tmp/b.sock.metrics"
expect_that only-these-two "[v['socket'][-14:] for v in t['vms']] == ['a.sock.metrics', 'b.sock.metrics']"
expect_host no-colour-in-a-pipe 0 "^ +PID PROGRAM" $qcu top --once --device "$tmp/a.sock"
expect_host colour-on-a-terminal 0 $'\e\\[1m.*PID PROGRAM' \
	script -qec "$qcu top --once --device $tmp/a.sock" /dev/null
expect_host full-disk 1 'No space left' bash -c "$qcu top --once --device $tmp/a.sock >/dev/full"
expect_host nobody-reads 0 '^0 0$' bash -c \
	"$qcu top --json --count 1000 --interval 0.1 --device $tmp/a.sock | head -n 1 >/dev/null; echo \${PIPESTATUS[*]}"
expect_host three-times 0 '^3$' bash -c \
	"$qcu top --json --count 3 --interval 0.1 --device $tmp/a.sock | grep -c '\"vms\": \[{'"

# ---- a VM ----

# The guest holds still after each step, until the file go.N exists.
mkfifo "$tmp/results"
with "$guest/sleeper"
vm_name=top-$$
guest_script "$tmp/script" <<'END'
share=$1
step() {
	: >"$share/at.$1"
	until [ -e "$share/go.$1" ]; do usleep 100000; done
}
mkfifo /tmp/gate
sleeper </tmp/gate >/tmp/said &
exec 5>/tmp/gate
until grep -q ready /tmp/said; do usleep 50000; done
read -r _ pid </tmp/said
echo "$pid" >"$share/pid"
step 1
exec 5>&-
wait
step 2
mkfifo /tmp/gate2
sleeper busy </tmp/gate2 >/tmp/said &
exec 5>/tmp/gate2
until grep -q ready /tmp/said; do usleep 50000; done
exec 5>&-
wait
cp /tmp/said "$share/busy"
step 3
END
$qcu vm --name "$vm_name" --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--gpu soft --timeout 200 "${with[@]}" "$tmp/share" </dev/null &
vm=$!

at() {
	until [ -e "$tmp/share/at.$1" ]; do
		kill -0 "$vm" 2>/dev/null || return 1
		sleep 0.1
	done
}
mine=(--once --json --vm "$vm_name")

if at 1; then
	expect_host one-program 0 "$vm_name" $qcu top "${mine[@]}"
	expect_that only-my-vm "[v['name'] for v in t['vms']] == ['$vm_name'] and vm['connected']"
	expect_that its-program "[(p['program'], p['pid']) for p in vm['programs']] == [('sleeper', $(cat "$tmp/share/pid"))]"
	expect_that bytes-up "vm['programs'][0]['total']['copied_bytes']['h2d_chunks'] == 1 << 20"
	expect_that nothing-down "sum(v for k, v in vm['total']['copied_bytes'].items() if k[:3] != 'h2d') == 0"
	expect_that memory "vm['programs'][0]['total']['gpu_memory_bytes'] >= 1 << 20"
	expect_that chunks "vm['total']['chunks'] >= 1 and vm['total']['registered_bytes'] >= 1 << 20"
	expect_that calls "vm['programs'][0]['total']['calls'] >= 3 and vm['total']['launches'] == 0"
	expect_that no-rate-yet "vm['per_second'] is None and vm['programs'][0]['per_second'] is None"
	expect_host as-a-table 0 '^ +[0-9]+ sleeper +1\.0M' $qcu top --once --vm "$vm_name"
	expect_host with-rates 0 vms $qcu top --json --count 2 --interval 0.2 --vm "$vm_name"
	expect_that nothing-moves "vm['programs'][0]['per_second']['launches'] == 0"
	: >"$tmp/share/go.1"
fi
if at 2; then
	expect_host program-is-over 0 "$vm_name" $qcu top "${mine[@]}"
	expect_that no-program "vm['programs'] == [] and vm['sessions'] == 0 and vm['sessions_opened'] == 1"
	expect_that memory-is-back "vm['total']['gpu_memory_bytes'] == 0 and vm['total']['chunks'] == 0"
	expect_that bytes-stay "vm['total']['copied_bytes']['h2d_chunks'] == 1 << 20"
	expect_that bytes-down "sum(v for k, v in vm['total']['copied_bytes'].items() if k[:3] == 'd2h') == 1 << 20"
	: >"$tmp/share/go.2"
fi
if at 3; then
	rounds=$(sed -n 's/.*after \([0-9]*\) rounds.*/\1/p' "$tmp/share/busy")
	expect_host busy-program-is-over 0 "$vm_name" $qcu top "${mine[@]}"
	expect_that launches "vm['total']['launches'] == ${rounds:-none}"
	expect_that copies-of-both "vm['total']['copied_bytes']['h2d_chunks'] == (2 + ${rounds:-0}) << 20"
	: >"$tmp/share/go.3"
fi
if wait "$vm"; then
	echo '@ok vm 0.0'
else
	echo "@FAIL vm the launcher ended with $?"
fi
expect_host vm-is-gone 1 'no VM of this name|no device of this user' $qcu top --once --vm "$vm_name"
scan_klog
