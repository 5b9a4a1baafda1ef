#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu attach and qcu detach with libvirt itself, as an ordinary user's session: a domain gets a device, is
# started, and a CUDA program runs in it, also after another qcu-device has taken the place of the first.
# When the device is taken away, the domain is as it was. With QCU_QEMU=system the domain has this machine's own
# QEMU and its general device, as tests/fresh/newer.sh does: then the domain must be started anew in between.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/again.sh
. tests/vm/again.sh

# shellcheck source=tests/vm/libvirtd.sh
. tests/vm/libvirtd.sh

# ---- the guest ----

again_and_again_initrd "$guest_dir" "$tmp/initrd" "$guest/long_work"
domain_xml

# ---- bad input ----

attach=("$qcu" attach --connect "$uri")
detach=("$qcu" detach --connect "$uri")
expect_host wrong-uri 2 'virsh: .*(no connection driver|failed to connect)' "$qcu" attach --connect none:///session guest
expect_host no-libvirt-there 2 'virsh: failed to connect' \
	"$qcu" attach --connect "qemu+unix:///session?socket=$tmp/none" guest
expect_host no-such-domain 2 "virsh: failed to get domain 'guest'" "${attach[@]}" guest
expect_host detach-no-such-domain 2 "virsh: failed to get domain 'guest'" "${detach[@]}" guest

virsh define "$tmp/domain.xml" >/dev/null
as_it_is >"$tmp/before.xml"
expect_host nothing-to-detach 0 'nothing to do' "${detach[@]}" guest
sed "s|</memory>|</memory><memoryBacking><access mode='private'/></memoryBacking>|" "$tmp/domain.xml" >"$tmp/private.xml"
virsh undefine guest >/dev/null
virsh define "$tmp/private.xml" >/dev/null
expect_host private-memory 2 'asks for private memory' "${attach[@]}" guest
virsh undefine guest >/dev/null
virsh define "$tmp/domain.xml" >/dev/null
as_it_is >"$tmp/before.xml"

# ---- attach, detach ----

expect_host print 0 "path=$socket" "${attach[@]}" --print --socket "$socket" --sessions 4 guest
expect_host print-args 0 'size=512M,share=on' "${attach[@]}" --qemu-args guest
if same_as "$tmp/before.xml"; then echo '@ok print-changes-nothing'; else echo '@FAIL print-changes-nothing'; fi
expect_host attach 0 'guest has a qCUDA device($|;)' "${attach[@]}" --socket "$socket" --sessions 4 guest
expect_host what-starts-it 0 "qcu-device --socket $socket" "${attach[@]}" --socket "$socket" --sessions 4 guest
expect_host twice 0 'has this qCUDA device already' "${attach[@]}" --socket "$socket" --sessions 4 guest
as_it_is >"$tmp/with.xml"
front=virtio-qcuda-pci
[ -n "${qemu:-}" ] || front=vhost-user-test-device-pci
expect_host its-device 0 "value='$front,chardev=qcuda," cat "$tmp/with.xml"
expect_host shared-memory 0 "<access mode='shared'/>" cat "$tmp/with.xml"
expect_host detach 0 'the device of guest is taken away' "${detach[@]}" guest
if same_as "$tmp/before.xml"; then echo '@ok as-before'; else echo '@FAIL as-before'; fi
expect_host attach-again 0 'guest has a qCUDA device($|;)' "${attach[@]}" --socket "$socket" --sessions 4 guest
if same_as "$tmp/with.xml"; then echo '@ok as-with-it'; else echo '@FAIL as-with-it'; fi
expect_host other-sessions 0 'guest has a qCUDA device($|;)' "${attach[@]}" --socket "$socket" --sessions 5 guest
expect_host and-back 0 'guest has a qCUDA device($|;)' "${attach[@]}" --socket "$socket" --sessions 4 guest
if same_as "$tmp/with.xml"; then echo '@ok nothing-is-left-of-it'; else echo '@FAIL nothing-is-left-of-it'; fi

# ---- a program in the domain ----

serve
expect_host socket-is-good 0 'nothing to do$' "${attach[@]}" --socket "$socket" --sessions 4 guest
virsh start guest
result start $?
[ "$(virsh domstate guest)" = running ] || exit 0
said '^program: 0$' 0
result program-runs $?
expect_host running 0 'takes effect when it is started the next time' \
	"${attach[@]}" --socket "$socket" --sessions 6 guest
