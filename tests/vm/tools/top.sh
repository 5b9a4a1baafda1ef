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
expect_host interval-no-number 2 '--interval: .* is not a number of seconds from 0.1 to 3600' $qcu top --interval soon
expect_host interval-nan 2 '--interval: .* is not a number of seconds from 0.1 to 3600' $qcu top --interval nan
expect_host interval-too-short 2 '--interval: .* is not a number of seconds from 0.1 to 3600' $qcu top --interval 0
expect_host count-zero 2 '--count: 0 is not a number from 1 to' $qcu top --count 0
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
        b'qcuda_launches_total 1e9\n}{ "\nqcuda_x{session="1} 4\n'
        b'qcuda_session_calls_total{session="one",pid="' + b"9" * 5000 + b'",program="<script>alert(1)</script>&"} 7\n'
        b'qcuda_chunks ' + b"9" * 5000 + b'\nqcuda_evil_total 5\nqcuda_calls_total{command="a\\"} 1\\nx{",x="y"} 6\n')
# A device that launches ten kernels more each time that it is asked.
def serve_rising():
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{sys.argv[1]}/rising.metrics")
    s.listen(8)
    n = 0
    while True:
        c, _ = s.accept()
        n += 10
        c.sendall(b'qcuda_device{vm="rising",pid="7",gpu="soft",wire="1"} 1\nqcuda_connected 1\nqcuda_launches_total %d\n'
                  b'qcuda_session_launches_total{session="1",pid="12",program="slow"} %d\n'
                  b'qcuda_session_launches_total{session="2",pid="13",program="fast"} %d\n'
                  b'qcuda_session_device_memory_bytes{session="2",pid="13",program="fast",gpu="0"} 4096\n'
                  % (10 * n, n, 9 * n))
        c.close()
threading.Thread(target=serve_rising).start()
swaps = (b'qcuda_device{vm="swaps",pid="1",gpu="soft",wire="1"} 1\nqcuda_connected 1\n'
         b'qcuda_device_memory_bytes{gpu="0"} 3145728\nqcuda_away_bytes 2097152\nqcuda_room_wait_seconds_total 1.5\n'
         b'qcuda_swapped_bytes_total{direction="out"} 6291456\nqcuda_swapped_bytes_total{direction="in"} 4194304\n'
         b'qcuda_swapped_bytes_total{direction="up"} 5\n')
files = (swaps.replace(b'vm="swaps"', b'vm="files"') + b'qcuda_filed_bytes 1048576\n'
         b'qcuda_swap_file_bytes_total{direction="out"} 5242880\nqcuda_swap_file_bytes_total{direction="in"} 7340032\n')
lent = (files.replace(b'vm="files"', b'vm="lent"') + b'qcuda_lent_bytes 524288\n'
        b'qcuda_swap_gpu_bytes_total{direction="out"} 1048576\nqcuda_swap_gpu_bytes_total{direction="in"} 3145728\n')
for name, answer in (("swaps", swaps), ("files", files), ("lent", lent), ("garbage", b"\0\1\2 no metrics\n" * 100), ("silent", b""), ("evil", evil)):
    threading.Thread(target=serve, args=(name, answer)).start()
END
fake=$!
pids+=("$fake")
for s in garbage silent evil rising swaps files lent; do
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
expect_that wrong-labels "vm['programs'][0]['pid'] == 0 and vm['programs'][0]['total']['calls'] == 7 and vm['total']['chunks'] == 0"

