#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the launcher's help, sizes, hints, colours, and the progress that it shows on terminals.
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

# ---- sizes ----

has=$(awk '/^(MemTotal|SwapTotal):/ { kb += $2 } END { print int(kb / 1024) }' /proc/meminfo)
refused 2 "--mem 100T: this machine has only ${has}M of memory, swap included" run --mem 100T /bin/true
refused 2 "--mem $((has + 1))M: this machine has only ${has}M" run --mem "$((has + 1))M" /bin/true
refused 2 'must be a size such as 2G' run --mem 100P /bin/true
refused 2 'must be a size such as 2G' run --mem 9999999999T /bin/true
refused 2 '--vram needs a value' run --vram
refused 2 '--vram much: must be a size such as 8G' run --vram much /bin/true
refused 2 '--vram 0: must be at least 1K' run --vram 0 /bin/true
refused 2 '--vram 512: must be at least 1K' run --vram 512 /bin/true
refused 2 '--vram does not go with --no-device' run --vram 1G --no-device /bin/true
case_done bad-sizes

cp "$B/tests/guest/device_query" .
timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft --vram 192M --mem 512M ./device_query >out 2>err
expect '' 'exit code' $? 0
grep -q -E '(^|[^0-9])(192 MiB|201326592)' out || expect '' 'memory of the GPU' "$(cat out)" '192 MiB'
# More than any GPU has is no limit.
timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft --vram 100T --mem 512M ./device_query >out 2>err
expect '' 'exit code with 100T' $? 0
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

# ---- messages, versions, and output that cannot be written ----

# says CODE PREFIX COMMAND...: it ends with CODE, and each line of its stderr begins with PREFIX.
says() {
	local want=$1 prefix=$2
	shift 2
	"$@" >out 2>err </dev/null
	expect '' "exit code of ${*##*/}" $? "$want"
	[ -s err ] && ! grep -v -e "^$prefix: " err || expect '' "messages of ${*##*/}" "$(cat err)" "$prefix: ..."
}

touch empty
for c in run shell vm; do
	says 2 qcu "$qcu" "$c" --no-such-option
done
for c in check 'check --all' top doctor tune attach detach; do
	# shellcheck disable=SC2086
	says 2 "qcu: ${c% *}" "$qcu" $c --no-such-option
done
says 2 'qcu: check' "$qcu" check ./none
says 2 'qcu: check' "$qcu" check none
says 2 'qcu: check' "$qcu" check empty
says 2 'qcu: check' "$qcu" check --all ./none
says 2 'qcu: check' "$qcu" check --gpu cuba empty
says 2 'qcu: doctor' "$qcu" doctor --root ./none
says 2 'qcu: top' "$qcu" top --interval 0
says 2 'qcu: trace' "$qcu" trace --read ./none
says 2 'qcu: tune' "$qcu" tune --read ./none
case_done prefixes

programs=("$here/scripts/qcu-run" "$here/scripts/doctor" "$B/qcu-library/qcu-smi" "$B/qcu-library/qcu-check"
	"$B/qcu-device/qcu-device" "$qcu")
for p in "${programs[@]}" "$qcu doctor" "$qcu attach" "$qcu detach"; do
	# shellcheck disable=SC2086
	$p --version >out 2>err
	expect '' "exit code of $p --version" $? 0
	[ ! -s err ] && [ "$(wc -l <out)" -eq 1 ] && grep -q -E '^qcu(-[a-z]+)?[ ,]' out || expect '' "$p --version" "$(cat out err)" 'one line'
done
case_done versions

