// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile guest kernel module: it takes the virtio device instead of qcuda.ko and fills the rings
 * by hand. It sends good and bad commands of all kinds, garbage in rings and descriptors, forged
 * addresses, chains that loop, memory that another processor changes while the device reads it,
 * storms of notifications, and resets in the middle of these. The seed decides the choice.
 *
 * The device may write only into the arena below, or nowhere: this guest must stay alive.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "qcucmd.h"
#include "qcuda_probed.h"

static unsigned int steps = 3000;
module_param(steps, uint, 0444);
MODULE_PARM_DESC(steps, "how many steps it plays");
static unsigned int seconds;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long it plays, whatever steps says");
static ulong seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of the choice");

#define QUEUES	   5 /* control, and the sessions */
#define ARENA_ORD  8
#define ARENA	   (PAGE_SIZE << ARENA_ORD)
#define SLOTS	   32 /* in a queue, each with three descriptors */
#define SLOT_BYTES 1024
#define WAIT_MS	   20000

struct hqueue {
	struct virtqueue *vq;
	const struct vring *ring;
	u16 added, taken;
	bool open, spoilt;
};

static struct {
	struct virtio_device *vdev;
	unsigned int nr;
	struct hqueue q[QUEUES];
	u8 *arena;
	u64 pa;
	u64 random;
	struct task_struct *vandal;
	unsigned int spoil; /* the queue that the other processor writes to; 0: none */
	u64 opened, ended, resets, played;
} h;

static u32 pick(u32 below)
{
	h.random = h.random * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(h.random >> 33) % below;
}

static u64 odd(void)
{
	static const u64 numbers[] = {0,
				      1,
				      64,
				      4096,
				      65536,
				      1ull << 32,
				      1ull << 40,
				      1ull << 47,
				      ~0ull,
				      ~0ull - 4095,
				      0xfee00000,
				      0xc0000000,
				      QCU_WINDOW_BASE,
				      QCU_WINDOW_BASE + 65536,
				      QCU_WINDOW_BASE + QCU_WINDOW_SIZE};

	return numbers[pick(ARRAY_SIZE(numbers))];
}

/* The upper half of the arena: commands name addresses in it. */
static u64 somewhere(void)
{
	return h.pa + ARENA / 2 + (pick(ARENA / 2 - 0x10000) & (pick(4) ? ~4095u : ~0u));
}

static u8 *slot_of(unsigned int q, unsigned int slot)
{
	return h.arena + (q * SLOTS + slot) * SLOT_BYTES;
}

static u64 slot_pa(unsigned int q, unsigned int slot)
{
	return h.pa + (q * SLOTS + slot) * SLOT_BYTES;
}

static void publish(struct hqueue *hq, u16 head)
{
	hq->ring->avail->ring[hq->added % hq->ring->num] = cpu_to_virtio16(h.vdev, head);
	virt_wmb();
	hq->added++;
	WRITE_ONCE(hq->ring->avail->idx, cpu_to_virtio16(h.vdev, hq->added));
	virt_mb();
}

static void describe(struct hqueue *hq, unsigned int i, u64 addr, u32 len, u16 flags, u16 next)
{
	struct vring_desc *d = &hq->ring->desc[i];

	d->addr = cpu_to_virtio64(h.vdev, addr);
	d->len = cpu_to_virtio32(h.vdev, len);
	d->flags = cpu_to_virtio16(h.vdev, flags);
	d->next = cpu_to_virtio16(h.vdev, next);
}

/* Posts a record, its data (which is behind the record already), and room for the answer. */
static void post(unsigned int q, unsigned int slot, const struct qCUcmd *cmd, u32 tail)
{
	struct hqueue *hq = &h.q[q];
	unsigned int i = slot * 3;
	u64 pa = slot_pa(q, slot);

	memcpy(slot_of(q, slot), cmd, sizeof(*cmd));
	describe(hq, i, pa, 64, VRING_DESC_F_NEXT, tail ? i + 1 : i + 2);
	describe(hq, i + 1, pa + 128, tail, VRING_DESC_F_NEXT, i + 2);
	describe(hq, i + 2, pa + 64, 64, VRING_DESC_F_WRITE, 0);
	publish(hq, i);
}

