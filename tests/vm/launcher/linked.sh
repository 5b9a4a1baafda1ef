#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that were built as nvcc does by default, with the runtime linked in: `qcu run` and qcu-run
# serve them, and their output is that of the programs with the shared runtime.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

linked=$B/tests/loader
cp "$linked/linked" "$tmp/share/linked"
strip -o "$tmp/share/stripped" "$linked/linked"
strip -o "$tmp/share/plugin-stripped.so" "$linked/plugin.so"
# Without names, and with code that is of no version.
cp "$linked/linked" "$tmp/share/changed"
cp "$linked/plugin.so" "$tmp/share/plugin-changed.so"
for f in changed plugin-changed.so; do
	"$linked/edit" "$tmp/share/$f" spoil cudaMalloc
	strip "$tmp/share/$f"
done

# ---- on the host ----

expect_host check-linked 0 'the runtime of CUDA 13 is linked in' "$qcu" check "$linked/linked"
expect_host check-shared 0 'the runtime is a shared library' "$qcu" check "$guest/matmul"
expect_host check-changed 1 'symbol table is missing' "$qcu" check "$tmp/share/changed"
expect_host check-stripped 0 'with the code of 13.0' "$qcu" check "$tmp/share/stripped"
expect_host check-no-cuda 3 'There is no CUDA' "$qcu" check /bin/true
expect_host check-no-program 2 'is no ELF file' "$qcu" check "$0"
# The sentence comes at once: no guest is booted.
expect_host run-changed 126 'symbol table is missing' "$qcu" run "$tmp/share/changed"

# ---- in the guest ----

cd "$tmp/share" || exit 2
expect_host run 0 '^13000$' "$root/$qcu" run --gpu soft ./linked version
cd "$root" || exit 2

mkdir "$tmp/spoiled"
for p in linked plugin.so plugin2.so host needs; do
	ln -s "$root/$linked/$p" "$tmp/spoiled/loader-$p"
done
ln -s loader-plugin.so "$tmp/spoiled/plugin.so"
cp "$tmp/share/"{stripped,plugin-stripped.so,changed,plugin-changed.so} "$tmp/spoiled/"

cat >"$tmp/spoiled-programs" <<'END'
# says NAME CODE TEXT COMMAND...: a test that runs COMMAND, which must end with CODE and say TEXT.
says() {
	begin "$1"
	want=$2 text=$3
	shift 3
	"$@" >$log 2>&1 </dev/null
	rc=$?
	if [ $rc -ne "$want" ]; then
		fail "exit code $rc, expected $want"
	elif [ -n "$text" ] && ! grep -F -e "$text" $log >/dev/null; then
		fail "said nothing like: $text"
	else
		pass
	fi
}
says changed 126 'symbol table is missing (stripped)' qcu-run changed
says changed-by-audit 127 'symbol table is missing (stripped)' \
	env LD_AUDIT=/qcu/lib/libqcuda-loader.so /qcu/bin/changed
says changed-plugin 1 'symbol table is missing (stripped)' qcu-run loader-host /qcu/bin/plugin-changed.so
says stripped 0 '' qcu-run stripped
says stripped-plugin 0 'done' qcu-run loader-host /qcu/bin/plugin-stripped.so
says no-program 127 'nothing-there: not found' qcu-run nothing-there
says without-qcu-run 1 '' loader-linked
says needed-library 0 '' qcu-run loader-needs
says plugins 0 'done' qcu-run loader-host /qcu/bin/loader-plugin.so /qcu/bin/loader-plugin2.so
says exit-code 7 '' qcu-run sh -c 'exit 7'
# If the software GPU cannot run a program, its message appears on the program's stderr.
expect bad_fatbin 0 bad_fatbin
END

cat >"$tmp/compare" <<'END'
# Those that print how long something took.
varies() {
	case $1 in
	bandwidth | device_clocks | first_call | mapped_file | matmul | pageable_upload | stream_pipeline | vector_add) return 0 ;;
	esac
	return 1
}

for p in /qcu/bin/*.static; do
	p=${p##*/}
	p=${p%.static}
	case $p in
	sleeper | crash) continue ;;
	illegal_access) set -- 1 ;;
	bandwidth) set -- 16 ;;
	*) set -- ;;
	esac
	if varies "$p"; then
		expect "static/$p" 0 qcu-run "/qcu/bin/$p.static" "$@"
		continue
	fi
	begin "static/$p"
	"/qcu/bin/$p" "$@" >/tmp/shared.out 2>/tmp/shared.err </dev/null
	want=$?
	qcu-run "/qcu/bin/$p.static" "$@" >/tmp/static.out 2>/tmp/static.err </dev/null
	rc=$?
	cat /tmp/static.err >$log
	if [ "$want $rc" = '77 77' ]; then
		echo "@skip static/$p $(cat /tmp/static.out /tmp/static.err | tail -n 1)"
	elif [ $want -ne 0 ] || [ $rc -ne 0 ]; then
		fail "exit code $rc, and $want of the shared one"
	elif ! cmp /tmp/shared.out /tmp/static.out >>$log; then
		diff /tmp/shared.out /tmp/static.out >>$log
		fail 'the output differs'
	else
		pass
	fi
done
END

# Up to a hundred programs in each boot, because a boot's time and memory are limited; those above in the first. NAME is linked to the shared
# runtime, NAME.static has it inside.
programs_of guest-static
for ((first = 0; first < ${#programs[@]}; first += 100)); do
	mkdir "$tmp/both"
	for p in "${programs[@]:first:100}"; do
		ln -s "$root/$p" "$tmp/both/${p##*/}.static"
		ln -s "$root/$guest/${p##*/}" "$tmp/both/${p##*/}"
	done
	scripts=("$tmp/compare") also=()
	[ $first -gt 0 ] || scripts+=("$tmp/spoiled-programs") also=("$tmp/spoiled"/* "$B/tests/loopback/bad_fatbin")
	with "$tmp/both"/* "${also[@]}"
	boot --gpu soft "${with[@]}" < <(cat "${scripts[@]}")
	rm -r "$tmp/both"
done
