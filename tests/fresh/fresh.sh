#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a fresh machine does: a bare Debian in a folder, with nothing in it but git and make, runs the
# commands of the README as far as the first programs in the VM (inside.sh). The folder is new each time.
# The cache keeps what would need the network or much time:
#
#   $QCU_CACHE/fresh/debian-13-git-make.tar.zst   the bare Debian
#                   /debian-13/archives           the packages that scripts/deps installs in it
#                             /cache              its own QCU_CACHE, with QEMU and the guest
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2

usage() {
	cat <<-END
		usage: tests/fresh/fresh.sh [--test] [12 | 13]
		  12, 13   the release of Debian; without, one that differs from this machine's
		  --test   run all of 'make test' there too, not only 'make demo'
	END
}

options() {
	test=
	release=
	while [ $# -gt 0 ]; do
		case $1 in
		--test) test=--test ;;
		--help | -h) usage; exit ;;
		12 | 13) release=$1 ;;
		*) die "unknown argument $1 (try --help)" ;;
		esac
		shift
	done
	# shellcheck source=/dev/null
	[ -n "$release" ] || release=$(. /etc/os-release && [ "${VERSION_CODENAME:-}" = trixie ] && echo 12 || echo 13)
	case $release in
	12) dist=bookworm ;;
	13) dist=trixie ;;
	esac
	self=fresh-$release
}

# What this machine must have. The toolkit is handed in: README.md names it as what must be there.
look_around() {
	local nvcc
	need_root_folder
	git -C "$root" rev-parse --git-dir >/dev/null 2>&1 || skip "this is not a git repository, so it cannot be cloned"
	nvcc=$(command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || command -v nvcc) || die "the CUDA Toolkit is missing"
	cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	[ "$cuda" != /usr ] || skip "the CUDA Toolkit lies in /usr, so it cannot be handed to another Debian"
	folders=("$store/archives:/var/cache/apt/archives" "$store/cache:/root/.cache/qcuda" "$cuda:$cuda:ro")
}

# A clone of this repository, with the changes that are not committed.
clone() {
	git clone -q --no-checkout "$root" "$new/root/qcuda" || die "cannot clone $root"
	git -C "$root" ls-files -z -co --exclude-standard | (cd "$root" && tar --null -T - --ignore-failed-read -c) |
		tar -C "$new/root/qcuda" --no-same-owner -x
	git -C "$new/root/qcuda" reset -q
}

main() {
	local bare new store
	options "$@"
	store=$cache/fresh/debian-$release
	look_around
	make_cache
	mkdir -p "$store/archives" "$store/cache"
	lock "$self"
	need_space "$cache" 5000
	scratch
	new=$work/root
	mkdir "$new"
	bare_debian
	ln -s "$cuda" "$new/usr/local/cuda"
	clone
	step "Debian $release, with $(du -sh --one-file-system "$new" | cut -f1), is ready"
	enter /root/qcuda/tests/fresh/inside.sh $test 2>&1 | tee "$work/log" || {
		! grep -q 'is the network up' "$work/log" || fail "$work/log" "the network works, but not from the fresh machine"
		die "Debian $release: not all went well"
	}
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit
