#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu tune: wrong calls, what it makes of rounds that were measured, what it saves, and what qcu run makes of that.
# perf.sh has it measure.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export XDG_CONFIG_HOME=$tmp/config
saved=$XDG_CONFIG_HOME/qcuda/run
tune=("$qcu" tune --read "$tmp/rounds")
# run: qcu run gets as far as looking for its program, which is not there.
run=("$qcu" run --verbose)

# rounds COUNT MADE: MADE is Python that returns the rate of a setting (map, chunk) in a case of round n.
rounds() {
	rm -rf "$tmp/rounds"
	mkdir "$tmp/rounds"
	python3 - "$tmp/rounds" "$@" <<-'END'
		import sys
		folder, count, made = sys.argv[1], int(sys.argv[2]), sys.argv[3]
		for n in range(count):
		    with open(f"{folder}/round-{n:02d}.csv", "w") as f:
		        f.write("label,benchmark,case,bytes,value,unit,low,high\n")
		        for map, label in ("cvm", "vm"), ("ncvm", "ncvm"):
		            for chunk in "64K", "1M", "4M":
		                for case, size, part in ("pinned/h2d", 65536, 1), ("pageable/d2h", 65536, 0.3):
		                    rate = eval(made, {"n": n, "map": map, "chunk": chunk, "case": case})
		                    f.write(f"{label},chunks,{chunk}/{case},{size},{rate * part:.4f},GB/s,0,0\n")
		                f.write(f"{label},chunks,{chunk}/new,65536,1000,us,0,0\n")
	END
}

expect_host unknown-option 2 'unknown option --fast' $qcu tune --fast
expect_host limit-no-number 2 '--limit soon: must be a number' $qcu tune --limit soon
for count in none 0 100; do
	expect_host rounds-$count 2 "--rounds $count: must be a number from 1 to 99" $qcu tune --rounds $count
done
expect_host read-nothing 2 "$tmp/none: no such folder" $qcu tune --read "$tmp/none"
expect_host out-nowhere 2 'cannot be made' $qcu tune --out /proc/none
expect_host save-nowhere 2 'neither HOME nor XDG_CONFIG_HOME' env -u HOME -u XDG_CONFIG_HOME "${tune[@]:0:2}" --save
expect_host save-into-nothing 2 'nothing can be written in /proc/none' env XDG_CONFIG_HOME=/proc/none "${tune[@]:0:2}" --save
mkdir "$tmp/rounds"
expect_host no-rounds 2 'there is no round in it' "${tune[@]}"
echo 'a,b,c' >"$tmp/rounds/round-01.csv"
expect_host no-table 2 'this is no table of a round' "${tune[@]}"
for value in inf nan -1 x 1e300 ''; do
	printf 'vm,chunks,4M/pinned/h2d,1,%s,GB/s\n' "$value" >"$tmp/rounds/round-01.csv"
	expect_host "no-rate-${value:-empty}" 2 'this is no table of a round' "${tune[@]}"
done

# A setting that is better in each round, by more than the rounds differ.
rounds 5 '(12 if (map, chunk) == ("ncvm", "1M") else 10) * (1 + n % 3 / 50)'
expect_host better 0 '^Use: --map ncvm --chunk 1M$' "${tune[@]}"
expect_host better-by-how-much 0 'in 5 rounds its median is 16.7 points above that of the defaults' "${tune[@]}"
expect_host spread 0 '^ncvm +1M +100.0% +100.0% to 100.0% +1.00$' "${tune[@]}"
# One round in which the machine was busy changes nothing.
rounds 5 '(12 if (map, chunk) == ("ncvm", "1M") else 10) * (0.3 if n == 0 and map == "ncvm" else 1)'
expect_host busy-round 0 '^Use: --map ncvm --chunk 1M$' "${tune[@]}"
# What is printed of a setting that differs.
rounds 5 '10 - (5 - n if (map, chunk) == ("ncvm", "1M") else 0)'
expect_host quartiles 0 '^ncvm +1M +70.0% +60.0% to +80.0% ' "${tune[@]}"
# A setting that is the best in one case and slow in the other: the defaults have the better geometric mean.
rounds 4 '(5.5 if (map, chunk) == ("cvm", "4M") else 1 if (map, chunk) != ("ncvm", "1M") and "h2d" in case else
	10 if "h2d" in case or (map, chunk) == ("cvm", "64K") else 2.5)'
