#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The driver for Kubernetes, without a cluster: the kubelet, systemd and the API are played. At
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

# ---- the manifests ----

if python3 -c 'import yaml, kubernetes.client.models as m; m.V1ResourceSlice' 2>/dev/null; then
	expect_host manifests 0 '^8 objects have the right fields' python3 $here/manifests.py scripts/kubernetes/*.yaml
else
	echo '@skip manifests needs PyYAML and the package kubernetes of PyPI, 34 or later'
fi
