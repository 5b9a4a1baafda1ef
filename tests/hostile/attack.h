/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What attacks have in common. An attack plays on sessions from ATTACK_FIRST on; meanwhile a
 * program that means well computes in session GOOD_SESSION of the same device, and must get right
 * results until the end. An attack returns false, and has said why, if the device did not hold.
 */
#ifndef HOSTILE_ATTACK_H
#define HOSTILE_ATTACK_H

#include "tests/hostile/guest.h"
#include "tests/hostile/host.h"

#define GOOD_SESSION 1
#define ATTACK_FIRST 2
#define GOOD_ID	     QCU_ID_FIRST /* of its module and its kernel */

struct scene {
	struct guest g;
	struct host h;
	uint64_t random;
	uint64_t limit;	      /* of commands, in random play; 0: none */
	unsigned int seconds; /* of random play; 0: until the limit */
};

struct attack {
	const char *name;
	bool (*play)(struct scene *s);
	const char *arg[6]; /* more arguments for the device */
	bool quiet;	    /* the device runs without --verbose */
	const char *what;
};

/* Each file's attacks; ends with one without a name. */
extern const struct attack map_attacks[], image_attacks[], wear_attacks[], handle_attacks[],
	ring_attacks[], log_attacks[], read_attacks[];
bool random_play(struct scene *s);

/* Says what did not hold, and is false. */
bool fell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The program that means well. */
void good_start(struct scene *s);
uint64_t good_rounds(void);
/* Waits until it has done so many more rounds. */
void good_wait(uint64_t more);
/* False: it has had a wrong result, or none. */
bool good_stop(void);
/* One round of work in any session that has the kernel: false if a result is wrong. */
bool good_work(struct guest *g, unsigned int q, uint32_t tid, uint64_t seed);

/* ---- commands that most attacks need; each returns a status ---- */

extern const char plain_image[];
extern const size_t plain_image_bytes; /* with its NUL */

uint32_t rnd(struct scene *s, uint32_t below);
struct qCUcmd command(uint16_t op, uint32_t tid);
int cmd_simple(struct guest *g, unsigned int q, uint16_t op, uint32_t tid);
int cmd_map(struct guest *g, unsigned int q, uint64_t va, uint64_t gpa, uint64_t len);
int cmd_unmap(struct guest *g, unsigned int q, uint64_t va, uint64_t len);
int cmd_malloc(struct guest *g, unsigned int q, uint64_t size, uint64_t *ptr);
int cmd_stream(struct guest *g, unsigned int q, uint32_t stream);
int cmd_host_func(struct guest *g, unsigned int q, uint32_t stream, uint64_t token);
/* Loads what lies in RAM; with segs pages of it in this order, or as it lies. */
int cmd_load(struct guest *g, unsigned int q, uint32_t module, uint64_t gpa, uint64_t len);
int cmd_find(struct guest *g, unsigned int q, uint32_t module, uint32_t kernel, const char *name);
int cmd_launch(struct guest *g, unsigned int q, uint32_t kernel, uint32_t stream, uint32_t grid,
	       uint64_t p, uint32_t n);
/* Runs what host functions have come, so that streams go on. False: the session is over. */
bool cmd_host_run(struct guest *g, unsigned int q, unsigned int count);

/* Is the session still there? It answers, or has come back with length 0. False: it hangs. */
bool session_settled(struct scene *s, unsigned int q, bool *over);

#endif
