#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# libcuda.so.1 exports every function that the toolkit's stub of NVIDIA's exports, without symbol
# versions, and nothing else than these, the functions for graphics, which the stub lacks, and malloc's
# family. cuda.syms agrees with cuda.h: where the thread's own stream is a parameter, and which functions
# are the same as another. What a function needs is checked by its entry and not by hand. libcudart.so.13 can be loaded late.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
syms=qcu-library/driver_api/cuda.syms
CUDA_HOME=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

exports() { nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort; }

stub=$CUDA_HOME/lib64/stubs/libcuda.so
[ -e "$stub" ] || {
	echo "skipped: the toolkit has no $stub"
	exit 77
}
exports "$stub" >"$tmp/theirs"
exports "$B/qcu-library/libcuda.so.1" >"$tmp/ours"
grep -v '@' "$tmp/ours" >"$tmp/plain" || true
cmp -s "$tmp/ours" "$tmp/plain" || {
	echo "libcuda.so.1 has symbols with versions:"
	grep '@' "$tmp/ours" | head
	bad=1
}
awk '$2 == "graphics" { print $1 }' "$syms" >"$tmp/graphics"
missing=$(LC_ALL=C comm -23 "$tmp/theirs" "$tmp/ours")
[ -z "$missing" ] || {
	echo "libcuda.so.1 lacks:"
	echo "$missing"
	bad=1
}
more=$(LC_ALL=C comm -13 "$tmp/theirs" "$tmp/ours" | grep -vx -e 'malloc\|calloc\|realloc\|reallocarray\|free\|memalign' \
	-e 'aligned_alloc\|posix_memalign\|valloc\|pvalloc\|malloc_usable_size' -f "$tmp/graphics" || true)
[ -z "$more" ] || {
	echo "libcuda.so.1 has, and NVIDIA's stub does not:"
	echo "$more"
	bad=1
}
soname=$(readelf -d "$B/qcu-library/libcuda.so.1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libcuda.so.1 ] || {
	echo "the name is $soname"
	bad=1
}

# A program that loads a libcudart.so.13 later must find room for its near variables of each thread (link.h).
for library in "$B"/{qcu-library,loopback}/libcudart.so.13; do
	near=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
	[ $((near)) -gt 0 ] && [ $((near)) -le 256 ] || {
		echo "$library has $((near)) bytes of variables of each thread"
		bad=1
	}
done

# Each declaration of cuda.h on a line: the function, then its parameters.
echo '#include <cuda.h>' | ${CC:-cc} -E -P -D__CUDA_API_VERSION_INTERNAL -I"$CUDA_HOME/include" -x c - | tr '\n' ' ' |
	grep -o 'CUresult  *cu[A-Za-z0-9_]* *([^;]*)' |
	sed -E 's/^CUresult +([A-Za-z0-9_]+) *\((.*)\)$/\1 \2/; s/ +/ /g' >"$tmp/declared"
awk '
	function parameters(name) { return name in declared ? declared[name] : "" }
	FNR == NR { name = $1; sub(/^[^ ]+ /, ""); declared[name] = $0; next }
	/^#/ { next }
	$2 ~ /^same:/ {
		other = substr($2, 6)
		if (parameters($1) == "" || parameters($1) != parameters(other))
			print $1 " has other parameters than " other
	}
	$2 ~ /^stream:/ {
		base = $1
		sub(/_pt[sd][sz]$/, "", base)
		split(parameters(base), list, ",")
		if (list[substr($2, 8)] !~ /^ ?CUstream [A-Za-z]+ ?$/)
			print base ": parameter " substr($2, 8) " is not a stream"
	}' "$tmp/declared" "$syms" >"$tmp/wrong"
[ ! -s "$tmp/wrong" ] || {
	cat "$tmp/wrong"
	bad=1
}

# The list of entries is made only if each line says what the function needs, and has another function's parameters.
entries() { awk -f qcu-library/driver_api/calls.awk RS=';' "$B/qcu-library/driver_calls.inc.headers" RS='\n' "$1" 2>/dev/null; }
entries "$syms" | cmp -s - "$B/qcu-library/driver_calls.inc" || {
	echo "driver_calls.inc is not what calls.awk makes of $syms"
	bad=1
}
while read -r from to; do
	sed "s/^$from\$/$to/" "$syms" >"$tmp/syms"
	if cmp -s "$syms" "$tmp/syms" || entries "$tmp/syms" >"$tmp/entries"; then
		echo "no mistake was found in: $to"
		bad=1
	fi
done <<'END'
\(cuCtxGetDevice.*\).context \1
\(cuCtxGetDevice.*\).context \1 device
\(cuCtxGetDevice.*\).context \1 stream
\(cuEventQuery.*\):cudaEventQuery.\(.*\) \1:cudaEventRecord \2
END
lines=$(awk '!/^#/ && $2 ~ /^(implemented|runtime:)/ && $4 != "nothing"' "$syms" | wc -l)
entries=$(grep -c '^ENTRY' "$B/qcu-library/driver_calls.inc")
[ "$lines" -gt 400 ] && [ "$lines" = "$entries" ] || {
	echo "$lines functions need something, and $entries have an entry"
	bad=1
}
if git grep -nE 'qcul_driver_(started|ready|known_|move_to_stream)|driver_base/needs\.h' -- qcu-library ':!*/needs.h' \
	':!*/driver_api/entries.c' ':!*/driver_base/init.c' ':!*/driver_base/context.c'; then
	echo "a function checks by hand what its line in $syms says"
	bad=1
fi
# In context.c, where a NULL in place of a context stands for the current one.
[ "$(grep -cE 'qcul_driver_(ready|started)\(\)' qcu-library/driver_base/context.c)" = 4 ] || {
	echo "context.c checks by hand what a line in $syms says"
	bad=1
}
exit $bad
