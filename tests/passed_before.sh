# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# For static checks that read each file on its own and take long: they read only what is new to them. A list in the cache
# has the hashes of what has passed before, as ccache has what was compiled: also in another clone.

passed_most=20000 # lines; the oldest go

# choose_new LIST COMMON FILE...: sets $new to those FILEs that are not in the list. COMMON is what else the check depends
# on: its tool's version and options, and hashes of other files.
choose_new() {
	local common
	passed_list=${QCU_CACHE:-${HOME:-/root}/.cache/qcuda}/passed/$1
	common=$(sha256sum <<<"$2") || return
	shift 2
	mapfile -t passed_now < <(sha256sum -- "$@" | sed "s/^/${common%% *} /")
	[ ${#passed_now[@]} -eq $# ] || return
	[ -s "$passed_list" ] || {
		new=("$@")
		return
	}
	# shellcheck disable=SC2034 # for the caller
	# Behind two hashes, each of 64 characters.
	mapfile -t new < <(printf '%s\n' "${passed_now[@]}" | grep -v -x -F -f "$passed_list" | cut -c 132-)
}

# note_passed: all files of the last choose_new have passed now. Where nothing can be written they are read again next time.
note_passed() {
	local part=$passed_list.$$
	mkdir -p "${passed_list%/*}" 2>/dev/null && : 2>/dev/null >>"$passed_list" || return 0
	printf '%s\n' "${passed_now[@]}" | awk '!seen[$0]++' - "$passed_list" | head -n $passed_most >"$part"
	mv "$part" "$passed_list"
}
