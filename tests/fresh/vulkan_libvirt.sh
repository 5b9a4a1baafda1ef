#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# qcu attach --vulkan: a domain of libvirt gets a GPU for Vulkan beside the one for CUDA, and programs that use them
# run in it. When both are taken away, the domain is as it was. vulkan_inside.sh runs this.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh" || exit 2
# shellcheck source=tests/vm/again.sh
. tests/vm/again.sh
export QCU_QEMU=system
# shellcheck source=tests/vm/libvirtd.sh
. tests/vm/libvirtd.sh

again_and_again_initrd "$guest_dir" "$tmp/initrd" "$B"/vulkan/{compute,both}
domain_xml
attach=("$qcu" attach --connect "$uri" --socket "$socket" --sessions 4)
detach=("$qcu" detach --connect "$uri")

# ---- what is refused ----

# refused NAME PATTERN SED OPTION...: attach refuses the domain that sed makes of domain.xml.
refused() {
	local name=$1 pattern=$2 change=$3
	shift 3
	sed "$change" "$tmp/domain.xml" >"$tmp/changed.xml"
	expect_host "$name" 2 "$pattern" "$qcu" attach --xml "$tmp/changed.xml" "$@"
}
commandline() {
	echo "s|<devices>|<commandline xmlns='http://libvirt.org/schemas/domain/qemu/1.0'>$1</commandline><devices>|"
}
refused size 'power of two' '' --vulkan=3G
refused node 'must be none or one of' '' --vulkan --render-node /dev/null
refused display-of-its-own 'has -display in its' "$(commandline "<arg value='-display'/><arg value='none'/>")" --vulkan
refused sandbox-of-its-own 'has -sandbox in its' "$(commandline "<arg value='-sandbox'/><arg value='on'/>")" --vulkan
refused variable-of-its-own 'sets VK_DRIVER_FILES in' \
	"$(commandline "<env name='VK_DRIVER_FILES' value='/x'/>")" --vulkan
refused window "<graphics type='sdl'>, which draws" "s|<devices>|<devices><graphics type='sdl'/>|" --vulkan
refused spice-with-gl "<graphics type='spice'>, which draws" \
	"s|<devices>|<devices><graphics type='spice'><gl enable='yes'/></graphics>|" --vulkan
refused no-emulator 'names no emulator' '/<emulator>/d' --front general --vulkan
mv /usr/libexec/virgl_render_server{,.away}
refused no-render-server 'render server is not here.*virgl-server' '' --vulkan
mv /usr/libexec/virgl_render_server{.away,}

# ---- attach, detach ----

virsh define "$tmp/domain.xml" >/dev/null
as_it_is >"$tmp/before.xml"
expect_host print 0 'virtio-gpu-gl-pci,blob=on,venus=on,hostmem=1024M,' "${attach[@]}" --print --vulkan guest
if same_as "$tmp/before.xml"; then echo '@ok print-changes-nothing'; else echo '@FAIL print-changes-nothing'; fi
mkdir "$tmp/other"
# shellcheck disable=SC2016 # for the shell there
printf '#!/bin/sh\ncase "$*" in\n*domxml-to-native*) echo "-sandbox on,spawn=deny" ;;\n*) exec %s "$@" ;;\nesac\n' \
	"$(type -P virsh)" >"$tmp/other/virsh"
chmod +x "$tmp/other/virsh"
expect_host libvirt-that-denies 2 'seccomp_sandbox = 0' env PATH="$tmp/other:$PATH" "${attach[@]}" --vulkan guest
if same_as "$tmp/before.xml"; then echo '@ok refusal-changes-nothing'; else echo '@FAIL refusal-changes-nothing'; fi
expect_host attach 0 'guest has a qCUDA device and a GPU for Vulkan' "${attach[@]}" --vulkan=256M guest
as_it_is >"$tmp/with.xml"
expect_host twice 0 'has this qCUDA device already' "${attach[@]}" --vulkan=256M guest
expect_host without 0 'guest has a qCUDA device;' "${attach[@]}" guest
if as_it_is | grep -E 'vulkan|egl|sandbox|qemu:env'; then echo '@FAIL no-vulkan-any-more'; else echo '@ok no-vulkan-any-more'; fi
expect_host and-back 0 'and a GPU for Vulkan' "${attach[@]}" --vulkan=256M guest
if same_as "$tmp/with.xml"; then echo '@ok as-with-it'; else echo '@FAIL as-with-it'; fi
expect_host detach 0 'the device of guest is taken away' "${detach[@]}" guest
if same_as "$tmp/before.xml"; then echo '@ok as-before'; else echo '@FAIL as-before'; fi
expect_host attach-again 0 'and a GPU for Vulkan' "${attach[@]}" --vulkan=256M guest

# ---- programs in the domain ----

serve
virsh start guest
result start $?
[ "$(virsh domstate guest)" = running ] || exit 0
said '^program: [0-9]' 0 && grep '^program: 0' "$console" >/dev/null
result programs-run $?

# The render server is confined and limited, as with qcu run. Its parent is QEMU, which is of the same user.
server=$(pgrep -o virgl_render_se)
limit=$(awk '/^Max address space/ { print $4 }' "/proc/$server/limits")
if [ "$limit" = $(((256 * 2 + 4096) << 20)) ] && grep -E '^CapPrm:[[:space:]]*0*$' "/proc/$server/status" >/dev/null &&
	[ "$(readlink "/proc/$server/ns/net")" != "$(readlink /proc/self/ns/net)" ]; then
	echo '@ok server-has-limits'
else
	echo "@FAIL server-has-limits $server: $limit"
fi

# Several -sandbox add up, so libvirt's own must be away: with it, there is no GPU for Vulkan.
virsh destroy guest >/dev/null
wait "$device"
grep -v "capability='seccomp-sandbox'" "$tmp/with.xml" >"$tmp/denied.xml"
virsh define "$tmp/denied.xml" >/dev/null
rm "$console"
serve
virsh start guest
said '^program: [0-9]' 0 && grep '^tests/vulkan/vk.c:.*: -3' "$console" >/dev/null # VK_ERROR_INITIALIZATION_FAILED
result libvirts-sandbox-denies $?

virsh destroy guest >/dev/null
expect_host detach-after-all 0 'is taken away' "${detach[@]}" guest
if same_as "$tmp/before.xml"; then echo '@ok as-before-after-all'; else echo '@FAIL as-before-after-all'; fi
