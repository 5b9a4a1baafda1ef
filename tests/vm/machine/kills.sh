#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a few rounds of tests/hostile/kills.sh. The test is explained there.
exec "$(dirname "$0")/../../hostile/kills.sh" 10
