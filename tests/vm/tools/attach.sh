#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu attach and qcu detach, without libvirt: wrong calls, domains that are refused, and what becomes of
# the XML of many domains. libvirt.sh does the rest.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

attach=("$qcu" attach) detach=("$qcu" detach)
domains=tests/vm/domains

# ---- wrong calls ----

expect_host no-domain 2 'which domain\?' "${attach[@]}"
expect_host detach-no-domain 2 'which domain\?' "${detach[@]}"
expect_host empty-name 2 "that is no domain's name" "${attach[@]}" ''
expect_host two-domains 2 'unrecognized arguments: two' "${attach[@]}" one two
expect_host unknown-option 2 'unrecognized arguments: --speed' "${attach[@]}" --speed one
expect_host option-of-attach 2 'unrecognized arguments: --socket' "${detach[@]}" --socket /run/x one
expect_host cut-option 2 'unrecognized arguments: --sock' "${attach[@]}" --sock /run/x one
expect_host two-sockets 2 '\-\-socket is there twice' "${attach[@]}" --socket /run/a --socket /run/b one
expect_host two-uris 2 '\-\-connect is there twice' "${attach[@]}" --connect a --connect b one
expect_host relative-socket 2 'must be an absolute path' "${attach[@]}" --socket here one
expect_host long-socket 2 'of up to 107 characters' "${attach[@]}" --socket "/$(printf '%0107d' 0)" one
expect_host no-sessions 2 'a number from 1 to 63' "${attach[@]}" --sessions 0 one
expect_host many-sessions 2 'a number from 1 to 63' "${attach[@]}" --sessions 64 one
expect_host relative-emulator 2 'must be ours or an absolute path' "${attach[@]}" --emulator qemu one
expect_host unknown-front 2 'invalid choice' "${attach[@]}" --front best one
expect_host unknown-label 2 'invalid choice' "${attach[@]}" --seclabel all one
expect_host xml-and-domain 2 '\-\-xml goes without a DOMAIN' "${attach[@]}" --xml file one
expect_host xml-not-there 2 'No such file' "${attach[@]}" --xml "$tmp/none"
expect_host xml-is-a-folder 2 'Is a directory' "${attach[@]}" --xml "$tmp"
expect_host mem-without-args 2 'belongs to --qemu-args' "${attach[@]}" --mem 4G one
expect_host mem-and-domain 2 'does not go with a domain' "${attach[@]}" --qemu-args --mem 4G one
expect_host mem-is-no-size 2 'must be a size' "${attach[@]}" --qemu-args --mem lots
expect_host node-alone 2 'belongs to --vulkan' "${attach[@]}" --render-node none one
expect_host vulkan-of-nothing 2 'argument --vulkan: needs a value' "${attach[@]}" --vulkan= one
expect_host two-vulkans 2 '\-\-vulkan is there twice' "${attach[@]}" --vulkan --vulkan=1G one
expect_host vulkan-and-args 2 'does not go with --qemu-args' "${attach[@]}" --vulkan --qemu-args one
expect_host vulkan-elsewhere 2 'must be called where the domain runs' \
	"${attach[@]}" --connect qemu+ssh://other/system --vulkan one
expect_host vulkan-size 2 'must be a size' "${attach[@]}" --front general --xml $domains/plain.xml --vulkan=lots
mkdir "$tmp/few"
ln -s /usr/bin/{bash,env,readlink,dirname,basename,python3,id} "$tmp/few/"
expect_host no-virsh 2 'there is no virsh here: apt install libvirt-clients' env PATH="$tmp/few" "${attach[@]}" one
expect_host help 0 'qemu:///system' "${attach[@]}" --help
expect_host detach-help 0 'Takes away what qcu attach has given' "${detach[@]}" --help
expect_host full-disk 2 'cannot be written' bash -c "scripts/qcu attach --front ours --xml $domains/plain.xml >/dev/full"

# ---- domains that are refused ----

