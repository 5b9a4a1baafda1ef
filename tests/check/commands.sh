#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/commands.md agrees with the table of commands in include/.
set -euo pipefail
cd "$(dirname "$0")/../.."
diff -u docs/commands.md <(scripts/commands-table)
