/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What PTX looks like from outside, for the check of images and for the software GPU. */
#ifndef QCU_PTX_TEXT_H
#define QCU_PTX_TEXT_H

#include <stdbool.h>
#include <string.h>

/* PTX begins with its version, after optional blanks and comments. The text ends with a zero byte.
 */
static inline bool ptx_text_begins(const char *p)
{
	for (;;) {
		p += strspn(p, " \t\r\n");
		if (p[0] == '/' && p[1] == '/') {
			p += strcspn(p, "\n");
		} else if (p[0] == '/' && p[1] == '*') {
			p = strstr(p + 2, "*/");
			if (!p)
				return false;
			p += 2;
		} else {
			return !strncmp(p, ".version", 8);
		}
	}
}

#endif
