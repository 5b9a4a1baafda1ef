// SPDX-License-Identifier: GPL-2.0-or-later
/* Our declarations after NVIDIA's: the compiler compares them. tests/check/nccl.sh compiles it. */
#include <nccl.h>
/* It declares functions for kernels, which C would want to have. */
#define inline
#include <nccl_device/host.h>
#undef inline

#include "qcu-library/nccl/api.h"
