/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files in which mirrors put device memory that has left (store_file.h): one for each mirror
 * that there can be at one time. The main process opens them before it goes to jail, where it can
 * open none, and gives each mirror one of them.
 *
 * A file is empty when a mirror gets it. Mirrors must not get those of others in any other way: the
 * main process asks store_pool_has() about each file that a mirror sends to another one.
 */
#ifndef QCU_STORE_POOL_H
#define QCU_STORE_POOL_H

#include <stdbool.h>

#define STORE_POOL_MAX 128u

/*
 * Opens files for so many mirrors, at most STORE_POOL_MAX, in this folder. Returns why that is not
 * possible, or NULL.
 */
const char *store_pool_begin(const char *folder, unsigned int mirrors);
/* Returns a file that no mirror has, or -1: there is none. It remains the pool's. */
int store_pool_take(void);
/* The mirror has ended. Its bytes are gone at once. fd: may be -1. */
void store_pool_give_back(int fd);
/* Is it one of the pool's files, by whatever number? */
bool store_pool_has(int fd);
/* Closes all files. */
void store_pool_end(void);

#endif
