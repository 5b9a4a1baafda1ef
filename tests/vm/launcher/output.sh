#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests qcu run when its output cannot be written: the program gets the error where it can, and no output
# is lost in silence. Needs no qCUDA device.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
exec {results}>&1

# It says what went wrong with each stream: 7 for its output, 8 for its input.
cat >prog.c <<'END'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int lines = argc > 1 ? atoi(argv[1]) : 1;
	char b[16];

	if (argc > 2 && read(0, b, sizeof(b)) < 0) {
		fprintf(stderr, "input: %s\n", strerror(errno));
		return 8;
	}
	for (int i = 0; i < lines; i++)
		if (printf("line %d of the output\n", i) < 0)
			break;
	if (fflush(stdout)) {
		fprintf(stderr, "output: %s\n", strerror(errno));
		return 7;
	}
	if (fputs("done\n", stderr) < 0)
		return 9;
	return 0;
}
END
gcc -Wall -o prog prog.c || exit 2

# same NAME ARG...: prog ARG... must end as it does here, with the same text on standard error. The redirections of
# the call are those of both.
same() {
	local rc want
	{ ./prog "${@:2}"; } 2>"$dir/want"
	want=$?
	{ plain ./prog "${@:2}"; } 2>"$dir/err"
	rc=$?
	expect '' "exit code: $1" "$rc" "$want" >&"$results"
	expect '' "standard error: $1" "$(cat "$dir/err")" "$(cat "$dir/want")" >&"$results"
}
same 'nothing written' 0 >/dev/full
same 'a full device' 1 >/dev/full
same 'more than all pipes hold' 40000 >/dev/full
same 'a device that takes all' 40000 >/dev/null
case_done full-device

same 'no output, much' 40000 >&-
same 'no input' 1 read <&-
case_done closed-streams

# ended CODE TEXT: the last run must have ended with CODE, and said TEXT once.
ended() {
	expect '' 'exit code' "$rc" "$1"
	expect '' "how often it says $2" "$(grep -c -x -F -e "$2" err)" 1
}

# What is open for reading only takes nothing.
plain ./prog 40000 1</dev/zero 2>err
rc=$?
ended 125 'qcu: the output cannot be written: Bad file descriptor; what the program says from here on is lost'
grep -q -x done err || expect '' 'standard error' "$(cat err)" done
plain /bin/sh -c 'echo x >&2; exit 6' 2</dev/zero
expect '' "the program's own code, when only its messages are lost" $? 6
plain /bin/sh -c 'echo x >&2' 2</dev/zero
expect '' 'exit code when only its messages are lost' $? 125
case_done output-that-is-lost

if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	mkdir small
	unshare -m sh -c 'mount -t tmpfs -o size=64k small small && "$@" >small/out; rc=$?; stat -c %s small/out >size; exit $rc' sh \
		timeout -k 5 $((120 * slow)) "$qcu" run --no-device --no-module --mem 512M ./prog 40000 2>err
	rc=$?
	ended 125 'qcu: the output cannot be written: No space left on device; what the program says from here on is lost'
	expect '' 'what is there' "$(cat size)" 65536
	# The launcher's own sentence cannot be written either.
	unshare -m sh -c 'mount -t tmpfs -o size=64k small small && exec "$@" >small/out 2>&1' sh \
		timeout -k 5 $((120 * slow)) "$qcu" run --no-device --no-module --mem 512M /bin/sh -c './prog 40000; echo x >there'
	expect '' 'exit code with both streams there' $? 125
	expect '' 'what the program did afterwards' "$(cat there)" x
	case_done full-disk
else
	echo '@skip full-disk only root can mount a small one'
fi

# Nobody reads, and SIGPIPE is ignored here.
mkfifo pipe
exec 7<>pipe
(trap '' PIPE && exec 7>&- && plain ./prog 400000 >pipe 2>err; echo $? >code) &
read -r line <pipe
exec 7>&-
wait
expect '' 'first line' "$line" 'line 0 of the output'
expect '' 'exit code' "$(cat code)" 141
case_done reader-gone-and-no-signal

for what in --help 'run --help' 'check --help' 'check ./prog' 'doctor --help' 'trace --help'; do
	# shellcheck disable=SC2086
	timeout 60 "$qcu" $what >/dev/full 2>err
	rc=$?
	[ $rc -ne 0 ] || expect '' "exit code of $what into a full device" $rc 'not 0'
done
case_done texts-into-a-full-device

[ "$failed" -eq 0 ]
