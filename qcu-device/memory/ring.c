// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The virtqueue, written so that another process can take it over.
 *
 * Taking a chain:  inflight[head] = popped + 1, then popped + 1.
 *                  If the process dies in between: the mark equals popped + 1, and the chain
 *                  counts as not taken.
 * Giving it back:  push = (head, used index), used->ring[], used->idx + 1, inflight[head] = 0,
 *                  pushed + 1, push = 0.
 *                  If the process dies in between: used->idx says whether the guest knows.
 *
 * Every store to `state` is a release, so a process that has reaped the dead one sees the stores in
 * this order. Within a mirror, the caller's lock keeps pops and pushes apart.
 */
#include <errno.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/memory/ring.h"

#define PUSHING (1ull << 63)

#define READ_ONCE(x)	    __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define LOAD_ACQUIRE(x)	    __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static uint64_t get(_Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_acquire);
}

static void store_with_release(_Atomic uint64_t *p, uint64_t v)
{
	atomic_store_explicit(p, v, memory_order_release);
}

size_t ring_desc_bytes(unsigned int num)
{
	return sizeof(struct vring_desc) * num;
}

size_t ring_avail_bytes(unsigned int num)
{
	return sizeof(struct vring_avail) + sizeof(uint16_t) * (num + 1);
}

size_t ring_used_bytes(unsigned int num)
{
	return sizeof(struct vring_used) + sizeof(struct vring_used_elem) * num + sizeof(uint16_t);
}

struct ring_state *ring_states_map(int fd, unsigned int count)
{
	size_t bytes = count * sizeof(struct ring_state);
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void ring_states_unmap(struct ring_state *states, unsigned int count)
{
	if (states)
		munmap(states, count * sizeof(*states));
}

void ring_start(struct ring *r, uint16_t base)
{
	memset(r->state, 0, sizeof(*r->state));
	store_with_release(&r->state->popped, base);
	store_with_release(&r->state->pushed, READ_ONCE(r->used->idx));
	r->signalled_valid = false;
}

/*
 * Returns how many chains wait. More than the queue holds means that the guest's index is nonsense.
 */
static uint16_t count_waiting_chains(const struct ring *r)
{
	return LOAD_ACQUIRE(r->avail->idx) - (uint16_t)get(&r->state->popped);
}

/* Takes the next head. The caller knows that there is one. */
static int take_head(struct ring *r, uint16_t *head, const char **why)
{
	uint64_t popped = get(&r->state->popped);

	*head = READ_ONCE(r->avail->ring[(uint16_t)popped & (r->num - 1)]);
	if (*head >= r->num) {
		*why = "a head beyond the end of the queue";
		return -EPROTO;
	}
	if (get(&r->state->inflight[*head])) {
		*why = "a head that is already in use";
		return -EPROTO;
	}
	store_with_release(&r->state->inflight[*head], popped + 1);
	store_with_release(&r->state->popped, popped + 1);
	return 0;
}

static struct vring_desc read_desc(const struct vring_desc *from)
{
	struct vring_desc d;

