#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests qcu vm --disk: wrong calls, the arguments that it prints, a disk that boots and uses its console,
# and a CUDA program in a VM that was started this way.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/again.sh
. tests/vm/again.sh

vm=("$qcu" vm --accel tcg)

# A disk whose boot sector says something on the serial console, returns what is typed, and switches the
# machine off at a q.
cat >"$tmp/boot.s" <<'END'
	.code16
	.globl _start
_start:	xorw %ax, %ax
	movw %ax, %ds
	cld
	movw $text, %si
next:	lodsb
	testb %al, %al
	jz typed
	call put
	jmp next
typed:	movw $0x3fd, %dx
	inb %dx, %al
	testb $1, %al
	jz typed
	movw $0x3f8, %dx
	inb %dx, %al
	call put
	cmpb $'q', %al
	jne typed
	movb $10, %al
	call put
	movw $0x604, %dx
	movw $0x2000, %ax
	outw %ax, %dx
stop:	hlt
	jmp stop
put:	movb %al, %bl
wait:	movw $0x3fd, %dx
	inb %dx, %al
	testb $0x20, %al
	jz wait
	movw $0x3f8, %dx
	movb %bl, %al
	outb %al, %dx
	ret
text:	.asciz "booted from the disk\r\n"
	.org 510
	.word 0xaa55
END
disk=$tmp/a,disk.img
as --32 -o "$tmp/boot.o" "$tmp/boot.s" && ld -m elf_i386 --oformat binary -Ttext 0x7c00 -o "$disk" "$tmp/boot.o" || exit 2
truncate -s 1M "$disk"

# ---- wrong calls ----

expect_host not-there 2 'no such file' "${vm[@]}" --disk "$tmp/none"
expect_host a-folder 2 'no such file' "${vm[@]}" --disk "$tmp"
expect_host disk-of-run 2 'belongs to the vm command' "$qcu" run --disk "$disk" /bin/true
expect_host with-a-script 2 'does not go with --disk' "${vm[@]}" --disk "$disk" --script "$0"
expect_host with-a-file 2 'does not go with --disk' "${vm[@]}" --disk "$disk" --with "$0"
expect_host with-a-klog 2 'does not go with --disk' "${vm[@]}" --disk "$disk" --klog "$tmp/klog"
expect_host with-a-program 2 'takes no program: x' "${vm[@]}" --disk "$disk" x
expect_host with-chunks 2 'loads its own module' "${vm[@]}" --disk "$disk" --chunk 1M
expect_host seed-alone 2 '\-\-seed belongs to --disk' "${vm[@]}" --seed "$disk"
expect_host packages-alone 2 '\-\-packages belongs to --disk' "${vm[@]}" --packages "$tmp"
expect_host print-alone 2 '\-\-print belongs to --disk' "${vm[@]}" --print
expect_host save-alone 2 '\-\-save belongs to --disk' "${vm[@]}" --save "$tmp/x"
expect_host restore-alone 2 '\-\-restore belongs to --disk' "${vm[@]}" --restore "$tmp/x"
expect_host save-and-restore 2 'does not go with --restore' "${vm[@]}" --disk "$disk" --save "$tmp/x" --restore "$tmp/x"
expect_host save-there 2 'is there already' "${vm[@]}" --disk "$disk" --save "$disk"
expect_host save-nowhere 2 'no such folder' "${vm[@]}" --disk "$disk" --save "$tmp/none/x"
expect_host save-nothing 125 'no VM with this disk runs' "${vm[@]}" --disk "$disk" --save "$tmp/x"
expect_host restore-nothing 2 'no such file' "${vm[@]}" --disk "$disk" --restore "$tmp/none"
expect_host clone-nothing 2 'no such file' "${vm[@]}" --disk "$disk" --clone "$tmp/none"
expect_host clone-and-restore 2 'clone does not go with --restore' "${vm[@]}" --disk "$disk" --clone "$disk" --restore "$disk"
expect_host restore-no-vm 2 'not a VM that was saved' "${vm[@]}" --disk "$disk" --restore "$disk"
expect_host neither 2 'needs --script FILE or --disk IMAGE' "${vm[@]}"
expect_host no-seed 2 'no such file' "${vm[@]}" --disk "$disk" --seed "$tmp/none"
expect_host no-packages 2 'there are no packages in it' "${vm[@]}" --disk "$disk" --packages "$tmp/share"
printf 'KDMV and more' >"$tmp/other.vmdk"
expect_host other-format 2 'neither raw nor qcow2; qemu-img convert' "${vm[@]}" --disk "$tmp/other.vmdk"

