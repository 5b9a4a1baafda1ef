#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests scripts/qcu as its user sees it: a program that runs in the guest must look
# like the same program run here. The tests need no qCUDA device, so that a failure
# is the launcher's and not the device's. Prints one line for each test, in the
# format of tests/run.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/my folder"
cd "$dir/my folder" || exit 2

# ---- refusals, which need no VM ----

: >data
refused 2 'unknown command' walk
refused 2 'unknown option --verbose: a command comes first' --verbose run ./x
refused 2 'unknown option --speed' run --speed 9 ./x
refused 2 'unknown option -x' run -x
refused 2 'no program given' run
refused 2 '--mem needs a value' run --mem
refused 2 '--mem lots' run --mem lots /bin/true
refused 2 'at least 256M' run --mem 64M /bin/true
refused 2 '--cpus 0' run --cpus 0 /bin/true
refused 2 '--sessions 64' run --sessions 64 /bin/true
refused 2 '--prewarm 17' run --prewarm 17 /bin/true
refused 2 '--nvml all' run --nvml all /bin/true
refused 2 '--gpu metal' run --gpu metal /bin/true
refused 2 '--qemu best' run --qemu best /bin/true
refused 2 '--vulkan=lots: must be a size' run --vulkan=lots /bin/true
refused 2 'power of two from 64M to 64G' run --vulkan=3G /bin/true
refused 2 'our QEMU has no OpenGL' run --vulkan --qemu own /bin/true
refused 2 'belongs to --vulkan' run --render-node none /bin/true
refused 2 'must be none or one of' run --vulkan --render-node data /bin/true
refused 2 '--map flat' run --map=flat /bin/true
refused 2 'power of two' run --chunk 3M /bin/true
refused 2 'power of two' run --chunk 32K /bin/true
refused 2 '--timeout soon' run --timeout soon /bin/true
refused 2 '--share ./nowhere' run --share ./nowhere /bin/true
refused 2 'share another folder' run --share /usr /bin/true
refused 2 '--with ./gone' run --with ./gone /bin/true
refused 2 '--klog /proc/x/y' run --klog /proc/x/y /bin/true
refused 2 'vm needs --script' vm
refused 2 '--script ./gone' vm --script ./gone
refused 2 'belongs to the vm command' run --script data /bin/true
refused 127 './gone: no such file' run ./gone
refused 127 'no-such-command-here: command not found' run no-such-command-here
refused 127 'command not found; the file in this folder is ./data' run data
refused 126 'not an executable file' run ./data
refused 126 'not an executable file' run /tmp
refused 126 'not an executable file' run .
refused 126 'not an executable file' run ..
refused 2 'qcu: check: one program is needed' check
refused 2 'qcu: check: one program is needed' check a b
refused 2 'unknown option --jsn' check --jsn
refused 2 '. is a folder: --all . reads' check .
TMPDIR=$dir/gone refused 2 "no folder can be made in $dir/gone" run --no-device --no-module /bin/true
refused 2 'qcuda.ko has no such parameter' run --no-device --module-arg chunk_kb=64 --module-arg speed=9 /bin/true
case_done bad-options

