// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sharing between mirrors. Tokens that were never issued, that belong to another VM, or that are no
 * longer valid never reach the backend. Valid tokens do what they should. The mirrors use the
 * software GPU, all in this process. The test counts the imports of their backend.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/memory/shares.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define BYTES 5000u
#define FLAGS 6u /* cudaEventDisableTiming, cudaEventInterprocess */

struct fake fake; /* for test_device_mirror.h */

static struct shares *vm, *other_vm;
static struct mirror *giver, *taker, *stranger;
static struct be_ops counted;
static unsigned int imports; /* number of calls */

static int count_mem_import(struct be *be, unsigned int dev, const void *handle, uint64_t size,
			    uint64_t *addr)
{
	imports++;
	return be_soft.mem_import(be, dev, handle, size, addr);
}

static int count_event_import(struct be *be, unsigned int dev, const void *handle,
			      struct be_event **e)
{
	imports++;
	return be_soft.event_import(be, dev, handle, e);
}

static int start(void **state)
{
	struct mir_config cfg = {.ops = &counted, .session = 1};

	(void)state;
	counted = be_soft;
	counted.mem_import = count_mem_import;
	counted.event_import = count_event_import;
	imports = 0;
	vm = shares_new(-1);
	other_vm = shares_new(-1);
	if (!vm || !other_vm)
		return -1;
	cfg.options.vram = 64 << 20;
	cfg.shares = vm;
	if (mir_create(&giver, &cfg))
		return -1;
	cfg.session = 2;
	if (mir_create(&taker, &cfg))
		return -1;
	cfg.shares = other_vm;
	return mir_create(&stranger, &cfg);
}

static int stop(void **state)
{
	(void)state;
	mir_destroy(taker);
	mir_destroy(giver);
	mir_destroy(stranger);
	shares_free(vm);
	shares_free(other_vm);
	return 0;
}

static int ask_at(struct mirror *m, struct qCUcmd *cmd)
{
	mirror = m;
	return ask_with(cmd, NULL, NULL, 0);
}

static uint64_t allocate(struct mirror *m)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = BYTES);

	assert_int_equal(ask_at(m, &c), QCU_ERR_Success);
	return c.malloc.ptr;
}

static int give(struct mirror *m, uint64_t ptr, struct qcu_ipc_token *token)
{
	struct qCUcmd c = CMD(IPC_MEM_EXPORT, ipc_mem_export, .ptr = ptr);
	int rc = ask_at(m, &c);

	*token = c.ipc_mem_export.token;
	return rc;
}

static int take(struct mirror *m, const struct qcu_ipc_token *token, uint64_t *ptr)
{
	struct qCUcmd c = CMD(IPC_MEM_OPEN, ipc_mem_open, .token = *token);
	int rc = ask_at(m, &c);

	*ptr = c.ipc_mem_open.ptr;
	if (!rc)
		assert_int_equal(c.ipc_mem_open.size, BYTES);
	return rc;
}

static int shut(struct mirror *m, uint64_t ptr, uint32_t *left)
{
	struct qCUcmd c = CMD(IPC_MEM_CLOSE, ipc_mem_close, .ptr = ptr);
	int rc = ask_at(m, &c);

	*left = c.ipc_mem_close.left;
	return rc;
}

static void free_at(struct mirror *m, uint64_t ptr)
{
	struct qCUcmd c = CMD(FREE, free, .ptr = ptr);

	assert_int_equal(ask_at(m, &c), QCU_ERR_Success);
}

static int fill(struct mirror *m, uint64_t ptr, uint64_t bytes)
{
	struct qCUcmd c = CMD(MEMSET, memset, .dst = ptr, .width = bytes, .height = 1, .elem = 1);

	return ask_at(m, &c);
}

static void make_event(struct mirror *m, uint32_t id, uint32_t flags)
{
	struct qCUcmd c = CMD(EVENT_CREATE, event_create, .event = id, .flags = flags);

	assert_int_equal(ask_at(m, &c), QCU_ERR_Success);
}

static int give_event(struct mirror *m, uint32_t id, struct qcu_ipc_token *token)
{
	struct qCUcmd c = CMD(IPC_EVENT_EXPORT, ipc_event_export, .event = id);
	int rc = ask_at(m, &c);

	*token = c.ipc_event_export.token;
	return rc;
}

