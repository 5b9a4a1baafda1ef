// SPDX-License-Identifier: GPL-2.0-or-later
/* The libraries by name (libraries.h). */
#include <string.h>

#include "include/qculib.h"
#include "qcu-device/base/libraries.h"

static const char *const names[QCU_LIBS] = {
	[QCU_LIB_CUBLAS] = "cublas",	 [QCU_LIB_CUBLASLT] = "cublaslt",
	[QCU_LIB_CUDNN] = "cudnn",	 [QCU_LIB_CUFFT] = "cufft",
	[QCU_LIB_CURAND] = "curand",	 [QCU_LIB_CUSOLVER] = "cusolver",
	[QCU_LIB_CUSPARSE] = "cusparse",
};

static uint32_t library_bit(const char *name, size_t len)
{
	uint32_t i;

	for (i = 0; i < QCU_LIBS; i++)
		if (names[i] && strlen(names[i]) == len && !memcmp(names[i], name, len))
			return 1u << i;
	return 0;
}

bool libraries_parse(const char *list, uint32_t *refused)
{
	uint32_t allowed = 0;

	if (!strcmp(list, "all") || !strcmp(list, "none")) {
		*refused = list[0] == 'n' ? UINT32_MAX : 0;
		return true;
	}
	for (;;) {
		size_t len = strcspn(list, ",");
		uint32_t bit = library_bit(list, len);

		if (!bit)
			return false;
		allowed |= bit;
		if (!list[len])
			break;
		list += len + 1;
	}
	*refused = ~allowed;
	return true;
}

const char *libraries_names(void)
{
	static char text[128];
	uint32_t i;

	text[0] = 0;
	for (i = 0; i < QCU_LIBS; i++)
		if (names[i])
			strcat(strcat(text, text[0] ? "," : ""), names[i]);
	return text;
}
