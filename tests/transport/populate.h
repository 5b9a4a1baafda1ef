/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Allocates the pages of memory that is about to be pinned. */
#ifndef TRANSPORT_POPULATE_H
#define TRANSPORT_POPULATE_H

#include <stddef.h>

void populate(void *addr, size_t len);

#endif
