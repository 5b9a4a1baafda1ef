#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The host lacks something that a script needs. The script prints in one sentence what is missing, ends
# with an exit code that is not 0, and leaves nothing half done.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

# Runs a command as if no CUDA Toolkit were installed or on PATH.
cat >"$tmp/without_cuda" <<'END'
#!/bin/bash -e
for d in /usr/local /opt; do
	mount -t tmpfs none "$d"
done
unset CUDA_HOME NVCC
PATH=/usr/sbin:/usr/bin:/sbin:/bin exec "$@"
END
chmod +x "$tmp/without_cuda"
hide=(unshare -m "$tmp/without_cuda")

if "${hide[@]}" true 2>/dev/null && ! "${hide[@]}" sh -c 'command -v nvcc'; then
	expect_host no-toolkit 2 'CUDA Toolkit is missing' "${hide[@]}" scripts/deps
	expect_host make-without-toolkit 2 'CUDA Toolkit is missing' "${hide[@]}" make B="$tmp/build" deps
else
	echo '@skip no-toolkit the toolkit cannot be hidden here (no mount namespaces)'
fi

mkdir -p "$tmp/cuda/bin"
printf '#!/bin/sh\nexit 1\n' >"$tmp/cuda/bin/nvcc"
chmod +x "$tmp/cuda/bin/nvcc"
expect_host broken-nvcc 2 'does not tell its version' env CUDA_HOME="$tmp/cuda" NVCC= scripts/deps
printf '#!/bin/sh\necho Cuda compilation tools, release 11.4, V11.4.0\n' >"$tmp/cuda/bin/nvcc"
expect_host old-nvcc 2 'needs CUDA Toolkit 13' env CUDA_HOME="$tmp/cuda" NVCC= scripts/deps

# What goes into the packages: each library that was built, for the guest and for the launcher, no link that leads
# nowhere, and what the file for OpenCL's loader names.
make_deb=scripts/deb/make-deb
expect_host deb-unknown-option 2 'unknown option --speed' $make_deb --speed
expect_host deb-no-value 2 '\-\-version needs a value' $make_deb --version
expect_host deb-empty-value 2 '\-\-files needs a value' $make_deb --files ''
expect_host deb-bad-version 2 'a version begins with a digit' $make_deb --version 'one two'
expect_host deb-no-such-package 2 'there is no such package' $make_deb --only qcuda-fast
expect_host deb-nothing-built 2 'is missing; run make deb' env QCU_BUILD="$tmp/none" $make_deb --files "$tmp/deb"
expect_host deb-read-only 2 'cannot be made' $make_deb --files /proc/qcuda
expect_host deb-folder-is-there 2 'or is there already' $make_deb --files "$tmp"
expect_host deb-files 0 '^made$' bash -c "$make_deb --files '$tmp/deb' && echo made"
(cd "$B/qcu-library" && ls -- *.so.* *-loader.so) >"$tmp/built"
for p in guest host; do
	find "$tmp/deb/debian/qcuda-$p.files" -name 'lib*.so*' -printf '%f\n' >"$tmp/packed"
	expect_host "deb-$p-has-all-libraries" 1 '^$' bash -c "echo; grep -v -x -F -f '$tmp/packed' '$tmp/built'"