# unwritten PROGRAM OPTION...: says in one line that nothing can be written.
unwritten() {
	"$@" 2>err >/dev/full
	[ $? -ne 0 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -E '^(qcu|build-).*: the output cannot be written' err ||
		expect '' "${*##*/} on a full disk" "$(cat err)" 'one line, and an exit code'
}
for p in "${programs[@]}"; do
	unwritten "$p" --help
	unwritten "$p" --version
done
# This would build something instead, and tests/run would run the test that is named.
for p in guest debug-kernel; do
	unwritten "$here/scripts/build-$p" --help
done
"$here/tests/run" --list check/format >/dev/full 2>err && expect '' 'tests/run --list on a full disk' "$(cat err)" 'an exit code'
unwritten "$qcu" --help-all
for c in run shell vm check 'check --all' top trace doctor tune attach detach; do
	# shellcheck disable=SC2086
	unwritten "$qcu" $c --help
	# Whether Python writes at once or at its end.
	# shellcheck disable=SC2086
	unwritten env -u PYTHONUNBUFFERED "$qcu" $c --help
done
case_done full-disk

# qcu check finds what qcu run finds.
mkdir bin here
cp "$B/tests/guest/vector_add" bin/program
cp /bin/true here/program
cp /bin/true here/libplain.so
(cd here && PATH=$dir/bin:$PATH "$qcu" check --gpu soft program) >out 2>&1
expect '' 'exit code of check, on PATH' $? 0
(cd here && PATH=$dir/bin:$PATH "$qcu" check ./program) >out 2>&1
expect '' 'exit code of check, here' $? 3
(cd here && "$qcu" check libplain.so) >out 2>&1
expect '' 'exit code of check, of a library' $? 3
(cd here && PATH=$dir/bin:$PATH "$qcu" check --all program) >out 2>&1
expect '' 'exit code of check --all, here' $? 3
PATH=$dir/bin:$PATH "$qcu" check --all program >out 2>&1
expect '' 'exit code of check --all, on PATH' $? 0
case_done check-on-path

# ---- programs that cannot run here ----

# A program with an entry for the GPU of each pair KIND,ARCH: 1 is PTX, 2 machine code.
with_code() {
	local e
	{
		echo 'int cudaMallocHost(void **, unsigned long);'
		echo 'struct entry { unsigned short kind, version; unsigned int head; unsigned long bytes;'
		echo 'unsigned int packed, options, minor, arch; unsigned long name, flags, none, text; };'
		echo '__attribute__((section(".nv_fatbin"))) const struct { unsigned int magic; unsigned short version, head;'
		echo 'unsigned long bytes; struct entry e[EACH]; } fatbin = { 0xba55ed50, 1, 16, sizeof(struct entry[EACH]), {'
		for e in "$@"; do
			echo "{ .kind = ${e%,*}, .version = 0x101, .head = 64, .arch = ${e#*,} },"
		done
		echo '} }; int main(void) { void *p; return cudaMallocHost(&p, 1 + !fatbin.magic); }'
	} | sed "s/EACH/$#/g" >with.c
	gcc -o with with.c -L"$B/qcu-library" -l:libcudart.so.13 || exit 2
}
checked() {
	"$qcu" check --gpu soft with >out 2>err
	expect '' 'exit code of check' $? "$1"
	grep -q -F -e "$2" out || expect '' 'what check says' "$(cat out)" "$2"
}
refused 2 '--gpu metal: must be one of' check --gpu metal ./with
refused 2 '--gpu : must be one of' check --gpu
with_code 1,100
checked 1 'It does not run on this device, of compute capability 9.0, which is in software and runs PTX only: the code is for others.'
grep -q -x 'device code: compute_100 (PTX)' out || expect '' 'what there is' "$(cat out)" 'compute_100 (PTX)'
QCU_SOFT_SM=100 checked 0 'It runs with qCUDA.'
QCU_SOFT_SM=much checked 0 'It runs with qCUDA.'
with_code 2,80 2,90
checked 1 'It does not run on this device'
with_code 2,80 1,80
checked 0 'It runs with qCUDA.'
"$B/qcu-library/qcu-check" --gpu=90 with >out
expect '' 'exit code with a GPU' $? 0
with_code 2,80 1,100
"$B/qcu-library/qcu-check" --gpu=90 with >out
expect '' 'exit code without code for the GPU' $? 1
"$B/qcu-library/qcu-check" --gpu=86 with >out
expect '' 'exit code with machine code of the same family' $? 0
for g in '' 9 9000 90x 90-pt 090 -90 +90; do
	"$B/qcu-library/qcu-check" --gpu="$g" with >out 2>err
	expect '' "exit code of --gpu=$g" $? 2
done
case_done check-of-code

# ---- memory that the guest does not have ----

cat >eater.c <<'END'
#include <stdlib.h>
#include <string.h>

int main(void)
{
	for (;;) {
		char *p = malloc(8 << 20);

		if (p)
			memset(p, 1, 8 << 20);
	}
}
END
gcc -o eater eater.c || exit 2
cat >pinned.c <<'END'
#include <stdio.h>
#include <stdlib.h>

int cudaMallocHost(void **, unsigned long);

int main(int argc, char **argv)
{
	void *p;

	for (int i = 1; i < argc; i++)
		printf("%d\n", cudaMallocHost(&p, strtoul(argv[i], NULL, 10) << 20));
	return 0;
}
END
gcc -o pinned pinned.c -L"$B/qcu-library" -l:libcudart.so.13 || exit 2
timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft --mem 512M ./pinned 16 600 600 99999999 >out 2>err
expect '' 'what the program sees' "$(cat out)" "$(printf '%s\n' 0 2 2 2)"
expect '' 'lines of error' "$(wc -l <err)" 1
grep -q -E '^qcuda: no 600 MiB of pinned or managed memory: this machine has [1-9][0-9]* MiB of memory, and [1-9][0-9]* MiB of them are free; .*--mem' err ||
	expect '' 'error' "$(cat err)" 'no 600 MiB of pinned'
case_done pinned-memory

timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft --mem 256M --klog klog ./eater >out 2>err
expect '' 'exit code' $? 137
grep -q -x 'qcu: the guest had too little memory for the program; --mem gives it more' err ||
	expect '' 'error' "$(cat err)" 'too little memory'
case_done ended-for-memory

# Emulated, the guest is told how fast its clock's source is.
if ! grep -q -a tsc_early_khz klog; then
	echo '@skip clock no processor is emulated'
else
	khz=$("$B/scripts/qcu-tsc")
	mhz=$(grep -a -m1 -o 'tsc: Detected [0-9]*' klog | grep -o '[0-9]*')
	[ $((mhz - khz / 1000)) -ge -1 ] && [ $((mhz - khz / 1000)) -le 1 ] || expect '' 'MHz' "$mhz" $((khz / 1000))
	case_done clock
fi

# ---- terminals ----

if ! command -v python3 >/dev/null; then
	echo '@skip terminals there is no Python'
	exit $((failed > 0))
fi

# on_terminal TERM COMMAND...: sets $code, $said and $screen.
on_terminal() {
	local json
	json=$(TERM=$1 timeout -k 5 $((120 * slow)) python3 "$here/tests/vm/launcher/screen.py" "${@:2}")
	code=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["code"])' "$json")
	said=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["said"])' "$json")
	screen=$(python3 -c 'import json, sys; print("\n".join(json.loads(sys.argv[1])["screen"]))' "$json")
}
colours() {
	[[ $said == *$'\e'* ]] && echo coloured || echo plain
}

