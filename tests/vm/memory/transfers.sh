#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests transfers: copies from every kind of memory to every other, the counters that show who copies,
# fragmented guest memory, memory that is freed while the device uses it, the kernel's access to chunks,
# and kill -9 at random moments. Once with chunks remapped on the host, once without.
#
# QCU_TEST_KILLS sets how often to kill (8; at night 25). QCU_TEST_LARGE=1 adds a copy of 1 GiB. QCU_TEST_MEM sets the
# guest's memory: a debug kernel needs 2G, so that half of it can be fragmented.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

[ -n "${QCU_TEST_KILLS:-}" ] || QCU_TEST_KILLS=$([ -n "${QCU_NIGHTLY:-}" ] && echo 25 || echo 8)
export QCU_TEST_KILLS QCU_TEST_LARGE=${QCU_TEST_LARGE:-}
export QCU_TEST_DIR=$tmp/share QCU_TEST_FILE=$tmp/share/data
head -c $((3 << 20)) /dev/urandom >"$QCU_TEST_FILE"

# The guest asks how many mirrors there are. Answers through the shared folder.
answer() {
	while sleep 0.2; do
		if [ -e "$tmp/share/ask" ]; then
			rm "$tmp/share/ask"
			mirrors | wc -l >"$tmp/share/answer.new"
			mv "$tmp/share/answer.new" "$tmp/share/answer"
		fi
	done
}
answer &
answering=$!
trap 'kill $answering; rm -rf "$tmp"' EXIT

cat >"$tmp/guest" <<'END'
for tool in mem_paths mem_dma mem_kernel_io; do
	for test in $($tool --list); do
		case $test in
		chunks_1_gib) [ -n "$QCU_TEST_LARGE" ] || continue ;;
		in_small_blocks) continue ;;
		esac
		# Only chunks are mapped in one way or the other. With pages the second time is the night's.
		case ${QCU_NIGHTLY:-$QCU_TEST_MAP}/$test in
		ncvm/upload*_pages | ncvm/download*_pages | ncvm/pages_* | ncvm/scattered_64_mib) continue ;;
		esac
		expect "$QCU_TEST_MAP/$test" 0 $tool "$test"
	done
done

begin "$QCU_TEST_MAP/fragmented"
mkfifo /tmp/hold
bad=
mem_fragment </tmp/hold >/tmp/fragment 2>&1 &
fragment=$!
exec 3>/tmp/hold
# ready_or_dead: does the program hold the memory, or has it ended?
ready_or_dead() {
	grep -q ready /tmp/fragment || ! kill -0 $fragment 2>/dev/null
}
for _ in 1 2 3 4 5 6; do
	! until_true ready_or_dead || break
done
cat /proc/buddyinfo >>$log
for test in in_small_blocks every_pair chunks_64k chunks_16m; do
	timeout -k 2 $((60 * slow)) mem_paths "$test" >>$log 2>&1 || bad="$bad $test"
done
exec 3>&-
wait $fragment || bad="$bad mem_fragment"
cat /tmp/fragment >>$log
rm /tmp/hold
[ -z "$bad" ] && pass || fail "failed:$bad"

# mirrors: sets $value to the number of mirrors on the host.
mirrors() {
	rm -f "$QCU_TEST_DIR/answer"
	# touch may fail: the host may remove the file before the guest has looked at it.
	touch "$QCU_TEST_DIR/ask" 2>/dev/null
	until_true [ -e "$QCU_TEST_DIR/answer" ]
	read -r value <"$QCU_TEST_DIR/answer"
}

begin "$QCU_TEST_MAP/kill-9-$QCU_TEST_KILLS-times"
free=$(mem_hammer free)
round=0 working=0 why=
while [ $round -lt "$QCU_TEST_KILLS" ] && [ -z "$why" ]; do
	round=$((round + 1))
	mem_hammer >/tmp/hammer 2>&1 &
	pid=$!
	# Every second program may be killed while it starts.
	[ $((round % 2)) -eq 0 ] || until_true grep -q ready /tmp/hammer
	usleep $((RANDOM * 10))
	{
		kill -9 $pid
		wait $pid
		rc=$?
	} 2>/dev/null
	[ $rc -eq 137 ] || why="round $round: exit code $rc: $(cat /tmp/hammer)"
	! grep -q ready /tmp/hammer || working=$((working + 1))
	leftovers
	[ -z "$left" ] || why="round $round left behind:$left"
done
echo "$round killed, $working of them at work" >>$log
cat $log
mirrors
[ "$value" = 0 ] || why="$why; $value mirrors are still there"
now=$(mem_hammer free)
[ "$now" = "$free" ] || why="$why; free device memory $free before, $now after"
[ $((working * 3)) -ge "$round" ] || why="$why; hardly any was at work"
[ -z "$why" ] && pass || fail "$why"
END

mem=${QCU_TEST_MEM:-512M}
[ -z "$QCU_TEST_LARGE" ] || mem=4G
for map in cvm ncvm; do
	export QCU_TEST_MAP=$map
	with "$tools"/mem_{paths,dma,kernel_io,fragment,hammer}
	TMPDIR=$tmp boot --map $map --mem $mem --timeout $(((200 + QCU_TEST_KILLS * 2) * slow)) "${with[@]}" <"$tmp/guest"
done
