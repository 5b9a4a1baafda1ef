# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # B is set by the scripts that source this file
#
# The files of an image for tests: busybox, this machine's C library, and a CUDA program that is linked in three ways.

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
