#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# OpenCL programs of Debian's packages, unchanged (opencl.txt), on PoCL and the software GPU: over the loopback
# library, and then all of them in one VM, which finds the kernels that the first runs have compiled. They run on
# request (tests/run real/opencl). PROGRAMS names some of them.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

PROGRAMS=${PROGRAMS:-$(awk '!/^#/ { print $1 }' tests/real/opencl.txt)}
if ! { dir=$(tests/real/fetch-opencl) && pocl=$(scripts/opencl/build-pocl); } 2>"$tmp/why"; then
	for p in $PROGRAMS; do
		echo "@skip $p $(tail -n 1 "$tmp/why")"
	done
	exit 0
fi
export OCL_ICD_VENDORS=$pocl/vendors POCL_CUDA_TOOLKIT_PATH=$pocl POCL_CACHE_DIR=$tmp/share/cache
mkdir "$POCL_CACHE_DIR"
host_limit=300
: >"$tmp/inside"
programs=()
while read -r name pattern program arguments; do
	[[ " ${PROGRAMS//$'\n'/ } " = *" $name "* ]] || continue
	# shellcheck disable=SC2086
	expect_host "loopback-$name" 0 "$pattern" env LD_LIBRARY_PATH="$PWD/$B/loopback:$dir/lib" \
		"$dir/bin/$program" $arguments
	[[ " ${programs[*]} " == *" $dir/bin/$program "* ]] || programs+=("$dir/bin/$program")
	cat >>"$tmp/inside" <<-END
		expect $name 0 $program $arguments
		cp \$log /tmp/printed
		begin $name-says
		grep -q -E -e '$pattern' /tmp/printed && pass || fail 'it does not say $pattern'
	END
done < <(grep -v '^#' tests/real/opencl.txt)
export LD_LIBRARY_PATH=$dir/lib
with "${programs[@]}"
boot --gpu soft --opencl --timeout 1000 "${with[@]}" <<END
limit=300
export POCL_CACHE_DIR=$POCL_CACHE_DIR
$(cat "$tmp/inside")
END
