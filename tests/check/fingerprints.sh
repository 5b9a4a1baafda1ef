#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The fingerprints of the static runtimes are those of NVIDIA's archives.
set -euo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
rc=0
# The older ones last: if only these cannot be fetched, the others have been compared.
for which in '' --older; do
	scripts/loader/fingerprints --check $which 2>"$tmp/why" || rc=$?
	cat "$tmp/why"
	[ $rc = 0 ] || exit $rc
done
