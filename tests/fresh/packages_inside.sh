#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# packages.sh runs this in a Debian 13 with kernel headers: the packages of two versions lie in
# /root/packages. They are installed, upgraded, removed and purged, and nothing of them is left.
set -uo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
old=/root/packages/0.1~old new=/root/packages/0.1~test

step() {
	echo "packages: $SECONDS s: $*"
}

bad() {
	echo "packages: $*"
	exit 1
}

# must WHAT COMMAND...: COMMAND must succeed.
must() {
	local what=$1
	shift
	"$@" >/tmp/log 2>&1 || {
		tail -n 20 /tmp/log
		bad "$what"
	}
}

get=(apt-get -q -y --no-install-recommends install)
# All files that packages may leave behind. The lists of modules and the key for signing are depmod's and DKMS's.
files() {
	find /etc /usr /lib /var/lib /run -xdev \( -path /var/lib/apt -o -path /var/lib/dpkg -o -name ld.so.cache -o \
		-name '*.pyc' -o -path /var/lib/systemd -o -path '/usr/lib/modules/*' -o -name 'mok.*' \) -prune -o -print | sort
	find /usr/lib/modules -name 'qcuda*'
}
# Who would get the name libcudart.so.13.
loader() {
	ldconfig -p | sed -n 's/^\tlibcudart.so.13 .*=> //p' | head -n 1
}

step "what they need, without them"
must "the lists of packages" apt-get -q update
must "dkms" "${get[@]}" dkms udev man-db libglib2.0-0t64 ocl-icd-libopencl1 python3 cpio kmod procps
mkdir -p /opt/toolkit/lib
cp /build/qcu-library/libcudart.so.13 /opt/toolkit/lib/
echo /opt/toolkit/lib >/etc/ld.so.conf.d/000_cuda.conf
ldconfig
[ "$(loader)" = /opt/toolkit/lib/libcudart.so.13 ] || bad "the toolkit is not found before: $(loader)"
files >/tmp/before

step "installing"
must "the packages are not installed" "${get[@]}" $old/*.deb
mapfile -t ours < <(dpkg-query -W -f '${Package}\n' 'qcuda-*')
must "qcu-device does not start" qcu-device --version
qcu-device --help | grep -e '--socket PATH' >/dev/null || bad "qcu-device --help"
must "no backend beside it" test -e /usr/libexec/qcuda/be_cuda.so
must "no page about qcu-device" man -w qcu-device
must "no page about qcu-attach" man -w qcu-attach qcu-detach
qcu-attach --front ours --xml /qcuda/tests/vm/domains/plain.xml 2>/dev/null | qcu-detach --xml - >/tmp/detached ||
	bad "qcu-attach"
qcu-detach --xml /qcuda/tests/vm/domains/plain.xml 2>/dev/null | diff - /tmp/detached || bad "qcu-detach leaves something"
must "no device in QEMU" qcuda-qemu-system-x86_64 -device virtio-qcuda-pci,help
[ "$(loader)" = /usr/lib/qcuda/libcudart.so.13 ] || bad "a program would get $(loader)"
must "no libnvidia-ml.so.1" test -e /usr/lib/qcuda/libnvidia-ml.so.1
must "qcu-smi does not start" qcu-smi --help
for k in /usr/src/linux-headers-*-amd64; do
	k=${k#/usr/src/linux-headers-}
	dkms status | grep -F "qcuda/0.1~old, $k, " | grep ': installed' >/dev/null || bad "no driver for $k: $(dkms status)"
done

# The unit's own line, without systemd: it serves its socket.
step "the unit's command"
line=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/qcu-device@.service)
line=${line//%i/web}
mkdir -p /run/qcuda
OPTIONS='--gpu soft' bash -c "exec $line" >/tmp/log 2>&1 &
for ((i = 0; i < 300 * ${QCU_SLOW:-1}; i++)); do
	[ ! -S /run/qcuda/web.sock ] || break
	sleep 0.1
done
[ -S /run/qcuda/web.sock ] || { cat /tmp/log && bad "it does not listen"; }
kill $!
wait $! 2>/dev/null
rm -rf /run/qcuda

# The driver has been built. Now only what DKMS knows of it is of interest, not a build for each version.
mkdir -p /etc/dkms
touch /etc/dkms/no-autoinstall
step "upgrading, and an old version over a new one"
must "no upgrade" "${get[@]}" $new/*.deb
[ "$(dpkg-query -W -f '${Version}' qcuda-guest)" = 0.1~test ] || bad "it was not upgraded"
dkms status | grep '^qcuda/0.1~old' && bad "DKMS has the old one still"
[ ! -e /usr/src/qcuda-0.1~old ] || bad "the old source is still there"
must "no way back" "${get[@]}" --allow-downgrades $old/*.deb
dkms status | grep '^qcuda/0.1~test' && bad "DKMS has the new one still"

step "removing"
# What the broker of a GPU and Slurm's prolog make.
mkdir -p /run/qcuda/share /run/qcuda-jobs/n1-7 /var/lib/qcuda-jobs
: >/var/log/qcuda-jobs.log
must "they are not removed" apt-get -q -y remove "${ours[@]}"
dkms status | grep '^qcuda' && bad "DKMS has it still"
[ ! -e /usr/lib/qcuda ] || bad "files are left in /usr/lib/qcuda"
[ "$(loader)" = /opt/toolkit/lib/libcudart.so.13 ] || bad "the toolkit is not found any more: $(loader)"

[ -e /run/qcuda-jobs/n1-7 ] || bad "the folder of a job that runs is gone"
[ -e /var/log/qcuda-jobs.log ] || bad "the accounts of jobs are gone before the purge"
rmdir /run/qcuda-jobs/n1-7

rm /etc/dkms/no-autoinstall
step "purging"
must "they are not purged" dpkg --purge "${ours[@]}"
files >/tmp/after
diff /tmp/before /tmp/after || bad "something was left, or was taken along"
[ ! -e /var/log/qcuda-jobs.log ] || bad "the accounts of jobs are left"
step "all is well"
