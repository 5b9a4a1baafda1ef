/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef QCU_WRITE_FILE_H
#define QCU_WRITE_FILE_H

#include <stdbool.h>

/*
 * Writes the text to the file that `path` names from the folder `dir` (AT_FDCWD: from here), in one
 * piece. False: errno says why not.
 */
bool write_file(int dir, const char *path, const char *text);

#endif
