# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Compiles the programs of tests/vulkan/, perf/vulkan/load and the driver, in a Debian 13 where /build is what was built
# outside and /cuda is the toolkit. What comes out is in $B/vulkan and $B/qcu-driver. The scripts that source this file
# run there, in the folder of the repository.

bad() {
	echo "vulkan: $*"
	exit 1
}

step() {
	echo "vulkan: $SECONDS s: $*"
}

# must WHAT COMMAND...: COMMAND must succeed.
must() {
	local what=$1
	shift
	"$@" >/tmp/log 2>&1 || {
		tail -n 20 /tmp/log
		bad "$what"
	}
}

# The build folder is the one from outside.
prepare_build() {
	local f
	mkdir -p "$B/qcu-driver" "$B/tests/logs" "$B/vulkan"
	for f in /build/*; do
		[ -e "$B/${f##*/}" ] || ln -s "$f" "$B/"
	done
	for f in /build/tests/*; do
		[ -e "$B/tests/${f##*/}" ] || ln -s "$f" "$B/tests/"
	done
}

compile_driver() {
	local k
	k=$(cd /usr/src && printf '%s\n' linux-headers-*-amd64 | sed 's/^linux-headers-//' | sort -V | tail -n 1)
	cp -r qcu-driver/{*.[ch],probes,Kbuild} include/qcucmd*.h "$B/qcu-driver/"
	must "the driver does not compile for $k" make -C "/usr/src/linux-headers-$k" M="$B/qcu-driver" modules
}

compile() {
	local flags=(-O2 -I"$B/vulkan" -Itests/vulkan)
	local f
	for f in scale image; do
		must $f.comp glslangValidator -V --vn ${f}_spv -o "$B/vulkan/${f}_spv.h" tests/vulkan/$f.comp
	done
	must vk.c gcc -Wall -Wextra -Werror "${flags[@]}" -c -o "$B/vulkan/vk.o" tests/vulkan/vk.c
	must compute.c gcc -Wall -Wextra -Werror "${flags[@]}" -o "$B/vulkan/compute" tests/vulkan/{compute,image}.c \
		"$B/vulkan/vk.o" -lvulkan -lpthread
	must load.c gcc -Wall -Wextra -Werror "${flags[@]}" -o "$B/vulkan/load" perf/vulkan/load.c "$B/vulkan/vk.o" \
		-lvulkan -lpthread
	must both.cu /cuda/bin/nvcc -cudart shared "${flags[@]}" -Itests/guest -o "$B/vulkan/both" tests/vulkan/both.cu \
		"$B/vulkan/vk.o" -lvulkan
}
