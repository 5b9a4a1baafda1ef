#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests runs that go on from a saved guest (docs/vm/warm.md): what is damaged, foreign or does not fit is not used, and each
# guest has a clock and random numbers of its own.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/here" "$dir/cache"
cd "$dir/here" || exit 2
# A cache of its own, with all that is there but saved guests.
for f in "${QCU_CACHE:-$HOME/.cache/qcuda}"/*; do
	[ "${f##*/}" = warm ] || ln -s "$f" "$dir/cache/"
done
export QCU_CACHE=$dir/cache

# run ARG...: a run whose messages are in the file err. Its input is what is typed.
run() {
	timeout -k 5 $((240 * slow)) "$qcu" run --no-device --no-module --mem 256M --cpus 1 --verbose "$@" 2>err
	code=$?
	sed -n 's/^qcu: logs: //p' err | xargs -r rm -rf
	return $code
}

# with_device ARG...: the same with a device.
with_device() {
	timeout -k 5 $((240 * slow)) "$qcu" shell --mem 256M --verbose "$@" 2>err </dev/null
	sed -n 's/^qcu: logs: //p' err | xargs -r rm -rf
}

# went_on: has the last run gone on from a saved guest?
went_on() {
	grep -c 'qcu: going on from' err
}

state() {
	echo "$QCU_CACHE"/warm/*/state
}

# ---- where nothing can be saved, a guest boots ----

grep -q -w -E 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ] && {
	echo '@skip warm guests under KVM boot each time'
	exit
}
mkdir -m 777 "$QCU_CACHE/warm"
expect '' 'output' "$(run /bin/echo a)" a
expect '' 'in a folder that all can write to' "$(cat "$dir/cache/warm"/*/state 2>&1 | grep -c 'No such file')$(went_on)" 10
rm -rf "$QCU_CACHE/warm"
case_done elsewhere

# ---- the second run saves a guest, two at once save one, and later ones go on ----

run /bin/true
expect '' 'after the first run' "$(ls -A "$QCU_CACHE"/warm/*)$(went_on)" 0
(run /bin/echo one >"$dir/one" && cp err "$dir/err.one") &
mkdir "$dir/other"
(cd "$dir/other" && run /bin/echo two >"$dir/two") &
wait
expect '' 'the first' "$(cat "$dir/one")" one
expect '' 'the second' "$(cat "$dir/two")" two
expect '' 'saved guests' "$(state | wc -w)" 1
expect '' 'whose file it is' "$(stat -c '%a %u' "$(state)")" "600 $EUID"
expect '' 'left over' "$(ls "${QCU_CACHE}"/warm/*/)" $'khz\nstate'
good=$(state) key=$(basename "$(dirname "$(state)")")
case_done two-at-once

# ---- input, output, folder, arguments, exit code ----

printf '%s\n' 'n=0; while read -r line; do n=$((n + 1)); done; echo "$n lines, $line, $PWD, $1"; cat local; exit 7' >script
echo local >local
out=$(seq 20000 | { cat; printf end; } | run --with /bin/cat /bin/sh ./script 'a  b')
expect '' 'exit code' $? 7
expect '' 'output' "$out" "20000 lines, end, $PWD, a  b"$'\nlocal'
expect '' 'went on' "$(went_on)" 1
case_done input

# ---- clock and random numbers ----

# Each guest says its time and what its kernel has made of its random numbers.
printf '%s\n' 'date +%s' 'cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid' 'head -c 16 /dev/urandom | md5sum' \
	'sed -n "s/ .*\[stack\]//p" /proc/self/maps' >numbers
before=$(date +%s)
touch -d '10 days ago' "$(state)"
run /bin/sh ./numbers >first
now=$(date +%s)
expect '' 'went on' "$(went_on)" 1
at=$(head -n 1 first)
[ "$at" -ge $((before - 1)) ] && [ "$at" -le $((now + 1)) ] || expect '' 'clock' "$at" "$before to $now"
run /bin/sh ./numbers >second
expect '' 'went on' "$(went_on)" 1
expect '' 'lines' "$(wc -l <second)" 5
expect '' 'what is the same' "$(comm -12 <(tail -n +2 first | sort) <(tail -n +2 second | sort))" ''
case_done own-numbers

