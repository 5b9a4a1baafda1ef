/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wire format: everything that the guest library, the guest driver and the host device send to
 * each other. All three compile this file and those that it includes, in C and C++, in user
 * space and in the kernel.
 *
 * A command is a record of 64 bytes, struct qCUcmd. The library fills in records and passes them to
 * the driver by ioctl. The driver checks each record against the table (qcucmd_table.h), replaces
 * pointers with pages, and puts the record on the session's virtqueue. A mirror process on the host
 * carries the command out. It answers with the same record, with `status` and the fields marked
 * "out" filled in.
 *
 * To add a command that asks or sets something: add a line to commands.list. Any other: a line to
 * QCU_COMMANDS_BY_HAND (qcucmd_table.h), a struct (qcucmd_fields.h), a function in the library, and
 * a function in the device.
 */
#ifndef QCUCMD_H
#define QCUCMD_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/ioctl.h>
#else
#include <errno.h>
#include <sys/ioctl.h>
#endif
#include "qcucmd_fields.h"
#include "qcucmd_table.h"

/*
 * Increase this number whenever anything of the wire changes meaning. The library and the driver
 * compare it at QCU_IOC_HELLO, the driver and the device at probe. When the numbers differ, both
 * are printed.
 */
#define QCU_WIRE_VERSION 11u

/* ---- virtio ---- */

#define QCU_VIRTIO_ID 63 /* the last id that Linux's virtio_pci accepts */
/*
 * A QEMU without our front end has a general vhost-user device, which takes only ids that QEMU has
 * a name for. This id is the one of signal distribution, a device that nobody has ever built. The
 * config space says whether a device with this id is ours.
 */
#define QCU_VIRTIO_ID_PLAIN 21
#define QCU_CONFIG_MAGIC    0x44554351u /* "QCUD" */
#define QCU_QUEUE_SIZE	    512
#define QCU_MAX_SESSIONS    63
QCU_ASSERT(QCU_VM_USERS >= QCU_MAX_SESSIONS, "each session can be named");

/*
 * Virtqueue 0 is the control queue. Queues 1 to `sessions` carry one session each. If all fields
 * are zero, no process on the host serves the device now. The config changes when a process starts
 * to serve it. The driver then resets the device and sets it up again.
 */
struct qcu_config {
	__u32 magic;
	__u32 version; /* QCU_WIRE_VERSION of the device */
	__u32 sessions;
	__u32 rsvd0;
	__u64 window_base;
	__u64 window_size;
	__u8 rsvd[32];
};
QCU_ASSERT(sizeof(struct qcu_config) == 64, "config space is 64 bytes");

/*
 * One descriptor chain is one command. Its device-readable part holds the record, and then, as the
 * record's flags say, message bytes or an array of struct qcu_seg. This payload ends exactly at the
 * end of the device-readable part. Its device-writable part holds exactly one record, the reply. A
 * reply of length 0 means that the mirror is gone and that nothing more will be done in this
 * session.
 */

/* A run of guest-physical memory. Only the driver writes these. */
struct qcu_seg {
	__u64 gpa;
	__u64 len;
};
QCU_ASSERT(sizeof(struct qcu_seg) == 16, "segment is 16 bytes");

#define QCU_SEGS_MAX 16384u	 /* 64 MiB of scattered pages */
#define QCU_MSG_MAX  (64u << 10) /* message bytes in one command */

/* ---- the window ---- */

/*
 * Guest processes map chunks in this range, and the mirror maps the same pages at the same
 * addresses. glibc, the kernel's mmap, ASan's shadow memory and CUDA all use other addresses.
 */
#ifndef __SANITIZE_THREAD__
#define QCU_WINDOW_BASE 0x200000000000ull
#define QCU_WINDOW_SIZE 0x010000000000ull /* 1 TiB */
#else /* for tests in one process: ThreadSanitizer uses the range above for its own memory */
#define QCU_WINDOW_BASE 0x002000000000ull
#define QCU_WINDOW_SIZE 0x002000000000ull
#endif

/*
 * The annex lies directly behind the window. It holds registered memory that the mirror cannot map
 * at the process's own address.
 */
#define QCU_ANNEX_SIZE QCU_WINDOW_SIZE

#define QCU_CHUNK_MIN	  (64u << 10)
#define QCU_CHUNK_DEFAULT (4u << 20)
#define QCU_CHUNK_MAX	  (64u << 20)

/* ---- the record ---- */

#define QCU_OP_COUNT 160

enum qcu_op {
#define X(n, NAME, ...) QCU_OP_##NAME = n,
	QCU_COMMANDS(X)
#undef X
};