expect_host cases-count-alike 0 '^Use the defaults ' "${tune[@]}"
# What a round has not measured, or not in each case, or without a new buffer, is left out.
rounds 5 '20 if (map, chunk) == ("cvm", "1M") else 10'
sed -i '/^ncvm,chunks,1M/d' "$tmp/rounds/round-03.csv"
sed -i '/^vm,chunks,64K.pinned/d; /^ncvm,chunks,4M.new/d' "$tmp"/rounds/*.csv
expect_host parts-are-missing 0 '^Use: --map cvm --chunk 1M$' "${tune[@]}"
grep '%' "$tmp/out" | cut -c1-13 | tr -s ' ' ' ' >"$tmp/left"
expect_host parts-are-left-out 0 '^cvm 1M cvm 4M ncvm 64K$' bash -c "sort '$tmp/left' | xargs"
# The same medians, and rounds that differ more: noise is not advice.
rounds 5 '10 + 6 * ((n * 7 + (chunk == "1M") * 3 + (map == "ncvm") * 2) % 5) / 5'
expect_host noise 0 '^No setting is better than the defaults by more than the rounds differ .5 rounds.[.]$' "${tune[@]}"
expect_host noise-is-not-saved 0 '^Nothing is saved' "${tune[@]}" --save
[ ! -e "$saved" ] && echo '@ok no-file 0.0' || echo '@FAIL no-file'
rounds 5 '20 if (map, chunk) == ("cvm", "4M") else 10'
expect_host defaults-are-best 0 '^Use the defaults .*they are the best of all' "${tune[@]}"
rounds 5 '20 if (map, chunk) == ("cvm", "4M") else 19.9 if chunk == "1M" and n % 2 == 0 else 10'
expect_host defaults-may-be-best 0 '^No setting is better than the defaults' "${tune[@]}"
rounds 2 '20 if chunk == "1M" else 10'
expect_host too-few 0 '^No advice: 2 rounds are too few' "${tune[@]}"

# ---- what is saved ----

expect_host nothing-saved 127 'command not found' "${run[@]}" no-such-program
! grep -q 'says what the command line' "$tmp/out" && echo '@ok no-settings 0.0' || echo '@FAIL no-settings'
rounds 4 '20 if (map, chunk) == ("ncvm", "64K") else 10'
expect_host saves 0 "^Saved in $saved" "${tune[@]}" --save
expect_host run-finds-it 127 "using --map ncvm --chunk 64K; $saved says" "${run[@]}" no-such-program
expect_host other-chunk 127 'using --map ncvm --chunk 1M;' "${run[@]}" --chunk 1M no-such-program
expect_host other-map 127 'using --map cvm --chunk 64K;' "${run[@]}" --map cvm no-such-program
expect_host home 127 "using --map ncvm --chunk 64K; $tmp/home/.config/qcuda/run" bash -c "mkdir -p $tmp/home/.config &&
	cp -r $XDG_CONFIG_HOME/qcuda $tmp/home/.config && HOME=$tmp/home XDG_CONFIG_HOME=relative ${run[*]} no-such-program"

expect_host vm-has-its-own 2 'no such file' "$qcu" vm --verbose --script "$tmp/none"
! grep -q 'says what the command line' "$tmp/out" && echo '@ok not-for-vm 0.0' || echo '@FAIL not-for-vm'

# broken NAME PATTERN TEXT: a file with this text is refused.
broken() {
	printf "$3" >"$saved"
	expect_host "$1" 2 "$2" "${run[@]}" no-such-program
}
broken other-word "$saved, line 2: only map and chunk can be set" '# x\nmem=4G\n'
broken other-mapping 'line 1: only map and chunk' 'map=fast\n'
broken no-size 'line 1: a chunk is a size' 'chunk=big\n'
broken command 'line 1: a chunk is a size' 'chunk=$(touch '"$tmp"'/bad)\n'
broken spaces 'line 1: only map and chunk' ' map=cvm\n'
broken binary 'line 1: only map and chunk' '\0\1\2map=cvm'
broken zero-byte 'line 1: only map and chunk' '\0map=ncvm'
broken odd-chunk 'must be a power of two' 'chunk=100K\n'
broken too-long 'too long for settings' "$(printf '#%05000d' 0)"
rm "$saved"
mkdir "$saved"
expect_host a-folder 2 "$saved: cannot be read" "${run[@]}" no-such-program
[ ! -e "$tmp/bad" ] && echo '@ok nothing-ran 0.0' || echo '@FAIL nothing-ran'