expect_host running-and-back 0 'takes effect' "${attach[@]}" --socket "$socket" --sessions 4 guest

kill -KILL "$device"
wait "$device" 2>/dev/null
lines=$(wc -l <"$console")
if [ -n "${qemu:-}" ]; then
	said '^program: [1-9]' "$lines"
	result error-without-device $?
	lines=$(wc -l <"$console")
	serve
else
	# With the general device nobody tells the guest that its device is gone.
	virsh destroy guest >/dev/null
	lines=0
	serve
	virsh start guest
	result start-again $?
fi
said '^program: 0$' "$lines"
result program-runs-with-the-next-device $?

if [ -n "${qemu:-}" ]; then
	# In the middle of the program, unless it waits for a function of its own on the host just then: that is refused.
	for ((i = 0; i < 30 * slow; i++)); do
		sleep "0.$((RANDOM % 10))"
		why=$(virsh save guest "$tmp/home/saved" 2>&1) && break
		[ "$(virsh domstate guest)" = running ] || break
	done
	echo "$why"
	[ -s "$tmp/home/saved" ] && [ "$(virsh domstate guest)" = 'shut off' ]
	result saved $?
	wait "$device"
	result device-ends-with-it $?
	# libvirt begins the console's file anew.
	cp "$console" "$tmp/console.before"
	serve
	virsh restore "$tmp/home/saved"
	result restored $?
	said '^program: 0$' 0
	result program-runs-after-it $?
fi

expect_host detach-running 0 'takes effect' "${detach[@]}" guest

# ---- to another libvirt ----

# moves: in the middle of the program, as it is saved above. After a try that failed, the qcu-device there has gone with its QEMU.
moves() {
	local i
	for ((i = 0; i < 30 * slow; i++)); do
		[ -S "$socket.there" ] || serve "$socket.there"
		sleep "0.$((RANDOM % 10))"
		why=$("${migrate[@]}" 2>&1) && break
		[ "$(virsh domstate guest)" = running ] || break
	done
	echo "$why"
	[ "$(virsh domstate guest)" = 'shut off' ] && [ "$(virsh_there domstate guest)" = running ]
}

if [ -z "${qemu:-}" ]; then
	echo '@skip migrated only our QEMU migrates the device'
elif [ "$(id -u)" -ne 0 ]; then
	echo '@skip migrated a second libvirt needs a host name of its own, and so root'
else
	libvirtd_there
	result another-libvirt $?
	# Another host's qcu-device could have the same socket.
	virsh dumpxml --migratable --security-info guest |
		sed "s|path=$socket,|path=$socket.there,|; s|$console|$tmp/there/console|" >"$tmp/there.xml"
	migrate=(virsh --connect "$uri" migrate --live guest "$uri_there" --migrateuri "unix://$tmp/home/moving"
		--xml "$tmp/there.xml")
	before=$device
	serve "$socket.there" 2
	expect_host other-sessions-there 1 'migration out. failed|virtio-qcuda: (the VM cannot be loaded while no qcu-device|qcu-device does not) serve' "${migrate[@]}"
	said '^program: 0$' "$(wc -l <"$console")"
	result runs-here-on $?
	kill "$device"
	wait "$device"
	serve "$socket.there"
	moves
	result migrated $?
	wait "$before"
	result device-ends-with-it $?
	cp "$console" "$tmp/console.here"
	console=$tmp/there/console
	said '^program: 0$' 0
	result program-runs-there $?
	virsh_there destroy guest
fi
virsh destroy guest >/dev/null
expect_host stopped 0 'nothing to do' "${detach[@]}" guest
if same_as "$tmp/before.xml"; then echo '@ok as-before-after-all'; else echo '@FAIL as-before-after-all'; fi
cat "$tmp/console.before" "$tmp/console.here" "$console" 2>/dev/null | grep -v -E '^program:|: ok$' | tr -d '\r' >"$klogs/$script"
if scripts/scan-klog "$klogs/$script"; then echo '@ok kernel-log'; else echo '@FAIL kernel-log'; fi
