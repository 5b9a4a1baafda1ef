# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # used by the prolog and the epilog
#
# What the prolog and the epilog share. slurmd runs both as root on each node of a job. Slurm itself sets the three
# variables that they read. They read no other variable, and evaluate no text of a user's.
set -euo pipefail
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C
umask 022

# Sets job, uid and node, and the job's folders: one for sockets, that no user can write to, and one for files of the
# launcher, which is the user's own.
about_job() {
	job=${SLURM_JOB_ID:-} uid=${SLURM_JOB_UID:-} node=${SLURMD_NODENAME:-}
	if ! [[ $job =~ ^[0-9]{1,10}$ && $uid =~ ^[0-9]{1,10}$ && $node =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ ]]; then
		echo "qcuda: slurmd says no job, user and node" >&2
		exit 1
	fi
	name=$node-$job
	run=/run/qcuda-jobs/$name
	files=/var/lib/qcuda-jobs/$name
}

# remove_files: the user has made what is there, so it is removed with no more rights than the user has. Whatever that
# is, neither script fails for it.
remove_files() {
	local owner at
	[ -d "$files" ] || return 0
	owner=$(stat -c %u "$files")
	# A user may have mounted something by FUSE. A path has \040 for a space there.
	while IFS= read -r at; do
		umount -l "$(printf '%b' "$at")" || true
	done < <(awk -v at="$files/" 'index($5, at) == 1 { print $5 }' /proc/self/mountinfo)
	[ "$owner" = 0 ] || [ -z "$(find "$files" -mindepth 1 -print -quit)" ] ||
		setpriv --reuid "$owner" --regid 65534 --clear-groups sh -c 'cd "$1" && chmod -R u+rwx . && find . -mindepth 1 -delete' \
			sh "$files" || true
	# What a user cannot remove is not the user's.
	rm -rf --one-file-system "$files" || logger -t qcuda "$files cannot be removed"
}
