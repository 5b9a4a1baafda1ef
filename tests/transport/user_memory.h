/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_TRANSPORT_USER_MEMORY_H
#define TESTS_TRANSPORT_USER_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As pinning does: -EFAULT if some page is not mapped. */
int user_mapped(uint64_t addr, uint64_t len);
/* As pinning for writing does: -EFAULT if the program may not write some page. */
int user_writable(uint64_t addr, uint64_t len);
/* Copies from memory of the program, which is this process, that may not be mapped. */
int user_copy(pid_t owner, void *to, uint64_t addr, size_t len);

#endif
