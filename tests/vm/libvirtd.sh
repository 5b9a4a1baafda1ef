# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set by lib.sh, and for the scripts
#
# A libvirt of the tests' own, as an ordinary user's session, and a domain in it that boots again.sh's guest.
# Sourced after lib.sh. Ends the script if libvirt cannot be had. With QCU_QEMU=system the domain has this
# machine's own QEMU, else ours.

skip_all() {
	echo "@skip libvirt $*"
	exit
}

missing=
for p in virsh libvirtd; do
	PATH=$PATH:/usr/sbin type -P $p >/dev/null || missing=1
done
if [ -n "$missing" ]; then
	[ "$(id -u)" -eq 0 ] || skip_all 'libvirt is not installed'
	scripts/deps --no-cuda --libvirt || skip_all 'libvirt cannot be installed'
fi
if [ "${QCU_QEMU:-}" != system ]; then
	qemu=$(scripts/build-qemu --print-dir) || skip_all 'our QEMU was not built'
else
	emulator=$(type -P qemu-system-x86_64) || skip_all 'this machine has no QEMU'
fi
guest_dir=$(scripts/build-guest | tail -n 1)

# Root has no session of its own: its libvirt is that of the system. So nobody has one, and what it uses is
# copied to where it may read.
me=(env)
[ "$(id -u)" -ne 0 ] || me=(setpriv --reuid 65534 --regid 65534 --clear-groups env)
mkdir "$tmp/home" "$tmp/runtime"
chmod 700 "$tmp/home" "$tmp/runtime"
chmod 711 "$tmp"
[ "$(id -u)" -ne 0 ] || chown 65534:65534 "$tmp/home" "$tmp/runtime"
if [ -n "${qemu:-}" ]; then
	cp -r "$qemu" "$tmp/qemu"
	emulator=$tmp/qemu/bin/qemu-system-x86_64
fi
cp "$guest_dir/vmlinux" "$tmp/vmlinux"
# In the background, so that the process is libvirtd itself, which can be ended.
as_user() {
	exec "${me[@]}" -i PATH="$PATH:/usr/sbin" LC_ALL=C HOME="$tmp/home" XDG_RUNTIME_DIR="$tmp/runtime" "$@"
}
as_user libvirtd >"$tmp/libvirtd.log" 2>&1 &
libvirtd=$!
uri="qemu+unix:///session?socket=$tmp/runtime/libvirt/libvirt-sock"
virsh() {
	command virsh --quiet --connect "$uri" "$@"
}

device=
finish() {
	virsh destroy guest >/dev/null 2>&1
	[ -z "${there:-}" ] || virsh_there destroy guest >/dev/null 2>&1
	kill "$libvirtd" ${there:-} $device 2>/dev/null
	wait 2>/dev/null
	rm -rf "$tmp"
}
trap finish EXIT

# answers VIRSH PID: waits until this libvirtd answers.
answers() {
	local i
	for ((i = 0; i < 100 * slow; i++)); do
		! "$1" list >/dev/null 2>&1 || break
		kill -0 "$2" 2>/dev/null || break
		sleep 0.1
	done
	"$1" list >/dev/null
}
answers virsh "$libvirtd" || {
	tail -n 3 "$tmp/libvirtd.log"
	skip_all 'libvirt does not start here'
}

# libvirtd_there: starts another libvirtd, as that of another host: libvirt does not migrate to a host with the same name
# or number. A name of its own needs root. virsh_there speaks to it.
libvirtd_there() {
	mkdir -p "$tmp/there/.config/libvirt" "$tmp/there/runtime"
	chmod 700 "$tmp/there" "$tmp/there/runtime"
	echo "host_uuid = \"$(cat /proc/sys/kernel/random/uuid)\"" >"$tmp/there/.config/libvirt/libvirtd.conf"
	chown -R 65534:65534 "$tmp/there"
	# shellcheck disable=SC2016 # for that shell
	unshare --uts sh -c 'hostname there && exec "$@"' - "${me[@]}" -i PATH="$PATH:/usr/sbin" LC_ALL=C HOME="$tmp/there" \
		XDG_RUNTIME_DIR="$tmp/there/runtime" libvirtd >"$tmp/libvirtd_there.log" 2>&1 &
	there=$!
	uri_there="qemu+unix:///session?socket=$tmp/there/runtime/libvirt/libvirt-sock"
	answers virsh_there "$there"
}
virsh_there() {
	command virsh --quiet --connect "$uri_there" "$@"
}

console=$tmp/home/console
socket=$tmp/qcu.sock

# domain_xml: writes domain.xml, whose guest boots $tmp/initrd.
domain_xml() {
	cat >"$tmp/domain.xml" <<END
<domain type='qemu'>
  <name>guest</name>
  <memory unit='MiB'>512</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>$tmp/vmlinux</kernel>
    <initrd>$tmp/initrd</initrd>
    <cmdline>$again_kernel</cmdline>
  </os>
  <features><acpi/><apic/></features>
  <devices>
    <emulator>$emulator</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    <serial type='file'><source path='$console'/></serial>
  </devices>
</domain>
END
}

as_it_is() {
	virsh dumpxml --inactive --security-info guest
}

# same_as FILE: is the domain as it was?
same_as() {
	as_it_is | diff "$1" -
}

# serve [SOCKET [SESSIONS]]: starts a qcu-device.
serve() {
	local socket=${1:-$socket}
	"$B/qcu-device/qcu-device" --socket "$socket" --gpu soft --sessions "${2:-4}" >>"$tmp/device.log" 2>&1 </dev/null &
	device=$!
	until [ -S "$socket" ] || ! kill -0 $device 2>/dev/null; do sleep 0.05; done
	chmod 666 "$socket"
}

# said PATTERN FROM: waits for a line in the console after the first FROM lines.
said() {
	local i
	for ((i = 0; i < 600 * slow; i++)); do
		if tail -n "+$(($2 + 1))" "$console" 2>/dev/null | tr -d '\r' | grep -E "$1" >/dev/null; then
			return
		fi
		sleep 0.2
	done
	return 1
}

# result NAME CODE: the result of a test that ended with this code.
result() {
	if [ "$2" -eq 0 ]; then
		echo "@ok $1"
	else
		tail -n 20 "$console" "$tmp/device.log" "$tmp"/home/.cache/libvirt/qemu/log/guest.log 2>/dev/null
		echo "@FAIL $1"
	fi
}
