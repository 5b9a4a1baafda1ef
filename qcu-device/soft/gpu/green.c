// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Green contexts. This GPU has multiprocessors in name only: a context is the number of those that
 * belong to it, and its streams are as others.
 */
#include <stdlib.h>

#include "qcu-device/soft/gpu/soft.h"

struct be_green {
	unsigned int dev;
	uint32_t sms;
};

static uint32_t all_sms(const struct be *be, unsigned int dev, const struct be_green *parent)
{
	return parent ? parent->sms : be->dev[dev].env.sm_count;
}

/* Every multiprocessor can be a part of its own. */
static struct be_sms some_sms(uint32_t count)
{
	return (struct be_sms){.count = count, .least = !!count, .align = !!count};
}

int soft_green_parts(struct be *be, unsigned int dev, const struct be_split *split, uint32_t *made,
		     struct be_sms *group, struct be_sms *rest)
{
	uint32_t all = all_sms(be, dev, split->parent);
	uint32_t each = !split->groups ? all : split->least ? split->least : 1;

	if (each > all)
		return QCU_ERR_InvalidValue;
	*made = split->groups ? split->groups : 1;
	if (*made > all / each)
		*made = all / each;
	*group = some_sms(each);
	*rest = some_sms(all - *made * each);
	return QCU_ERR_Success;
}

int soft_green_create(struct be *be, unsigned int dev, const struct be_split *split,
		      const uint8_t *members, struct be_green **out)
{
	struct be_sms group, rest;
	uint32_t made, i, sms = 0;
	struct be_green *g;
	int ret = soft_green_parts(be, dev, split, &made, &group, &rest);

	for (i = 0; !ret && i <= QCU_GREEN_GROUPS; i++) {
		if (!(members[i / 8] >> i % 8 & 1))
			continue;
		if (i < made)
			sms += group.count;
		else if (i == QCU_GREEN_GROUPS && rest.count)
			sms += rest.count;
		else
			ret = QCU_ERR_InvalidResourceConfiguration;
	}
	if (ret)
		return ret;
	g = malloc(sizeof(*g));
	if (!g)
		return QCU_ERR_MemoryAllocation;
	*g = (struct be_green){.dev = dev, .sms = sms};
	*out = g;
	return QCU_ERR_Success;
}

int soft_green_destroy(struct be *be, struct be_green *g)
{
	(void)be;
	free(g);
	return QCU_ERR_Success;
}

int soft_green_stream(struct be *be, struct be_green *g, int priority, struct be_stream **s)
{
	return soft_stream_create(be, g->dev, 1 /* cudaStreamNonBlocking */, priority, s);
}
