#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every link in the documents leads to a file, every file that a document names exists, docs/README.md lists
# all documents, and docs/architecture.md all folders. What can be counted in a document is counted here, and
# README.md's table is what perf/figures prints.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0
say() {
	echo "$*"
	bad=1
}

while read -r doc; do
	dir=$(dirname "$doc")
	while read -r link; do
		[ -e "$dir/${link%%#*}" ] || say "$doc: the link $link leads nowhere"
	done < <(grep -o '](\([^)#]*\)' "$doc" | sed 's/^](//' | grep -v '^https\?:')
	while read -r path; do
		compgen -G "$path" >/dev/null || [ -e "$path.c" ] || say "$doc: there is no $path"
	done < <(grep -o '`[a-zA-Z./_*-]*`' "$doc" | tr -d '`' |
		grep -E '^(qcu-library|qcu-driver|qcu-device|include|scripts|tests|perf|docs)/' | grep -v NAME | sort -u)
done < <(git ls-files '*.md')

for doc in docs/*.md docs/*/*.md; do
	name=${doc#docs/}
	[ "$name" = README.md ] || grep -q "]($name)" docs/README.md || say "docs/README.md does not list $name"
done

# The architecture names each folder of the parts. The folders of the software GPU have names without soft/.
while read -r folder; do
	case $folder in
	.) continue ;;
	soft/*) folder=${folder#soft/} ;;
	*) folder=${folder%%/*} ;;
	esac
	grep -q "\`\(qcu-device/\)\?$folder/\`" docs/architecture.md || say "docs/architecture.md does not name $folder/"
done < <(sed -n 's/^qcu-[^:]*: *//p' tests/check/layers.txt | tr ' ' '\n')

# File names in the pictures, which have no folder. A name such as _x.c belongs to the name before it,
# and is not checked.
files=$(git ls-files)
while read -r name; do
	grep -q "/$name\$" <<<"$files" || say "docs/pictures: there is no $name"
done < <(grep -h 'monospace' docs/pictures/*.svg | sed 's/<[^>]*>//g' | tr ', ' '\n\n' | grep -E '^[a-z][a-z_0-9]*\.[ch]$' | sort -u)

diff -u <(sed -n '/^<!-- Made by perf.figures/,/^<!-- end/p' README.md) <(perf/figures --table) ||
	say "README.md has another table than perf/figures prints"

# holds FILE TEXT: one of FILE's lines has TEXT.
holds() {
	grep -q -F -e "$2" "$1" || say "$1 does not say \"$2\""
}

read -r sent answered all < <(sed -n 's/^\([0-9]*\) forwarded, \([0-9]*\) answered.*, \([0-9]*\) in all.*/\1 \2 \3/p' docs/API.md)
holds docs/supported.md "$((sent + answered)) of the $all functions of CUDA 13.5"
read -r some all < <(sed -n 's/^\([0-9]*\) of \([0-9]*\) functions work, .*/\1 \2/p' docs/programs/cuda-api.md)
holds docs/supported.md "$some of its $all functions"
converted=$(grep -c ' converted$' qcu-library/cuda12/cudart12.syms)
all=$(grep -vc '^#' qcu-library/cuda12/cudart12.syms)
holds docs/programs/cuda12.md "$all functions"
holds docs/programs/cuda12.md "$((all - converted)) functions are one jump"
holds docs/programs/cuda12.md "$converted functions are conversions"
samples() {
	awk -F'|' -v column="$1" '/^\| sample /,/^$/ { n += $column == " works " } END { print n }' docs/programs/list.md
}
holds docs/programs/list.md "$(samples 3) on the software GPU and $(samples 4) on the real one"
holds README.md "$(samples 4) of NVIDIA's samples"

# Every option of the device is named where programs are run, and every file of a result in its README.
options=$(sed -n 's/^\t\t{"\([a-z-]*\)", [a-z]*_argument, .*/\1/p' qcu-device/host/main.c | grep -v -x -e help -e version)
[ "$(wc -w <<<"$options")" -gt 20 ] || say "hardly any options of qcu-device found"
for option in $options; do
	holds docs/vm/running.md "\`--$option\`"
done
while read -r file; do
	name=$(basename "$file")
	grep -q -F -e "$name" -e "*.${name##*.}" "$(dirname "$file")/README.md" || say "$(dirname "$file")/README.md does not name $name"
done < <(git ls-files perf/results | grep -v '/README.md$')
exit $bad
