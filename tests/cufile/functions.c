// SPDX-License-Identifier: GPL-2.0-or-later
/* Our declarations after NVIDIA's: the compiler compares them. tests/check/cufile.sh compiles it.
 */
#include <cufile.h>

#include "qcu-library/cufile/api.h"