expect_host memory-that-left 0 'all +3\.0M +1\.0M +2\.0M .* 6\.0M +4\.0M +1\.5 ' $qcu top --once --device "$tmp/swaps"
expect_host memory-in-a-file 0 'all +3\.0M +1\.0M +2\.0M +1\.0M .* 6\.0M +4\.0M +1\.5 ' $qcu top --once --device "$tmp/files"
expect_host filed-bytes 0 '"filed_bytes": 1048576' $qcu top --once --json --device "$tmp/files"
expect_that to-and-from-a-file "vm['total']['swap_file_out_bytes'] == 5 << 20 and vm['total']['swap_file_in_bytes'] == 7 << 20"
expect_host memory-on-another-gpu 0 'all +3\.0M +1\.0M +2\.0M +512K +1\.0M .* 6\.0M +4\.0M' $qcu top --once --device "$tmp/lent"
expect_host lent-bytes 0 '"lent_bytes": 524288' $qcu top --once --json --device "$tmp/lent"
expect_that to-and-from-another-gpu "vm['total']['swap_gpu_out_bytes'] == 1 << 20 and vm['total']['swap_gpu_in_bytes'] == 3 << 20"
expect_host no-such-columns 0 'all +0 +0 +0 ' $qcu top --once --device "$tmp/evil"
expect_host moved-bytes 0 '"away_bytes": 2097152' $qcu top --once --json --device "$tmp/swaps"
expect_that waits-for-room "vm['total']['room_wait_seconds'] == 1.5 and vm['total']['swapped_in_bytes'] == 4 << 20"

# ---- a page, and OpenMetrics ----

expect_host one-form-only 2 'not allowed with' $qcu top --html "$tmp/page" --json
expect_host html-without-file 2 'expected one argument' $qcu top --html
expect_host html-into-nothing 1 "$tmp/none/page: No such file" \
	$qcu top --once --html "$tmp/none/page" --device "$tmp/evil"
expect_host html 0 '^$' bash -c "$qcu top --count 3 --interval 0.1 --html $tmp/page --device $tmp/evil --device $tmp/rising && echo"
cat >"$tmp/page.py" <<'END'
import html.parser, sys
text = open(sys.argv[1], encoding="utf-8").read()
class Page(html.parser.HTMLParser):
    open, words, curves = [], [], 0
    def handle_starttag(self, tag, attrs):
        assert tag in "html head meta title style body h1 h2 p table tr th td figure figcaption svg polyline".split(), tag
        assert not [a for a, _ in attrs if a.startswith("on") or a in ("href", "src")], attrs
        if tag != "meta":
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        assert tag == "polyline", tag
        self.curves += 1
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
    def handle_data(self, data):
        self.words.append(data)
page = Page()
page.feed(text)
assert not page.open and "<script>alert(1)</script>&" in page.words, page.words
assert "VM ?[31mevil?" in page.words and "fast" in page.words and page.curves == 10, page.curves
assert "://" not in text and "default-src 'none'" in text and 'http-equiv="refresh"' not in text
print("good")
END
expect_host html-is-harmless 0 '^good$' python3 "$tmp/page.py" "$tmp/page"
if compgen -G "$tmp/page.*.part" >/dev/null; then
	echo '@FAIL html-leaves-no-parts'
else
	echo '@ok html-leaves-no-parts'
fi
expect_host openmetrics 0 '^# EOF$' $qcu top --openmetrics --device "$tmp/evil" --device "$tmp/rising"
cp "$tmp/out" "$tmp/openmetrics"
cat >"$tmp/openmetrics.py" <<'END'
import re, sys
*lines, end = open(sys.argv[1], encoding="ascii").read().split("\n")
assert end == "" and lines.pop() == "# EOF"
text, kinds, seen, family = r'"(?:[^"\\]|\\[\\"n])*"', {}, set(), None
for line in lines:
    head = re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-z_]+) (.+)", line)
    if head and head[1] == "TYPE":
        family = head[2]
        assert family not in kinds and head[3] in ("gauge", "counter"), line
        kinds[family] = head[3]
    elif head:
        assert head[2] == family and (head[1] == "HELP" or family.endswith("_" + head[3])), line
    else:
        sample = re.fullmatch(rf"([a-z0-9_]+)({{[a-z]+={text}(?:,[a-z]+={text})*}}) [0-9]+", line)
        assert sample and sample[1] == family + ("_total" if kinds[family] == "counter" else ""), line
        assert (sample[1], sample[2]) not in seen, line
        seen.add((sample[1], sample[2]))
assert "qcuda_evil" not in kinds and len(seen) > 8
assert ("qcuda_calls_total", r'{vm="?[31mevil?",device="%s",command="a\"} 1nx{"}' % sys.argv[2]) in seen, seen
try:
    from prometheus_client.openmetrics import parser
    print(len(list(parser.text_string_to_metric_families("\n".join(lines + ["# EOF", ""])))), "families read by prometheus_client")