# All scripts find their folder when they are called through links.
mkdir "$dir/links"
for f in "$here"/scripts/* "$here/perf/run"; do
	[ -x "$f" ] || continue
	ln -s "$f" "$dir/links/$(basename "$f")"
done
ln -s links/qcu "$dir/link-to-link"
for f in qcu qcu-run build-guest build-qemu deps tune top trace doctor gpu-bundle run; do
	"$dir/links/$f" --help >out 2>err
	expect '' "exit code of $f --help through a link" $? 0
	expect '' "error of $f --help through a link" "$(cat err)" ''
done
(cd / && "$dir/link-to-link" --help) >out 2>err
expect '' 'error through two links' "$(cat err)" ''
grep -q '^usage: scripts/qcu' out || expect '' 'output through two links' "$(cat out)" 'usage: ...'
"$dir/links/commands/table" >out 2>err || expect '' 'commands/table through a link' failed good
cmp -s out "$here/docs/commands.md" || expect '' 'output of commands/table' different same
# A script without its folder finds no lib.sh, and does nothing.
cp "$here/scripts/qcu" alone
chmod +x alone
./alone run --no-device /bin/true >out 2>err
expect '' 'exit code of a script without its folder' $? 2
rm alone
case_done through-links

if [ ! -e /dev/kvm ] || ! grep -q -w -m1 -E 'vmx|svm' /proc/cpuinfo; then
	refused 2 '--accel kvm: ' run --accel kvm /bin/true
	case_done kvm-that-cannot-work
else
	echo '@skip kvm-that-cannot-work hardware virtualisation works here'
fi

# ---- a program of our own ----

cat >prog.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *const names[] = { "QCU_X", "PS4", "HOME", "NOT_SET" };
	const char *what = argc > 1 ? argv[1] : "";
	char b[4096];

	if (!strcmp(what, "args")) {
		for (int i = 0; i < argc; i++)
			printf("[%s]\n", argv[i]);
		for (int i = 0; i < 4; i++)
			printf("%s=%s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "(none)");
		puts(getcwd(b, sizeof(b)));
		return 42;
	} else if (!strcmp(what, "both")) {
		/* More than all pipes on the way hold, so that each must be read. */
		for (int i = 0; i < 40000; i++) {
			printf("out %d\n", i);
			fprintf(stderr, "err %d\n", i);
		}
		fflush(stdout);
		if (argc > 2)
			raise(atoi(argv[2]));
	} else if (!strcmp(what, "cwd")) {
		puts(getcwd(b, sizeof(b)));
	} else if (!strcmp(what, "sleep")) {
		puts("started");
		fflush(stdout);
		sleep(atoi(argv[2]));
	} else if (!strcmp(what, "daemon")) {
		puts("parent");
		fflush(stdout);
		if (fork())
			return 3;
		sleep(1000);
	}
	return 0;
}
END
gcc -Wall -o 'a prog' prog.c || exit 2

# What a program sees, and its exit code. "args" ends with 42.
world=(./'a prog' args 'two words' '' "it's" '"quoted"' '$HOME `id` \n *' $'new\nline' -- --mem $'\xff\x01')
set_world() {
	export QCU_X='a  b'\''c' PS4='$(id)'
}
out=$(set_world && plain "${world[@]}" 2>err)
expect '' 'exit code' $? 42
want=$(set_world && "${world[@]}")
expect '' 'arguments, environment, folder' "$out" "$want"
grep -q -x -F "QCU_X=a  b'c" <<<"$out" && grep -q -x -F "$PWD" <<<"$out" || expect '' 'what it says' "$out" "... QCU_X=a  b'c ... $PWD"
expect '' 'standard error' "$(cat err)" ''
case_done arguments-environment-exit-code

# A reader that is slower than the guest loses nothing.
plain './a prog' both 11 2>err | { sleep 5 && cat; } >out
expect '' 'exit code after SIGSEGV' "${PIPESTATUS[0]}" 139
'./a prog' both >out.want 2>err.want
cmp out out.want || expect '' 'what the slow reader got' different same
cmp err err.want || expect '' 'standard error' different same
case_done two-streams-slow-reader-and-a-signal

# The input is binary and larger than any buffer, and it arrives to its last byte, which ends no line.
{ head -c 3000000 /dev/urandom && printf x; } >data
plain /bin/cat <data >out 2>err
expect '' 'exit code' $? 0
cmp data out || expect '' 'what cat gave back' different same
case_done binary-input