done
find "$tmp"/deb/debian/*.files -xtype l ! -name qcuda.ko >"$tmp/dangling" # which is in another package
expect_host deb-links 0 '^0$' bash -c "cat '$tmp/dangling' && wc -l <'$tmp/dangling'"
for f in "$tmp"/deb/debian/*.files/etc/OpenCL/vendors/*.icd; do
	[ ! -e "$f" ] || expect_host deb-opencl 0 'ELF|libpocl' ls "${f%/etc/*}$(cat "$f")"
done
expect_host deb-one-package 0 '^debian/qcuda-vm.files$' bash -c \
	"$make_deb --only qcuda-vm --files '$tmp/deb-vm' && cd '$tmp/deb-vm' && ls -d debian/*.files"
rm -rf "$tmp"/deb "$tmp/deb-vm"

# Scripts print only sentences of their own: said NAME SCRIPT looks at the output of the last command.
said() {
	if grep -v "^$2: " "$tmp/out"; then
		echo "@FAIL $1-plainly this is not from $2"
	else
		echo "@ok $1-plainly"
	fi
}

# For these, no package is installed, and apt-get does what a script of this name in $tmp/bare does.
mkdir "$tmp/bare"
printf '#!/bin/sh\nexit 1\n' >"$tmp/bare/dpkg-query"
chmod +x "$tmp/bare/dpkg-query"
bare=(env "PATH=$tmp/bare:$PATH")

# fake NAME: this program, from standard input, is used instead of the real one.
fake() {
	cat >"$tmp/bare/$1" - && chmod +x "$tmp/bare/$1"
}

# apt_world NAME SOURCE: an apt for which nothing is installed, and which knows only this source.
apt_world() {
	local d=$tmp/apt-$1
	mkdir -p "$d"/{none,lists/partial,cache/archives/partial}
	: >"$d/status"
	echo "$2" >"$d/sources.list"
	cat >"$d/conf" <<-END
		Dir::Etc::main "$d/none/none";
		Dir::Etc::parts "$d/none";
		Dir::Etc::preferencesparts "$d/none";
		Dir::Etc::sourcelist "$d/sources.list";
		Dir::Etc::sourceparts "$d/none";
		Dir::State::lists "$d/lists";
		Dir::State::status "$d/status";
		Dir::Cache "$d/cache";
		Acquire::Languages "none";
		APT::Sandbox::User "";
	END
}

# Another distribution: all that is on this machine, except apt-get.
mkdir "$tmp/no-apt"
ln -s /usr/bin/* "$tmp/no-apt/"
rm -f "$tmp/no-apt/apt-get"
expect_host no-apt-get 2 'no apt-get.*Debian 12 or 13' env PATH="$tmp/no-apt" scripts/deps --no-cuda
said no-apt-get deps

if [ "$(id -u)" -eq 0 ]; then
	apt_world unreachable 'deb [trusted=yes] http://127.0.0.1:9/debian trixie main'
	apt_world other "deb [trusted=yes] file:$tmp/repository ./"
	mkdir "$tmp/repository"
	: >"$tmp/repository/Packages"
	expect_host packages-no-network 2 'is the network up.*127.0.0.1' \
		"${bare[@]}" APT_CONFIG="$tmp/apt-unreachable/conf" scripts/deps --no-cuda
	said packages-no-network deps
	expect_host packages-do-not-exist 2 'has no package .*zstd; qCUDA needs Debian 12 or 13' \
		"${bare[@]}" APT_CONFIG="$tmp/apt-other/conf" scripts/deps --no-cuda
	said packages-do-not-exist deps

	fake meson <<-'END'
		#!/bin/sh
		echo 1.7
	END
	fake apt-cache <<-'END'
		#!/bin/sh
		[ "$1" != show ]
	END
	fake apt-get <<-'END'
		#!/bin/sh
		case $* in
		*install*) echo "E: You don't have enough free space in /var/cache/apt/archives/." && exit 100 ;;
		esac
	END
	expect_host packages-disk-full 2 'the disk is full.*free some space' "${bare[@]}" scripts/deps --no-cuda
	said packages-disk-full deps

	# The power failed while dpkg was at work. The next run completes that first.
	fake apt-get <<-END
		#!/bin/sh
		[ -e "$tmp/completed" ] || { echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'" && exit 100; }
	END
	fake dpkg <<-END
		#!/bin/sh
		[ "\$*" != '--configure -a' ] || touch "$tmp/completed"
	END
	expect_host packages-interrupted 0 'completing an installation' "${bare[@]}" QCU_CACHE="$tmp/none" scripts/deps --no-cuda
	said packages-interrupted deps
	rm "$tmp/bare/dpkg"

	# A release that lacks what only some tests use, and a cache in which this cannot be written down.
	fake apt-get <<<'#!/bin/sh'
	expect_host extras-do-not-exist 0 'has no shellcheck' "${bare[@]}" QCU_CACHE=/proc/qcuda scripts/deps --no-cuda
	said extras-do-not-exist deps

	# If no package is installed, scripts/deps installs every package on its list.
	fake apt-get <<-END
		#!/bin/sh
		printf '%s\n' "\$@" >>"$tmp/asked"
	END
	fake apt-cache <<-'END'
		#!/bin/sh
		[ "$1" != show ] || exit 0
	END
	"${bare[@]}" scripts/deps --no-cuda >"$tmp/deps.log" 2>&1
	if scripts/deps --list | grep -v -x -F -f "$tmp/asked"; then
		cat "$tmp/deps.log"
		echo '@FAIL all-packages these are not installed'
	else
		echo '@ok all-packages'
	fi

	# Meson comes from the Python package index where the distribution's is too old.
	fake meson <<-'END'
		#!/bin/sh
		echo 1.0
	END
	mkdir "$tmp/no-meson"
	expect_host meson-no-network 2 'cannot install Meson.*is the network up' "${bare[@]}" QCU_CACHE="$tmp/no-meson" \
		PIP_INDEX_URL=http://127.0.0.1:9/ PIP_FIND_LINKS= PIP_RETRIES=0 scripts/deps --no-cuda
	[ ! -e "$tmp/no-meson/venv" ] || echo '@FAIL meson-no-network-leaves-nothing'
	expect_host tmp-missing 2 'set TMPDIR' "${bare[@]}" TMPDIR=/proc/qcuda QCU_CACHE="$tmp/no-meson" scripts/deps --no-cuda
	said tmp-missing deps
else
	echo '@skip packages only root installs packages'
fi

# The cache is empty, and the server of the sources does not answer.
mkdir "$tmp/cache"
cached=${QCU_CACHE:-$HOME/.cache/qcuda}
[ ! -d "$cached/venv" ] || ln -s "$cached/venv" "$tmp/cache/venv"
expect_host no-network 2 "cannot read Debian's package index" \
	env QCU_CACHE="$tmp/cache" QCU_DEBIAN_URI=http://127.0.0.1:9/debian scripts/build-qemu
if find "$tmp/cache" -mindepth 1 -maxdepth 1 ! -name venv ! -name '*.lock' ! -name src | grep .; then
	echo '@FAIL no-network-leaves-nothing'
else
	echo '@ok no-network-leaves-nothing'
fi
expect_host cache-not-writable 2 'set QCU_CACHE' env QCU_CACHE=/proc/qcuda scripts/build-qemu

# A guest's kernel has to be fetched, and the package sources do not answer.
if [ "$(id -u)" -eq 0 ]; then
	mkdir "$tmp/no-kernel"
	apt_world no-kernel 'deb [trusted=yes] http://127.0.0.1:9/debian trixie main'
	sed -i '/Dir::State::status/d' "$tmp/apt-no-kernel/conf"
	expect_host guest-no-network 2 'is the network up' \
		env QCU_CACHE="$tmp/no-kernel" APT_CONFIG="$tmp/apt-no-kernel/conf" scripts/build-guest
	said guest-no-network build-guest
fi

# $tmp/on SIZE COMMAND...: runs COMMAND with a QCU_CACHE on a disk of that size. Instead of a size, a
# folder: the disk is read-only, and holds what the folder holds.
cat >"$tmp/on" <<END
#!/bin/bash -e
case \$1 in
/*) mount --bind "\$1" "$tmp/disk" && mount -o remount,bind,ro "$tmp/disk" ;;
*) mount -t tmpfs -o "size=\$1" disk "$tmp/disk" ;;
esac
shift
QCU_CACHE=$tmp/disk exec "\$@"
END
chmod +x "$tmp/on"
mkdir "$tmp/disk" "$tmp/empty" "$tmp/meson"
printf '#!/bin/sh\necho 1.7\n' >"$tmp/meson/meson"
chmod +x "$tmp/meson/meson"
on=(unshare -m "$tmp/on")
if "${on[@]}" 1m true 2>/dev/null; then
	for s in build-qemu build-guest; do
		expect_host "$s-disk-full" 2 'MB free.*free some space or set QCU_CACHE' \
			env PATH="$tmp/meson:$PATH" "${on[@]}" 10m "scripts/$s"
		said "$s-disk-full" "$s"
		expect_host "$s-read-only" 2 'cannot write.*set QCU_CACHE' "${on[@]}" "$tmp/empty" "scripts/$s"
		said "$s-read-only" "$s"
		expect_host "$s-read-only-complete" 0 /disk "${on[@]}" "$cached" "scripts/$s"
	done
	# Where the temporary folder is full, nobody waits for a VM.
	small=(unshare -m sh -c "mount -t tmpfs -o size=1m none $tmp/disk && TMPDIR=$tmp/disk exec \"\$@\"" sh)
	expect_host run-temporary-full 2 "cannot write the guest's files in .*; is the disk full" \
		"${small[@]}" "$qcu" run --gpu soft "$guest/vector_add"
	expect_host shell-temporary-full 2 "cannot write the guest's files in" "${small[@]}" "$qcu" shell -c true
	expect_host tune-temporary-full 2 'MB free.*free some space or set TMPDIR' "${small[@]}" "$qcu" tune --gpu soft
	host_limit=200 expect_host run-read-only-complete 0 started "${on[@]}" "$cached" "$qcu" run --no-device --mem 512M /bin/echo started

	# The disk fills up while make compiles, first a new build folder, then after a header has changed.
	# When there is space again, the next run goes on, and what uses the header is compiled again.
	cat >"$tmp/compile" <<-END
		#!/bin/bash
		export QCU_CACHE=$cached
		B=$tmp/disk/build
		build() {
			make "B=\$B" CFLAGS="-O2 -include $tmp/disk/header.h" "\$B/tests/unit/test_library_args" 2>&1
		}
		full() {
			cat /dev/zero >"$tmp/disk/filler" 2>/dev/null
			if build; then
				echo "\$1: compiled without space" && exit 1
			fi
			rm "$tmp/disk/filler"
			build || exit 1
		}
		: >"$tmp/disk/header.h"
		full new
		echo 'static const char large[100000] __attribute__((used)) = {1};' >"$tmp/disk/header.h"
		full changed
		size=\$(stat -c %s "\$B/qcu-library/link/args.o")
		[ "\$size" -gt 100000 ] || exit 1
		"\$B/tests/unit/test_library_args" 2>&1
	END
	chmod +x "$tmp/compile"
	host_limit=300 expect_host compile-disk-full 0 'PASSED' "${on[@]}" 4m "$tmp/compile"
	[ "$(grep -c '^run-compiler: the disk that holds .* is full .*; free some space, then run make again$' "$tmp/out")" -ge 2 ] ||
		echo '@FAIL compile-disk-full-plainly it does not say what to do'
else
	echo '@skip disk-full no disk can be mounted here (no mount namespaces)'
fi

# A first build is killed, as if the power had failed: the next run goes on, and only its result is left.
# QEMU's configure and ninja, and the guest's cpio, are stand-ins here: the first ones never end, the
# second ninja has its result ready.
mkdir -p "$tmp/stuck" "$tmp/ready" "$tmp/half/src"
for s in "$cached"/src/{qemu,kernel}-*; do
	[ -d "$s" ] || continue
	mkdir "$tmp/half/src/${s##*/}"
	for f in "$s"/*; do
		# Not a symbolic link, because build-qemu edits a copy of what is there. Four of five files of QEMU's are in roms and tests.
		[[ $f = */@(roms|tests) ]] ||
			cp -al "$f" "$tmp/half/src/${s##*/}/" 2>/dev/null || cp -a "$f" "$tmp/half/src/${s##*/}/"
	done
