#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What libcudart.so.13 keeps is in a named state (qcu-library/link/fork.h): each variable that can be
# written is a `process`, a `session` that fork() clears, an `at_fork`, a variable of a thread, or a
# static variable of one function: what has been said or found out once. The list below has the others.
# Each lock belongs to an entry for fork(), which takes it.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
mapfile -t files < <(find qcu-library -name '*.c' | sort |
	grep -vE '^qcu-library/(cuda12|cufile|loader|nccl|nvml|shims)/') # libraries of their own
objects=()
for f in "${files[@]}"; do
	[ ! -e "$B/${f%.c}.o" ] || objects+=("$B/${f%.c}.o")
done
if [ ${#objects[@]} -lt 50 ]; then
	echo "hardly any object files in $B; run make"
	exit 1
fi
bad=0

# SYMBOL... # WHY
others='
qcul_streams qcul_events qcul_arrays qcul_pools qcul_conds qcul_graphs # handles.c empties these tables; all files use them
qcul_module_ids qcul_kernel_ids qcul_link_ids qcul_green_ids # the same
qcul_bindings qcul_driver_state qcul_captures qcul_moved qcul_printed qcul_waits qcul_window_unmaps # one word, read in other files before most calls
qcul_free_mapped qcul_pool_sharing qcul_recorder # what layers above do; set when the library is loaded
device_pools_at_fork # graph_memory.c has two locks
session_user # malloc_hook.c registers it when the library is loaded, as an entry
'
LC_ALL=C objdump -t "${objects[@]}" | awk -v others="$others" '
	BEGIN {
		lines = split(others, line, "\n")
		for (i = 1; i <= lines; i++) {
			sub(/ *#.*/, "", line[i])
			n = split(line[i], word, " ")
			for (j = 1; j <= n; j++)
				other[word[j]] = 1
		}
	}
	/file format/ { file = $1; next }
	# Constants with addresses in them are writable for the dynamic linker alone.
	!match($0, / O (\.data|\.bss|\.tdata|\.tbss|\*COM\*)[^ \t]*/) || /\.data\.rel\.ro/ { next }
	{
		all++
		name = $NF
		if (name == "process" || name == "session" || name == "at_fork" || name ~ /\./ ||
		    substr($0, RSTART) ~ /^ O \.t/)
			next
		if (!(name in other)) {
			print file " " name " is in no named state"
			bad = 1
		}
		needed[name] = 1
	}
	END {
		for (name in other)
			if (!(name in needed)) {
				print "nothing needs \"" name "\" in the list any more"
				bad = 1
			}
		if (all < 50) {
			print "hardly any variables found"
			bad = 1
		}
		exit bad
	}' || bad=1

if grep -lE '^\} session( = |;)' "${files[@]}" | xargs grep -L QCUL_SESSION | grep .; then
	echo "a session that fork() does not clear"
	bad=1
fi
# The arena's mutex is held from the first to the last step of fork(), by the entry of malloc_hook.c.
if grep -nE 'PTHREAD_MUTEX_INITIALIZER|pthread_mutex_init' "${files[@]}" |
	grep -vE '/malloc/arena\.c:|/graph/graph_memory\.c:.*\.lock = '; then
	echo "a lock that is in no entry"
	bad=1
fi
exit $bad