enum qcu_who { QCU_WHO_NOBODY = 0, QCU_WHO_CTL, QCU_WHO_DRV, QCU_WHO_USR, QCU_WHO_POST };

enum qcu_buffer {
	QCU_BUFFER_NONE = 0,
	QCU_BUFFER_IN,
	QCU_BUFFER_OUT,
	QCU_BUFFER_MSG,
	QCU_BUFFER_STAY,
};

enum qcu_order { QCU_ORDER_ALL = 0, QCU_ORDER_ABOUT, QCU_ORDER_FREE };

#define QCU_BODY 48

struct qCUcmd {
	__u16 op;
	__u8 device;  /* ordinal that the guest thread has set */
	__u8 flags;   /* QCU_F_* */
	__u32 tid;    /* guest thread; 0: the driver */
	__u32 seq;    /* the sender's number; the reply has the same */
	__s32 status; /* reply: cudaError_t; to user space also -errno from the driver */
	union {
#define X(n, NAME, name, ...) struct qcu_##name name;
		QCU_COMMANDS(X)
#undef X
		struct qcu_buf buf; /* in every command whose table line names a buffer */
		__u8 body[QCU_BODY];
		__u32 words[QCU_BODY / 4];
	};
};
QCU_ASSERT(sizeof(struct qCUcmd) == 64, "a record is one cache line");
QCU_ASSERT(offsetof(struct qCUcmd, body) == 16, "16 bytes of header");

