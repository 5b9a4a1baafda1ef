#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every C file is exactly as clang-format formats it, with .clang-format.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files '*.c' '*.h')
[ ${#files[@]} -gt 0 ] || { echo "no C files found"; exit 1; }
clang-format --dry-run --Werror "${files[@]}"
echo "${#files[@]} files are formatted"
