// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stands for the library of another version of CUDA. It shows by its numbers that it was called. */
#define PUBLIC __attribute__((visibility("default")))

PUBLIC int cudaRuntimeGetVersion(int *v);
PUBLIC int cudaRuntimeGetVersion(int *v)
{
	*v = 12345;
	return 0;
}

#define REGISTERS(name)              \
	PUBLIC void *name(void);     \
	PUBLIC void *name(void)      \
	{                            \
		static char nothing; \
		return &nothing;     \
	}

REGISTERS(__cudaRegisterFatBinary)
REGISTERS(__cudaRegisterFatBinaryEnd)
REGISTERS(__cudaRegisterFunction)
REGISTERS(__cudaRegisterVar)
REGISTERS(__cudaInitModule)
REGISTERS(__cudaUnregisterFatBinary)