done
for s in "$tmp"/half/src/qemu-*; do
	rm -f "$s/configure"
	printf '#!/bin/sh\n' >"$s/configure"
	chmod +x "$s/configure"
done
[ ! -d "$cached/venv" ] || ln -s "$cached/venv" "$tmp/half/venv"
for s in ninja cpio; do
	cat >"$tmp/stuck/$s" <<-END
		#!/bin/sh
		touch "$tmp/at-$s"
		exec sleep 1000
	END
done
cat >"$tmp/ready/ninja" <<END
#!/bin/sh
cp "$(scripts/build-qemu)/bin/qemu-system-x86_64" "\$2/"
END
chmod +x "$tmp"/{stuck,ready}/*
# killed NAME TOOL SCRIPT
killed() {
	local i left
	(PATH=$tmp/stuck:$PATH QCU_CACHE=$tmp/half exec setsid "scripts/$3") >"$tmp/killed.log" 2>&1 &
	for ((i = 0; i < 1200 * slow; i++)); do
		[ ! -e "$tmp/at-$2" ] || break
		sleep 0.1
	done
	[ -e "$tmp/at-$2" ] || cat "$tmp/killed.log"
	kill -KILL -- -$!
	wait $! 2>/dev/null
	left=$(find "$tmp/half" -maxdepth 1 -name ".$3.??????" | wc -l)
	[ "$left" -eq 1 ] || echo "@FAIL $1-left $left half-done folders where there should be one"
	host_limit=200 expect_host "$1" 0 "^$tmp/half/" env PATH="$tmp/ready:$PATH" QCU_CACHE="$tmp/half" "scripts/$3"
	left=$(find "$tmp/half" -maxdepth 1 -name ".$3.??????" | wc -l)
	[ "$left" -eq 0 ] || echo "@FAIL $1-left the half-done folder is still there"
}
killed guest-interrupted cpio build-guest
killed qemu-interrupted ninja build-qemu

# Two runs of a script in one cache: the scratch folder of a run that was killed goes, and that of the other run stays.
mkdir "$tmp/shared"
cat >"$tmp/with_scratch" <<END
. "$root/scripts/lib.sh" && scratch && "\$@"
END
two=(env QCU_CACHE="$tmp/shared" bash "$tmp/with_scratch")
{ "${two[@]}" sh -c 'kill -KILL $PPID'; } 2>/dev/null
expect_host scratch-of-killed 0 '^1$' bash -c "ls -d '$tmp/shared'/.with_scratch.* | wc -l"
expect_host scratch-of-another 0 '^2$' "${two[@]}" "${two[@]}" bash -c "ls -d '$tmp/shared'/.with_scratch.* | wc -l"
expect_host scratch-ends 0 '^0$' bash -c "find '$tmp/shared' -name '.with_scratch.*' | wc -l"

if [ -w /dev/kvm ] && grep -q -w -m1 -E 'vmx|svm' /proc/cpuinfo; then
	echo '@skip kvm-out-of-reach KVM works here'
else
	expect_host kvm-out-of-reach 2 '/dev/kvm|vmx' "$qcu" run --accel kvm "$guest/vector_add"
fi

# A qcu-device that refuses its options, and one that ends at once.
expect_host device-refuses 2 'qcu-device does not start' \
	"$qcu" run --device-arg --no-such-option "$guest/vector_add"
mkdir -p "$tmp/fake"/{qcu-device,qcu-driver,qcu-library}
ln -s "$root/$B/scripts" "$tmp/fake/"
ln -s "$root/$B/qcu-driver/qcuda.ko" "$tmp/fake/qcu-driver/"
ln -s "$root/$B/qcu-library/libcudart.so.13" "$tmp/fake/qcu-library/"
printf '#!/bin/sh\necho "out of order" >&2\nexit 1\n' >"$tmp/fake/qcu-device/qcu-device"
chmod +x "$tmp/fake/qcu-device/qcu-device"
expect_host device-fails 2 'out of order' env QCU_BUILD="$tmp/fake" "$qcu" run "$guest/vector_add"

# kmod is not on an ordinary user's PATH, but is found. A module that kmod cannot read is not deleted.
ko=$tmp/fake/qcu-driver/qcuda.ko
rm "$ko"
cp "$root/$B/qcu-driver/qcuda.ko" "$ko"
host_limit=200 expect_host kmod-not-on-path 0 started env PATH=/usr/bin:/bin QCU_BUILD="$tmp/fake" \
	"$qcu" run --no-device --mem 512M /bin/echo started
cmp "$root/$B/qcu-driver/qcuda.ko" "$ko" || echo '@FAIL kmod-not-on-path-module it is not the same any more'
echo 'no module' >"$ko"
expect_host module-unreadable 2 'cannot tell which kernel' env QCU_BUILD="$tmp/fake" \
	"$qcu" run --no-device --mem 512M /bin/echo started
[ "$(cat "$ko")" = 'no module' ] || echo '@FAIL module-unreadable-module it is gone'

expect_host module-refuses 125 'chunk_kb=3 is not a power of two' \
	"$qcu" run --module-arg chunk_kb=3 "$guest/vector_add"