# ---- other options are another guest; --cold is none of them ----

run --cold /bin/cat local >/dev/null
expect '' '--cold' "$(went_on)" 0
run --sessions 3 /bin/cat local >out
expect '' 'no device, so no sessions' "$(cat out)$(state | wc -w)$(went_on)" local11
# With folders, another root and a device, the run and the process that saves for it must mean the same guest.
mkdir "$dir/more"
echo more >"$dir/more/file"
for i in 1 2; do
	run -v "$dir/more:/more:ro" /bin/cat /more/file >out
	expect '' '-v' "$(cat out)$(went_on)" "more$((i - 1))"
	run --root / /bin/cat "$dir/here/local" >out
	expect '' '--root' "$(cat out)$(went_on)" "local$((i - 1))"
	with_device -c 'ls /dev/qcuda' >out
	expect '' 'a device' "$(cat out)$(went_on)" "/dev/qcuda$((i - 1))"
	expect '' 'saved guests' "$(state | wc -w)" $((i * 3 - 2))
done
case_done other-options

# ---- what is damaged is not used, and made anew ----

# damage NAME: the state was damaged. The program runs, gets its input, and the next run has a good state again.
damage() {
	out=$(seq 1000 | run /bin/cat | md5sum)
	expect '' "$1: output" "$out" "$(seq 1000 | md5sum)"
	expect '' "$1: what was said" "$(grep -c 'does not go on; booting one' err)" 1
	expect '' "$1: what is left" "$(ls "$QCU_CACHE/warm/$key")" khz
}
find "$QCU_CACHE/warm" -mindepth 1 -maxdepth 1 ! -name "$key" -exec rm -r {} +
cp --sparse=always "$good" "$dir/good"
echo 'no guest' >"$good"
damage text
head -c 20000000 "$dir/good" >"$good" && chmod 600 "$good"
damage 'cut off'
cp --sparse=always "$dir/good" "$good" && chmod 666 "$good"
expect '' 'others can write' "$(run /bin/echo ok)$(stat -c %a "$good")$(went_on)" ok6001
cp --sparse=always "$dir/good" "$dir/elsewhere" && ln -sf "$dir/elsewhere" "$good"
expect '' 'a link' "$(run /bin/echo ok)$(test -L "$good" || echo none)$(went_on)" oknone1
case_done damaged

# ---- another machine's is made anew, and few are kept ----

for i in 1 2 3 4 5 6 7 8 9; do
	mkdir -m 700 "$QCU_CACHE/warm/old$i" && : >"$QCU_CACHE/warm/old$i/state"
	touch -d "$i days ago" "$QCU_CACHE/warm/old$i/state"
done
echo 100000 >"$QCU_CACHE/warm/$key/khz"
expect '' 'another clock' "$(run /bin/echo ok)$(went_on)" ok1
[ "$(cat "$QCU_CACHE/warm/$key/khz")" != 100000 ] || expect '' khz 100000 'the one of this machine'
expect '' 'kept' "$(cd "$QCU_CACHE/warm" && echo *)" "$key old1 old2 old3 old4 old5 old6 old7"
case_done bounded

# ---- what is removed meanwhile ----

# Another run may remove the file at any moment: here, when it has just been chosen.
mkdir "$dir/bin"
printf '#!/bin/sh\nrm -f "$2"\n' >"$dir/bin/touch"
chmod 755 "$dir/bin/touch"
out=$(seq 1000 | PATH=$dir/bin:$PATH run /bin/cat | md5sum)
expect '' 'gone: output' "$out" "$(seq 1000 | md5sum)"
expect '' 'gone: what was said' "$(grep -c 'does not go on; booting one' err)" 1
case_done gone

exit $((failed > 0))
