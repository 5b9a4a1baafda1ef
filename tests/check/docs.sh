#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every link in the documents leads to a file, every file that a document names exists, docs/README.md lists
# all documents, and docs/architecture.md all folders.
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
exit $bad
