#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the launcher's help and sizes.
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
B=${B:-build}
[[ $B == /* ]] || B=$here/$B
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2

# refused TEXT ARG...: qcu ARG... must end with exit code 2 and print TEXT on standard error only.
refused() {
	local text=$1 out
	shift
	out=$("$qcu" "$@" 2>err)
	expect '' "exit code of $*" $? 2
	expect '' "output of $*" "$out" ''
	grep -q -F -- "$text" err || expect '' "error of $*" "$(cat err)" "$text"
}

# ---- sizes ----

has=$(awk '/^(MemTotal|SwapTotal):/ { kb += $2 } END { print int(kb / 1024) }' /proc/meminfo)
refused "--mem 100T: this machine has only ${has}M of memory, swap included" run --mem 100T /bin/true
refused "--mem $((has + 1))M: this machine has only ${has}M" run --mem "$((has + 1))M" /bin/true
refused 'must be a size such as 2G' run --mem 100P /bin/true
refused 'must be a size such as 2G' run --mem 9999999999T /bin/true
refused '--vram needs a value' run --vram
refused '--vram much: must be a size such as 8G' run --vram much /bin/true
refused '--vram 0: must be at least 1K' run --vram 0 /bin/true
refused '--vram 512: must be at least 1K' run --vram 512 /bin/true
refused '--vram does not go with --no-device' run --vram 1G --no-device /bin/true
case_done bad-sizes

cp "$B/tests/guest/device_query" .
timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft --vram 192M --mem 512M ./device_query >out 2>err
expect '' 'exit code' $? 0
grep -q -E '(^|[^0-9])(192 MiB|201326592)' out || expect '' 'memory of the GPU' "$(cat out)" '192 MiB'
case_done vram

# ---- help ----

# Each option that the launcher knows stands in --help-all, and a command's own help fits on a screen and begins with
# the usual ones.
known=$(sed -n '/^set_option() {/,/needs a value/p; /^parse() {/,/^}/p' "$here/scripts/qcu" | grep -o -E -e '--[a-z-]+' |
	grep -v -x -e -- -e --help | sort -u)
[ "$(wc -w <<<"$known")" -gt 30 ] || expect '' 'options that are known' "$known" 'more'
"$qcu" --help-all >all
expect '' 'exit code of --help-all' $? 0
for o in $known; do
	grep -q -w -F -e "$o" all || expect '' "--help-all" 'without' "$o"
done
for c in run shell vm check; do
	"$qcu" "$c" --help >out
	expect '' "exit code of $c --help" $? 0
	[ "$(wc -l <out)" -le 24 ] || expect '' "lines of $c --help" "$(wc -l <out)" 'at most 24'
	grep -q "^usage: scripts/qcu $c" out || expect '' "$c --help" "$(cat out)" 'usage: ...'
	[ "$(wc -L <out)" -le 100 ] || expect '' "widest line of $c --help" "$(wc -L <out)" 'at most 100'
	"$qcu" "$c" --help-all >out 2>&1
	expect '' "exit code of $c --help-all" $? 0
done
for o in --root -v --share --mem --vram --gpu --help-all; do
	"$qcu" run --help | grep -q -e "^  $o " || expect '' 'run --help' 'without' "$o"
done
case_done help

[ "$failed" -eq 0 ]
