#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The hook of KubeVirt's sidecar, without KubeVirt: wrong calls, and what it makes of the XML of a machine.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

hook=scripts/kubevirt/onDefineDomain
xml=$(cat tests/vm/domains/kubevirt.xml)

# annotated JSON: the machine with these annotations.
annotated() {
	printf '{"metadata": {"name": "testvm", "annotations": {%s}}, "spec": {}}' "$1"
}
machine=$(annotated '')

expect_host no-arguments 1 'qcuda: .*--vmi' $hook
expect_host no-domain 1 'qcuda: .*--domain' $hook --vmi "$machine"
expect_host no-json 1 'no description of a virtual machine' $hook --vmi 'name: x' --domain "$xml"
expect_host other-json 1 'no description of a virtual machine' $hook --vmi '[1]' --domain "$xml"
expect_host no-xml 1 'this is no XML' $hook --vmi "$machine" --domain "${xml:0:900}"
expect_host private-memory 1 'asks for private memory' $hook --vmi "$machine" --domain \
	"${xml/<os>/<memoryBacking><access mode=\"private\"/></memoryBacking><os>}"
expect_host relative-socket 1 'absolute path' $hook --vmi "$(annotated '"qcuda.example/socket": "vm.sock"')" --domain "$xml"
expect_host no-sessions 1 'number from 1 to 63' $hook --vmi "$(annotated '"qcuda.example/sessions": "0"')" --domain "$xml"
expect_host sessions-in-words 1 'number from 1 to 63' $hook --vmi "$(annotated '"qcuda.example/sessions": "many"')" \
	--domain "$xml"
expect_host long-sessions 1 'number from 1 to 63' $hook --vmi "$(annotated '"qcuda.example/sessions": "00011"')" \
	--domain "$xml"
expect_host other-front 1 'must be ours or general' $hook --vmi "$(annotated '"qcuda.example/front": "best"')" --domain "$xml"
expect_host relative-emulator 1 'absolute path' $hook --vmi "$(annotated '"qcuda.example/emulator": "qemu"')" --domain "$xml"
expect_host full-disk 1 'cannot be written' bash -c "$hook --vmi '$machine' --domain \"\$1\" >/dev/full" - "$xml"

expect_host device 0 "value='virtio-qcuda-pci,chardev=qcuda,sessions=16'" $hook --vmi "$machine" --domain "$xml"
expect_host socket 0 "path=/run/qcuda/vm.sock,reconnect-ms" $hook --vmi "$machine" --domain "$xml"
expect_host no-annotations 0 "<source type='memfd'/>" $hook --vmi '{"metadata": {}}' --domain "$xml"
expect_host annotations 0 'vhost-user-test-device-pci,chardev=qcuda,virtio-id=21,num_vqs=5,' $hook --domain "$xml" \
	--vmi "$(annotated '"qcuda.example/front": "general", "qcuda.example/sessions": "4"')"
expect_host variables 0 'sessions=9' env QCUDA_SESSIONS=9 $hook --vmi "$machine" --domain "$xml"
expect_host emulator 0 '<emulator>/opt/q</emulator>' $hook --domain "$xml" \
	--vmi "$(annotated '"qcuda.example/emulator": "/opt/q"')"

# As in the image, where both files lie in one folder.
mkdir "$tmp/image"
cp scripts/libvirt/domain.py scripts/kubevirt/hook.py $hook "$tmp/image/"
$hook --vmi "$machine" --domain "$xml" >"$tmp/one.xml"
expect_host in-one-folder 0 '^same$' bash -c "'$tmp/image/onDefineDomain' --vmi '$machine' --domain \"\$1\" | cmp - '$tmp/one.xml' && echo same" - "$xml"
expect_host and-back 0 'are identical' bash -c \
	"diff -s <(scripts/qcu detach --xml '$tmp/one.xml') <(scripts/qcu detach --xml tests/vm/domains/kubevirt.xml)"

schema=/usr/share/libvirt/schemas/domain.rng
if [ -e $schema ] && command -v xmllint >/dev/null; then
	expect_host agrees-with-the-schema 0 'validates' xmllint --noout --relaxng $schema "$tmp/one.xml"
else
	echo '@skip agrees-with-the-schema needs libvirt and xmllint (libxml2-utils)'
fi
if python3 -c 'import yaml' 2>/dev/null; then
	expect_host manifests 0 '^2 VirtualMachine DaemonSet$' python3 -c "
import json, yaml
docs = [yaml.safe_load(open(f'scripts/kubevirt/{n}.yaml')) for n in ('vm', 'device-plugin')]
notes = docs[0]['spec']['template']['metadata']['annotations']
assert isinstance(json.loads(notes['hooks.kubevirt.io/hookSidecars']), list)
args = docs[1]['spec']['template']['spec']['containers'][0]['args']
assert yaml.safe_load(args[1])['name'] == 'qcuda'
print(len(docs), *(d['kind'] for d in docs))"
else
	echo '@skip manifests needs python3-yaml'
fi
