#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Vulkan beside CUDA in one guest: a Debian 13 in a folder with backports' QEMU, virglrenderer and Mesa, whose
# Vulkan in software stands for a GPU. Programs are compiled there, and run natively and in VMs
# (vulkan_inside.sh). The device, the library and CUDA are those that were built here. The cache keeps that Debian
# (vulkan_lib.sh).
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2
# shellcheck source=tests/fresh/vulkan_lib.sh
. "$root/tests/fresh/vulkan_lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/vulkan.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
need_root_folder
self=vulkan
vulkan_folders

main() {
	local bare new machine
	vulkan_debian
	step "ready"
	enter /qcuda/tests/fresh/vulkan_inside.sh 2>&1 | tee "$work/log" || die "not all went well"
	! grep -B 8 '^@FAIL' "$work/log" || die "not all went well"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
