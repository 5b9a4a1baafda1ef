#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The numbers of all VMs at one place: wrong calls of `qcu top --serve`; devices that say garbage, say nothing, never
# end or tell lies; clients that do the same; then what Prometheus' own tools say of the text; the board for Grafana,
# whose queries must name what is there; and the units of the package.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

folder=$tmp/run
at=$tmp/numbers
mkdir "$folder"
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

# ---- wrong calls ----

expect_host serve-nothing 2 'expected one argument' $qcu top --serve
expect_host serve-one-form 2 'not allowed with' $qcu top --serve 1 --json
expect_host serve-by-name 2 'not allowed with --vm' $qcu top --serve 1 --vm web
expect_host folder-and-device 2 'not allowed with' $qcu top --folder "$folder" --device "$folder/x"
for w in 0 65536 -1 1e3 localhost:1x ٣ ''; do
	expect_host "serve-at-'$w'" 1 'PORT, ADDRESS:PORT or the path of a socket is wanted' $qcu top --serve="$w"
done
expect_host serve-at-a-name 1 'serve localhost:9: ' $qcu top --serve localhost:9
expect_host serve-in-nothing 1 'No such file' $qcu top --serve "$tmp/none/socket"
: >"$tmp/file"
expect_host serve-at-a-file 1 'Address already in use' $qcu top --serve "$tmp/file"
expect_host nothing-in-the-folder 1 'no device of this user' $qcu top --once --folder "$folder"
expect_host folder-is-not-there 1 'no device of this user' $qcu top --once --folder "$tmp/none"

# ---- devices and clients that do harm ----

# The name that a device gives itself is not that of its socket, which the operator has chosen.
"$B/qcu-device/qcu-device" --gpu soft --name another --socket "$folder/web.sock" 2>/dev/null </dev/null &
web=$!
pids+=("$web")
mkfifo "$tmp/end"
tests/vm/tools/fake_devices.py "$folder" "$web" <"$tmp/end" &
pids+=($!)
# shellcheck disable=SC2034 # It only stays open.
exec {end}>"$tmp/end"
$qcu top --serve "$at" --folder "$folder" &
collector=$!
pids+=("$collector")
until [ -e "$folder/ready" ] && [ -S "$folder/web.sock" ] && [ -S "$at" ]; do sleep 0.05; done
expect_host served-already 1 'Address already in use' $qcu top --serve "$at"

cat >"$tmp/scrape.py" <<'END'
import os, re, socket, stat, sys
at, web, out = sys.argv[1:]
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(at)
    return s
def ask(request, end=False):
    s = connect()
    s.sendall(request)
    if end:
        s.shutdown(socket.SHUT_WR)
    text = b""
    while part := s.recv(1 << 16):
        text += part
    return text
