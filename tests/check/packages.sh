#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every source is compiled after the packages have been installed: each such rule of make depends on
# `deps`, or on a library that depends on `deps`.
set -euo pipefail
cd "$(dirname "$0")/../.."
none=$(mktemp -d)
trap 'rm -rf "$none"' EXIT
make -npq B="$none" all tests-build perf fuzz-build 2>/dev/null >"$none/rules" || [ $? -eq 1 ]
awk '
	/^[^#\t ].*:/ && !/:=|=/ { head = $0 }
	/^\t.*\$\((CC|CXX|NVCC)\)/ && head ~ /\.(c|cu|cc)( |$)/ {
		n++
		if (head !~ /\|.*deps|libcudart\.so/)
			bad[head] = 1
	}
	END {
		for (h in bad)
			print "not after the packages: " h
		if (n < 20)
			print "only " n " rules found"
		exit n < 20 || length(bad) > 0
	}' "$none/rules"
