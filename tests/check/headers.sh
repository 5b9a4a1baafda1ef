#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Each header of include/ compiles alone, as C11 and as C++11, with gcc and clang, without a warning.
# The build of the driver checks the same for the kernel.
set -euo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for h in include/*.h; do
	for ext in c cc; do
		printf '#include "%s"\nint main(void) { return 0; }\n' "$(basename "$h")" >"$tmp/t.$ext"
	done
	for cc in gcc clang; do
		"$cc" -std=c11 -Wall -Wextra -Werror -Iinclude -c "$tmp/t.c" -o "$tmp/t.o"
	done
	for cxx in g++ clang++; do
		"$cxx" -std=c++11 -Wall -Wextra -Werror -Iinclude -c "$tmp/t.cc" -o "$tmp/t.o"
	done
	echo "$h: C and C++, gcc and clang"
done
