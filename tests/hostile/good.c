// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The neighbour: a program that behaves well, in a session of the same device as the attacks. It
 * copies, launches and compares without a pause. If it sees a wrong number or an error, the attack
 * has succeeded.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/hostile/attack.h"

#define NUMBERS 2048u

const char plain_image[] =
	".version 8.0\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 v[16];\n"
	".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
	".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
	"ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];\n"
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
	"mad.lo.u32 %r2, %r2, %r3, %r4;\n"
	"setp.ge.u32 %p1, %r2, %r1; @%p1 bra out;\n"
	"mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2;\n"
	"ld.u32 %r5, [%d3]; mad.lo.u32 %r5, %r5, 3, %r2; st.u32 [%d3], %r5;\nout: ret;\n}\n"
	".visible .entry t()\n{\ntrap;\n}\n"
	".visible .entry loop()\n{\nagain: bra again;\n}\n";
const size_t plain_image_bytes = sizeof(plain_image);

static struct {
	pthread_t thread;
	struct scene *s;
	atomic_bool stop;
	_Atomic uint64_t rounds;
	char wrong[200];
} good;

static bool wrong(const char *what, int status)
{
	snprintf(good.wrong, sizeof(good.wrong), "%s: %d", what, status);
	return false;
}

static bool copy(struct guest *g, unsigned int q, uint32_t tid, bool up, uint64_t device)
{
	uint64_t gpa = GUEST_SPACE(q) + (up ? 0x10000 : 0x20000);
	struct qcu_seg segs[2] = {{gpa, NUMBERS * 4 - 0x1000},
				  {gpa + NUMBERS * 4 - 0x1000, 0x1000}};
	int rc = cmd_copy(g, q, tid, up, device, segs, 2);

	return rc ? wrong(up ? "copy up" : "copy down", rc) : true;
}

bool good_work(struct guest *g, unsigned int q, uint32_t tid, uint64_t seed)
{
	uint32_t *up = (uint32_t *)(g->ram + GUEST_SPACE(q) + 0x10000);
	uint32_t *down = (uint32_t *)(g->ram + GUEST_SPACE(q) + 0x20000);
	uint64_t device;
	unsigned int i;
	int rc;

	rc = cmd_malloc(g, q, NUMBERS * 4, &device);
	if (rc)
		return wrong("malloc", rc);
	for (i = 0; i < NUMBERS; i++)
		up[i] = (uint32_t)(seed * 0x9e3779b9u + i * 7);
	memset(down, 0xee, NUMBERS * 4);
	if (!copy(g, q, tid, true, device))
		return false;
	rc = cmd_launch(g, q, GOOD_ID, QCU_STREAM_LEGACY, NUMBERS / 64, device, NUMBERS);
	if (rc)
		return wrong("launch", rc);
	if (!copy(g, q, tid, false, device))
		return false;
	for (i = 0; i < NUMBERS; i++)
		if (down[i] != (uint32_t)(seed * 0x9e3779b9u + i * 7) * 3 + i)
			return wrong("a wrong number at", (int)i);
	rc = cmd_free(g, q, tid, device);
	return rc ? wrong("free", rc) : true;
}

static void *work(void *arg)
{
	struct guest *g = &good.s->g;
	int rc;

	(void)arg;
	memcpy(g->ram + GUEST_SPACE(GOOD_SESSION), plain_image, plain_image_bytes);
	rc = cmd_load(g, GOOD_SESSION, GOOD_ID, GUEST_SPACE(GOOD_SESSION), plain_image_bytes);
	rc = rc ? rc : cmd_find(g, GOOD_SESSION, GOOD_ID, GOOD_ID, "k");
	if (rc) {
		wrong("no kernel", rc);
		return NULL;
	}
	while (!good.stop && good_work(g, GOOD_SESSION, 1, good.rounds))
		good.rounds++;
	return NULL;
}

void good_start(struct scene *s)
{
	int rc = guest_open(&s->g, GOOD_SESSION);

	if (rc)
		die("the good session does not open: %d", rc);
	good.s = s;
	good.stop = false;
	good.rounds = 0;
	good.wrong[0] = 0;
	if (pthread_create(&good.thread, NULL, work, NULL))
		die("no thread for the good session");
	good_wait(1);
}

uint64_t good_rounds(void)
{
	return good.rounds;
}

void good_wait(uint64_t more)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	uint64_t until = good.rounds + more;
	unsigned int i;

	for (i = 0; good.rounds < until && !good.wrong[0] && i < GUEST_WAIT_MS; i++)
		nanosleep(&ms, NULL);
}

bool good_stop(void)
{
	/* Whatever the attack has done to the device, the neighbour must go on. */
	uint64_t before = good.rounds;

	good_wait(2);
	if (!good.wrong[0] && good.rounds < before + 2)
		return fell("the good session has come to a halt after %llu rounds",
			    (unsigned long long)good.rounds);
	good.stop = true;
	pthread_join(good.thread, NULL);
	if (good.wrong[0])
		return fell("the good session, after %llu rounds: %s",
			    (unsigned long long)good.rounds, good.wrong);
	return true;
}