except ImportError:
    pass
print("good")
END
expect_host openmetrics-is-right 0 '^good$' python3 "$tmp/openmetrics.py" "$tmp/openmetrics" "$fake"
# It knows the older form only, in which a family has the name of its samples.
if command -v promtool >/dev/null; then
	awk '$2 == "TYPE" && $4 == "counter" { counter[$3] = 1 } /^#/ && counter[$3] { $3 = $3 "_total" } { print }' \
		"$tmp/openmetrics" >"$tmp/older"
	expect_host promtool 0 '^$' bash -c "promtool check metrics <$tmp/older && echo"
else
	echo '@skip promtool promtool is not installed (package prometheus)'
fi

# ---- a terminal ----

# Python would change the locale C for the programs that it starts.
plain=(env -u NO_COLOR -u LC_CTYPE -u LANG PYTHONCOERCECLOCALE=0 TERM=linux LC_ALL=C.UTF-8)
# keys NAME PATTERN SIZE KEYS [SETTING...]: what is drawn on a terminal of that size while these keys are pressed.
keys() {
	expect_host "$1" 0 "$2" "${plain[@]}" "${@:5}" tests/vm/tools/terminal.py "$3" "$4" \
		$qcu top --interval 0.1 --device "$tmp/rising" --device "$tmp/evil"
}
# screens NAME CONDITION: CONDITION is Python about `first` and `second`, the screens before the first keys.
screens() {
	if python3 -c '
import sys
first, second = open(sys.argv[1]).read().split("-" * 8 + "\n")[:2]
order = lambda text: [w for w in text.split() if w in ("slow", "fast")]
sys.exit(not eval(sys.argv[2]))' "$tmp/out" "$2"; then
		echo "@ok $1"
	else
		echo "@FAIL $1"
	fi
}
keys q-ends-it 'q quit +s sort: begin +v VM: all' 24x80 q
keys narrow 'PID PROGRAM' 12x40 q
keys wide 'H2D:chunks' 50x200 q
keys blocks 'launches/s +[0-9.]+k? [|] .*█[^|]*[|] ' 24x80 q
keys no-blocks 'launches/s +[0-9.]+k? [|] .*#[^|]*[|] ' 24x80 q LC_ALL=C
keys no-blocks-for-latin 'launches/s +[0-9.]+k? [|] .*#[^|]*[|] ' 24x80 q LC_ALL= LANG=de_DE.ISO-8859-1
keys no-blocks-without-locale 'launches/s +[0-9.]+k? [|] .*#[^|]*[|] ' 24x80 q LC_ALL=
keys sorted 'sort: memory' 40x80 sq
screens sorted-by-memory 'order(first) == ["slow", "fast"] and order(second) == ["fast", "slow"]'
keys one-vm 'v VM: one' 40x80 vq
screens only-one-vm '(first.count("\nVM "), second.count("\nVM ")) == (2, 1)'
keys no-graphs 'VM: all' 40x80 gq
screens graphs-are-gone '"launches/s" in first and "launches/s" not in second'
expect_host dumb 0 'PID PROGRAM' "${plain[@]}" TERM=dumb tests/vm/tools/terminal.py 24x80 '' \
	$qcu top --once --device "$tmp/evil"
if grep -q $'\e' "$tmp/out"; then
	echo '@FAIL dumb-has-no-escapes'
else
	echo '@ok dumb-has-no-escapes'
fi
expect_host no-colour 0 '^     PID PROGRAM' "${plain[@]}" NO_COLOR=1 script -qec "$qcu top --once --device $tmp/evil" /dev/null

if [ "$(id -u)" -eq 0 ]; then
	serve alone "$tmp/alone.sock"
	chmod 711 "$tmp"
	# Not every user may read the checkout.
	mkdir "$tmp/scripts"
	cp -r scripts/top scripts/metrics "$tmp/scripts/"
	nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups "$tmp/scripts/top")
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
	"${plain[@]}" script -qec "$qcu top --once --device $tmp/a.sock" /dev/null
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
	expect_that no-gpu-time "vm['total']['gpu_seconds'] == 0"
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
	expect_that gpu-time "0 < vm['total']['gpu_seconds'] < 3600"
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
