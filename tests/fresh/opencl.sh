#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# OpenCL with another LLVM than Debian 12's: in a bare Debian 13 in a folder, scripts/deps installs what PoCL needs,
# scripts/opencl/build-pocl builds it with LLVM 18, and the programs of tests/opencl are compiled and run on the software
# GPU over the loopback library that was built here (opencl_inside.sh). The cache keeps the packages and PoCL. It runs on
# request: the first time takes half an hour.
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/opencl.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

release=13 dist=trixie
build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
cuda=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")
need_root_folder
[ -e "$cuda/nvvm/libdevice/libdevice.10.bc" ] || skip "the CUDA Toolkit is not in $cuda"

main() {
	local bare new store=$cache/fresh/opencl
	make_cache
	mkdir -p "$store/archives" "$store/cache"
	folders=("$root:/qcuda:ro" "$build:/build:ro" "$cuda:/usr/local/cuda:ro"
		"$store/archives:/var/cache/apt/archives" "$store/cache:/root/.cache/qcuda")
	lock fresh-opencl
	need_space "$cache" 4000
	scratch
	new=$work/root
	mkdir "$new"
	bare_debian
	step "ready"
	enter /qcuda/tests/fresh/opencl_inside.sh 2>&1 | tee "$work/log" || {
		! grep -q -e 'is the network up' -e 'Unable to fetch' "$work/log" || fail "$work/log" "the network works, but not from there"
		die "not all went well"
	}
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
