// SPDX-License-Identifier: GPL-2.0-or-later
/* Our declarations after NVIDIA's: the compiler compares them. tests/check/nccl.sh compiles it. */
#include <nccl.h>

#include "qcu-library/nccl/api.h"