# refused NAME PATTERN FILE SED...: attach refuses the domain that sed makes of FILE.
refused() {
	local name=$1 pattern=$2 file=$3
	shift 3
	sed "$@" "$domains/$file" >"$tmp/domain.xml"
	expect_host "$name" 2 "$pattern" "${attach[@]}" --front ours --xml "$tmp/domain.xml"
}
refused cut-off 'this is no XML' plain.xml 20q
refused empty 'this is no XML' plain.xml d
refused other-xml 'begins with <network>' plain.xml 's/domain/network/'
refused no-devices 'has no <devices>' one-line.xml 's/<devices.>//'
refused no-memory 'has no <memory>' plain.xml '/<memory /d'
refused memory-of-nothing 'has no <memory>' plain.xml "s/4194304/0/"
refused memory-in-words 'has no <memory>' plain.xml "s/4194304/much/"
refused memory-in-other-units 'has no <memory>' plain.xml "s/KiB/cubits/"
refused other-type 'is of type xen' plain.xml "s/type='kvm'/type='xen'/"
refused other-arch 'kind aarch64' plain.xml "s/x86_64' machine/aarch64' machine/"
refused anonymous 'type anonymous, which cannot be' shared.xml "s/memfd/anonymous/"
refused private 'asks for private memory:? *.*<access>|asks for private memory, and' shared.xml "s/mode='shared'/mode='private'/"
refused private-cell 'in its NUMA cell 1' numa.xml "s/memAccess='shared'/memAccess='private'/"
refused by-hand 'put there by hand' commandline.xml "s/id=other/id=qcuda/"
refused by-hand-device 'put there by hand' commandline.xml "s/value='-fw_cfg'/value='virtio-qcuda-pci,chardev=x'/"
expect_host label-of-its-own 2 'a <seclabel> of its own' python3 -c "
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, 'scripts/libvirt')
import domain
try:
    domain.Domain(open('$domains/hugepages.xml').read()).attach('ours', '/run/x', 4, None, 'selinux')
except domain.Refused as e:
    sys.exit(print(e) or 2)"

# ---- which device the emulator has ----

mkdir "$tmp/emulators"
# emulator NAME DEVICE VERSION: a QEMU that has only this device. As QEMU 11.1, it ends with 0 for others, too.
emulator() {
	printf '#!/bin/sh\ncase "$*" in\n"-device %s,help") echo "%s options:" ;;\n-device*) echo not found >&2 ;;\n--version) echo "QEMU emulator version %s"; exit 0 ;;\n*) exit 1 ;;\nesac\n' \
		"$2" "$2" "$3" >"$tmp/emulators/$1"
	chmod +x "$tmp/emulators/$1"
}
emulator ours virtio-qcuda-pci 10.0.13
emulator general vhost-user-test-device-pci 11.1.3
emulator old virtio-net-pci 8.2.1
by_emulator() {
	expect_host "$1" "$2" "$3" "${attach[@]}" --xml $domains/plain.xml --emulator "$tmp/emulators/$4" "${@:5}"
}
by_emulator old-qemu 2 'version 8.2.1. has no device .* from version 10.2 on.*--emulator ours' old
by_emulator qemu-not-there 2 'cannot be asked from here .*--front' gone
by_emulator qemu-with-ours 0 "virtio-qcuda-pci,chardev=qcuda,sessions=5" ours --sessions 5
by_emulator its-chardev 0 'socket,id=qcuda,path=/run/qcuda/web.sock,reconnect-ms=1000' ours
by_emulator comma-in-socket 0 'path=/run/a,,b.sock,reconnect-ms' ours --socket /run/a,b.sock
by_emulator qemu-with-general 0 \
	'vhost-user-test-device-pci,chardev=qcuda,virtio-id=21,num_vqs=6,vq_size=512,config_size=64' general --sessions 5
by_emulator no-opengl 2 'has no virtio-gpu-gl-pci with venus .*qemu-system-modules-opengl' general --vulkan
by_emulator no-reconnecting 0 "path=/run/qcuda/web.sock'" general
by_emulator emulator-is-set 0 "<emulator>$tmp/emulators/ours</emulator>" ours
by_emulator which-unit 0 'systemctl enable --now qcu-device@web' ours
by_emulator which-command 0 'without systemd: .*qcu-device --socket /run/qcuda/web.sock' ours
sed '/<emulator>/d' $domains/plain.xml >"$tmp/domain.xml"
expect_host no-emulator 2 'names no emulator' "${attach[@]}" --xml "$tmp/domain.xml"

# ---- QEMU's arguments ----

expect_host args 0 '^-device virtio-qcuda-pci,chardev=qcuda,sessions=16$' \
	"${attach[@]}" --qemu-args --emulator "$tmp/emulators/ours"
expect_host args-of-memory 0 '^-object memory-backend-memfd,id=ram,size=512M,share=on' \
	"${attach[@]}" --qemu-args --front ours --mem 512M
