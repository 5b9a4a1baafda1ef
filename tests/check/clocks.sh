#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Nothing waits by the clock that people and NTP set: a limit would pass at once, or hours late. That clock is only for what
# tells the time: the lines of a log, what a kernel reads from globaltimer, when a session began, what qcu-smi prints, NVML's time of a measurement.
set -euo pipefail
cd "$(dirname "$0")/../.."

tell_the_time='^(qcu-library/link/logs|qcu-library/nvml/smi_fields|qcu-library/nvml/smi_show|qcu-library/nvml/use|qcu-device/soft/ptx/ops/ptx_misc|qcu-device/host/board)\.c:'
bad=$(grep -rnE --include='*.[ch]' '\bCLOCK_REALTIME\b|[^_a-z]time\(NULL\)|\bgettimeofday\(&|\bktime_get_real' \
	qcu-library qcu-driver qcu-device include | grep -vE "$tell_the_time") || true
if [ -n "$bad" ]; then
	echo "waits by a clock that is set:"
	echo "$bad"
	exit 1
fi
