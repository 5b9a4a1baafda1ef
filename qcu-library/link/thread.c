// SPDX-License-Identifier: LGPL-2.1-or-later
/* What CUDA keeps for each thread. */
#include "qcu-library/link/link.h"

QCUL_NEAR struct qcul_thread qcul_self = {
	.capture_mode = cudaStreamCaptureModeGlobal,
};
