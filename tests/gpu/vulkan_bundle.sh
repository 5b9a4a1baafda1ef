#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: tests/gpu/vulkan_bundle.sh [--lavapipe] [FILE]
#
# Makes the archive FILE (default: build/vulkan-bundle.tar.xz) with all that tests/gpu/vulkan.sh needs on a machine that has
# NVIDIA's GPU and driver, but no network and no packages: a small Debian 13 with QEMU, virglrenderer and Mesa, the
# launcher, the guest and the programs. There:
#
#   mkdir /tmp/vk && tar -xJf vulkan-bundle.tar.xz -C /tmp/vk && /tmp/vk/vulkan.sh OUT
#
# With --lavapipe, Mesa's Vulkan in software is in it, too, so that the archive can be tested on a machine without a GPU
# (vulkan.sh --software); it is much larger then. Needs root and the network. The Debian is that of tests/fresh/vulkan.sh.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2
# shellcheck source=tests/fresh/vulkan_lib.sh
. "$root/tests/fresh/vulkan_lib.sh" || exit 2

max_mb=55
lavapipe=
case ${1:-} in
--help | -h) echo 'usage: tests/gpu/vulkan_bundle.sh [--lavapipe] [FILE]' && exit ;;
--lavapipe) lavapipe=lavapipe && shift ;;
-*) die "unknown argument $1 (try --help)" ;;
esac

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
file=$(realpath -m "${1:-$build/vulkan-bundle.tar.xz}")
need_root_folder
need xz
self=vulkan-bundle
vulkan_folders

main() {
	local bare new machine collected mb
	vulkan_debian
	collected=$work/collected
	mkdir "$collected"
	folders+=("$collected:/collected")
	step "ready"
	enter /qcuda/tests/gpu/vulkan_collect.sh $lavapipe || die "not all could be collected"
	cp -p "$root/tests/gpu/vulkan.sh" "$root/tests/fresh/enter.sh" "$collected/"
	echo "commit $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)" >>"$collected/root/VERSIONS"
	step "packing"
	tar -C "$collected" --sort=name --owner=0 --group=0 --numeric-owner -c . | xz -T2 -7 >"$work/packed" ||
		die "cannot pack the archive; is the disk full?"
	mb=$(($(stat -c %s "$work/packed") >> 20))
	[ -n "$lavapipe" ] || [ $mb -lt $max_mb ] || die "the archive has $mb MB, but $max_mb is the limit"
	mv "$work/packed" "$file"
	step "$file: $mb MB"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
