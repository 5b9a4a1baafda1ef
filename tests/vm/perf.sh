#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs every benchmark with small sizes on the software GPU: with the loopback library and in one VM.
# Before that, tests the messages for wrong arguments, and that no incomplete result file is left.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

bench=$B/perf
over=(env LD_LIBRARY_PATH="$PWD/$B/loopback")

expect_host unknown-flag 2 'bandwidth: unknown flag --fast' "${over[@]}" "$bench/bandwidth" --fast
expect_host no-value 2 '--csv needs a value' "${over[@]}" "$bench/latency" --csv
expect_host no-number 2 '--reps many: must be a number' "${over[@]}" "$bench/latency" --reps many
expect_host out-of-range 2 '--reps 0: must be from 1' "${over[@]}" "$bench/latency" --reps 0
expect_host min-above-max 2 'min is above' "${over[@]}" "$bench/bandwidth" --min 2M --max 1M
expect_host beyond-memory 2 'lower --max' "${over[@]}" "$bench/bandwidth" --min 512G --max 1000G
expect_host no-gpu 2 'there is no GPU here' "${over[@]}" CUDA_VISIBLE_DEVICES= "$bench/streams"
expect_host no-gpu-init 2 'there is no GPU here' "${over[@]}" CUDA_VISIBLE_DEVICES= "$bench/init"
expect_host no-such-gpu 2 '--device 9: there' "${over[@]}" "$bench/alloc" --device 9
expect_host no-such-case 2 'no case has such a name' "${over[@]}" "$bench/latency" --only nothing
expect_host no-folder 2 'cannot be written' "${over[@]}" "$bench/init" --reps 1 --csv "$tmp/none/a.csv"
expect_host run-unknown-option 2 'unknown option --fast' perf/run --fast
expect_host run-unknown-benchmark 2 'there is no benchmark speed' perf/run speed
expect_host run-unknown-way 2 'there is no way sideways' perf/run --ways sideways
expect_host run-no-native 2 'a native run needs a GPU' perf/run --gpu soft --ways native

# A run that is cut short: its rows are complete, and the exit code says that some are missing.
expect_host cut-short 3 'the time is over' "${over[@]}" "$bench/latency" --pause 0 --limit 1 --reps 200 --budget 60000 \
	--max 1M --only cuda --csv "$tmp/cut.csv"
if grep -q '^run,latency,cudaMallocHost/fresh,' "$tmp/cut.csv" && ! grep -q cudaPointer "$tmp/cut.csv"; then
	echo '@ok cut-short-rows'
else
	cat "$tmp/cut.csv"
	echo '@FAIL cut-short-rows not what there was time for'
fi
expect_host figures-no-result 2 'No such file' perf/figures "$tmp"
echo 'a,b' >"$tmp/all.csv"
expect_host figures-no-table 2 'no rows' perf/figures "$tmp"
printf 'label,benchmark,case,bytes,value\nvm,latency,x,1,fast\n' >"$tmp/all.csv"
expect_host figures-no-number 2 'not a table of perf/run' perf/figures "$tmp"
rm "$tmp/all.csv"

# Two results are compared figure by figure. A rate that falls is a figure that became worse.
mkdir "$tmp/old" "$tmp/new"
printf 'label,benchmark,case,bytes,value,unit\nvm,x,%s\nvm,x,%s\nvm,x,%s\n' \
	time,1,10,us rate,2,5,GB/s gone,3,7,us >"$tmp/old/all.csv"
printf 'label,benchmark,case,bytes,value,unit\nvm,x,%s\nvm,x,%s\n' time,1,8,us rate,2,4,GB/s >"$tmp/new/all.csv"
expect_host compare-nothing 2 'usage' perf/compare.py
expect_host compare-uneven 2 'usage' perf/compare.py "$tmp/old" "$tmp/old" -- "$tmp/new"
expect_host compare-no-result 2 'No such file' perf/compare.py "$tmp/old" -- "$tmp/absent"
expect_host compare-time 0 'time +1   0.800 .* better' perf/compare.py "$tmp/old" -- "$tmp/new"
expect_host compare-rate 0 'rate +2   1.250 .* worse' perf/compare.py "$tmp/old" -- "$tmp/new"
expect_host compare-missing 0 '1 pairs; 1 figures are missing' perf/compare.py "$tmp/old" -- "$tmp/new"
expect_host compare-every-pair 0 'worse by 1 %: 0, better: 0' \
	perf/compare.py "$tmp/old" "$tmp/new" -- "$tmp/new" "$tmp/old"
expect_host tune-bad-size 2 'huge: must be a size' scripts/qcu tune --max huge

