#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The host lacks something that a script needs. The script prints in one sentence what is missing, ends
# with an exit code that is not 0, and leaves nothing half done.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

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

# If no package is installed, scripts/deps installs every package on its list.
mkdir "$tmp/bare"
printf '#!/bin/sh\nexit 1\n' >"$tmp/bare/dpkg-query"
printf '#!/bin/sh\nexit 0\n' >"$tmp/bare/apt-cache"
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >>"%s"\n' "$tmp/asked" >"$tmp/bare/apt-get"
chmod +x "$tmp/bare"/*
if [ "$(id -u)" -eq 0 ]; then
	PATH=$tmp/bare:$PATH scripts/deps --no-cuda >"$tmp/deps.log" 2>&1
	if scripts/deps --list | grep -v -x -F -f "$tmp/asked"; then
		cat "$tmp/deps.log"
		echo '@FAIL all-packages these are not installed'
	else
		echo '@ok all-packages'
	fi
else
	echo '@skip all-packages only root installs packages'
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
	"$qcu" run --no-device /bin/echo started
cmp "$root/$B/qcu-driver/qcuda.ko" "$ko" || echo '@FAIL kmod-not-on-path-module it is not the same any more'
echo 'no module' >"$ko"
expect_host module-unreadable 2 'cannot tell which kernel' env QCU_BUILD="$tmp/fake" \
	"$qcu" run --no-device /bin/echo started
[ "$(cat "$ko")" = 'no module' ] || echo '@FAIL module-unreadable-module it is gone'

expect_host module-refuses 125 'chunk_kb=3 is not a power of two' \
	"$qcu" run --module-arg chunk_kb=3 "$guest/vector_add"
