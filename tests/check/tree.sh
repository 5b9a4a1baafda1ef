#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The top level has only what belongs there, every source file has an SPDX line, no source file has unfinished code, and no script names a package
# mirror: package sources come from the machine's own apt configuration.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0
top=' .ci .clang-format .gitignore LICENSE Makefile README.md docs include perf qcu-device qcu-driver qcu-library scripts tests '
for name in $(git ls-files | cut -d/ -f1 | sort -u); do
	[[ $top == *" $name "* ]] || { echo "$name: not for the top level"; bad=1; }
done
mapfile -t files < <(git ls-files '*.c' '*.h' '*.cu' '*.sh' '*.py' '*.mk' Makefile scripts .ci tests | sort -u |
	 grep -vE '\.(txt|patch|syms|ptx|bin|md)$')
[ ${#files[@]} -gt 1000 ] || { echo "hardly any files found"; exit 1; }
# One process for all: two for each file took four seconds.
awk '
	FNR > 3 { nextfile }
	/SPDX-License-Identifier/ { seen[FILENAME] = 1 }
	END {
		for (i = 1; i < ARGC; i++)
			if (!(ARGV[i] in seen)) {
				print ARGV[i] ": no SPDX line"
				bad = 1
			}
		exit bad
	}' "${files[@]}" || bad=1
marks='\b(TO''DO|FIX''ME|X''XX)\b'
if git grep -nE "^[[:space:]]*#[[:space:]]*if 0|$marks" -- '*.c' '*.h' '*.cu' '*.sh' Makefile; then
	echo "unfinished code"
	bad=1
fi
if git grep -nE 'https?://[a-z0-9.-]*debian' -- . ':!tests/check/tree.sh' \
	':!scripts/deb/debian/copyright'; then # whose first line must name the format by its address
	echo "a package mirror's name"
	bad=1
fi
# Messages that a guest can cause go through complain(). Only the files of the main process that are
# listed here may print directly, for events that happen once.
if git grep -nE '(fprintf|fputs|putc|perror)[(].*(stderr|")' -- 'qcu-device/*.c' 'qcu-device/*.h' \
	':!qcu-device/host/main.c' ':!qcu-device/host/vhost.c' ':!qcu-device/host/birth.c' ':!qcu-device/host/plugin.c' \
	':!qcu-device/turns/share.c' ':!qcu-device/jail/jail.c' ':!qcu-device/jail/jail_spaces.c' ':!qcu-device/jail/jail_lacks.c' ':!qcu-device/host/nursery.c' ':!qcu-device/host/poll.c' ':!qcu-device/host/status.c' ':!qcu-device/qemu/*' ':!qcu-device/backend/cuda/check/*' |
	grep -E 'stderr|perror'; then
	echo "messages that are neither limited nor clean"
	bad=1
fi
exit $bad
