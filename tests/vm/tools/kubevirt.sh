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
	expect_host manifests 0 '^VirtualMachine VirtualMachine DaemonSet Plugin MutatingAdmissionPolicy MutatingAdmissionPolicyBinding$' python3 -c "
import json, re, yaml
docs = [d for n in ('kubevirt/vm', 'kubevirt/vm-sidecar', 'kubernetes/device-plugin', 'kubevirt/plugin')
        for d in yaml.safe_load_all(open(f'scripts/{n}.yaml'))]
vm, old, slots, plugin, policy, binding = docs
notes = [d['spec']['template']['metadata']['annotations'] for d in (vm, old)]
assert isinstance(json.loads(notes[1]['hooks.kubevirt.io/hookSidecars']), list)
known = re.findall('qcuda.example/([a-z]+)', open('docs/vm/kubevirt.md').read())
assert all(k.split('/')[1] in known for n in notes for k in n if k.startswith('qcuda')), notes
resource = old['spec']['template']['spec']['domain']['resources']['limits']
driver = open('scripts/kubernetes/driver').read()
assert all(f'RESOURCE = \"{r}\"' in driver for r in resource), resource
# The plugin's socket, and its file in the image.
socket = plugin['spec']['domainHooks'][0]['sidecar']['socketPath']
assert f'default=\"{socket}\"' in open('scripts/kubevirt/plugin').read(), socket
text = policy['spec']['mutations'][0]['jsonPatch']['expression']
assert socket.rpartition('/')[0] + '/' in text and '/usr/libexec/qcuda/plugin' in text, text
assert all(text.count(a) == text.count(b) for a, b in ('()', '[]', '{}')), text
assert plugin['spec']['mutatingAdmissionPolicies'][0]['name'] == policy['metadata']['name'] == binding['spec']['policyName']
print(*(d['kind'] for d in docs))"
else
	echo '@skip manifests needs python3-yaml'
fi
