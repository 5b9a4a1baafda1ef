#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/check/layers.sh finds what breaks the layers, and names it. This test makes a small tree, in
# which it breaks them in each way.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/tests/check "$tree"/qcu-x/{low,mid/deep,high}
cp tests/check/layers.sh "$tree/tests/check/"
cd "$tree"
bad=0

# c FILE LINE...: writes a C file.
c() {
	local file=qcu-x/$1
	shift
	printf '%s\n' "$@" >"$file"
}

# plan LINE...: writes layers.txt.
plan() {
	printf '%s\n' "$@" >tests/check/layers.txt
}

# good_tree: low < mid/deep < high, nothing broken.
good_tree() {
	rm -rf build
	find qcu-x -type f -delete
	c low/low.h 'int low(void);'
	c low/low.c '#include "qcu-x/low/low.h"' 'int low(void) { return 1; }'
	c low/other.c '#include "low.h"' 'int other(void) { return low(); }'
	c mid/deep/mid.h 'int mid(void);' 'extern int mid_data;'
	c mid/deep/mid.c '#include "qcu-x/low/low.h"' 'int mid_data;' 'int mid(void) { return low(); }'
	c high/high.c '#include "qcu-x/mid/deep/mid.h"' 'int high(void) { return mid(); }'
	plan '# a comment' 'qcu-x: low mid/deep high'
}

build() {
	local f
	while read -r f; do
		mkdir -p "build/${f%/*}"
		gcc -I. -c "$f" -o "build/${f%.c}.o" 2>/dev/null || [ "$f" = qcu-x/low/third.c ]
	done < <(find qcu-x -name '*.c')
}

# says WHAT LINE: the check fails, and LINE is the first line that it says. An empty LINE: it passes.
says() {
	local rc=0 said
	build
	said=$(B=build tests/check/layers.sh) || rc=$?
	if [ -z "$2" ]; then
		[ $rc -eq 0 ] || { echo "$1: the check fails: $said"; bad=1; }
	elif [ $rc -eq 0 ] || [ "${said%%$'\n'*}" != "$2" ]; then
		printf '%s: the check says (%d):\n%s\nnot:\n%s\n' "$1" $rc "$said" "$2"
		bad=1
	else
		echo "$1: $said"
	fi
	good_tree
}

good_tree
says 'nothing broken' ''

c low/low.c '#include "qcu-x/mid/deep/mid.h"' 'int low(void) { return 1; }'
says 'an include upward' 'qcu-x/low/low.c includes qcu-x/mid/deep/mid.h, a layer above'

c low/low.h '#include "../mid/deep/mid.h"' 'int low(void);'
says 'an include upward by a relative name, of a header' \
	'qcu-x/low/low.h includes qcu-x/mid/deep/mid.h, a layer above'

echo 'int scratch(void);' >tests/scratch.h
c low/low.c '#include "tests/scratch.h"' 'int low(void) { return 1; }'
says 'an include of another part' 'qcu-x/low/low.c includes tests/scratch.h, which is not of its part'

c low/other.c 'int mid(void);' 'int other(void) { return mid(); }'
says 'a call upward' 'qcu-x/low/other.c uses mid() of qcu-x/mid/deep/mid.c, a layer above'

c low/other.c 'extern int mid_data;' 'int other(void) { return mid_data; }'
says 'data used upward' 'qcu-x/low/other.c uses mid_data of qcu-x/mid/deep/mid.c, a layer above'

c low/other.c 'int __attribute__((weak)) mid(void);' 'int other(void) { return mid ? mid() : 0; }'
says 'a weak call upward' 'qcu-x/low/other.c uses mid() of qcu-x/mid/deep/mid.c, a layer above'

c low/other.c 'int mid(void);' 'int other(void) { return mid(); }'
plan 'qcu-x: low mid/deep high' 'anyone: mid # the linker gives it to another'
says 'a call upward that the plan allows' ''

c low/low.c 'int third(void);' 'int low(void) { return third(); }'
c low/third.c 'int other(void);' 'int third(void) { return other(); }'
says 'a circle' 'qcu-x/low/low.c qcu-x/low/other.c qcu-x/low/third.c use one another:'

c low/low.c 'int other(void);' 'int low(void) { return other(); }'
plan 'qcu-x: low mid/deep high' 'circle: qcu-x/low/low.c qcu-x/low/other.c # one is no use without the other'
says 'a circle that the plan allows' ''

c low/low.c 'int third(void);' 'int low(void) { return third(); }'
c low/third.c 'int other(void);' 'int third(void) { return other(); }'
plan 'qcu-x: low mid/deep high' 'circle: qcu-x/low/low.c qcu-x/low/other.c # one is no use without the other'
says 'a circle larger than the plan allows' 'qcu-x/low/low.c qcu-x/low/other.c qcu-x/low/third.c use one another:'

plan 'qcu-x: low mid/deep high' 'circle: qcu-x/low/low.c qcu-x/low/other.c # they were one once'
says 'an exemption for a circle that is gone' \
	'tests/check/layers.txt: nothing needs the line "circle: qcu-x/low/low.c qcu-x/low/other.c" any more'

plan 'qcu-x: low mid/deep high' 'anyone: nobody # it was there once'
says 'an exemption for a symbol that is gone' \
	'tests/check/layers.txt: nothing needs the line "anyone: nobody" any more'

plan 'qcu-x: low mid/deep high' 'anyone: mid'
c low/other.c 'int mid(void);' 'int other(void) { return mid(); }'
says 'an exemption without a reason' 'tests/check/layers.txt: a line "anyone:" does not say why: anyone: mid'

plan 'qcu-x: low high'
says 'a folder that the plan does not name' \
	'qcu-x/mid/deep/mid.c lies in a folder that tests/check/layers.txt does not name'

c flat.h 'int flat(void);'
says 'a file outside of the folders' 'qcu-x/flat.h lies in a folder that tests/check/layers.txt does not name'

plan 'qcu-x: low mid/deep middle high'
says 'a folder without files' 'tests/check/layers.txt: qcu-x/middle has no files'

c low/third.c '#error "not compiled"'
says 'a file that is not compiled' 'qcu-x/low/third.c has no object file in build; run make'

c low/third.c '#error "not compiled"'
plan 'qcu-x: low mid/deep high' 'elsewhere: qcu-x/low/third.c # another build compiles it'
says 'a file that another build compiles' ''

plan '# no part'
says 'a plan without a part' 'tests/check/layers.txt: nothing was checked'
exit $bad
