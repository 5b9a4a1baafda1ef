#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# PyOpenCL's own tests, unchanged, on PoCL and the software GPU over the loopback library. They run on request (tests/run
# real/pyopencl). FILES names some of their files.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

FILES=${FILES:-enqueue_copy arrays_in_structs wrapper clrandom clmath algorithm array}
if ! { dir=$(tests/real/fetch-pyopencl) && pocl=$(scripts/opencl/build-pocl); } 2>"$tmp/why"; then
	for f in $FILES; do
		echo "@skip $f $(tail -n 1 "$tmp/why")"
	done
	exit 0
fi
# The first needs more memory than the software GPU has. The second asks for a relative XDG_CACHE_HOME, which platformdirs
# ignores.
export WITHOUT='test_zeros_large_array test_xdg_cache_home'
export PYTHONPATH=$dir/site PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$tmp/cache POCL_CACHE_DIR=$tmp/kernels
export OCL_ICD_VENDORS=$pocl/vendors POCL_CUDA_TOOLKIT_PATH=$pocl
for f in $FILES; do
	LD_LIBRARY_PATH=$PWD/$B/loopback timeout -k 5 $((700 * slow)) python3 tests/real/pyopencl_tests.py "$tmp/$f" \
		$((60 * slow)) 1/1 "$dir/test/test_$f.py" </dev/null
	rc=$?
	[ $rc -eq 0 ] || echo "@FAIL $f the tests ended with $rc"
	# The last outcome of each test.
	awk '{ outcome = $1; sub(/^[^ ]* [^:]*::/, ""); gsub(/ /, "_"); all[$0] = outcome } END { for (t in all) print all[t], t }' \
		"$tmp/$f" | sort -k2 | sed -e 's/^passed /@ok /' -e 's/^skipped \(.*\)/@skip \1 PyOpenCL skips it, or expects it to fail/' \
		-e 's/^failed \(.*\)/@FAIL \1/' -e 's/^ended \(.*\)/@FAIL \1 it ended its process/'
done
