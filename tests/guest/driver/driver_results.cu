// SPDX-License-Identifier: GPL-2.0-or-later
/* Every result has a name and a text, and they are the header's. */
#include "driver.h"

int main()
{
	const char *name, *text;
	unsigned int known = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		CUresult named = cuGetErrorName((CUresult)i, &name);

		REQUIRE(cuGetErrorString((CUresult)i, &text) == named, "%d", i);
		if (named) {
			DEXPECT(named, CUDA_ERROR_INVALID_VALUE);
			REQUIRE(!name && !text, "%d", i);
			continue;
		}
		known++;
		REQUIRE(!strncmp(name, i ? "CUDA_ERROR_" : "CUDA_SUCCESS", 11) && text[0], "%d: %s",
			i, name);
	}
	REQUIRE(known >= 90, "%u", known);
	DCHECK(cuGetErrorName(CUDA_ERROR_CONTEXT_IS_DESTROYED, &name));
	REQUIRE(!strcmp(name, "CUDA_ERROR_CONTEXT_IS_DESTROYED"), "%s", name);
	DCHECK(cuGetErrorString(CUDA_ERROR_NOT_FOUND, &text));
	REQUIRE(!strcmp(text, "named symbol not found"), "%s", text);
	ONLY_OURS(DEXPECT(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE));
	return verified("names and texts of results");
}