# After a full disk, or a kill in the middle, there is no result file.
# shellcheck disable=SC2016
expect_host disk-full 1 'cannot be written' bash -c '(trap "" XFSZ; ulimit -f 0
	LD_LIBRARY_PATH=$1/loopback "$1/perf/init" --reps 1 --csv "$2/full.csv" 2>&1) | cat
	exit "${PIPESTATUS[0]}"' - "$PWD/$B" "$tmp"
# shellcheck disable=SC2016
expect_host killed 137 '^$|pinned' bash -c 'echo; LD_LIBRARY_PATH=$1/loopback timeout -s KILL 0.2 \
	"$1/perf/bandwidth" --pause 0 --min 16M --max 64M --csv "$2/killed.csv"' - "$PWD/$B" "$tmp"
if [ -e "$tmp/killed.csv" ] || compgen -G "$tmp/full.csv*" >/dev/null; then
	ls "$tmp"
	echo '@FAIL no-partial-file there is one'
else
	echo '@ok no-partial-file'
fi

if env -u LD_LIBRARY_PATH perf/run --smoke --spin --gpu soft --ways loopback --name spin --out "$tmp" init \
	>"$tmp/spin.txt" 2>&1 && grep -q -e '--wait spin' "$tmp/spin/loopback/init.json"; then
	echo '@ok run-spin'
else
	cat "$tmp/spin.txt"
	echo '@FAIL run-spin'
fi

# A whole run of perf/run, which also checks the guest's kernel log.
env -u LD_LIBRARY_PATH perf/run --smoke --gpu soft --ways loopback,vm,kcopy,vms --name smoke --out "$tmp" \
	--limit 200 >"$tmp/log" 2>&1
rc=$?
cat "$tmp/log"
for way in loopback vm; do
	for b in "$bench"/*; do
		if [ ! -x "$b" ] || [ ! -f "$b" ]; then
			continue
		fi
		b=${b##*/}
		rows=$(grep -c "^$way,$b," "$tmp/smoke/$way/$b.csv" 2>/dev/null)
		if [ "${rows:-0}" -eq 0 ]; then
			tail -n 5 "$tmp/smoke/$way/$b.txt"
			echo "@FAIL $way/$b no rows"
		else
			echo "@ok $way/$b 0.0"
		fi
	done
done
if [ $rc -ne 0 ]; then
	echo "@FAIL run exit code $rc"
elif ! grep -q '^vm,bandwidth,pinned/sync/h2d,65536,' "$tmp/smoke/all.csv" ||
	! grep -q '^vms,scale,2-programs/total,65536,' "$tmp/smoke/all.csv" ||
	! grep -q '^kcopy,bandwidth,pageable/sync/d2h,65536,' "$tmp/smoke/all.csv"; then
	echo '@FAIL run a row is missing in all.csv'
else
	echo '@ok run'
fi

# The time of a first use is split into layers. Some of it is the host's mapping of the memory.
printf '%s\n' 'echo 1 >/sys/module/qcuda/parameters/trace' \
	'breakdown --quick --pause 0 --reps 3 --only first/h2d --min 1M --max 1M' >"$tmp/first.sh"
expect_host layers 0 'first/h2d/map +1048576 .* [.][.] +[1-9]' \
	scripts/qcu vm --gpu soft --mem 1G --script "$tmp/first.sh" --with "$bench/breakdown"

# tune measures guests with both mappings, once, and at night twice. On a busy machine there is time for one round only. What
# they say is noise: tools/tune.sh has what it makes of rounds.
rounds=1
[ -z "${QCU_NIGHTLY:-}" ] || rounds=2
host_limit=160
expect_host tune 0 '^No advice: (1 round is|2 rounds are) too few' \
	env TERM=linux script -qec "scripts/qcu tune --gpu soft --mem 1G --max 128K --most 256K --limit 150 --rounds $rounds" /dev/null
# What is shown meanwhile is gone in the end.
if grep -q -E $'\r\e\\[Kqcu: tune: round 1, [0-9]+ of at most 150 s\r\e\\[K' "$tmp/out" &&
	! sed 's/.*\r\x1b\[K//' "$tmp/out" | grep -q 'of at most 150 s$'; then
	echo '@ok tune-progress'
else
	echo '@FAIL tune-progress'
fi

# The plots of that result, if matplotlib is installed.
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
	expect_host plots 0 'scale.svg' perf/figures "$tmp/smoke"
	# Rows as tests/gpu/moved/moved.py writes them.
	mkdir "$tmp/clones"
	{
		head -n 1 "$tmp/smoke/all.csv"
		printf 'clone,clones,%s,0,%s,,%s,,,,,\n' '1: cold VM' 60.000,s,60.000,60.000 1 '2: clone' 3.000,s,2.000,4.000 10
	} >"$tmp/clones/all.csv"
	expect_host plots-clones 0 'clones.svg' perf/figures "$tmp/clones"
else
	echo '@skip plots python3-matplotlib is not installed (perf/figures installs it when asked to draw)'
fi
