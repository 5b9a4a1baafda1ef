#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Managed variables that the GPU keeps where it has them, as CUDA does: the programs have copies.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

export QCU_SOFT_BIND=0
with "$guest"/{fork_child,managed_graphs,managed_units,managed_variables,managed_advice,symbols}
boot "${with[@]}" <<'END'
programs ''
END
