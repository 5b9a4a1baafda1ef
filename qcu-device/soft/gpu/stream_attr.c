/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes that can be set on a stream after its creation. They have no effect here: there is no
 * persisting cache, there is only one memory domain, and a thread that waits always sleeps. So
 * values are only checked, stored and returned.
 */
#include <string.h>

#include "qcu-device/soft/gpu/soft.h"

/* cudaStreamAttrID */
enum {
	ATTR_ACCESS_POLICY = 1,
	ATTR_SYNC_POLICY = 3,
	ATTR_PRIORITY = 8,
	ATTR_DOMAIN_MAP = 9,
	ATTR_DOMAIN = 10,
};

#define SYNC_POLICY_FIRST 1u /* cudaSyncPolicyAuto */
#define SYNC_POLICY_LAST  4u
#define DOMAIN_LAST	  1u /* cudaLaunchMemSyncDomainRemote */
#define PRIORITY_GREATEST (-5)

/* cudaAccessPolicyWindow */
struct access_policy {
	uint64_t base, bytes;
	float ratio;
	uint32_t hit, miss;
};

static int set_priority(struct be_stream *s, int32_t priority)
{
	if (s == s->dev->legacy)
		return QCU_ERR_InvalidValue;
	s->priority = priority > 0		     ? 0
		      : priority < PRIORITY_GREATEST ? PRIORITY_GREATEST
						     : priority;
	return QCU_ERR_Success;
}

/* be->lock is held. */
static int set_stream_attr(struct be_stream *s, uint32_t attr, const void *value)
{
	struct access_policy w;
	uint32_t v;

	memcpy(&v, value, sizeof(v));
	memcpy(&w, value, sizeof(w));
	switch (attr) {
	case ATTR_ACCESS_POLICY:
		/* The device has no persisting cache, so only an empty window is accepted. */
		return w.bytes ? QCU_ERR_InvalidValue : QCU_ERR_Success;
	case ATTR_SYNC_POLICY:
		if (v < SYNC_POLICY_FIRST || v > SYNC_POLICY_LAST)
			return QCU_ERR_InvalidValue;
		s->attrs.sync_policy = v;
		return QCU_ERR_Success;
	case ATTR_PRIORITY:
		return set_priority(s, (int32_t)v);
	case ATTR_DOMAIN_MAP:
		/* Both kinds of memory are in domain 0, the only one. */
		memcpy(&v, value, 2);
		return v & 0xffff ? QCU_ERR_InvalidValue : QCU_ERR_Success;
	case ATTR_DOMAIN:
		if (v > DOMAIN_LAST)
			return QCU_ERR_InvalidValue;
		s->attrs.domain = v;
		return QCU_ERR_Success;
	}
	return QCU_ERR_InvalidValue;
}

int soft_stream_attr_set(struct be *be, struct be_stream *s, uint32_t attr, const void *value)
{
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	pthread_mutex_lock(&be->lock);
	err = set_stream_attr(s, attr, value);
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_stream_attr_get(struct be *be, struct be_stream *s, uint32_t attr, void *value)
{
	int err = atomic_load(&be->sticky);
	int32_t v = 0;

	memset(value, 0, QCU_STREAM_ATTR);
	if (err)
		return err;
	pthread_mutex_lock(&be->lock);
	switch (attr) {
	case ATTR_ACCESS_POLICY:
	case ATTR_DOMAIN_MAP:
		break;
	case ATTR_SYNC_POLICY:
		v = (int32_t)(s->attrs.sync_policy ? s->attrs.sync_policy : SYNC_POLICY_FIRST);
		break;
	case ATTR_PRIORITY:
		v = s->priority;
		break;
	case ATTR_DOMAIN:
		v = (int32_t)s->attrs.domain;
		break;
	default:
		err = QCU_ERR_InvalidValue;
	}
	pthread_mutex_unlock(&be->lock);
	memcpy(value, &v, sizeof(v));
	return err;
}

int soft_stream_attr_copy(struct be *be, struct be_stream *to, struct be_stream *from)
{
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	pthread_mutex_lock(&be->lock);
	to->attrs = from->attrs;
	pthread_mutex_unlock(&be->lock);
	return err;
}
