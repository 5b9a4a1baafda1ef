/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What attacks have in common. An attack plays on the sessions from ATTACK_FIRST on. Meanwhile the
 * good program computes in session GOOD_SESSION of the same device. It must get right results until
 * the end. If the device did not hold, the attack prints the reason and returns false.
 */
#ifndef HOSTILE_ATTACK_H
#define HOSTILE_ATTACK_H

#include "tests/hostile/guest.h"
#include "tests/hostile/host.h"

#define GOOD_SESSION 1
#define ATTACK_FIRST 2
#define GOOD_ID	     QCU_ID_FIRST /* ID of its module and of its kernel */

struct scene {
	struct guest g;
	struct host h;
	uint64_t random;
	uint64_t limit;	      /* of commands, in random play; 0: no limit */
	unsigned int seconds; /* of random play; 0: until the limit */
};

struct attack {
	const char *name;
	bool (*play)(struct scene *s);
	const char *arg[6]; /* more arguments for the device */
	bool quiet;	    /* the device runs without --verbose */
	const char *what;
};

/* The attacks of each file. Each array ends with an entry without a name. */
extern const struct attack map_attacks[], image_attacks[], wear_attacks[], handle_attacks[],
	ring_attacks[], log_attacks[], read_attacks[], graph_attacks[];
bool random_play(struct scene *s);

/* Prints what did not hold. Returns false. */
bool fell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The good program: it behaves well and runs beside each attack. */
void good_start(struct scene *s);
uint64_t good_rounds(void);
/* Waits until the good program has done this many more rounds. */
void good_wait(uint64_t more);
/* Returns false if the good program got a wrong result, or none. */
bool good_stop(void);
/* Does one round of work in any session that has the kernel. Returns false if a result is wrong. */
bool good_work(struct guest *g, unsigned int q, uint32_t tid, uint64_t seed);

/* ---- commands that most attacks need; each function returns a status ---- */

extern const char plain_image[];
extern const size_t plain_image_bytes; /* with its NUL */

uint32_t rnd(struct scene *s, uint32_t below);
struct qCUcmd command(uint16_t op, uint32_t tid);
int cmd_simple(struct guest *g, unsigned int q, uint16_t op, uint32_t tid);
int cmd_map(struct guest *g, unsigned int q, uint64_t va, uint64_t gpa, uint64_t len);
int cmd_unmap(struct guest *g, unsigned int q, uint64_t va, uint64_t len);
int cmd_malloc(struct guest *g, unsigned int q, uint64_t size, uint64_t *ptr);
int cmd_free(struct guest *g, unsigned int q, uint32_t tid, uint64_t ptr);
/* Copies between GPU memory and these segments, and waits for it. */
int cmd_copy(struct guest *g, unsigned int q, uint32_t tid, bool up, uint64_t device,
	     const struct qcu_seg *segs, unsigned int count);
int cmd_stream(struct guest *g, unsigned int q, uint32_t stream);
int cmd_host_func(struct guest *g, unsigned int q, uint32_t stream, uint64_t token);
/* Loads the image at guest-physical address gpa. */
int cmd_load(struct guest *g, unsigned int q, uint32_t module, uint64_t gpa, uint64_t len);
int cmd_find(struct guest *g, unsigned int q, uint32_t module, uint32_t kernel, const char *name);
int cmd_launch(struct guest *g, unsigned int q, uint32_t kernel, uint32_t stream, uint32_t grid,
	       uint64_t p, uint32_t n);
/*
 * Runs the host functions that are due, so that streams go on. Returns false if the session is
 * over.
 */
bool cmd_host_run(struct guest *g, unsigned int q, unsigned int count);

/*
 * Returns true if the session answers, or if its command came back with length 0 (*over is then
 * true). Returns false if the session hangs.
 */
bool session_settled(struct scene *s, unsigned int q, bool *over);

#endif