/* Sends a control command. Returns false if there is no answer, or if the status is an error. */
static bool control(u16 op, unsigned int queue)
{
	struct qCUcmd c = {.op = op};
	const struct qCUcmd *r = (void *)(slot_of(0, 0) + 64);
	unsigned int i;

	if (op == QCU_OP_OPEN) {
		c.open.queue = queue;
		c.open.pid = 4242;
		c.open.chunk_bytes = QCU_CHUNK_DEFAULT;
		strscpy(c.open.comm, "ha\033[31mrm", sizeof(c.open.comm));
	} else {
		c.close.queue = queue;
	}
	post(0, 0, &c, 0);
	virtqueue_notify(h.q[0].vq);
	for (i = 0; i < WAIT_MS * 10; i++) {
		if (virtio16_to_cpu(h.vdev, READ_ONCE(h.q[0].ring->used->idx)) == h.q[0].added)
			return !READ_ONCE(r->status);
		usleep_range(50, 150);
	}
	return false;
}

static void nothing(struct virtqueue *vq)
{
}

static int find_queues(void)
{
	struct virtqueue *vqs[QUEUES];
	unsigned int i;
	int ret;
#ifdef QCUD_HAVE_VIRTQUEUE_INFO
	struct virtqueue_info info[QUEUES] = {};

	for (i = 0; i < h.nr; i++) {
		info[i].name = "hostile";
		info[i].callback = nothing;
	}
	ret = virtio_find_vqs(h.vdev, h.nr, vqs, info, NULL);
#else
	vq_callback_t *callbacks[QUEUES];
	const char *names[QUEUES];

	for (i = 0; i < h.nr; i++) {
		names[i] = "hostile";
		callbacks[i] = nothing;
	}
	ret = virtio_find_vqs(h.vdev, h.nr, vqs, callbacks, names, NULL);
#endif
	if (ret)
		return ret;
	for (i = 0; i < h.nr; i++)
		h.q[i] = (struct hqueue){.vq = vqs[i], .ring = virtqueue_get_vring(vqs[i])};
	virtio_device_ready(h.vdev);
	return 0;
}

static void reset(void)
{
#ifdef QCUD_HAVE_RESET_DEVICE
	virtio_reset_device(h.vdev);
#else
	h.vdev->config->reset(h.vdev);
#endif
	h.vdev->config->del_vqs(h.vdev);
}

/* Starts the device as after a boot, whatever the guest did to the rings. */
static int start_again(void)
{
	int ret;

	WRITE_ONCE(h.spoil, 0);
	/* The other processor may still be writing. */
	msleep(2);
	reset();
	h.resets++;
	virtio_add_status(h.vdev, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	virtio_add_status(h.vdev, VIRTIO_CONFIG_S_DRIVER);
	ret = h.vdev->config->finalize_features(h.vdev);
	if (ret)
		return ret;
	virtio_add_status(h.vdev, VIRTIO_CONFIG_S_FEATURES_OK);
	return find_queues();
}

/* ---- another processor ---- */

static int spoil(void *unused)
{
	u64 x = 88172645463325252ull;
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		unsigned int q = READ_ONCE(h.spoil);
		const struct vring *ring = h.q[q].ring;
		struct vring_desc *d;

		if (!q || ++n % 64 == 0) {
			usleep_range(100, 300);
			continue;
		}
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		d = &ring->desc[(x >> 8) % ring->num];
		switch (x >> 61) {
		case 0:
			WRITE_ONCE(d->len, (x >> 20) & 1 ? 64 : (u32)(x >> 20) & 0xfff);
			break;
		case 1:
			WRITE_ONCE(d->flags, (x >> 20) & 7);
			break;
		case 2:
			WRITE_ONCE(d->next, (x >> 20) & 0x1ff);
			break;
		case 3:
			WRITE_ONCE(d->addr, x & 1 ? ~0ull << (x >> 20 & 63)
						  : h.pa + ARENA / 2 + (x >> 30) % (ARENA / 4));
			break;
		default:
			WRITE_ONCE(h.arena[(x >> 20) % ARENA], (u8)x);
		}
	}
	return 0;
}

/* ---- steps ---- */

