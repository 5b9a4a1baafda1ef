#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the launcher with a hostile guest: the guest's output fills no disk, runs no command on the
# host and controls no terminal; QEMU runs in a sandbox; files that the guest makes in the shared folder
# belong to the caller. tests/vm/share.sh tests the folder itself. Needs no qCUDA device.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/work" "$dir/tmp"
cd "$dir/work" || exit 2
export TMPDIR=$dir/tmp

# vm OPTION...: runs the script from standard input in a guest.
vm() {
	cat >script
	timeout -k 5 $((120 * slow)) "$qcu" vm --no-device --no-module --mem 512M --script script "$@" >out 2>err </dev/null
}

# attack OPTION...: like vm, but the script first takes the port that reports go to, as $port. Only the
# guest's first process has that port. Binding the driver anew takes the port away from it.
attack() {
	{ cat take-port && cat; } | vm "$@"
}

# ---- the guest's output ----

cat >take-port <<'END'
cd /sys/bus/virtio/drivers/virtio_console
for d in virtio*; do
	echo $d >unbind
	echo $d >bind
done
port=
while [ -z "$port" ]; do
	usleep 20000
	for d in /sys/class/virtio-ports/*; do
		[ "$(cat $d/name)" != qcu.status ] || port=/dev/${d##*/}
	done
done
END

# The beginning and the end of the output are kept. Control characters are not shown.
vm --verbose --klog klog --timeout 110 <<'END'
echo 'the first line' >/dev/vport0p5
echo 'the first line' >/dev/ttyS0
head -c 15000000 /dev/zero >/dev/vport0p5
head -c 1200000 /dev/zero | tr '\0' . >/dev/ttyS0
echo 'the last line' >/dev/vport0p5
printf '\n\033[31mKernel panic in red\n' >/dev/ttyS0
sleep 1
echo c >/proc/sysrq-trigger
END
expect '' 'exit code' $? 125
grep -q 'qcu: .*Kernel panic - not syncing' err || expect '' 'error' "$(cat err)" 'Kernel panic'
grep -q 'Kernel panic in red' err || expect '' 'error' "$(cat err)" 'Kernel panic in red'
! grep -q $'\033' err || expect '' 'error' 'escape sequences' 'none'
for log in "$TMPDIR"/qcu.*/{console,console.end,klog.end}; do
	size=$(stat -c %s "$log")
	[ "${size:-2000000}" -le 1048576 ] || expect '' "size of $log" "$size" 'at most 1 MiB'
done
[ "$(du -sm --apparent-size --exclude initrd "$TMPDIR" | cut -f 1)" -le 12 ] ||
	expect '' 'all that is kept' "$(du -am --apparent-size "$TMPDIR")" 'less than 12 MB'
expect '' 'first line of the kernel log' "$(head -n 1 klog)" 'the first line'
expect '' 'last line of the kernel log' "$(tail -n 1 klog | tr -d '\0')" 'the last line'
[ "$(stat -c %s klog)" -le 2200000 ] || expect '' 'size of the kernel log' "$(stat -c %s klog)" 'about 2 MiB'
rm -rf "$TMPDIR"/qcu.*
case_done floods-its-logs

# Bad reports: one line without an end, lines without end, and reports with special characters.
attack --timeout 60 <<<'head -c 5000000 /dev/zero | tr "\0" x >$port; sleep 1000'
expect '' 'exit code after a long report' $? 125
expect '' 'error after a long report' "$(head -n 1 err)" 'qcu: the guest reports nonsense'
# They come from two seconds before the limit on: a flood keeps two processors busy.
attack --timeout 5 <<END
while read -r up _ </proc/uptime && [ \${up%.*} -lt $((5 * slow - 2)) ]; do usleep 100000; done
exec >\$port
while :; do echo run; done
END
expect '' 'exit code after many reports' $? 124
expect '' 'error after many reports' "$(cat err)" "qcu: ended after $((5 * slow)) s"
attack --timeout 60 <<<'echo "exit x[\$(touch pwned)]" >$port; sleep 1000'
expect '' 'exit code after a wrong report' $? 125
[ ! -e pwned ] || expect '' 'a command in a report' run 'not run'
attack --timeout 60 <<<'printf "fail \033[31mred\n" >$port; sleep 1000'
expect '' 'exit code after a failure' $? 125
grep -q 'qcu: the guest: ?\[31mred' err || expect '' 'error after a failure' "$(cat err)" '?[31mred'
case_done bad-reports