	d.addr = READ_ONCE(from->addr);
	d.len = READ_ONCE(from->len);
	d.flags = READ_ONCE(from->flags);
	d.next = READ_ONCE(from->next);
	return d;
}

static const char *add_descriptor(struct ring *r, struct ring_chain *c, const struct vring_desc *d)
{
	bool in = d->flags & VRING_DESC_F_WRITE;
	uint64_t gpa = d->addr, left = d->len;

	if (!left)
		return "an empty descriptor";
	if (!in && c->in_num)
		return "a readable descriptor after a writable one";
	while (left) {
		unsigned int n = c->out_num + c->in_num;
		uint64_t run;

		if (n == RING_CHAIN_MAX)
			return "a chain of too many pieces";
		run = guestmem_run(r->mem, gpa, left, &c->iov[n].iov_base);
		if (!run)
			return "a descriptor outside of the VM's memory";
		c->iov[n].iov_len = run;
		if (in) {
			c->in_num++;
			c->in_len += run;
		} else {
			c->out_num++;
			c->out_len += run;
		}
		gpa += run;
		left -= run;
	}
	return NULL;
}

static const char *copy_table(struct ring *r, const struct vring_desc *d, struct vring_desc *table)
{
	uint64_t gpa = d->addr, left = d->len;
	uint8_t *to = (uint8_t *)table;

	if (!left || left % sizeof(*table) || left / sizeof(*table) > RING_CHAIN_MAX)
		return "an indirect table of bad length";
	while (left) {
		void *from;
		uint64_t run = guestmem_run(r->mem, gpa, left, &from);

		if (!run)
			return "an indirect table outside of the VM's memory";
		memcpy(to, from, run);
		to += run;
		gpa += run;
		left -= run;
	}
	return NULL;
}

static const char *walk_chain(struct ring *r, struct ring_chain *c)
{
	struct vring_desc indirect[RING_CHAIN_MAX];
	const struct vring_desc *table = r->desc;
	unsigned int max = r->num, i = c->head, seen;
	struct vring_desc d = read_desc(&table[i]);
	const char *why;

	if (d.flags & VRING_DESC_F_INDIRECT) {
		if (d.flags & VRING_DESC_F_NEXT)
			return "an indirect descriptor that is chained";
		why = copy_table(r, &d, indirect);
		if (why)
			return why;
		table = indirect;
		max = d.len / sizeof(d);
		d = table[0];
	}
	for (seen = 1;; seen++) {
		if (d.flags & VRING_DESC_F_INDIRECT)
			return "an indirect descriptor within a chain";
		why = add_descriptor(r, c, &d);
		if (why || !(d.flags & VRING_DESC_F_NEXT))
			return why;
		i = d.next;
		if (i >= max || seen == max)
			return "a chain that leads out of its table or round in circles";
		d = read_desc(&table[i]);
	}
}

static void empty_chain(struct ring_chain *c, uint16_t head)
{
	c->head = head;
	c->out_num = c->in_num = 0;
	c->out_len = c->in_len = 0;
}

void ring_mark_taken(struct ring *r, uint16_t head)
{
	struct ring_state *s = r->state;

	/* A mark is not 0, and the index goes round. */
	if (!get(&s->popped))
		store_with_release(&s->popped, 1u << 16);
	store_with_release(&s->inflight[head], get(&s->popped));
}

int ring_retake(struct ring *r, uint16_t head, struct ring_chain *c, const char **why)
{
	empty_chain(c, head);
	*why = walk_chain(r, c);
	return *why ? -EPROTO : 1;
}

int ring_pop(struct ring *r, struct ring_chain *c, const char **why)
{
	uint16_t n;

	empty_chain(c, RING_NO_HEAD);
	if (!r->num)
		return 0;
	n = count_waiting_chains(r);
	if (!n)
		return 0;
	if (n > r->num) {
		*why = "an avail index beyond the queue's size";
		return -EPROTO;
	}
	if (take_head(r, &c->head, why)) {
		c->head = RING_NO_HEAD;
		return -EPROTO;
	}
	*why = walk_chain(r, c);
	return *why ? -EPROTO : 1;
}

bool ring_has_work(const struct ring *r)
{
	return r->num && count_waiting_chains(r);
}

void ring_push(struct ring *r, uint16_t head, uint32_t len)
{
	struct ring_state *s = r->state;
	uint64_t pushed = get(&s->pushed);
	uint16_t used = (uint16_t)pushed;

	store_with_release(&s->push, PUSHING | (uint64_t)head << 16 | used);
	r->used->ring[used & (r->num - 1)] = (struct vring_used_elem){.id = head, .len = len};
	STORE_RELEASE(r->used->idx, (uint16_t)(used + 1));
	store_with_release(&s->inflight[head], 0);
	store_with_release(&s->pushed, pushed + 1);
	store_with_release(&s->push, 0);
}

bool ring_wants_call(struct ring *r)
{
	uint16_t new = (uint16_t)get(&r->state->pushed);
	uint16_t old = r->signalled;
	bool valid = r->signalled_valid;

	/* used->idx must be visible before we read what the guest asks for. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!r->event_idx)
		return !(READ_ONCE(r->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
	r->signalled = new;
	r->signalled_valid = true;
	return !valid || vring_need_event(READ_ONCE(r->avail->ring[r->num]), new, old);
}

void ring_kicks_off(struct ring *r)
{
	/*
	 * With event indices there is nothing to do: an index that stays behind asks for no kick.
	 */
	if (r->num && !r->event_idx)
		STORE_RELEASE(r->used->flags, VRING_USED_F_NO_NOTIFY);
}

bool ring_kicks_on(struct ring *r)
{
	if (!r->num)
		return true;
	if (r->event_idx) {
		uint16_t *event = (uint16_t *)((uint8_t *)r->used + ring_used_bytes(r->num) -
					       sizeof(uint16_t));

		STORE_RELEASE(*event, (uint16_t)get(&r->state->popped));
	} else {
		STORE_RELEASE(r->used->flags, 0);
	}
	/*
	 * Pairs with the guest's barrier between its store of avail->idx and its read of our event.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	return !count_waiting_chains(r);
}

unsigned int ring_take_over(struct ring *r)
{
	struct ring_state *s = r->state;
	uint64_t push = get(&s->push), popped = get(&s->popped);
	unsigned int head, n = 0;

	if (!r->num)
		return 0;
	if (push) {
		uint16_t before = (uint16_t)push;

		if (READ_ONCE(r->used->idx) == (uint16_t)(before + 1)) {
			store_with_release(&s->inflight[(uint16_t)(push >> 16) % RING_MAX], 0);
			if ((uint16_t)get(&s->pushed) == before)
				store_with_release(&s->pushed, get(&s->pushed) + 1);
		}
		store_with_release(&s->push, 0);
	}
	for (head = 0; head < r->num; head++) {
		uint64_t mark = get(&s->inflight[head]);

		if (mark == popped + 1) {
			store_with_release(&s->inflight[head], 0);
		} else if (mark) {
			ring_push(r, head, 0);
			n++;
		}
	}
	r->signalled_valid = false;
	return n;
}

unsigned int ring_drain(struct ring *r)
{
	unsigned int n = 0;

	while (r->num && n < RING_MAX) {
		uint16_t ready = count_waiting_chains(r), head;
		const char *why;

		if (!ready)
			break;
		if (ready > r->num)
			store_with_release(&r->state->popped, get(&r->state->popped) + ready);
		else if (take_head(r, &head, &why))
			store_with_release(&r->state->popped, get(&r->state->popped) + 1);
		else
			ring_push(r, head, 0);
		n++;
	}
	return n;
}

bool ring_copy_out(const struct iovec *iov, unsigned int n, size_t off, void *dst, size_t len)
{
	uint8_t *to = dst;

	for (; n && len; iov++, n--) {
		size_t part = iov->iov_len;

		if (off >= part) {
			off -= part;
			continue;
		}
		part -= off;
		if (part > len)
			part = len;
		memcpy(to, (uint8_t *)iov->iov_base + off, part);
		to += part;
		len -= part;
		off = 0;
	}
	return !len;
}

bool ring_copy_in(const struct iovec *iov, unsigned int n, const void *src, size_t len)
{
	const uint8_t *from = src;

	for (; n && len; iov++, n--) {
		size_t part = iov->iov_len > len ? len : iov->iov_len;

		memcpy(iov->iov_base, from, part);
		from += part;
		len -= part;
	}
	return !len;
}