/* Puts segments in the slot and returns their sum. */
static u64 segments(unsigned int q, unsigned int slot, u32 *tail)
{
	struct qcu_seg *seg = (void *)(slot_of(q, slot) + 128);
	unsigned int n = 1 + pick(4), i;
	u64 sum = 0;

	for (i = 0; i < n; i++) {
		seg[i].gpa = somewhere();
		seg[i].len = pick(4) ? 4096ull << pick(4) : 1 + pick(9000);
		if (!pick(16))
			seg[i].gpa = odd() | 1ull << 46;
		if (!pick(24))
			seg[i].len = odd();
		sum += seg[i].len;
	}
	*tail = n * sizeof(*seg);
	return sum;
}

static void send_command(unsigned int q)
{
	static const u32 narrow[] = {0, 0, 0, 1, 1, 2, 2, 3, 4, 8, 64, 0xffff, 0x10000, ~0u};
	struct qCUcmd c = {};
	const struct qcu_rule *rule;
	unsigned int slot = h.q[q].added % SLOTS, i;
	u32 tail = 0;

	do {
		c.op = pick(QCU_OP_COUNT);
		rule = qcu_rule(c.op);
	} while (!rule || rule->who == QCU_WHO_CTL);
	c.tid = rule->who == QCU_WHO_DRV ? 0 : 1 + pick(5);
	c.seq = (u32)h.played;
	for (i = 0; i < rule->in / 4; i++)
		c.words[i] = narrow[pick(ARRAY_SIZE(narrow))];
	for (i = 0; i + 1 < rule->in / 4; i += 2)
		if (!pick(4))
			memcpy(&c.words[i], &(u64){odd()}, 8);
	if (rule->buffer == QCU_BUFFER_MSG) {
		c.flags = QCU_F_MSG;
		tail = pick(200);
		c.buf.len = tail;
		for (i = 0; i < tail; i++)
			slot_of(q, slot)[128 + i] = pick(256);
	} else if (c.op == QCU_OP_MAP) {
		c.flags = QCU_F_SEGS;
		c.map.len = segments(q, slot, &tail);
		if (pick(2))
			c.map.va = QCU_WINDOW_BASE + pick(4) * 65536ull;
	} else if (rule->buffer != QCU_BUFFER_NONE) {
		c.flags = QCU_F_WINDOW;
		c.buf.addr = QCU_WINDOW_BASE + pick(4) * 4096;
		if (rule->buffer != QCU_BUFFER_STAY && pick(2)) {
			c.flags = QCU_F_SEGS;
			c.buf.len = segments(q, slot, &tail);
		}
	}
	if (!pick(16))
		((u8 *)&c)[pick(sizeof(c))] = pick(256);
	post(q, slot, &c, tail);
	if (pick(2))
		virtqueue_notify(h.q[q].vq);
}

static void send_nonsense(unsigned int q)
{
	struct hqueue *hq = &h.q[q];
	unsigned int n = 1 + pick(8);

	hq->spoilt = true;
	while (n--)
		describe(hq, pick(hq->ring->num), pick(3) ? somewhere() : odd() | 1ull << 46,
			 pick(3) ? 64 : (u32)odd(), pick(8), pick(hq->ring->num + 8));
	switch (pick(4)) {
	case 0:
		hq->added += pick(0x10000);
		WRITE_ONCE(hq->ring->avail->idx, cpu_to_virtio16(h.vdev, hq->added));
		break;
	case 1:
		memset(hq->ring->used, pick(256), 256);
		break;
	default:
		publish(hq, pick(hq->ring->num + 4));
	}
	virtqueue_notify(hq->vq);
}

/* If a command came back empty, the session is over. */
static void look(unsigned int q)
{
	struct hqueue *hq = &h.q[q];
	u16 idx = virtio16_to_cpu(h.vdev, READ_ONCE(hq->ring->used->idx));

	while (hq->taken != idx && hq->open) {
		if (!hq->ring->used->ring[hq->taken++ % hq->ring->num].len) {
			hq->open = false;
			h.ended++;
		}
	}
}