# ---- QEMU's sandbox ----

# status_of_qemu COMMAND SAYS OPTION...: writes QEMU's /proc/PID/status to the file status, while a program runs in
# the guest. It begins with COMMAND, which must say SAYS.
status_of_qemu() {
	local launcher line p command=$1 says=$2
	shift 2
	mkfifo begun
	"$qcu" run --no-device --no-module --mem 512M "$@" /bin/sh -c "$command; exec sleep 1000" >begun 2>err &
	launcher=$!
	read -r line <begun
	expect '' 'the program' "$line" "$says"
	: >status
	for p in $(pgrep -f "$TMPDIR/qcu"); do
		[ "$(cat "/proc/$p/comm")" != qemu-system-x86 ] || cat "/proc/$p/status" >status
	done
	kill "$launcher"
	wait "$launcher"
	rm begun
}

field() {
	sed -n "s/^$1:[[:space:]]*//p" status
}

status_of_qemu 'echo begun' begun
expect '' 'no new privileges' "$(field NoNewPrivs)" 1
expect '' 'seccomp' "$(field Seccomp)" 2
filters=$(field Seccomp_filters)
[ "${filters:-2}" -ge 2 ] || expect '' 'filters' "$filters" 'ours and its own'
if [ "$(id -u)" -eq 0 ]; then
	# CAP_DAC_OVERRIDE and CAP_FOWNER
	expect '' 'rights' "$(field CapEff)" 000000000000000a
	expect '' 'rights that it could get' "$(field CapBnd)" 000000000000000a
fi
expect '' 'error' "$(cat err)" ''
case_done qemu-in-a-sandbox

# Without it a socket can be made in the shared folder.
cp "$here/${B:-build}/tests/vm/sockets" .
status_of_qemu './sockets here' 'here: hello' --no-sandbox
expect '' 'seccomp' "$(field Seccomp)" 0
expect '' 'error' "$(cat err)" 'qcu: --no-sandbox: a guest that means harm can do here whatever you can'
case_done no-sandbox

# ---- sockets ----

# None can be made in the shared folder. The user hears of it while the program may still wait for one: this one
# ends when it sees that the sentence was read.
rm -f here
mkfifo said
plain /bin/sh -c './sockets here /tmp/there; mkfifo pipe 2>/dev/null; ./sockets again /tmp/there; until [ -e read ]; do sleep 0.1; done' >out 2>said &
exec {said}<said
read -r line <&$said
touch read
wait $!
expect '' 'exit code' $? 0
expect '' 'the sentence' "$line" \
	'qcu: no socket can be made in the shared folder: a program that needs one must run in another, such as /tmp'
expect '' 'more errors' "$(cat <&$said)" ''
exec {said}<&-
expect '' 'what the program says' "$(cat out)" "$(printf '%s: Operation not permitted\n/tmp/there: hello\n' here again)"
case_done sockets

# ---- the owner of the files ----

out=$(umask 027 && plain /bin/sh -c 'umask; echo x >with-umask; cat /proc/cmdline >cmdline' && stat -c %a with-umask)
expect '' 'umask in the guest, and of its file' "$out" "$(printf '%s\n' 0027 640)"
case_done umask

# The guest's kernel uses its own protections. An emulated CPU needs only a part of them.
expect '' 'kernel at a known place' "$(grep -o -w nokaslr cmdline)" ''
if [ -w /dev/kvm ] && grep -q -w -m1 -E 'vmx|svm' /proc/cpuinfo; then
	expect '' 'kernel without mitigations' "$(grep -o mitigations=off cmdline)" ''
fi
case_done kernel-options