# The folder is entered through a link.
echo 'from the host' >file
ln -s "$PWD" "$dir/link"
out=$(cd "$dir/link" && plain /bin/sh -c 'cat; cat file; ./a\ prog cwd; echo "from the guest" >file2; mkdir made; mv file made/' </dev/null)
expect '' 'exit code with no input' $? 0
expect '' 'file and folder read in the guest' "$out" "$(printf '%s\n' 'from the host' "$PWD")"
expect '' 'file written in the guest' "$(cat file2)" 'from the guest'
expect '' 'file moved in the guest' "$(cat made/file)" 'from the host'
case_done shared-folder-and-no-input

mkdir "$dir/other"
echo elsewhere >"$dir/other/file"
out=$(plain --share "$dir/other" /bin/sh -c "cat '$dir/other/file'; ls; pwd")
expect '' 'other folder' "$out" "$(printf '%s\n' elsewhere "$PWD")"
case_done other-folder

# A library from a folder that the loader does not search by itself, and a script's interpreter.
mkdir "$dir/lib"
echo 'int answer(void) { return 17; }' | gcc -shared -fPIC -x c -o "$dir/lib/libanswer.so" -
printf 'int answer(void);\nint main(void) { return answer(); }\n' |
	gcc -x c -o linked - -L "$dir/lib" -lanswer -Wl,-rpath,"$dir/lib"
plain ./linked
expect '' 'exit code out of a library' $? 17
printf '%s\n' '#!/bin/bash' 'a=(x y z); echo ${#a[@]} $1' >script && chmod +x script
expect '' 'bash script' "$(plain ./script arg)" '3 arg'
case_done libraries-and-scripts

# Waiting for the child would take longer than plain() allows.
plain './a prog' daemon >out
expect '' 'exit code' $? 3
expect '' 'output' "$(cat out)" parent
case_done child-left-behind

# ---- runs that are stopped ----

# All processes of one run have its temporary folder's name in their command line.
mine() {
	pgrep -f "$dir/tmp/qcu" || true
}
mkdir "$dir/tmp"
export TMPDIR=$dir/tmp

