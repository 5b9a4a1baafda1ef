#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/limits.md agrees with qcu-device/base/limits.h.
set -euo pipefail
cd "$(dirname "$0")/../.."
diff -u <(sed -n '/^| limit /,/^$/p' docs/limits.md | grep '^| ') \
	<("${B:-build}/qcu-device/qcu-device" --limit help | grep -v '^|---')
