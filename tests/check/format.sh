#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every C file is exactly as clang-format formats it, with .clang-format.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/passed_before.sh
. tests/passed_before.sh
mapfile -t files < <(git ls-files '*.c' '*.h')
[ ${#files[@]} -gt 0 ] || { echo "no C files found"; exit 1; }
choose_new format "$(clang-format --version && git ls-files '*.clang-format' | xargs cat)" "${files[@]}"
[ ${#new[@]} -eq 0 ] || clang-format --dry-run --Werror "${new[@]}"
note_passed
echo "${#files[@]} files are formatted; ${#new[@]} of them were read"
