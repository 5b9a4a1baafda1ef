/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mirrors of the fake backend are separate programs: the test's program, executed again. An
 * environment variable tells them what their backend must do.
 */
#ifndef TEST_DEVICE_BORN_H
#define TEST_DEVICE_BORN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/host/birth.h"
#include "tests/unit/device/mirror/test_device_fake.h"

#define BORN_FORMAT "hold %d crash %d open_ms %u open_error %d %d"

/* Call before the device is started. */
static inline void born_tell(void)
{
	char text[128];

	snprintf(text, sizeof(text), BORN_FORMAT, fake.hold, fake.crash, fake.open_ms,
		 fake.open_error, fake.endless);
	setenv("QCU_TEST_FAKE", text, 1);
}

/* Call first in main(): in a mirror it does not return. */
static inline void born_main(int argc, char **argv)
{
	const char *text = getenv("QCU_TEST_FAKE");
	int hold, crash, endless;

	if (argc < 2 || strcmp(argv[1], BIRTH_WORD))
		return;
	fake_reset();
	if (!text || sscanf(text, BORN_FORMAT, &hold, &crash, &fake.open_ms, &fake.open_error,
			    &endless) != 5)
		_exit(99);
	fake.hold = hold;
	fake.crash = crash;
	fake.endless = endless;
	birth_mirror();
}

#endif