# qcow2 FILE BACKING: the header of an image that stands on another one.
qcow2() {
	{
		printf 'QFI\xfb\0\0\0\3\0\0\0\0\0\0\0\x1c\0\0\0'
		printf '%b' "\\x$(printf %02x ${#2})"
		printf '\0\0\0\0\0\0\0\0%s' "$2"
	} >"$1"
}
qcow2 "$tmp/top.qcow2" none.qcow2
expect_host stands-on-nothing 2 'stands on .*none.qcow2, which is not there' "${vm[@]}" --disk "$tmp/top.qcow2"
qcow2 "$tmp/top.qcow2" top.qcow2
expect_host stands-on-itself 2 'it stands on itself' "${vm[@]}" --disk "$tmp/top.qcow2"
if [ "$(id -u)" -ne 0 ]; then
	chmod 400 "$disk"
	expect_host read-only-disk 2 'cannot be read and written' "${vm[@]}" --disk "$disk"
	chmod 600 "$disk"
fi

# ---- the arguments ----

expect_host print-disk 0 "file=$tmp/a,,disk.img,format=raw,if=none" "${vm[@]}" --disk "$disk" --print
expect_host print-memory 0 '^  -object memory-backend-memfd,id=ram,size=512M,share=on' \
	"${vm[@]}" --disk "$disk" --print --mem 512M
expect_host print-device 0 'sessions=7 |num_vqs=8,' "${vm[@]}" --disk "$disk" --print --sessions 7
expect_host print-command 0 '^# first: qcu-device --socket .*/qcu.sock --gpu soft' "${vm[@]}" --disk "$disk" --print --gpu soft
expect_host print-network 0 'netdev user|has no user networking' "${vm[@]}" --disk "$disk" --print
: >"$tmp/share/x.deb"
expect_host print-packages 0 "mount_tag=qcuda" "${vm[@]}" --disk "$disk" --print --packages "$tmp/share"
expect_host print-seed 0 "seed.img,format=raw,if=none,id=seed,readonly=on" bash -c \
	"cp '$disk' '$tmp/seed.img' && ${vm[*]} --disk '$disk' --print --seed '$tmp/seed.img'"
qcow2 "$tmp/top.qcow2" a,disk.img
expect_host print-qcow2 0 "format=qcow2" "${vm[@]}" --disk "$tmp/top.qcow2" --print
# What is printed starts: QEMU takes each of these arguments.
"${vm[@]}" --disk "$disk" --no-device --print 2>/dev/null >"$tmp/printed"
expect_host printed-starts 0 'booted from the disk' bash -c "printf q | sh '$tmp/printed'"

# ---- a disk that boots ----

host_limit=150
expect_host boots 0 '^hello-q' bash -c "printf hello-q | ${vm[*]} --disk '$disk' --no-device"
expect_host with-a-device 0 'hello-q' bash -c "printf hello-q | ${vm[*]} --disk '$disk' --gpu soft --seed '$tmp/seed.img' \
	--packages '$tmp/share' --share '$tmp/share'"
expect_host does-not-end 124 'ended after' "${vm[@]}" --disk "$disk" --no-device --timeout 5
expect_host bad-qemu-argument 125 'QEMU has ended' "${vm[@]}" --disk "$disk" --no-device --qemu-arg -no-such-option

# ---- saved, and restored ----

# started OPTION...: a VM of the disk runs in the background, and gets its input from the pipe $typing.
started() {
	rm -f "$tmp/typed"
	mkfifo "$tmp/typed"
	"${vm[@]}" --disk "$disk" --gpu soft --mem 256M "$@" <"$tmp/typed" >"$tmp/console" 2>&1 &
	vm_pid=$!
	exec {typing}>"$tmp/typed"
}
# shown TEXT: waits until the console has shown TEXT.
shown() {
	local i
	for ((i = 0; i < 300 * slow; i++)); do
		! grep -q "$1" "$tmp/console" || return 0
		kill -0 $vm_pid 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}
started
shown 'booted from the disk'
printf hel >&"$typing"
shown hel
expect_host save-is-there 125 'File exists' bash -c ": >'$tmp/x.part' && ${vm[*]} --disk '$disk' --save '$tmp/x'"
mkdir "$tmp/small" && mount -t tmpfs -o size=1M small "$tmp/small" 2>/dev/null && {
	expect_host disk-full 125 'No space left' "${vm[@]}" --disk "$disk" --save "$tmp/small/x"
	umount "$tmp/small"
}
expect_host saves 0 ended bash -c "${vm[*]} --disk '$disk' --save '$tmp/saved,vm' && tail --pid=$vm_pid -f /dev/null && echo ended"
exec {typing}>&-
# Two at once, and the disk stays as it is.
wrong=
for n in 1 2; do
	mkfifo "$tmp/typed.$n"
	"${vm[@]}" --disk "$disk" --gpu soft --mem 256M --clone "$tmp/saved,vm" <"$tmp/typed.$n" >"$tmp/console.$n" 2>&1 &
	clone[n]=$!
	exec {to}>"$tmp/typed.$n"
	typing_to[n]=$to
done
for n in 1 2; do
	# What comes before a VM has been loaded is lost.
	while kill -0 "${clone[n]}" 2>/dev/null; do
		printf q >&"${typing_to[n]}" 2>/dev/null
		sleep 0.2
	done
	wait "${clone[n]}" || wrong+=" clone $n ended with $?."
	to=${typing_to[n]}
	exec {to}>&-