static int step(void)
{
	unsigned int q = 1 + pick(h.nr - 1), what = pick(1000), i;
	struct hqueue *hq = &h.q[q];

	if (!hq->spoilt)
		look(q);
	if (!hq->open) {
		/* A session that is over is closed first. The answer to CLOSE does not matter. */
		control(QCU_OP_CLOSE, q);
		hq->taken = virtio16_to_cpu(h.vdev, READ_ONCE(hq->ring->used->idx));
		if (hq->spoilt || !control(QCU_OP_OPEN, q)) {
			i = start_again();
			if (i)
				return i;
			if (!control(QCU_OP_OPEN, q))
				return -EIO;
		}
		h.q[q].open = true;
		h.opened++;
		hq = &h.q[q];
	}
	if (what < 4) {
		send_nonsense(q);
		hq->open = false;
	} else if (what < 8) {
		hq->spoilt = true;
		WRITE_ONCE(h.spoil, pick(3) ? q : 0);
	} else if (what < 10) {
		send_nonsense(0);
		return start_again();
	} else if (what < 20) {
		for (i = 0; i < 500; i++)
			virtqueue_notify(h.q[pick(h.nr)].vq);
	} else if (what < 22) {
		return start_again();
	} else {
		send_command(q);
	}
	/*
	 * The ring is larger than the number of slots. Give the device time to see most of the
	 * commands.
	 */
	if (hq->added % SLOTS == SLOTS - 1)
		usleep_range(200, 400);
	return 0;
}

static int play(void)
{
	unsigned long end = jiffies + seconds * HZ;
	int ret = 0;

	h.random = seed;
	while (!ret && (seconds ? time_before(jiffies, end) : h.played < steps)) {
		ret = step();
		h.played++;
		if (h.played % 16 == 0)
			cond_resched();
		if (h.played % 10000 == 0)
			pr_info("hostile: %llu steps\n", h.played);
	}
	/* Check that the device still serves. */
	if (!ret)
		ret = start_again();
	if (!ret && !control(QCU_OP_OPEN, 1))
		ret = -EIO;
	pr_info("hostile: %llu steps, %llu sessions opened, %llu came to an end, %llu resets: %d\n",
		h.played, h.opened, h.ended, h.resets, ret);
	return ret;
}

static int hostile_probe(struct virtio_device *vdev)
{
	struct qcu_config config;
	int ret;

	virtio_cread_bytes(vdev, 0, &config, sizeof(config));
	h.vdev = vdev;
	h.nr = min_t(unsigned int, config.sessions + 1, QUEUES);
	h.arena = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, ARENA_ORD);
	if (!h.arena || h.nr < 2)
		return -ENOMEM;
	h.pa = virt_to_phys(h.arena);
	ret = find_queues();
	if (ret)
		goto out;
	h.vandal = kthread_run(spoil, NULL, "hostile");
	if (IS_ERR(h.vandal)) {
		ret = PTR_ERR(h.vandal);
	} else {
		ret = play();
		WRITE_ONCE(h.spoil, 0);
		kthread_stop(h.vandal);
	}
	reset();
out:
	/* The reset has taken the arena away from the device. */
	free_pages((unsigned long)h.arena, ARENA_ORD);
	/* Bind no device: qcuda.ko takes it over next. */
	return ret ?: -ENODEV;
}

static void hostile_remove(struct virtio_device *vdev)
{
}

/* Commands carry guest-physical addresses, as in qcuda.ko. */
static int hostile_validate(struct virtio_device *vdev)
{
	__virtio_clear_bit(vdev, VIRTIO_F_ACCESS_PLATFORM);
	return 0;
}

static const struct virtio_device_id hostile_ids[] = {
	{QCU_VIRTIO_ID, VIRTIO_DEV_ANY_ID},
	{0},
};

static const unsigned int hostile_features[] = {VIRTIO_RING_F_INDIRECT_DESC,
						VIRTIO_RING_F_EVENT_IDX};

static struct virtio_driver hostile_driver = {
	.driver.name = "hostile_guest",
	.driver.owner = THIS_MODULE,
	.feature_table = hostile_features,
	.feature_table_size = ARRAY_SIZE(hostile_features),
	.id_table = hostile_ids,
	.validate = hostile_validate,
	.probe = hostile_probe,
	.remove = hostile_remove,
};
module_virtio_driver(hostile_driver);

MODULE_AUTHOR("The qCUDA authors");
MODULE_DESCRIPTION("A guest that means harm to the qCUDA device, for tests");
MODULE_LICENSE("GPL");