# Something is wrong in an empty root, which is said in red.
mkdir empty-root
on_terminal xterm "$here/scripts/doctor" --host --root empty-root
expect '' 'doctor on a terminal' "$(colours)" coloured
on_terminal dumb "$here/scripts/doctor" --host --root empty-root
expect '' 'doctor with TERM=dumb' "$(colours)" plain
on_terminal xterm env NO_COLOR=1 "$here/scripts/doctor" --host --root empty-root
expect '' 'doctor with NO_COLOR' "$(colours)" plain
on_terminal xterm env NO_COLOR= "$here/scripts/doctor" --host --root empty-root
expect '' 'doctor with an empty NO_COLOR' "$(colours)" coloured
case_done colours

# QEMU waits, so the boot takes long.
stopped=("$qcu" run --no-device --no-module --mem 512M --qemu-arg -S --timeout 4 /bin/true)
on_terminal xterm "${stopped[@]}"
expect '' 'exit code' "$code" 124
[[ $said == *'qcu: starting the guest ('[2-9]* ]] || expect '' 'progress' "$said" 'starting the guest'
expect '' 'the screen in the end' "$screen" "qcu: ended after $((4 * slow)) s"
on_terminal dumb "${stopped[@]}"
expect '' 'with TERM=dumb' "$screen" "qcu: ended after $((4 * slow)) s"
expect '' 'with TERM=dumb' "$(colours)" plain
"${stopped[@]}" >out 2>err
expect '' 'without a terminal' "$(cat out err)" "qcu: ended after $((4 * slow)) s"
case_done progress-of-a-boot

printf '#!/bin/sh\nprintf "no newline "; echo out; echo err >&2; exit 5\n' >prog && chmod 755 prog
on_terminal xterm "$qcu" run --no-device --no-module --mem 512M ./prog
expect '' 'exit code' "$code" 5
# The two streams go separate ways, so the line of errors may come anywhere between two writes of the other.
printed=$(tr -d '\r\n' <<<"$said")
[[ $printed == *err* && ${printed/err/} == *'no newline out' && $screen != *starting* ]] ||
	expect '' 'the screen in the end' "$screen" 'no newline out, err'
case_done progress-and-output

# What scripts build.
cat >script <<'END'
. "$1/scripts/lib.sh"
hold() {
	echo "much output"
	sleep 4
	return "$1"
}
note before
long building hold 0
note between
long building hold 1 || note failed
progress forgotten
sleep 4
END
on_terminal xterm bash script "$here"
[[ $said == *'bash: building ('[2-9]* || $said == *'script: building ('[2-9]* ]] || expect '' 'progress' "$said" building
[[ $said == *': forgotten ('[2-9]* ]] || expect '' 'progress' "$said" forgotten
expect '' 'the screen in the end' "$(sed 's/^[a-z]*: //' <<<"$screen")" "$(printf '%s\n' before between 'much output' failed)"
on_terminal dumb bash script "$here"
expect '' 'with TERM=dumb' "$(sed 's/^[a-z]*: //' <<<"$screen")" \
	"$(printf '%s\n' before 'much output' between 'much output' failed)"
case_done progress-of-a-build

[ "$failed" -eq 0 ]
