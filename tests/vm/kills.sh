#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A few rounds of tests/hostile/kills.sh, which says what they are.
exec "$(dirname "$0")/../hostile/kills.sh" 10
