// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The arithmetic handlers for every x86-64 processor.
 */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif
#include <math.h>

#define PTX_OPS_NAME ptx_ops_base
#include "qcu-device/soft/ptx/ops/ptx_ops_table.h"