done
if [ -n "$wrong" ]; then echo "@FAIL cloned$wrong"; else echo '@ok cloned'; fi
started --restore "$tmp/saved,vm"
printf lo-q >&"$typing" # what comes before the VM has been loaded is lost
expect_host ends-when-restored 0 ended bash -c "tail --pid=$vm_pid -f /dev/null && echo ended"
exec {typing}>&-
expect_host goes-on 0 'q$' cat "$tmp/console"
touch "$disk"
expect_host cloned-too-late 2 'was written after the VM was saved' "${vm[@]}" --disk "$disk" --clone "$tmp/saved,vm"
expect_host restored-too-late 2 'was written after the VM was saved' "${vm[@]}" --disk "$disk" --restore "$tmp/saved,vm"

cat >"$tmp/console.py" <<'END'
import os, pty, select, subprocess, sys, termios

master, slave = pty.openpty()
before = termios.tcgetattr(slave)
p = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
said, typed = b"", 0
while p.poll() is None:
    if select.select([master], [], [], 0.2)[0]:
        said += os.read(master, 4096)
    if typed == 0 and b"booted from the disk" in said:
        os.write(master, b"\x03hello!")  # Ctrl-C is the guest's
        typed = 1
    elif typed == 1 and b"hello!" in said.split(b"disk", 1)[1]:
        os.write(master, b"\x01x")
        typed = 2
assert typed == 2 and b"\x03hello!" in said, said
assert termios.tcgetattr(slave) == before, "the terminal is not as it was"
print("a console, and", p.returncode)
END
expect_host on-a-terminal 0 '^a console, and 0$' python3 "$tmp/console.py" "${vm[@]}" --disk "$disk" --no-device

# ---- a VM with CUDA programs, of which one is at work, cloned ----

guest_dir=$(scripts/build-guest | tail -n 1)
printf '#!/bin/sh\nvector_add && echo added >/dev/ttyS0\nexec long_work 1000000 0 >/dev/ttyS0 2>&1\n' >"$tmp/warm"
chmod +x "$tmp/warm"
again_and_again_initrd "$guest_dir" "$tmp/initrd" "$tmp/warm" "$guest"/{vector_add,long_work}
machine=(--qemu-arg -kernel --qemu-arg "$guest_dir/vmlinux" --qemu-arg -initrd --qemu-arg "$tmp/initrd" --qemu-arg -append --qemu-arg
	"$again_kernel")
started "${machine[@]}"
shown 'step 5:'
expect_host program-runs 0 '^added' cat "$tmp/console"
expect_host saves-a-program 0 ended bash -c "${vm[*]} --disk '$disk' --save '$tmp/warm.vm' && tail --pid=$vm_pid -f /dev/null && echo ended"
kill $vm_pid 2>/dev/null
wait $vm_pid
exec {typing}>&-
wrong=
for n in 1 2; do
	"${vm[@]}" --disk "$disk" --gpu soft --mem 256M "${machine[@]}" --clone "$tmp/warm.vm" </dev/null >"$tmp/console.$n" 2>&1 &
	clone[n]=$!
done
for n in 1 2; do
	until [ "$(grep -c '^step .*texture [0-9]*.$' "$tmp/console.$n")" -ge 5 ]; do
		kill -0 "${clone[n]}" 2>/dev/null || break
		sleep 0.2
	done
	kill -TERM "${clone[n]}" 2>/dev/null
	wait "${clone[n]}"
	rc=$?
	# The first line may have begun before.
	grep '^step .*texture [0-9]*.$' "$tmp/console.$n" | sed -n 2,5p >"$tmp/steps.$n"
	# Each goes on where it was saved, and says what the others say.
	[ $rc -eq 143 ] && [ "$(wc -l <"$tmp/steps.$n")" -eq 4 ] && ! grep -q 'step 0:' "$tmp/steps.$n" && cmp "$tmp/steps.1" "$tmp/steps.$n" || {
		wrong+=" clone $n ended with $rc."
		tail -n 5 "$tmp/console.$n"
	}
done
if [ -n "$wrong" ]; then echo "@FAIL clones-of-a-program$wrong"; else echo '@ok clones-of-a-program'; fi
# A program that cannot be made again is named, and the VM does not start without it.
expect_host clone-not-made 125 'long_work .pid [0-9]* in the VM. cannot be restored' "${vm[@]}" --disk "$disk" --gpu soft --mem 256M \
	"${machine[@]}" --device-arg --limit=mapped=64K --clone "$tmp/warm.vm"

# A process that has been ended may still be there for a moment.
for ((i = 0; i < 300 * slow; i++)); do
	left=$(pgrep -a -f "$disk") || break
	sleep 0.1
done
if [ -n "$left" ]; then echo "@FAIL nothing-left $left"; else echo '@ok nothing-left'; fi
