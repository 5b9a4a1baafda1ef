#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The driver for Kubernetes and the plugin of KubeVirt, without a cluster: the kubelet, systemd and the API are played. At
# night there are 1000 random sequences and more kills.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

here=tests/vm/kubernetes
python=/usr/bin/python3 # Debian's, for Debian's packages
export DEVICE=$PWD/$B/qcu-device/qcu-device QCU_SLOW=$slow
sequences=150 KILLS=2
[ -z "${QCU_NIGHTLY:-}" ] || sequences=1000 KILLS=30
export KILLS

if ! why=$($python -c 'import grpc, google.protobuf' 2>&1); then
	echo "@skip kubernetes needs python3-grpcio and python3-protobuf (${why##*$'\n'})"
	exit 0
fi

# ---- the driver ----

expect_host messages 0 '^1000 messages agree, [0-9]+ of as many' $python $here/wire_fuzz.py 1 1000
# Devices' sockets have long names.
short=$(mktemp -d /tmp/k.XXXXXX)
trap 'rm -rf "$tmp" "$short"' EXIT
$python $here/kubelet.py "$short" wrong-node hostile claims bound killed slots
host_limit=600 expect_host sequences 0 "^$sequences sequences of [0-9]+ turns with [0-9]+ faults: no claim lost, no device leaked" \
	$python $here/sequences.py "$short" 0 $sequences
# A driver with a mistake is found.
expect_host sequences-find-a-leak 1 'left:|leaked:' $python $here/sequences.py "$short" 180 1000 --broken

# ---- KubeVirt's plugin ----

plugin=scripts/kubevirt/plugin xml=tests/vm/domains/kubevirt.xml
call="$python $here/hook_call.py $short/hook.sock"
echo '{"metadata": {"annotations": {"qcuda.example/device": "plugin", "qcuda.example/sessions": "9"}}}' >"$tmp/vmi"
echo '{"metadata": {"annotations": {"qcuda.example/sessions": "999"}}}' >"$tmp/wrong"
printf '\xff\xfe' >"$tmp/bytes"
expect_host plugin-long-path 1 'can have 107 bytes' $python $plugin --socket "$short/$(printf '%0100d' 0)"
expect_host plugin-no-folder 1 '^qcuda: .*hook.sock: cannot listen there' $python $plugin --socket "$short/none/hook.sock"
$python $plugin --socket "$short/hook.sock" 2>"$tmp/plugin.log" &
pid=$!
until [ -S "$short/hook.sock" ] || ! kill -0 $pid; do sleep 0.05; done
expect_host plugin-other-type 1 'FAILED_PRECONDITION: qcuda: the domain is of the type' $call vmware "$tmp/vmi" $xml
expect_host plugin-no-vmi 1 'FAILED_PRECONDITION: .*no description of a virtual machine' $call libvirt $xml $xml
expect_host plugin-no-xml 1 'FAILED_PRECONDITION: qcuda: this is no XML' $call libvirt "$tmp/vmi" "$tmp/vmi"
expect_host plugin-no-text 1 'FAILED_PRECONDITION: ' $call libvirt "$tmp/vmi" "$tmp/bytes"
expect_host plugin-wrong-annotation 1 'FAILED_PRECONDITION: .*number from 1 to 63' $call libvirt "$tmp/wrong" $xml
expect_host plugin 0 "value='virtio-qcuda-pci,chardev=qcuda,sessions=9'" $call libvirt "$tmp/vmi" $xml
expect_host plugin-says-what-the-hook-says 0 '^same$' bash -c "cmp <($call libvirt $tmp/vmi $xml) \
	<(scripts/kubevirt/onDefineDomain --vmi \"\$(<$tmp/vmi)\" --domain \"\$(<$xml)\") && echo same"
$call libvirt "$tmp/vmi" $xml >"$tmp/once.xml"
expect_host plugin-twice 0 '^same$' bash -c "cmp <($call libvirt $tmp/vmi $tmp/once.xml) $tmp/once.xml && echo same"
kill $pid
wait $pid
expect_host plugin-ends 0 '^0$' bash -c "ls $short | grep -c hook.sock || true"

# ---- the manifests ----

# The pods that the policy makes are checked as manifests, too.
mkdir "$tmp/pods"
if python3 -c 'import yaml, celpy' 2>/dev/null; then
	expect_host expressions 0 '^all expressions say what they should' python3 $here/policy.py "$tmp/pods"
else
	echo '@skip expressions needs PyYAML and the package cel-python of PyPI'
fi
if python3 -c 'import yaml, kubernetes.client.models as m; m.V1ResourceSlice' 2>/dev/null; then
	expect_host manifests 0 '^1[02] objects have the right fields' \
		python3 $here/manifests.py scripts/kubernetes/*.yaml scripts/kubevirt/*.yaml $(find "$tmp/pods" -name '*.yaml')
else
	echo '@skip manifests needs PyYAML and the package kubernetes of PyPI, 34 or later'
fi
