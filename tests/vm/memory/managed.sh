#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Managed variables that stay in the GPU's memory, as with CUDA: the programs have copies of them.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export QCU_SOFT_BIND=0
with "$guest"/{fork_child,managed_graphs,managed_units,managed_variables,managed_advice,symbols}
boot "${with[@]}" <<'END'
programs ''
END