#define QCU_BUF_CHECK_NONE(name)
#define QCU_BUF_CHECK_IN(name) \
	QCU_ASSERT(offsetof(struct qcu_##name, buf) == 0, #name ": buf comes first");
#define QCU_BUF_CHECK_OUT(name)	 QCU_BUF_CHECK_IN(name)
#define QCU_BUF_CHECK_MSG(name)	 QCU_BUF_CHECK_IN(name)
#define QCU_BUF_CHECK_STAY(name) QCU_BUF_CHECK_IN(name)
#define X(n, NAME, name, who, buffer, in, order, stream, event, until, traits)      \
	QCU_ASSERT((n) < QCU_OP_COUNT, #name ": number");                           \
	QCU_ASSERT(sizeof(struct qcu_##name) <= QCU_BODY, #name ": fits a record"); \
	QCU_ASSERT(sizeof(struct qcu_##name) % 4 == 0, #name ": padding");          \
	QCU_ASSERT((in) <= sizeof(struct qcu_##name), #name ": request part");      \
	QCU_ASSERT((in) % 4 == 0, #name ": request part in words");                 \
	QCU_ASSERT((QCU_ORDER_##order == QCU_ORDER_ABOUT) ==                        \
			   (QCU_FIELD_##stream(name) != QCU_FIELD_##event(name)),   \
		   #name ": is about a stream or an event, or not");                \
	QCU_BUF_CHECK_##buffer(name)
QCU_COMMANDS(X)
#undef X

#ifndef __cplusplus
struct qcu_rule {
	__u8 who;    /* enum qcu_who; QCU_WHO_NOBODY: no such command */
	__u8 buffer; /* enum qcu_buffer */
	__u8 in;
	__u8 order;		   /* enum qcu_order */
	__u8 stream, event, until; /* offset in the body, or QCU_FIELD_NONE, QCU_FIELD_ALWAYS */
	__u16 traits;
};

/* The table as data. NULL: no such command. */
static inline const struct qcu_rule *qcu_rule(__u16 op)
{
	static const struct qcu_rule rules[QCU_OP_COUNT] = {
#define X(n, NAME, name, who, buffer, in, order, stream, event, until, traits) \
	[n] = {QCU_WHO_##who,                                                  \
	       QCU_BUFFER_##buffer,                                            \
	       (in),                                                           \
	       QCU_ORDER_##order,                                              \
	       QCU_FIELD_##stream(name),                                       \
	       QCU_FIELD_##event(name),                                        \
	       QCU_FIELD_##until(name),                                        \
	       (traits)},
		QCU_COMMANDS(X)
#undef X
	};

	return op < QCU_OP_COUNT && rules[op].who != QCU_WHO_NOBODY ? &rules[op] : NULL;
}

/* The value of a field that the table names. QCU_FIELD_NONE gives a number that no object has. */
static inline __u32 qcu_field(const struct qCUcmd *cmd, __u8 at)
{
	return at < QCU_BODY ? cmd->words[at / 4] : 0xffffffffu;
}

/* Does the command's answer say that all earlier work of its stream is done? */
static inline int qcu_waits_for_stream(const struct qCUcmd *cmd, const struct qcu_rule *rule)
{
	return rule->until == QCU_FIELD_ALWAYS ||
	       (rule->until < QCU_BODY && qcu_field(cmd, rule->until) & QCU_COPY_SYNC);
}

/* May guest programs send the command? */
static inline int qcu_rule_user(const struct qcu_rule *rule)
{
	return rule->who == QCU_WHO_USR || rule->who == QCU_WHO_POST;
}

/* Are status, and the body after the request part, zero? A request must leave them zero. */
static inline int qcu_request_clean(const struct qCUcmd *cmd, const struct qcu_rule *rule)
{
	unsigned int i;

	if (cmd->status)
		return 0;
	for (i = rule->in / 4; i < QCU_BODY / 4; i++)
		if (cmd->words[i])
			return 0;
	return 1;
}

/*
 * May a guest program send this record? The memory that it names is not checked here. Returns 0 or
 * -errno, which becomes the record's status. Thread id 0 is the driver's, and is refused: the
 * driver's commands have an order of their own.
 */
static inline int qcu_check_user(const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	__u8 allowed;

	if (!rule)
		return -EOPNOTSUPP;
	if (!qcu_rule_user(rule))
		return -EPERM;
	allowed = rule->who == QCU_WHO_POST ? QCU_F_POSTED : 0;
	if (cmd->flags & ~allowed || !cmd->tid || !qcu_request_clean(cmd, rule))
		return -EINVAL;
	/* A STAY buffer must not be empty. */
	if (rule->buffer == QCU_BUFFER_STAY && !cmd->buf.len)
		return -EINVAL;
	if (rule->buffer == QCU_BUFFER_MSG && cmd->buf.len > QCU_MSG_MAX)
		return -E2BIG;
	if (rule->buffer != QCU_BUFFER_NONE && cmd->buf.len > ~cmd->buf.addr)
		return -EFAULT;
	return 0;
}

/*
 * Copies an answer into the caller's record. The request part of the record stays as the caller
 * wrote it, although the driver may have changed its own copy of it on the way.
 */
static inline void qcu_take_answer(struct qCUcmd *cmd, const struct qCUcmd *answer)
{
	unsigned int i;

	for (i = qcu_rule(cmd->op)->in / 4; i < QCU_BODY / 4; i++)
		cmd->words[i] = answer->words[i];
	cmd->status = answer->status;
	cmd->flags = answer->flags & QCU_F_OUTPUT;
}
#endif

/* ---- ioctl on /dev/qcuda ---- */

struct qcu_hello {
	__u32 library_version; /* in */
	__u32 driver_version;  /* out, also when the versions do not match (EPROTO) */
	__u32 device_version;  /* out */
	__u32 session;	       /* out */
	__u64 window_base;     /* out */
	__u64 window_size;     /* out */
	__u32 chunk_bytes;     /* out: of this open file */
	__u32 rsvd[3];	       /* zero */
};

struct qcu_submit {
	__u64 cmds;  /* address of an array of struct qCUcmd; replies overwrite the records */
	__u32 count; /* 1 .. QCU_SUBMIT_MAX */
	__s32 late;  /* zero; out: the first error among what this thread has posted, reported once
		      */
};
#define QCU_SUBMIT_MAX 64u

struct qcu_chunk_size {
	__u32 bytes; /* power of two from QCU_CHUNK_MIN; before the first mmap */
	__u32 rsvd;  /* zero */
};

/* How the session's callers wait for their answers. */
struct qcu_waiting {
	__u32 how;  /* QCU_WAIT_* */
	__u32 rsvd; /* zero */
};
#define QCU_WAIT_ADAPT 0u /* poll for a moment if the last answers came fast, then sleep */
#define QCU_WAIT_LOOK  1u /* poll until the answer comes, unless there is only one processor */
#define QCU_WAIT_SLEEP 2u

/*
 * SUBMIT returns how many records were taken. A record that is not posted has been answered and has
 * its own status. The status of a posted record is 0, or the reason why it could not be queued. The
 * first record names the thread that submits.
 */
#define QCU_IOC_HELLO	_IOWR('Q', 0x80, struct qcu_hello)
#define QCU_IOC_SUBMIT	_IOWR('Q', 0x81, struct qcu_submit)
#define QCU_IOC_CHUNK	_IOW('Q', 0x82, struct qcu_chunk_size)
#define QCU_IOC_WAITING _IOW('Q', 0x83, struct qcu_waiting)

#endif