static int take_event(struct mirror *m, const struct qcu_ipc_token *token, uint32_t id)
{
	struct qCUcmd c = CMD(IPC_EVENT_OPEN, ipc_event_open, .token = *token, .event = id);

	return ask_at(m, &c);
}

/* A token with any one bit changed is invalid. */
static void forged_tokens_are_refused(void **state)
{
	struct qcu_ipc_token memory, event, forged = {.secret = {0}};
	unsigned int bit;
	uint64_t p;

	(void)state;
	assert_int_equal(give(giver, allocate(giver), &memory), QCU_ERR_Success);
	make_event(giver, 2, FLAGS);
	assert_int_equal(give_event(giver, 2, &event), QCU_ERR_Success);
	assert_int_equal(take(taker, &forged, &p), QCU_ERR_InvalidValue);
	memset(&forged, 0xff, sizeof(forged));
	assert_int_equal(take(taker, &forged, &p), QCU_ERR_InvalidValue);
	for (bit = 0; bit < 8 * sizeof(forged); bit++) {
		forged = memory;
		((uint8_t *)&forged)[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(take(taker, &forged, &p), QCU_ERR_InvalidValue);
		forged = event;
		((uint8_t *)&forged)[bit / 8] ^= 1u << bit % 8;
		assert_int_equal(take_event(taker, &forged, 2), QCU_ERR_InvalidValue);
	}
	/* A memory token opens no event, and an event token opens no memory. */
	assert_int_equal(take(taker, &event, &p), QCU_ERR_InvalidValue);
	assert_int_equal(take_event(taker, &memory, 2), QCU_ERR_InvalidValue);
	assert_int_equal(imports, 0);
}

static void another_vm_knows_nothing_of_it(void **state)
{
	struct qcu_ipc_token memory, event;
	uint64_t p;

	(void)state;
	assert_int_equal(give(giver, allocate(giver), &memory), QCU_ERR_Success);
	make_event(giver, 2, FLAGS);
	assert_int_equal(give_event(giver, 2, &event), QCU_ERR_Success);
	assert_int_equal(take(stranger, &memory, &p), QCU_ERR_InvalidValue);
	assert_int_equal(take_event(stranger, &event, 2), QCU_ERR_InvalidValue);
	assert_int_equal(imports, 0);
}

static void only_what_exists_is_given(void **state)
{
	struct qCUcmd c = CMD(MALLOC_ASYNC, malloc_async, .size = BYTES);
	uint64_t a = allocate(giver);
	struct qcu_ipc_token t;

	(void)state;
	assert_int_equal(give(giver, 0, &t), QCU_ERR_InvalidValue);
	assert_int_equal(give(giver, a + 512, &t), QCU_ERR_InvalidValue);
	assert_int_equal(give(giver, a ^ 1ull << 40, &t), QCU_ERR_InvalidValue);
	assert_int_equal(ask_at(giver, &c), QCU_ERR_Success);
	assert_int_equal(give(giver, c.malloc_async.ptr, &t), QCU_ERR_InvalidValue);
	make_event(giver, 2, 2);
	assert_int_equal(give_event(giver, 2, &t), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(give_event(giver, 3, &t), QCU_ERR_InvalidResourceHandle);
	c = CMD(IPC_EVENT_EXPORT, ipc_event_export, .event = 2, .rsvd = 1);
	assert_int_equal(ask_at(giver, &c), QCU_ERR_InvalidValue);
	c = CMD(IPC_EVENT_OPEN, ipc_event_open, .event = 2, .rsvd = 1);
	assert_int_equal(ask_at(giver, &c), QCU_ERR_InvalidValue);
}

static void memory_is_taken_and_closed(void **state)
{
	uint64_t a = allocate(giver), p, again, still;
	struct qcu_ipc_token t, same;
	uint32_t left;

	(void)state;
	assert_int_equal(give(giver, a, &t), QCU_ERR_Success);
	assert_int_equal(give(giver, a, &same), QCU_ERR_Success);
	assert_memory_equal(&t, &same, sizeof(t));
	assert_int_equal(take(giver, &t, &p), QCU_ERR_DeviceUninitialized);
	assert_int_equal(take(taker, &t, &p), QCU_ERR_Success);
	assert_int_equal(take(taker, &t, &again), QCU_ERR_Success);
	assert_int_equal(again, p);
	assert_int_equal(imports, 1);
	assert_int_equal(fill(taker, p, BYTES), QCU_ERR_Success);
	assert_int_equal(fill(taker, p, BYTES + 1), QCU_ERR_InvalidValue);
	assert_int_equal(give(taker, p, &same), QCU_ERR_InvalidValue);
	assert_int_equal(shut(giver, a, &left), QCU_ERR_InvalidValue);
	assert_int_equal(shut(taker, p + 1, &left), QCU_ERR_InvalidValue);
	assert_int_equal(shut(taker, p, &left), QCU_ERR_Success);
	assert_int_equal(left, 1);
	/*
	 * Memory that its owner has freed cannot be opened any more. It stays where it is already
	 * open.
	 */
	free_at(giver, a);
	assert_int_equal(take(stranger, &t, &still), QCU_ERR_InvalidValue);
	assert_int_equal(take(taker, &t, &still), QCU_ERR_Success);
	assert_int_equal(still, p);
	assert_int_equal(shut(taker, p, &left), QCU_ERR_Success);
	assert_int_equal(shut(taker, p, &left), QCU_ERR_Success);
	assert_int_equal(left, 0);
	assert_int_equal(shut(taker, p, &left), QCU_ERR_InvalidValue);
	assert_int_equal(take(taker, &t, &p), QCU_ERR_InvalidValue);
	assert_int_equal(fill(taker, p, BYTES), QCU_ERR_InvalidValue);
	assert_int_equal(imports, 1);
}

static void the_same_address_is_another_thing_later(void **state)
{
	struct qcu_ipc_token first, second;
	uint64_t a, p;

	(void)state;
	assert_int_equal(give(giver, a = allocate(giver), &first), QCU_ERR_Success);
	free_at(giver, a);
	assert_int_equal(give(giver, allocate(giver), &second), QCU_ERR_Success);
	assert_int_equal(first.slot, second.slot);
	assert_int_equal(take(taker, &first, &p), QCU_ERR_InvalidValue);
	assert_int_equal(take(taker, &second, &p), QCU_ERR_Success);
}

static void events_are_taken_and_destroyed(void **state)
{
	struct qCUcmd destroy = CMD(EVENT_DESTROY, event_destroy, .event = 2);
	struct qcu_ipc_token t, same;

	(void)state;
	make_event(giver, 2, FLAGS);
	assert_int_equal(give_event(giver, 2, &t), QCU_ERR_Success);
	assert_int_equal(give_event(giver, 2, &same), QCU_ERR_Success);
	assert_memory_equal(&t, &same, sizeof(t));
	assert_int_equal(take_event(giver, &t, 3), QCU_ERR_DeviceUninitialized);
	assert_int_equal(take_event(taker, &t, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(take_event(taker, &t, 2), QCU_ERR_Success);
	assert_int_equal(take_event(taker, &t, 2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(take_event(taker, &t, 3), QCU_ERR_Success);
	assert_int_equal(give_event(taker, 2, &same), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask_at(giver, &destroy), QCU_ERR_Success);
	assert_int_equal(take_event(taker, &t, 4), QCU_ERR_InvalidValue);
	assert_int_equal(ask_at(taker, &destroy), QCU_ERR_Success);
	assert_int_equal(imports, 2);
}

static void a_reset_ends_both_sides(void **state)
{
	struct qCUcmd reset = CMD(DEVICE_RESET, device_reset, .rsvd = 0);
	struct qcu_ipc_token t, event;
	uint64_t p, again;
	uint32_t left;

	(void)state;
	assert_int_equal(give(giver, allocate(giver), &t), QCU_ERR_Success);
	make_event(giver, 2, FLAGS);
	assert_int_equal(give_event(giver, 2, &event), QCU_ERR_Success);
	assert_int_equal(take(taker, &t, &p), QCU_ERR_Success);
	assert_int_equal(ask_at(taker, &reset), QCU_ERR_Success);
	assert_int_equal(shut(taker, p, &left), QCU_ERR_InvalidValue);
	assert_int_equal(take(taker, &t, &again), QCU_ERR_Success);
	assert_int_equal(ask_at(giver, &reset), QCU_ERR_Success);
	assert_int_equal(shut(taker, again, &left), QCU_ERR_Success);
	assert_int_equal(take(taker, &t, &p), QCU_ERR_InvalidValue);
	assert_int_equal(take_event(taker, &event, 2), QCU_ERR_InvalidValue);
}

static void without_a_table_it_is_not_supported(void **state)
{
	struct mir_config cfg = {.ops = &counted, .session = 3};
	struct qcu_ipc_token t = {.secret = {0}};
	struct mirror *alone;
	uint64_t p;

	(void)state;
	assert_int_equal(mir_create(&alone, &cfg), 0);
	assert_int_equal(give(alone, allocate(alone), &t), QCU_ERR_NotSupported);
	assert_int_equal(take(alone, &t, &p), QCU_ERR_NotSupported);
	mir_destroy(alone);
}

/* ---- the table alone ---- */

static void the_end_of_a_session_clears_its_part(void **state)
{
	struct share share = {.kind = SHARE_MEMORY, .size = BYTES}, found;
	struct qcu_ipc_token mine, last, others;
	unsigned int session, i;

	(void)state;
	assert_true(shares_put(vm, 7, &share, &others));
	for (i = 0; i < SHARES_EACH; i++) {
		assert_true(shares_put(vm, 63, &share, &last));
		if (!i)
			mine = last;
	}
	assert_false(shares_put(vm, 63, &share, &last));
	assert_true(shares_find(vm, &mine, &found, &session));
	assert_int_equal(session, 63);
	/* Only the session that shared an object can withdraw it. */
	shares_drop(vm, 62, &mine);
	assert_true(shares_find(vm, &mine, &found, &session));
	shares_drop(vm, 63, &mine);
	assert_false(shares_find(vm, &mine, &found, &session));
	assert_true(shares_put(vm, 63, &share, &mine));
	shares_end(vm, 63);
	assert_false(shares_find(vm, &mine, &found, &session));
	assert_false(shares_find(vm, &last, &found, &session));
	assert_true(shares_find(vm, &others, &found, &session));
	assert_int_equal(found.size, BYTES);
}

/* A process that is killed while it writes leaves no half-written entry. */
static void a_writer_may_die_at_any_moment(void **state)
{
	struct share share = {.kind = SHARE_EVENT}, found;
	struct qcu_ipc_token t;
	unsigned int session, i, k;

	(void)state;
	for (i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (!pid) {
			for (k = 0;; k++) {
				memset(share.handle, (int)(k & 0xff), sizeof(share.handle));
				if (!shares_put(vm, 5, &share, &t))
					_exit(1);
				shares_drop(vm, 5, &t);
			}
		}
		usleep(200 * (i % 10));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		shares_end(vm, 5);
		assert_true(shares_put(vm, 5, &share, &t));
		assert_true(shares_find(vm, &t, &found, &session));
		for (k = 1; k < sizeof(found.handle); k++)
			assert_int_equal(found.handle[k], found.handle[0]);
		shares_end(vm, 5);
	}
}

static void processes_join_and_leave(void **state)
{
	struct share share = {.kind = SHARE_EVENT}, found;
	struct qcu_ipc_token t;
	unsigned int session, i;
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid) {
		for (i = 1; i <= QCU_MAX_SESSIONS; i++)
			if (!shares_put(vm, i, &share, &t))
				_exit(1);
		_exit(!shares_put(vm, 3, &share, &t));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* All entries belong to the dead process. */
	for (i = 1; i <= 3; i++)
		shares_end(vm, i);
	assert_true(shares_put(vm, 3, &share, &t));
	assert_int_equal(t.slot, 3 * SHARES_EACH);
	assert_true(shares_find(vm, &t, &found, &session));
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(forged_tokens_are_refused),
		T(another_vm_knows_nothing_of_it),
		T(only_what_exists_is_given),
		T(memory_is_taken_and_closed),
		T(the_same_address_is_another_thing_later),
		T(events_are_taken_and_destroyed),
		T(a_reset_ends_both_sides),
		T(without_a_table_it_is_not_supported),
		T(the_end_of_a_session_clears_its_part),
		T(a_writer_may_die_at_any_moment),
		T(processes_join_and_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