assert stat.S_IMODE(os.stat(at).st_mode) == 0o600
assert ask(b"GET /secret HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 404 ")
assert ask(b"POST /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 405 ")
assert ask(b"GET /metrics HTTP/1.1\r\n", True).startswith(b"HTTP/1.0 400 ")
assert ask(b"\0\xff" * 2048).startswith(b"HTTP/1.0 405 ")
assert ask(b"GET /" + b"x" * 4091).startswith(b"HTTP/1.0 400 ")
assert ask(b"", True) == b""
head, _, body = ask(b"HEAD /metrics HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
assert b" 200 OK" in head and not body
# More who say nothing than are served at once.
idle = [connect() for _ in range(40)]
head, _, body = ask(b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
assert b"Content-Type: application/openmetrics-text; version=1.0.0" in head, head
assert b"Content-Length: %d\r\n" % len(body) in head
text = body.decode("ascii")
lines = text.split("\n")
assert lines[-2:] == ["# EOF", ""] and lines.count("# EOF") == 1
series = dict(line.rsplit(" ", 1) for line in lines if line and line[0] != "#")
assert len(series) == sum(1 for line in lines if line and line[0] != "#"), "a series is there twice"
up = {re.fullmatch(r'qcuda_up\{socket=".*/(.*)\.sock\.metrics"\}', k)[1]: v for k, v in series.items() if k.startswith("qcuda_up")}
assert up == {"web": "1", "liar": "1", r"odd\"?{}\\": "1", **{k: "0" for k in (
    "dead", "deaf", "endless", "full", "garbage", "hangs", "nothing", "one-line")}}, up
# A VM's name is its socket's, and the device is who made the socket.
vms = {m[1]: m[2] for k in series for m in [re.fullmatch(r'qcuda_device\{vm="(.*)",device="([0-9]+)",gpu="soft",wire="[0-9]+"\}', k)] if m}
assert sorted(vms) == sorted(["web", "liar", r"odd\"?{}\\"]) and vms["web"] == web != vms["liar"], vms
of = {k.replace(vms["liar"], "PID"): v for k, v in series.items() if 'vm="liar"' in k and "qcuda_device" not in k}
assert of == {'qcuda_connected{vm="liar",device="PID"}': "1", 'qcuda_sessions{vm="liar",device="PID"}': "9",
              'qcuda_calls_total{vm="liar",device="PID",command="???"}': "5", 'qcuda_errors_total{vm="liar",device="PID"}': "3.250000",
              r'qcuda_session_launches_total{vm="liar",device="PID",session="1",pid="2",program="anqcuda_up 1\"} 1n# EOF"}': "5"}, of
open(out, "w").write(text)
print("good")
END
expect_host scrape 0 '^good$' python3 "$tmp/scrape.py" "$at" "$web" "$tmp/text"
expect_host scrape-again 0 '^good$' python3 "$tmp/scrape.py" "$at" "$web" "$tmp/text"
expect_host names-of-sockets 0 'VM web .*waits for QEMU' $qcu top --once --folder "$folder" --vm web

# ---- Prometheus' own tools, and the board ----

cat >"$tmp/board.py" <<'END'
import json, re, socket, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "scripts/metrics")
from openmetrics import FAMILIES, LABELS
path, rules = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.shutdown(socket.SHUT_WR)
text = b""
while part := s.recv(1 << 16):
    text += part
# What a device says of itself: nothing of it gets lost, and nothing is promised that it does not say.
kinds = dict(re.findall(r"^# TYPE qcuda_(\w+) (\w+)$", text.decode(), re.M))
said = {(k.removeprefix("session_").removesuffix("_total"), v) for k, v in kinds.items()} | {("up", "gauge")}
known = {(k, v[0]) for k, v in FAMILIES.items()}
assert said == known, said ^ known
board = json.load(open("scripts/metrics/grafana.json"))
queries = [t["expr"] for p in board["panels"] for t in p["targets"]]
used = {m for q in queries for m in re.findall(r"qcuda_(\w+)", q)}
assert len(queries) > 10 and used <= set(kinds) | {"up"}, used - set(kinds)
for q in queries:
    for labels in re.findall(r"by \(([^)]*)\)", q) + re.findall(r"\{(\w+)=~", q):
        assert set(labels.split(", ")) <= set(LABELS) | {"vm", "device", "socket"}, q
spots = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
assert len(set(spots)) == len(spots) == len({p["id"] for p in board["panels"]})
with open(rules, "w") as f:
    f.write("groups:\n- name: board\n  rules:\n")
    for n, q in enumerate(queries):
        f.write(f"  - record: q{n}\n    expr: {json.dumps(q.replace('$__rate_interval', '1m').replace('$vm', '.*'))}\n")
print("good")
END
expect_host families-and-board 0 '^good$' python3 "$tmp/board.py" "$folder/web.sock.metrics" "$tmp/rules.yml"
if command -v promtool >/dev/null; then
	# `check metrics` knows the older form only, in which a family has the name of its samples.
	awk '$2 == "TYPE" && $4 == "counter" { counter[$3] = 1 } /^#/ && counter[$3] { $3 = $3 "_total" } { print }' "$tmp/text" >"$tmp/older"
	expect_host promtool-metrics 0 '^$' bash -c "promtool check metrics <$tmp/older && echo"
	expect_host promtool-queries 0 'rules found' promtool check rules "$tmp/rules.yml"
	# This one reads OpenMetrics, and wants a time in each line.
	sed '/^#/!s/$/ 1700000000/' "$tmp/text" >"$tmp/timed"
	series=$(grep -c '^[^#]' "$tmp/text")
	expect_host promtool-openmetrics 0 " $series +$series +$series " promtool tsdb create-blocks-from openmetrics "$tmp/timed" "$tmp/blocks"
	sed -i '/^# EOF/d' "$tmp/timed"
	expect_host promtool-needs-the-end 1 'does not end with # EOF' promtool tsdb create-blocks-from openmetrics "$tmp/timed" "$tmp/blocks"
else
	echo '@skip promtool promtool is not installed (package prometheus)'
fi

# ---- the units ----

if command -v systemd-analyze >/dev/null && [ -d /usr/lib/systemd/system ]; then
	mkdir -p "$tmp/root/usr/lib/systemd" "$tmp/root/usr/libexec/qcuda/launcher/scripts"
	cp -r /usr/lib/systemd/system "$tmp/root/usr/lib/systemd/"
	for u in qcu-device@ qcu-metrics; do
		cp "scripts/deb/debian/qcuda-host.$u.service" "$tmp/root/usr/lib/systemd/system/$u.service"
	done
	cp "$B/qcu-device/qcu-device" "$tmp/root/usr/libexec/qcuda/"
	cp scripts/top "$tmp/root/usr/libexec/qcuda/launcher/scripts/"
	mkdir "$tmp/root/bin"
	cp /bin/rm "$tmp/root/bin/"
	# It ends with 0 also when it has ignored a line.
	expect_host units 0 '^good$' bash -c \
		"systemd-analyze verify --man=no --root=$tmp/root qcu-device@web.service qcu-metrics.service && echo good"
	if [ "$(cat "$tmp/out")" = good ]; then
		echo '@ok units-without-a-word'
	else
		echo '@FAIL units-without-a-word'
	fi
	for o in $(sed -n 's|^ExecStart=/usr/libexec/qcuda/qcu-device ||p' scripts/deb/debian/qcuda-host.qcu-device@.service | grep -o -e '--[a-z-]*'); do
		expect_host "unit-has$o" 0 "^  $o " "$B/qcu-device/qcu-device" --help
	done
else
	echo '@skip units there is no systemd here'
fi

# ---- the end ----

kill "$collector"
rc=0
wait "$collector" || rc=$?
if [ $rc -eq 143 ] && [ ! -e "$at" ]; then
	echo '@ok nothing-is-left'
else
	echo "@FAIL nothing-is-left exit code $rc"
fi
