/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory of a session that goes ahead (memory/ahead.h), piece by piece, while the session
 * takes commands. What is copied may be written meanwhile: mir_save() sees by its sum that the
 * piece is another one.
 */
#ifndef QCU_GOING_H
#define QCU_GOING_H

#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/memory/ahead.h"
#include "qcu-device/mirror/mirror.h"

/*
 * Begins with the first piece. buffer: a file of AHEAD_BYTES, to which pieces are copied. Another
 * one that has begun ends. False: nothing goes ahead.
 */
bool mir_ahead_begin(struct mirror *m, int buffer);
/*
 * Copies the next piece into the buffer, and says where it lies; its sum is the caller's to make.
 * False: there is none.
 */
bool mir_ahead_next(struct mirror *m, struct ahead_piece *piece);
void mir_ahead_end(struct mirror *m);
/*
 * Begins once more, with what is otherwise than in these pieces (mir_ahead_sent()), and with memory
 * that has come since. The session does nothing, and this takes until then at most (spin_clock()).
 * *bytes: how many they are. False: nothing goes ahead, or it would be more than `most` bytes.
 */
bool mir_ahead_again(struct mirror *m, int buffer, int sent, uint64_t most, uint64_t until,
		     uint64_t *bytes);

/*
 * What mir_ahead_again() has loaded ends. mir_save() can use it, and does this, too; else it is
 * done before the session's next command, which may reset the device.
 */
void mir_ahead_forget(struct mirror *m);

/*
 * The next mir_save() leaves out what has gone ahead and is still so: these pieces, each a struct
 * ahead_piece in a file. Of those with one address the last one counts. Nothing in the file is
 * trusted.
 */
void mir_ahead_sent(struct mirror *m, int sent);

/*
 * What has come ahead, in a file (memory/ahead.h). comes: so many bytes of the file have been
 * written, and are made ready for the GPU. came: all of it; the next mir_restore() may use it.
 * Afterwards it is dropped, which takes long, and may be done while the session takes commands. The
 * file stays the caller's, and open until then.
 */
void mir_ahead_comes(struct mirror *m, int ahead, uint64_t bytes);
void mir_ahead_came(struct mirror *m, int ahead);
void mir_ahead_drop(struct mirror *m);

#endif
