#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/commands.md agrees with the table of commands in include/, and what is made from commands.list
# with that list.
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/commands/generate --check
diff -u docs/commands.md <(scripts/commands/table)