# nothing_left: waits until nothing of a run is left. A process that has been ended may still be there for a
# moment, and the watcher of a launcher that was killed needs some time.
nothing_left() {
	for ((i = 0; i < 300 * slow; i++)); do
		[ -n "$(mine)$(ls "$TMPDIR")" ] || return
		sleep 0.1
	done
	expect '' 'processes left' "$(mine)" ''
	expect '' 'files left' "$(ls "$TMPDIR")" ''
	rm -rf "${TMPDIR:?}"/*
}

plain --timeout 4 './a prog' sleep 1000 >out 2>err
expect '' 'exit code' $? 124
expect '' 'error' "$(cat err)" "qcu: ended after $((4 * slow)) s"
nothing_left
case_done timeout

for sig in INT:130 TERM:143; do
	# Not with timeout(1), which would receive the signal. A pipe tells when the program runs.
	mkfifo started
	(trap - INT && exec "$qcu" run --no-device --no-module --mem 512M './a prog' sleep 1000) >started 2>err &
	pid=$!
	read -r line <started
	expect '' 'the program runs' "$line" started
	kill -"${sig%:*}" "$pid"
	wait "$pid"
	expect '' "exit code after SIG${sig%:*}" $? "${sig#*:}"
	expect '' 'error' "$(cat err)" ''
	nothing_left
	rm started
done
case_done interrupt

# Nothing may be left, even when the launcher has no chance to clean up.
mkfifo started
"$qcu" run --no-device --no-module --mem 512M './a prog' sleep 1000 >started 2>err &
pid=$!
read -r line <started
kill -KILL "$pid"
wait "$pid" 2>/dev/null
rm started

nothing_left
# The kill may come at any point: before the guest is packed, while QEMU starts, while the guest boots.
for ms in 020 050 080 120 160 200 300 600; do
	"$qcu" run --no-device --no-module --mem 512M './a prog' sleep 1000 >out 2>err &
	pid=$!
	sleep "0.$ms"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
done
nothing_left
case_done kill-9

plain /bin/sh -c 'while :; do echo y; done' | head -n 3 >out
expect '' 'exit code' "${PIPESTATUS[0]}" 141
expect '' 'output' "$(cat out)" "$(printf 'y\ny\ny')"
nothing_left
case_done reader-gone

# Output that cannot be written must not end the program: output.sh.
plain /bin/sh -c 'cat; echo end; exit 8' <&- >&- 2>&-
expect '' 'exit code without any of them' $? 8
case_done nothing-open

# The program names a compiler that is not here, which is said before.
{ cat /bin/true && printf 'libnvrtc.so.77\0'; } >asks && chmod 755 asks
plain --qemu-arg -no-such-option ./asks >out 2>err
expect '' 'exit code' $? 125
grep -q '^qcu: QEMU has ended' err || expect '' 'error' "$(cat err)" 'QEMU has ended'
grep -q '^qcu: ./asks asks for libnvrtc.so.77, which this' err || expect '' 'error' "$(cat err)" 'asks for libnvrtc.so.77'
case_done qemu-fails

plain /bin/sh -c 'echo c >/proc/sysrq-trigger' >out 2>err
expect '' 'exit code' $? 125
grep -q '^qcu: .*Kernel panic' err || expect '' 'error' "$(cat err)" 'Kernel panic'
case_done guest-crashes

# ---- the vm command, and the kernel's log ----

cat >test.sh <<'END'
echo "$# $1"
"a prog" args x
linked
echo "linked $?"
echo "qcuda: leak: 3 pages" >/dev/kmsg
exit 5
END
timeout $((120 * slow)) "$qcu" vm --no-device --no-module --mem 512M --klog klog --script test.sh --with './a prog' --with linked 'an arg' >out 2>err
expect '' 'exit code' $? 5
expect '' 'output' "$(sed -n '1,4p; $p' out)" "$(printf '%s\n' '1 an arg' '[a prog]' '[args]' '[x]' 'linked 17')"
expect '' 'error' "$(cat err)" ''
grep -q 'Linux version' klog || expect '' 'kernel log' "$(head -c 200 klog)" 'Linux version ...'
said=$("$here/scripts/scan-klog" klog)
expect '' "scan-klog's exit code" $? 1
grep -q 'leak: 3 pages' <<<"$said" || expect '' 'what scan-klog says' "$said" '... leak: 3 pages'
grep -v 'qcuda: leak' klog >clean
"$here/scripts/scan-klog" clean || expect '' 'a clean log' dirty clean
case_done vm-script-and-klog

for line in 'WARNING: CPU: 0 PID: 7 at mm/slub.c:42 foo+0x1/0x2' 'BUG: kernel NULL pointer dereference' \
	'BUG: KASAN: use-after-free in foo' 'UBSAN: shift-out-of-bounds in foo.c:3' 'Oops: 0000 [#1] SMP' \
	'INFO: task cat:77 blocked for more than 120 seconds.' 'rcu: INFO: rcu_preempt self-detected stall on CPU' \
	'BUG: Bad page state in process cat  pfn:1234' 'general protection fault, probably for non-canonical address' \
	'watchdog: BUG: soft lockup - CPU#0 stuck' 'refcount_t: underflow; use-after-free.' \
	'page_owner: Call Trace:' 'kernel BUG at mm/slub.c:4!' 'INFO: possible recursive locking detected' \
	'unregister: Object still remaining in cache'; do
	printf '[    1.0] %s\n' 'fine' "$line" >log1
	[ "$("$here/scripts/scan-klog" log1 | grep -c -F -- "$line")" = 1 ] || expect '' "scan of '$line'" missed found
done
"$here/scripts/scan-klog" ./gone >/dev/null 2>&1
expect '' 'exit code of scan-klog with no file' $? 2
: >empty
"$here/scripts/scan-klog" empty >/dev/null 2>&1
expect '' 'exit code of scan-klog for an empty log' $? 2
case_done scan-klog

[ "$failed" -eq 0 ]
