#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs every test program again, compiled for a debugger (-G -O0), which gives different code for host
# and GPU. There is no remapping on the host, the chunks are small, so that a copy has many pieces, and
# the guest has little memory.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest-O0"/*
boot --map ncvm --chunk 256K --mem 1G "${with[@]}" <<'END'
programs ''
END
