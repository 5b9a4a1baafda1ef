// SPDX-License-Identifier: GPL-2.0-or-later
#include "qcu-device/soft/libs/blas.h"
const struct soft_symbol soft_blas_level2[] = {{NULL, NULL}};
