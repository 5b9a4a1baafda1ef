#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests qcu shell: wrong calls, -c, commands from a pipe, and a shell on a terminal.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

shell=("$root/$qcu" shell --mem 512M)

# ---- wrong calls, which need no VM ----

expect_host no-command 2 '\-c needs a command' "${shell[@]}" -c
expect_host a-program 2 'shell takes no program: /bin/true; -c COMMAND runs one' "${shell[@]}" /bin/true
expect_host script 2 'belongs to the vm command' "${shell[@]}" --script "$0"
expect_host c-of-run 2 '\-c belongs to the shell command' "$qcu" run -c true
expect_host other-letter 2 'unknown option -x' "${shell[@]}" -x
expect_host no-root 2 'no such folder' "${shell[@]}" --root "$tmp/none"

# ---- without a terminal ----

cp "$guest/vector_add" "$tmp/share/"
cp "$B/tests/guest-static/vector_add" "$tmp/share/linked"
cd "$tmp/share" || exit 2
echo here >file
host_limit=120
expect_host folder-and-code 7 '^here$' "${shell[@]}" --no-device --no-module -c 'cat file; echo new >written; exit 7'
expect_host written 0 '^new$' cat written
expect_host empty-command 0 '^ended$' bash -c "$root/$qcu shell --mem 512M --no-device --no-module -c '' && echo ended"
expect_host quotes 0 "^a  b'c\$" env X="a  b'c" "${shell[@]}" --no-device --no-module -c 'echo "$X"'
expect_host from-a-pipe 3 '^one 42$' bash -c "echo 'echo one \$((6*7)); exit 3' | $root/$qcu shell --mem 512M --no-device --no-module"
expect_host libraries 0 'verified' "${shell[@]}" --gpu soft -c './vector_add && ./linked && qcu-run ./linked'
expect_host other-root 5 "^$(id -un)\$" env SHELL=/bin/bash "${shell[@]}" --root / --no-device --no-module -c \
	'declare -a x=(1); id -un; exit 5'
cd "$root" || exit 2

# ---- on a terminal ----

cat >"$tmp/terminal.py" <<'END'
import fcntl, os, pty, select, struct, sys, termios, time

limit = 100 * int(os.environ.get("QCU_SLOW", 1))


def read_until(fd, text, said):
    end = time.monotonic() + limit
    while text not in said:
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit(f"not seen: {text!r} in {said!r}")
        try:
            part = os.read(fd, 4096)
        except OSError:
            part = b""
        if not part:
            sys.exit(f"ended before {text!r}: {said!r}")
        said += part
    return said


pid, fd = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", 31, 97, 0, 0))
said = read_until(fd, b"qcu:/", b"")
os.write(fd, b"stty size; tty; echo one-$((1+1))\r")
said = read_until(fd, b"one-2", said)
# Ctrl-C reaches the program in the guest, not the launcher.
os.write(fd, b"echo ready-$((2+1)); cat\r")
said = read_until(fd, b"ready-3", said)
os.write(fd, b"typed\r")
said = read_until(fd, b"typed\r\ntyped", said)
# What was typed before Ctrl-C arrives is thrown away, so wait for the shell.
os.write(fd, b"\x03")
said += read_until(fd, b"qcu:/", b"")
os.write(fd, b"echo code-$?-\r")
said = read_until(fd, b"code-130-", said)
os.write(fd, b"exit 9\r")
end = b""
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    end += part
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert b"31 97" in said and b"/dev/pts/" in said, said
assert code == 9, (code, end)
print("a terminal")
END
expect_host on-a-terminal 0 '^a terminal$' \
	python3 "$tmp/terminal.py" "$qcu" shell --mem 512M --no-device --no-module --share "$tmp/share"

# The terminal is as it was, whatever ended the shell.
cat >"$tmp/as-before.py" <<'END'
import os, pty, select, subprocess, sys, termios

master, slave = pty.openpty()
before = termios.tcgetattr(slave)
p = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
said, typed = b"", False
while p.poll() is None:
    if select.select([master], [], [], 0.2)[0]:
        said += os.read(master, 4096)
    # The prompt has a folder behind the colon, and the launcher's messages have a space. The
    # launcher makes the terminal raw at about the same time.
    if not typed and b"qcu:/" in said and termios.tcgetattr(slave) != before:
        os.write(master, b"echo c >/proc/sysrq-trigger\r")
        typed = True
assert typed, said
assert termios.tcgetattr(slave) == before, "the terminal is not as it was"
print("as before, after", p.returncode)
END
if [ "$(id -u)" -eq 0 ]; then
	expect_host terminal-after-a-crash 0 '^as before, after 125$' \
		python3 "$tmp/as-before.py" "$qcu" shell --mem 512M --no-device --no-module --share "$tmp/share"
else
	echo '@skip terminal-after-a-crash only root can crash the guest'
fi
