// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where graph/ registers what it does with calls that are captured. */
#include "qcu-library/link/capture.h"

atomic_uint qcul_captures;
const struct qcul_recorder *qcul_recorder;
