#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The fingerprints of the static runtimes are those of NVIDIA's archives.
set -euo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
rc=0
scripts/loader/fingerprints --check 2>"$tmp/why" || rc=$?
cat "$tmp/why"
exit $rc
