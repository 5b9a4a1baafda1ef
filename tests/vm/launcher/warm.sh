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

# run_until CONDITION ARG...: a run that is ended as soon as CONDITION is true. A boot takes long, and what comes after the
# choice of a guest is tested elsewhere. The run's processes hold its folder in warm locked.
run_until() {
	local condition=$1 pid
	shift
	setsid "$qcu" run --mem 256M --cpus 1 --verbose "$@" >/dev/null 2>err </dev/null &
	pid=$!
	until eval "$condition" || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	seen=$(eval "$condition" && echo seen)
	{ kill -- -$pid && wait $pid; } 2>/dev/null
	until (for f in "$QCU_CACHE"/warm/*/; do flock -n "$f" true || exit; done); do sleep 0.1; done
	sed -n 's/^qcu: logs: //p' err | xargs -r rm -rf
}

# went_on: has the last run gone on from a saved guest?
went_on() {
	grep -c 'qcu: going on from' err
}

# df_says MB: what the df in $dir/df says that the disk has left.
df_says() {
	mkdir -p "$dir/df"
	printf '#!/bin/sh\necho\necho x x x %s\n' "$1" >"$dir/df/df"
	chmod 755 "$dir/df/df"
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

run_until '[ -e "$QCU_CACHE"/warm/* ]' --no-device --no-module /bin/true
expect '' 'after the first run' "$seen$(ls -A "$QCU_CACHE"/warm/*)$(went_on)" seen0
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
run --sessions 3 /bin/sh ./numbers >second # without a device there are no sessions, so it is the same guest
expect '' 'went on' "$(went_on)" 1
expect '' 'lines' "$(wc -l <second)" 5
expect '' 'what is the same' "$(comm -12 <(tail -n +2 first | sort) <(tail -n +2 second | sort))" ''
case_done own-numbers

# ---- other options are another guest; --cold is none of them ----

run --cold /bin/cat local >/dev/null
expect '' '--cold' "$(went_on)" 0
mkdir "$dir/more"
echo more >"$dir/more/file"
# other WHAT ARG...: these options are new, so that the first run leaves an empty folder.
other() {
	local before
	before=$(ls "$QCU_CACHE/warm" | wc -l)
	run_until "[ \$(ls '$QCU_CACHE/warm' | wc -l) -gt $before ]" "${@:2}"
	expect '' "$1" "$seen$(ls "$QCU_CACHE/warm" | wc -l)$(went_on)" "seen$((before + 1))0"
}
volume=(-v "$dir/more:/more:ro")
other '-v' --no-device --no-module "${volume[@]}" /bin/true
other '--root' --no-device --no-module --root / /bin/true
other 'a device' --gpu soft /bin/true
other 'all' --gpu soft --root / "${volume[@]}" /bin/true
# The run and the process that saves for it must mean the same guest. There is little space, so only two are kept.
df_says 2500
mkdir -m 700 "$QCU_CACHE/warm/old" && : >"$QCU_CACHE/warm/old/state"
touch -d '2 days ago' "$QCU_CACHE/warm/old/state"
PATH=$dir/df:$PATH timeout -k 5 $((240 * slow)) "$qcu" run --mem 256M --cpus 1 --verbose --gpu soft --root / "${volume[@]}" \
	/bin/sh -c 'cat /more/file local; ls /dev/qcuda' >out 2>err </dev/null
expect '' 'all' "$(cat out)$(went_on)" $'more\nlocal\n/dev/qcuda1'
expect '' 'saved guests' "$(state | wc -w)$([ -e "$QCU_CACHE/warm/old" ] || [ ! -e "$good" ] || echo ours)" 2ours
sed -n 's/^qcu: logs: //p' err | xargs -r rm -rf
case_done other-options

# ---- what is damaged is not used, and made anew ----

# not_used WHAT: a run sees that the state may not be used, and another guest is being saved in its place.
not_used() {
	run_until '[ -e "$QCU_CACHE/warm/$key/new" ]' --no-device --no-module /bin/true
	expect '' "$1" "$seen$([ -e "$good" ] || [ -L "$good" ] || echo gone)$(went_on)" seengone0
}
find "$QCU_CACHE/warm" -mindepth 1 -maxdepth 1 ! -name "$key" -exec rm -r {} +
cp --sparse=always "$good" "$dir/good"
cp "$QCU_CACHE/warm/$key/khz" "$dir/khz"
chmod 666 "$good"
not_used 'others can write'
cp "$dir/khz" "$QCU_CACHE/warm/$key/" && ln -sf "$dir/good" "$good"
not_used 'a link'
cp "$dir/khz" "$QCU_CACHE/warm/$key/"
head -c 20000000 "$dir/good" >"$good" && chmod 600 "$good"
# The program runs, and gets its input.
out=$(seq 1000 | run /bin/cat | md5sum)
expect '' 'cut off: output' "$out" "$(seq 1000 | md5sum)"
expect '' 'cut off: what was said' "$(grep -c 'does not go on; booting one' err)" 1
expect '' 'cut off: what is left' "$(ls "$QCU_CACHE/warm/$key")" khz
case_done damaged

# ---- another machine's is made anew, and few are kept ----

for i in {1..24} 40; do
	mkdir -m 700 "$QCU_CACHE/warm/old$i" && : >"$QCU_CACHE/warm/old$i/state"
	touch -d "$i days ago" "$QCU_CACHE/warm/old$i/state"
done
cp --sparse=always "$dir/good" "$good" && chmod 600 "$good"
echo 100000 >"$QCU_CACHE/warm/$key/khz"
df_says 99999
expect '' 'another clock' "$(PATH=$dir/df:$PATH run /bin/echo ok)$(went_on)" ok1
[ "$(cat "$QCU_CACHE/warm/$key/khz")" != 100000 ] || expect '' khz 100000 'the one of this machine'
expect '' 'kept' "$(cd "$QCU_CACHE/warm" && ls | sort -V | tr '\n' ' ')" "$(printf '%s\n' "$key" old{1..23} | sort -V | tr '\n' ' ')"
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
