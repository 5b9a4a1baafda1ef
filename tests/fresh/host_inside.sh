#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# host.sh runs this in a Debian, to install the packages of the host, use them under systemd, and remove them.
set -uo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
log=/tmp/log

self=host
# shellcheck source=tests/fresh/inside_lib.sh
. /qcuda/tests/fresh/inside_lib.sh

bad() {
	echo "host: FAILED: $*"
	exit 1
}

files() {
	find /etc /usr /lib /var/lib /run -xdev \( -path /var/lib/cni -o -path /var/lib/containers -o -path /var/lib/apt -o -path /var/lib/dpkg -o -name ld.so.cache -o \
		-path /var/lib/systemd -o -name '__pycache__' -o -path '/etc/machine-id' \) -prune -o -print | sort
}

# What ours need is installed before, so that it is not taken for something that was left.
install() {
	local need
	apt-get -q update
	mapfile -t need < <(for p in host qemu; do dpkg-deb -f /packages/qcuda-"$p"_*.deb Depends; done |
		tr ',' '\n' | sed 's/|.*//; s/([^)]*)//; s/ //g')
	apt-get -q -y --no-install-recommends install "${need[@]}" man-db
	files >/root/before
	apt-get -q -y --no-install-recommends install /packages/*.deb
	[ -z "$(systemctl list-unit-files --state=enabled 'qcu-*' --no-legend)" ] # none is enabled by itself
}

device_pid() {
	systemctl show -p MainPID --value qcu-device@web
}

# until_there PID: waits until the unit runs, and as another process than PID.
until_there() {
	local i
	for ((i = 0; i < 600 * ${QCU_SLOW:-1}; i++)); do
		[ -S /run/qcuda/web.sock ] && [ "$(device_pid)" != 0 ] && [ "$(device_pid)" != "$1" ] && return
		sleep 0.1
	done
	systemctl status --no-pager -l qcu-device@web
	bad "qcu-device@web does not run"
}

# journal UNIT PATTERN: waits until the unit has said this.
journal() {
	local i
	for ((i = 0; i < 600 * ${QCU_SLOW:-1}; i++)); do
		journalctl -u "$1" --no-pager -q >$log
		grep -E -e "$2" $log >/dev/null && return
		sleep 0.1
	done
	tail -n 30 $log
	bad "$1 does not say: $2"
}

# numbers LINE: waits until qcu-metrics says this line.
numbers() {
	local i
	for ((i = 0; i < 600 * ${QCU_SLOW:-1}; i++)); do
		python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:9754/metrics").read().decode())' >$log 2>&1 &&
			grep -x -e "$1" $log >/dev/null && return
		sleep 0.1
	done
	cat $log
	systemctl status --no-pager -l qcu-metrics
	bad "the numbers have no line $1"
}

# followed PID: another process than PID is the unit's main process, and PID has ended.
followed() {
	[ "$(device_pid)" != "$1" ] || bad "$1 is still the main process"
	timeout $((60 * ${QCU_SLOW:-1})) sh -c "while kill -0 $1 2>/dev/null; do sleep 0.1; done" || bad "$1 did not end"
	[ "$(systemctl is-active qcu-device@web)" = active ] || bad "the unit is $(systemctl is-active qcu-device@web)"
}

# A program runs while the unit is reloaded, and while the package is installed anew.
taken_over() {
	local pid vm
	step "under a program"
	cat >script <<'END'
mkfifo /tmp/in
sleeper busy <>/tmp/in >/tmp/out 2>&1 &
until grep -q ready /tmp/out; do usleep 50000; done
echo a program runs
read -r _
vector_add && echo >/tmp/in && wait $!
END
	rm -f vm.in && mkfifo vm.in
	qcu vm --no-device --qemu-arg -chardev --qemu-arg socket,id=qcu,path=/run/qcuda/web.sock \
		--qemu-arg -device --qemu-arg virtio-qcuda-pci,chardev=qcu,sessions=4 --script script --with /programs/vector_add \
		--with /programs/sleeper <vm.in >vm.log 2>&1 &
	vm=$!
	exec 3>vm.in
	timeout $((120 * ${QCU_SLOW:-1})) sh -c 'until grep -q "a program runs" vm.log; do sleep 0.1; done' || {
		cat vm.log
		bad "no program runs"
	}
	for _ in 1 2; do
		pid=$(device_pid)
		must "it is not taken over" systemctl reload qcu-device@web
		followed "$pid"
	done
	pid=$(device_pid)
	must "the package is not installed" apt-get -q -y --no-install-recommends install --reinstall /packages/qcuda-host_*.deb
	followed "$pid"
	# What cannot go on stays where it is.
	pid=$(device_pid)
	sed -i 's/--sessions 4/--sessions 5/' /etc/qcuda/web.conf
	says 1 'Job for qcu-device@web.service failed' systemctl reload qcu-device@web
	sed -i 's/--sessions 5/--sessions 4/' /etc/qcuda/web.conf
	[ "$(device_pid)" = "$pid" ] || bad "the main process is another one"
	journal qcu-device@web 'use the same --sessions'
	echo >&3
	exec 3>&-
	wait $vm || {
		cat vm.log
		bad "the program did not go on"
	}
	until_there "$pid"
}

use() {
	local pid name
	export HOME=/root TMPDIR=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	cd /root || exit 1
	step "the pages, and wrong calls"
	must "no page about qcu" man -w qcu qcu-attach qcu-device
	says 2 'usage: qcu run' qcu
	says 2 'unknown command start' qcu start
	says 2 'no program given' qcu run
	says 2 'benchmarks are only in a checkout' qcu tune
	says 127 'no-such-program: command not found' qcu run no-such-program
	must "no options in the page" grep -z -e '--mem SIZE' <(man qcu | tr -d '\b')
	must "the completion is no bash" bash -n /usr/share/bash-completion/completions/qcu
	must "qcu check" qcu check /programs/vector_add

	step "the unit"
	[ "$(stat -c '%a %U:%G' /etc/qcuda)" = '755 root:root' ] || bad "/etc/qcuda: $(stat -c '%a %U:%G' /etc/qcuda)"
	echo 'OPTIONS=--gpu soft --sessions 4' >/etc/qcuda/web.conf
	must "it does not start" systemctl enable --now qcu-device@web
	until_there 0
	[ "$(stat -c '%a %G' /run/qcuda/web.sock)" = '770 kvm' ] || bad "socket: $(stat -c '%a %G' /run/qcuda/web.sock)"
	says 1 'Read-only file system' nsenter --mount --target "$(device_pid)" touch /usr/touched
	says 0 'VM web .*waits for QEMU' qcu top --once
	says 0 'our QEMU is there' qcu doctor

	step "another VM, its limits, and the numbers of both"
	[ "$(stat -c '%a %G' /run/qcuda/web.sock.metrics)" = '660 qcuda-metrics' ] ||
		bad "metrics: $(stat -c '%a %G' /run/qcuda/web.sock.metrics)"
	echo 'OPTIONS=--gpu soft --sessions 3 --limit vm-device-memory=64M' >/etc/qcuda/train.conf
	must "they do not start" systemctl start qcu-device@train qcu-metrics
	numbers 'qcuda_sessions_limit{vm="train",device="[0-9]*"} 3'
	numbers 'qcuda_sessions_limit{vm="web",device="[0-9]*"} 4'
	sed -i 's/--sessions 3/--sessions 5/' /etc/qcuda/train.conf
	must "it does not start again" systemctl restart qcu-device@train
	numbers 'qcuda_sessions_limit{vm="train",device="[0-9]*"} 5'
	says 0 '^[1-9][0-9]*$' stat -c %u "/proc/$(systemctl show -p MainPID --value qcu-metrics)"
	says 1 'Permission denied' setpriv --reuid 65534 --regid 65534 --clear-groups qcu top --once --device /run/qcuda/web.sock
	echo 'OPTIONS=--gpu soft --sessions 99' >/etc/qcuda/train.conf
	must "it does not start again" systemctl restart qcu-device@train
	numbers 'qcuda_up{socket="/run/qcuda/web.sock.metrics"} 1'
	journal qcu-device@train 'sessions 99: a number from 1 to 63 is wanted'
	must "they do not stop" systemctl stop qcu-device@train qcu-metrics
	rm /etc/qcuda/train.conf

	step "a VM"
	pid=$(device_pid)
	echo 'vector_add && qcu-smi' >script
	says 0 "sums equal the CPU's" qcu vm --no-device --qemu-arg -chardev --qemu-arg socket,id=qcu,path=/run/qcuda/web.sock \
		--qemu-arg -device --qemu-arg virtio-qcuda-pci,chardev=qcu,sessions=4 --script script --with /programs/vector_add
	step "the unit again"
	until_there "$pid"
	pid=$(device_pid)
	must "no other one takes its place" systemctl reload qcu-device@web
	until_there "$pid"
	taken_over
	step "a unit that the driver for Kubernetes configures"
	[ "$(stat -c '%a %U' /run/qcuda)" = '755 root' ] || bad "folder: $(stat -c '%a %U' /run/qcuda)"
	name=claim-01234567-89ab-4cde-8f01-23456789abcd
	mkdir /run/qcuda/$name && chown root:107 /run/qcuda/$name && chmod 2750 /run/qcuda/$name
	echo "OPTIONS=--socket /run/qcuda/$name/vm.sock --name $name --metrics /run/qcuda/$name.metrics --gpu soft --qemu-user 107 \
--vram 268435456" >/run/qcuda/$name.conf
	must "it does not start" systemctl start qcu-device@$name
	timeout $((60 * ${QCU_SLOW:-1})) sh -c "until [ -S /run/qcuda/$name/vm.sock ]; do sleep 0.1; done" || {
		journalctl -u qcu-device@$name --no-pager -q
		bad "no socket"
	}
	[ "$(stat -c '%a %g' /run/qcuda/$name/vm.sock)" = '770 107' ] || bad "socket: $(stat -c '%a %g' /run/qcuda/$name/vm.sock)"
	[ "$(stat -c '%a %g' /run/qcuda/$name)" = '2750 107' ] || bad "folder: $(stat -c '%a %g' /run/qcuda/$name)"
	says 0 "VM $name .*waits for QEMU" qcu top --once
	must "it does not stop" systemctl stop qcu-device@$name
	rm -r /run/qcuda/$name /run/qcuda/$name.conf
	step "a VM of the launcher's own"
	says 0 "sums equal the CPU's" qcu run --gpu soft /programs/vector_add
	journalctl -u qcu-device@web --no-pager -q -p warning | grep -v "Reload failed" | grep -i -e error -e fail && bad "the journal has errors"
	must "it does not stop" systemctl disable --now qcu-device@web
	[ ! -e /run/qcuda/web.sock ] || bad "the socket is left"
	[ ! -e /run/qcuda/web.hand-over ] || bad "the socket of the hand-over is left"
	rm -r /etc/qcuda
	echo 'host: all is well'
}

remove() {
	must "they are not removed" apt-get -q -y remove qcuda-host qcuda-vm qcuda-qemu
	must "they are not purged" dpkg --purge qcuda-host qcuda-vm qcuda-qemu
	files >/root/after
	diff /root/before /root/after
}

"$1"
