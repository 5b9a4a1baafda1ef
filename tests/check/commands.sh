#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/commands.md says what include/qcucmd.h says.
set -euo pipefail
cd "$(dirname "$0")/../.."
diff -u docs/commands.md <(scripts/commands-table)
