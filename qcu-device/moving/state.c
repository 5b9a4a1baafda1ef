// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of a device, written and checked. See state.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "include/qcucmd.h"
#include "qcu-device/moving/state.h"

void state_make(struct state *s, unsigned int sessions)
{
	*s = (struct state){
		.magic = STATE_MAGIC,
		.version = STATE_VERSION,
		.bytes = sizeof(*s),
		.wire_version = QCU_WIRE_VERSION,
		.sessions = sessions,
		.window_base = QCU_WINDOW_BASE,
		.window_size = QCU_WINDOW_SIZE,
	};
}

static bool __attribute__((format(printf, 3, 4)))
refuse(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return false;
}

bool state_fits(const void *bytes, size_t len, unsigned int sessions, char *why, size_t size)
{
	struct state s;

	if (len < sizeof(s))
		return refuse(why, size, "it has %zu bytes, which is too short", len);
	memcpy(&s, bytes, sizeof(s));
	if (s.magic != STATE_MAGIC)
		return refuse(why, size, "it is not the state of a qcu-device");
	if (s.version != STATE_VERSION)
		return refuse(why, size, "its version is %u, and this qcu-device reads %u",
			      s.version, STATE_VERSION);
	if (s.wire_version != QCU_WIRE_VERSION)
		return refuse(why, size, "its wire version is %u, and this qcu-device has %u",
			      s.wire_version, QCU_WIRE_VERSION);
	if (s.sessions != sessions)
		return refuse(why, size,
			      "its device can have %u sessions, and this one %u: start qcu-device "
			      "with the same --sessions",
			      s.sessions, sessions);
	if (s.window_base != QCU_WINDOW_BASE || s.window_size != QCU_WINDOW_SIZE)
		return refuse(why, size, "the window of its programs lies elsewhere");
	if (s.open)
		return refuse(why, size,
			      "it has %u open sessions, and restoring sessions is not implemented "
			      "yet",
			      s.open);
	if (s.bytes != len || len != sizeof(s) || s.rsvd)
		return refuse(why, size, "it is damaged");
	return true;
}
