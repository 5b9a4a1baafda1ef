# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # B is set by the scripts that source this file
#
# The files of images for tests: busybox, this machine's C library, and a CUDA program that is linked in three ways; this
# machine's Python with CuPy.

image_libraries=/lib/x86_64-linux-gnu

# image_root FOLDER: makes the folder. All programs are those of the build in $B.
image_root() {
	local name
	mkdir -p "$1"/{bin,data,lib64,tmp,usr/bin} "$1$image_libraries"
	cp /bin/busybox "$1/bin/"
	for name in sh cat ls env pwd sha256sum; do
		ln -s busybox "$1/bin/$name"
	done
	for name in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libstdc++.so.6 libgcc_s.so.1; do
		cp -L "$image_libraries/$name" "$1$image_libraries/"
	done
	ln -s "..$image_libraries/ld-linux-x86-64.so.2" "$1/lib64/"
	cp "$B/tests/guest/vector_add" "$1/bin/shared"
	cp "$B/tests/guest-static/vector_add" "$1/bin/linked-in"
	strip -o "$1/bin/stripped" "$B/tests/guest-static/vector_add"
	cp "$B/tests/guest/sleeper" "$1/bin/"
}

# python_root FOLDER WHEELS: adds this machine's python3, and NumPy and CuPy from the folder of wheels.
python_root() {
	local exe lib site file
	read -r exe lib site < <(python3 -c 'import os, sys, sysconfig
print(os.path.realpath(sys.executable), *map(sysconfig.get_path, ("stdlib", "purelib")))')
	tar -C / --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=idlelib --exclude=ensurepip \
		--exclude='config-*' -c "${exe#/}" "${lib#/}" | tar -C "$1" -x
	ln -sf "$exe" "$1/bin/python3"
	mkdir -p "$1$site"
	# CuPy's folder cuda is a part of NVIDIA's own bindings.
	(cd "$2" && tar --exclude=tests -c numpy numpy.libs cupy cupy_backends cupyx cuda cupy_cuda*.dist-info) | tar -C "$1$site" -x
	while read -r file; do
		mkdir -p "$1${file%/*}"
		cp -L "$file" "$1$file"
	done < <(ldd "$exe" "$lib"/lib-dynload/*.so | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u)
}
