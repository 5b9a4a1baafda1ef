#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# .clang-format is law: every C file is exactly what clang-format makes of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files '*.c' '*.h')
[ ${#files[@]} -gt 0 ] || { echo "no C files found"; exit 1; }
clang-format --dry-run --Werror "${files[@]}"
echo "${#files[@]} files are formatted"
