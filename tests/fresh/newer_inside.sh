#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# newer.sh runs this in the Debian with the newer parts: /qcuda is the repository, /build is what was built
# of it. For each kernel whose headers are installed, the driver is compiled and tested in a guest with that
# kernel. The QEMU is the machine's own, which nobody asks for: ours is not there. With --fetch, this only
# makes the guests.
set -uo pipefail
export LC_ALL=C QCU_SLOW=${QCU_SLOW:-3}
cd /qcuda || exit 2

bad() {
	echo "newer: $*"
	exit 1
}

mapfile -t kernels < <(cd /usr/src && printf '%s\n' linux-headers-*-amd64 | sed 's/^linux-headers-//' | sort -V)
[ ${#kernels[@]} -ge 2 ] || bad "two kernels' headers should be here: ${kernels[*]}"

if [ "${1:-}" = --fetch ]; then
	for k in "${kernels[@]}"; do
		QCU_KERNEL=$k scripts/build-guest || bad "no guest with $k"
	done
	exit
fi

# shellcheck source=scripts/lib.sh
(. scripts/lib.sh && which_qemu) >/tmp/which || bad "no QEMU"
[ "$(cat /tmp/which)" = system ] || bad "the machine's own QEMU is not chosen: $(cat /tmp/which)"
qemu-system-x86_64 --version | head -n 1

# The build folder of a kernel is the one from outside, with a driver of its own.
prepare_build() {
	local f
	mkdir -p "$B/qcu-driver" "$B/tests/logs"
	for f in /build/*; do
		[ -e "$B/${f##*/}" ] || ln -s "$f" "$B/"
	done
	for f in /build/tests/*; do
		[ -e "$B/tests/${f##*/}" ] || ln -s "$f" "$B/tests/"
	done
	cp -r qcu-driver/{*.[ch],probes,Kbuild} include/qcucmd*.h "$B/qcu-driver/"
}

for k in "${kernels[@]}"; do
	export QCU_KERNEL=$k B=/tmp/build-$k
	export QCU_BUILD=$B
	prepare_build
	echo "newer: $SECONDS s: compiling the driver for $k"
	make -C "/usr/src/linux-headers-$k" M="$B/qcu-driver" KCFLAGS=-Werror modules >/tmp/log 2>&1 || {
		tail -n 20 /tmp/log
		bad "the driver does not compile for $k"
	}
	echo "newer: $SECONDS s: tests in a guest with $k"
	tests/vm/driver/driver.sh || bad "driver: exit code $?"
	tests/fresh/newer_vm.sh "$k" || bad "newer_vm: exit code $?"
done
echo "newer: $SECONDS s: a domain of libvirt with this QEMU"
if apt-get -q update >/tmp/log 2>&1 && apt-get -q -y --no-install-recommends install libvirt-clients libvirt-daemon \
	libvirt-daemon-driver-qemu python3 >>/tmp/log 2>&1; then
	QCU_QEMU=system tests/vm/tools/libvirt.sh || bad "libvirt: exit code $?"
else
	echo "@skip libvirt it cannot be installed: $(tail -n 1 /tmp/log)"
fi
echo "newer: $SECONDS s: all is well"
