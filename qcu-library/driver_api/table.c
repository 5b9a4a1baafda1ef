// SPDX-License-Identifier: LGPL-2.1-or-later
/* All functions of cuda.h with their addresses, for cuGetProcAddress. Made from cuda.syms. */
#include <stddef.h>

#include "qcu-library/driver_api/table.h"

#define FUNCTION(symbol, name, since, stream) void qcul_drv_##symbol(void);
#include "driver_table.inc"
#undef FUNCTION

static const struct qcul_driver_function functions[] = {
#define FUNCTION(symbol, name, since, stream) {#name, since, stream, qcul_drv_##symbol},
#include "driver_table.inc"
#undef FUNCTION
};

__attribute__((constructor)) static void hand_over_function_list(void)
{
	qcul_driver_functions_are(functions, sizeof(functions) / sizeof(functions[0]));
}
