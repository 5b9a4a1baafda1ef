#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests --vulkan: what it refuses, and programs in guests that have a GPU for Vulkan and one for CUDA.
# vulkan_inside.sh runs this, in a folder that can be changed; its results are lines as in tests/vm/.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh" || exit 2
icds=/usr/share/vulkan/icd.d libs=/usr/lib/x86_64-linux-gnu

# ---- what is refused ----

# refuses NAME PATTERN OPTION...: qcu run with these options must end with 2, and say why.
refuses() {
	local name=$1 pattern=$2
	shift 2
	expect_host "refuses-$name" 2 "$pattern" "$qcu" run "$@" /bin/true
}

# refuses_without NAME FILE PATTERN [OPTION...]: the same, while FILE is not there.
refuses_without() {
	local name=$1 file=$2 pattern=$3
	shift 3
	mv "$file" "$file.away" || exit 2
	refuses "$name" "$pattern" --vulkan "$@"
	mv "$file.away" "$file"
}

refuses size '--vulkan=lots: must be a size' --vulkan=lots
refuses empty 'needs a value' --vulkan=
refuses small 'power of two from 64M to 64G' --vulkan=32M
refuses odd 'power of two' --vulkan=3G
refuses large 'power of two' --vulkan=128G
if [ "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -lt $((64 << 20)) ]; then
	refuses more-than-memory 'more memory than this machine has' --vulkan=64G
fi
refuses own-qemu 'our QEMU has no OpenGL' --vulkan --qemu own
refuses node-alone 'belongs to --vulkan' --render-node none
refuses node 'must be none or one of' --vulkan --render-node /dev/null
refuses gone-node 'must be none or one of' --vulkan --render-node /dev/dri/renderD777
refuses_without modules $libs/qemu/hw-display-virtio-gpu-gl.so 'no virtio-gpu-gl-pci.*qemu-system-modules-opengl'
refuses_without display $libs/qemu/ui-egl-headless.so 'no display egl-headless.*qemu-system-modules-opengl'
refuses_without server /usr/libexec/virgl_render_server 'render server is not here.*virgl-server'
refuses_without egl $libs/libEGL.so.1 'no libEGL.so.1.*libegl1'
refuses_without software $icds/lvp_icd.json 'no driver of Vulkan in software.*mesa-vulkan-drivers'
refuses_without guest-driver $icds/virtio_icd.json 'no driver for the guest.*mesa-vulkan-drivers'
refuses_without guest-library $libs/libvulkan_virtio.so 'libvulkan_virtio.so, which is not there'
mkdir "$tmp/root"
refuses root-without-mesa 'no driver for the guest in .*install mesa-vulkan-drivers there' --vulkan --root "$tmp/root"
VK_DRIVER_FILES=$tmp/none.json refuses icd-gone 'names .*none.json, which is not there' --vulkan
echo '{"ICD":{"library_path":"libnothing.so.9"}}' >"$tmp/wrong.json"
VK_DRIVER_FILES=$tmp/wrong.json refuses icd-wrong 'libnothing.so.9, which is not there' --vulkan
echo nonsense >"$tmp/nonsense.json"
VK_DRIVER_FILES=$tmp/nonsense.json refuses icd-nonsense 'names no library' --vulkan

# ---- a GPU's driver without a render node ----

# memory_limit ICD: prints what a process of the render server may have with this driver, in KiB.
memory_limit() {
	VK_DRIVER_FILES=$1 scripts/vulkan/for-domain "$(type -P qemu-system-x86_64)" 256M none >"$tmp/for-domain" || echo failed
	sed -n 's/^env QCU_SERVER_MEMORY=//p' "$tmp/for-domain"
}

cp $libs/libvulkan_lvp.so "$tmp/libvulkan_other.so"
echo "{\"ICD\":{\"library_path\":\"$tmp/libvulkan_other.so\"}}" >"$tmp/other.json"
limits="$(memory_limit $icds/lvp_icd.json) $(memory_limit "$tmp/other.json")"
if [ "$limits" = "$(((256 * 2 + 4096) * 1024)) " ]; then
	echo '@ok limit-in-software-only 0.0'
else
	echo "@FAIL limit-in-software-only $limits"
fi

# ---- what works ----

truncate -s 1M "$tmp/disk"
expect_host disk-print 0 'virtio-gpu-gl-pci,blob=on,venus=on,hostmem=512M' "$qcu" vm --vulkan=512M --disk "$tmp/disk" --print
if grep -e '-display none' "$tmp/out"; then
	echo '@FAIL disk-display'
else
	echo '@ok disk-display 0.0'
fi

# A second VM, beside the first one.
mkdir "$tmp/second"
(
	TMPDIR=$tmp/second "$qcu" run --vulkan --gpu soft "$B/vulkan/compute" >"$tmp/second/out" 2>"$tmp/second/err"
	echo $? >"$tmp/second/code"
) &
second=$!

# The render server's processes have no capabilities, also if root is the caller, and no network.
look_at_servers() {
	local p
	for p in $(pgrep '^virgl'); do
		grep -E '^CapPrm:[[:space:]]*0*$' "/proc/$p/status" >/dev/null &&
			[ "$(readlink "/proc/$p/ns/net")" != "$(readlink /proc/self/ns/net)" ] || echo "$p"
	done >"$tmp/not-alone"
}

# The render server has a process of its own and one for each program of a guest, the newest one for the one started
# last. kill_server waits until two programs of the first VM work, and the second VM has ended. Its processes end a
# little later.
kill_server() {
	local i
	for ((i = 0; i < 3000 * ${QCU_SLOW:-1}; i++)); do
		if [ -e "$tmp/share/looping" ] && [ -e "$tmp/second/code" ] && [ "$(pgrep -c '^virgl')" -eq 3 ]; then
			look_at_servers
			pkill -KILL -n '^virgl-[0-9]+-gpu' && mv "$tmp/share/looping" "$tmp/share/killed"
			return
		fi
		sleep 0.1
	done
}

with "$B"/vulkan/{compute,both}
cp "$B/vulkan/native" "$tmp/share/"
export SHARE=$tmp/share VULKAN_DRIVER=22 # 22: Venus
kill_server &
boot --vulkan=256M --gpu soft "${with[@]}" <<'END'
begin same-as-natively
compute >/tmp/one 2>$log && cmp /tmp/one "$SHARE/native" >>$log && pass || fail "exit code $?"

expect both-in-one-process 0 both

begin two-programs
compute >/tmp/one 2>$log &
first=$!
both >/tmp/two 2>&1 &
second=$!
why=
wait $first && cmp /tmp/one "$SHARE/native" >>$log || why=compute
wait $second || why="$why both: $(cat /tmp/two)"
[ -z "$why" ] && pass || fail "$why"

expect window-exhausted 0 compute exhaust 1024
expect after-window-exhausted 0 both
# What the render server may have is limited, whether it is mapped or not: that program ends, and no other.
expect memory-within-the-limit 0 compute allocate 1024
expect memory-exhausted '[1-9]*' compute allocate 16384
expect after-memory-exhausted 0 both

# The host kills the process that serves one of two programs.
begin server-killed
compute loop >/tmp/one 2>>$log &
first=$!
until_true grep -q looping /tmp/one
compute loop >/tmp/two 2>>$log &
second=$!
until_true grep -q looping /tmp/two
: >"$SHARE/looping"
why=
until_true test -e "$SHARE/killed" || why='nothing was killed'
if [ -n "$why" ]; then
	kill $second
fi
wait $second
[ $? -ne 0 ] || why="$why the program did not notice"
kill -0 $first || why="$why the other program has ended, too"
both >>$log 2>&1 || why="$why no new program runs"
kill $first
wait $first
[ -z "$why" ] && pass || fail "$why"
END
if [ -e "$tmp/not-alone" ] && [ ! -s "$tmp/not-alone" ]; then
	echo '@ok servers-alone 0.0'
else
	echo "@FAIL servers-alone $(cat "$tmp/not-alone")"
fi
wait $second
cat "$tmp/second/err"
if [ "$(cat "$tmp/second/code")" = 0 ] && cmp "$tmp/second/out" "$B/vulkan/native"; then
	echo "@ok two-vms 0.0"
else
	echo "@FAIL two-vms exit code $(cat "$tmp/second/code")"
fi
