// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parameters that leave their domain (include/commands.list): each one is refused with the right
 * error, before the backend is called. The list of parameters is made from that file, so a new
 * command is tried without a test of its own.
 */
#include <stddef.h>

#include "qcu-device/commands/call.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

enum param_kind {
	PARAM_RANGE,
	PARAM_BITS,
	PARAM_PEER,   /* a device */
	PARAM_OBJECT, /* the number of an object */
	PARAM_NEW,    /* a number that no object has */
};

struct param {
	enum qcu_op op;
	size_t offset, size;
	enum param_kind kind;
	enum handle_kind object;
	uint64_t lo, hi;
};

#include "tests/unit/device/params/params.h"

#define PARAMS	(sizeof(params) / sizeof(*params))
#define DEVICES 3u
#define EXISTS	5u /* the number of an object of each kind */
#define FREE	6u

static int one_pool(struct be *be, unsigned int dev, struct be_pool **p)
{
	(void)be;
	(void)dev;
	*p = (struct be_pool *)&fake;
	return 0;
}

static int some_grain(struct be *be, unsigned int dev, bool recommended, uint64_t *bytes)
{
	(void)be;
	(void)dev;
	(void)recommended;
	fake.others++;
	*bytes = 4096;
	return 0;
}

static int any_attribute(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t attr,
			 int value)
{
	(void)be;
	(void)dev;
	(void)k;
	(void)attr;
	(void)value;
	fake.others++;
	return 0;
}

static int start(void **state)
{
	static struct be_ops ops;
	struct mir_config cfg = {.ops = &ops, .session = 1};
	int rc;

	(void)state;
	fake_reset();
	fake.devices = DEVICES;
	fake.other_status = 0;
	ops = fake_ops;
	ops.kernel_set = any_attribute;
	ops.pool_default = one_pool;
	ops.phys_grain = some_grain;
	rc = mir_create(&mirror, &cfg);
	return rc ? rc
		  : ask(CMD(STREAM_CREATE, stream_create, .stream = EXISTS)) +
			       ask(CMD(EVENT_CREATE, event_create, .event = EXISTS)) +
			       ask(CMD(POOL_CREATE, pool_create, .pool = EXISTS)) +
			       ask(CMD(PHYS_CREATE, phys_create, .size = 4096, .mem = EXISTS)) +
			       ask(CMD(GREEN_CREATE, green_create, .green = EXISTS,
				       .members = {1}));
}

static void put(struct qCUcmd *cmd, const struct param *p, uint64_t value)
{
	memcpy(cmd->body + p->offset, &value, p->size);
}

/* Legacy stream and default pool exist. */
static bool has_default(const struct param *p)
{
	return p->object == HANDLE_STREAM || p->object == HANDLE_POOL;
}

/*
 * A command of which all parameters are good. False: there is no object of a kind that it needs.
 * Commands about addresses have an address and a size first.
 */
static bool good(struct qCUcmd *cmd, enum qcu_op op)
{
	bool whole = true;
	size_t i;

	memset(cmd, 0, sizeof(*cmd));
	cmd->op = op;
	cmd->tid = 1;
	if (op >= QCU_OP_VA_RESERVE && op <= QCU_OP_PHYS_ACCESS_GET)
		cmd->words[0] = cmd->words[2] = op == QCU_OP_PHYS_RELEASE ? 0 : 4096;
	if (op == QCU_OP_PHYS_CREATE)
		cmd->words[2] = 0;
	if (op == QCU_OP_GREEN_CREATE)
		cmd->green_create.members[0] = 1;
	if (op == QCU_OP_STREAM_ATTR_SET || op == QCU_OP_STREAM_ATTR_GET)
		cmd->words[1] = 3; /* cudaStreamAttributeSynchronizationPolicy */
	for (i = 0; i < PARAMS; i++) {
		const struct param *p = &params[i];

		if (p->op != op)
			continue;
		put(cmd, p,
		    p->kind == PARAM_RANGE  ? p->lo
		    : p->kind == PARAM_PEER ? 1
		    : p->kind == PARAM_NEW  ? FREE
					    : 0);
		whole &= p->kind != PARAM_OBJECT || (has_default(p) && qcu_rule(op)->in > 4);
	}
	return whole;
}

static void tried(const struct param *p, uint64_t bad, int expected)
{
	struct qCUcmd cmd;
	unsigned int before;
	int status;

	good(&cmd, p->op);
	put(&cmd, p, bad);
	before = fake.others;
	status = ask(cmd);
	if (status != expected || fake.others != before)
		fail_msg("op %u, byte %zu, value %llu: status %d, wanted %d; the backend was %s",
			 p->op, p->offset, (unsigned long long)bad, status, expected,
			 fake.others == before ? "not called" : "called");
}

static void out_of_domain(void **state)
{
	const struct param *p;
	unsigned int bit;

	(void)state;
	for (p = params; p < params + PARAMS; p++) {
		switch (p->kind) {
		case PARAM_RANGE:
			if (p->lo)
				tried(p, p->lo - 1, QCU_ERR_InvalidValue);
			tried(p, p->hi + 1, QCU_ERR_InvalidValue);
			tried(p, UINT64_MAX, QCU_ERR_InvalidValue);
			break;
		case PARAM_BITS:
			for (bit = 0; bit < p->size * 8; bit++)
				if (!(p->hi >> bit & 1))
					tried(p, 1ull << bit, QCU_ERR_InvalidValue);
			break;
		case PARAM_PEER:
			tried(p, DEVICES, QCU_ERR_InvalidDevice);
			tried(p, UINT32_MAX, QCU_ERR_InvalidDevice);
			break;
		case PARAM_OBJECT:
			tried(p, FREE, QCU_ERR_InvalidResourceHandle);
			tried(p, QCU_ID_MAX + 1, QCU_ERR_InvalidResourceHandle);
			tried(p, UINT32_MAX, QCU_ERR_InvalidResourceHandle);
			break;
		case PARAM_NEW:
			tried(p, EXISTS, QCU_ERR_InvalidResourceHandle);
			tried(p, QCU_ID_MAX + 1, QCU_ERR_InvalidResourceHandle);
			break;
		}
	}
}

/*
 * These are about objects or mappings that a backend which does nothing cannot have; streams and
 * events the fake makes itself.
 */
static bool needs_more(enum qcu_op op)
{
	return op == QCU_OP_STREAM_CREATE || op == QCU_OP_EVENT_CREATE || op == QCU_OP_VA_FREE ||
	       (op >= QCU_OP_PHYS_MAP && op <= QCU_OP_PHYS_ACCESS_GET) ||
	       op == QCU_OP_PHYS_IMPORT || op == QCU_OP_GREEN_STREAM;
}

/* So the errors above came from the parameters. */
static void in_domain(void **state)
{
	const struct param *p;
	struct qCUcmd cmd;
	unsigned int before, asked = 0;

	(void)state;
	for (p = params; p < params + PARAMS; p++) {
		if ((p > params && p[-1].op == p->op) || !good(&cmd, p->op) || needs_more(p->op))
			continue;
		before = fake.others;
		assert_int_equal(ask(cmd), 0);
		assert_int_not_equal(fake.others, before);
		asked++;
	}
	assert_true(asked > 10);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(out_of_domain, start, mirror_stop),
		cmocka_unit_test_setup_teardown(in_domain, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
