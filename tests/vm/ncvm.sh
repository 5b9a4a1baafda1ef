#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every test program once more, compiled for a debugger (-G -O0), which is other code on both sides.
# Without remapping on the host, with small chunks, so that a copy is many pieces, in a guest with
# little memory.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest-O0"/*
boot --map ncvm --chunk 256K --mem 1G "${with[@]}" <<'END'
programs ''
END