expect_host args-of-a-domain 0 'size=65536M,share=on' "${attach[@]}" --qemu-args --front general --xml $domains/hugepages.xml
expect_host huge-pages 0 'fail in huge, because its memory is in <hugepages>' \
	"${attach[@]}" --front ours --xml $domains/hugepages.xml
expect_host args-with-quotes 0 "path='?/run/it'''s.sock|'socket,id=qcuda,path=/run/my vm.sock" \
	"${attach[@]}" --qemu-args --front ours --socket '/run/my vm.sock'

# ---- what becomes of the XML ----

cat >"$tmp/round.py" <<'END'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "scripts/libvirt")
from domain import Domain, child, same

path = sys.argv[1]
text = open(path, encoding="utf-8").read()
original = Domain(text)
vulkan = (["-display", "egl-headless,rendernode=/dev/null", "-device", "virtio-gpu-gl-pci,venus=on", "-sandbox", "on"],
          {"VK_DRIVER_FILES": "/usr/share/a.json:/b & c.json", "QCU_SERVER": "/usr/libexec/server"})
for front in ("ours", "general"):
    for emulator, label, gpu in ((None, None, None), ("/opt/ours", "apparmor", None), (None, None, vulkan)):
        one = Domain(text)
        one.attach(front, "/run/q.sock", 4, emulator, label, gpu)
        assert one.attached() and not same(one, original)
        backing = child(one.root, "memoryBacking")
        assert child(backing, "access").getAttribute("mode") == "shared"
        assert child(backing, "source") or child(backing, "hugepages")
        values = [a.getAttribute("value") for a in one.args()]
        if gpu:
            assert values[-3:] == ["virtio-gpu-gl-pci,venus=on,id=qcuda-vulkan", "-sandbox", "on"]
            assert len(one.env()) == len(original.env()) + 2 and len(one.without_sandbox()) == 1
            values = values[:-6]
        assert values[-4] == "-chardev" and values[-2] == "-device" and len(values) == len(original.args()) + 4
        assert emulator is None or one.emulator() == emulator
        # Twice is once, and with other options the old ones are gone.
        two = Domain(one.text())
        two.attach(front, "/run/q.sock", 4, emulator, label, gpu)
        assert same(one, two) and one.text() == two.text()
        two.attach(front, "/run/other.sock", 4)
        assert "/run/q.sock" not in two.text() and "/opt/ours" not in two.text() and "VK_" not in two.text()
        # Somebody changes something else meanwhile.
        three = Domain(one.text().replace("</name>", "</name><title>new</title>", 1))
        for d, want in ((one, original.text()), (two, original.text()),
                        (three, original.text().replace("</name>", "</name><title>new</title>", 1))):
            d = Domain(d.text())
            assert d.detach() and not d.attached()
            assert d.text() == want, d.text()
            assert not d.detach()
assert original.text() == Domain(original.text()).text()
if text.count('"') == 0:
    assert original.text() == text
print("as it was")
END
for f in "$domains"/*.xml; do
	expect_host "there-and-back-$(basename "$f" .xml)" 0 '^as it was$' python3 "$tmp/round.py" "$f"
done
expect_host nothing-to-detach 0 '^<domain' "${detach[@]}" --xml $domains/plain.xml

# What was there before stays when a device goes.
"${attach[@]}" --front ours --xml $domains/commandline.xml 2>/dev/null >"$tmp/with.xml"
"${detach[@]}" --xml "$tmp/with.xml" >"$tmp/without.xml"
expect_host other-arguments-stay 0 'are identical' diff -s "$domains/commandline.xml" "$tmp/without.xml"
"${attach[@]}" --front ours --xml - <$domains/shared.xml 2>/dev/null >"$tmp/with.xml"
"${detach[@]}" --xml - <"$tmp/with.xml" >"$tmp/without.xml"
expect_host shared-memory-stays 0 'are identical' diff -s "$domains/shared.xml" "$tmp/without.xml"
# The device's arguments were taken out by hand.
grep -v qcuda,sessions "$tmp/with.xml" | grep -v "path=/run/qcuda" | grep -v "'-chardev'" | grep -v "'-device'" >"$tmp/part.xml"
"${detach[@]}" --xml "$tmp/part.xml" >"$tmp/without.xml"
expect_host taken-out-by-hand 0 'are identical' diff -s "$domains/shared.xml" "$tmp/without.xml"