# user COMMAND...: runs COMMAND as an ordinary user, who has his own checkout and cache.
user() {
	setpriv --reuid 12345 --regid 12346 --groups 12346,12347 env HOME="$dir/user" \
		TMPDIR="$dir/user" QCU_CACHE="$dir/user/cache" QCU_BUILD="$dir/user/build" "$@"
}
as_user() {
	out=$(user timeout -k 5 $((120 * slow)) "$dir/user/scripts/qcu" "$@" 2>err)
}
if [ "$(id -u)" -ne 0 ]; then
	echo '@skip ordinary-user only root can become one'
	exit $((failed > 0))
fi
chmod 755 "$dir"
mkdir -p "$dir/user/cache" "$dir/user/share" "$dir/user/build" "$dir/user/qcu-device"
cp -r "$here/scripts" "$dir/user/"
cp -r "$here/qcu-device/qemu" "$dir/user/qcu-device/"
cp -r "$here/${B:-build}/scripts" "$dir/user/build/"
for f in "$("$here/scripts/build-qemu" --print-dir)" "$("$here/scripts/build-guest" | tail -n 1)"; do
	cp -a "$f" "$dir/user/cache/"
done
chown 12345:12346 "$dir/user" "$dir/user/cache" "$dir/user/share"
cd "$dir/user/share" || exit 2
echo secret >roots
chmod 600 roots
user sh -c 'echo mine >his; chmod 600 his' 2>/dev/null || {
	echo "@skip ordinary-user $dir is out of others' reach"
	exit $((failed > 0))
}
cat >all <<'END'
id -u; id -g; id -G
cat his
cat roots 2>/dev/null || echo refused
(echo more >roots) 2>/dev/null || echo refused
mkdir folder
printf '#!/bin/sh\necho ran\n' >folder/program
chmod 755 folder/program
folder/program
echo 'by name' >/dev/stdout
echo 'on error' >/dev/stderr
echo mine >/tmp/file && echo 'in /tmp'
touch "$HOME/at-home" && echo 'at home'
chmod 4755 folder/program 2>/dev/null || echo 'no setuid'
mknod node p 2>/dev/null || echo 'no pipe'
(cat /dev/vport0p5) 2>/dev/null || echo 'no port'
cat his >copy
kill -11 $$
END
as_user run --no-device --no-module --mem 512M /bin/sh all
expect '' 'exit code by signal' $? 139
expect '' 'what he can do' "$out" "$(printf '%s\n' 12345 12346 '12346 12347' mine refused refused ran \
	'by name' 'in /tmp' 'at home' 'no setuid' 'no pipe' 'no port')"
expect '' 'error' "$(cat err)" 'on error'
expect '' 'what he made' "$(stat -c '%u %g %a %n' folder folder/program copy)" \
	"$(printf '%s\n' '12345 12346 755 folder' '12345 12346 755 folder/program' '12345 12346 644 copy')"
expect '' 'what is not his' "$(cat roots)" secret
# A script of the vm command is root in the guest, but not on the host.
echo 'id -u; echo x >by-script; cat roots 2>/dev/null || echo refused' >../script
as_user vm --no-device --no-module --mem 512M --script ../script
expect '' 'a script of the vm command' "$out" "$(printf '%s\n' 0 refused)"
expect '' 'whose file it makes' "$(stat -c '%u %g' by-script)" '12345 12346'
# With another root, he is himself there too, also where the root does not know him.
as_user run --no-device --no-module --mem 512M --root / /bin/sh -c 'id -u; id -g; id -G; cat his; cat roots 2>/dev/null || echo refused
	cat /etc/shadow >/dev/null 2>&1 || echo refused; (echo x >/etc/x) 2>/dev/null || echo refused; echo x >in-root'
expect '' 'with another root' "$out" "$(printf '%s\n' 12345 12346 '12346 12347' mine refused refused refused)"
expect '' 'whose file it makes there' "$(stat -c '%u %g %a' in-root)" '12345 12346 644'
expect '' 'left behind' "$(ls -d ../qcu.* 2>/dev/null)" ''
case_done ordinary-user
[ "$failed" -eq 0 ]
