// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SIGUSR1: what each session uses of its limits, and what the VM uses of its own. One line for
 * each.
 */
#include <inttypes.h>
#include <stdio.h>

#include "qcu-device/host/vhost.h"

static void line(const char *who, enum limit what, unsigned int device, uint64_t used,
		 uint64_t limit, uint64_t refused)
{
	char now[32], most[32], gpu[24] = "", met[48] = "";

	if (what == LIMIT_DEVICE_MEMORY)
		snprintf(gpu, sizeof(gpu), " of GPU %u", device);
	if (refused)
		snprintf(met, sizeof(met), ", refused %" PRIu64 " times", refused);
	fprintf(stderr, "qcu-device: %s: %s%s: %s of %s%s\n", who, limit_name(what), gpu,
		limit_text(what, used, now, sizeof(now)),
		limit_text(what, limit, most, sizeof(most)), met);
}

static void time_line(const char *who, uint64_t us)
{
	fprintf(stderr, "qcu-device: %s: GPU time: %" PRIu64 ".%03" PRIu64 " s\n", who,
		us / 1000000, us / 1000 % 1000);
}

static void session(struct device *d, unsigned int queue, const struct limits *l)
{
	const struct session *s = &d->session[queue];
	struct session_usage *p = &d->usage->sessions[queue];
	unsigned int i, dev;
	char who[64];

	snprintf(who, sizeof(who), "session %u (%s, pid %u)", queue, s->comm, s->guest_pid);
	for (dev = 0; dev < USAGE_DEVICES; dev++)
		if (p->memory[dev])
			line(who, LIMIT_DEVICE_MEMORY, dev, p->memory[dev],
			     l->session[LIMIT_DEVICE_MEMORY], p->refused[LIMIT_DEVICE_MEMORY]);
	for (i = 0; i < LIMIT_KINDS; i++)
		if (p->used[i] || (p->refused[i] && i != LIMIT_DEVICE_MEMORY))
			line(who, (enum limit)i, 0, p->used[i], l->session[i], p->refused[i]);
	if (d->opt->gpu_time)
		time_line(who, board_gpu_time(d->board, d->usage, queue));
}

void status_print(struct device *d)
{
	struct limits l = d->opt->limits;
	unsigned int q, i, dev, live = 0;
	uint64_t ram = 0, spent = d->board->past.gpu_time, used;

	limits_default(&l);
	for (i = 0; i < d->mem.count; i++)
		ram += d->mem.regions[i].size;
	limits_for_ram(&l, ram);
	for (q = 1; q <= d->opt->sessions; q++) {
		if (d->session[q].state != SESSION_LIVE)
			continue;
		live++;
		session(d, q, &l);
		spent += board_gpu_time(d->board, d->usage, q);
	}
	if (d->opt->gpu_time)
		time_line("VM", spent);
	for (dev = 0; dev < USAGE_DEVICES; dev++) {
		used = usage_sum(d->usage, LIMIT_DEVICE_MEMORY, dev);
		if (used)
			line("VM", LIMIT_DEVICE_MEMORY, dev, used, l.vm[LIMIT_DEVICE_MEMORY], 0);
	}
	for (i = 0; i < LIMIT_KINDS; i++) {
		used = i == LIMIT_DEVICE_MEMORY ? 0 : usage_sum(d->usage, (enum limit)i, 0);
		if (used && l.vm[i] != LIMIT_EACH)
			line("VM", (enum limit)i, 0, used, l.vm[i], 0);
	}
	fprintf(stderr, "qcu-device: VM: %u of %u sessions\n", live, d->opt->sessions);
}
