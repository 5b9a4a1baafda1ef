// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions with objects of the driver API: archives that may not have such commands, objects that
 * need others which have ended, then sessions that are made again.
 */
#include "tests/unit/device/saved/test_device_saved.h"

#include <stdio.h>

#define ENTRY(command) ((struct archive_entry){.what = ARCHIVE_COMMAND, .cmd = (command)})

/* An archive of one entry. */
static void refused_command(struct qCUcmd cmd, const char *because)
{
	struct archive_entry e = ENTRY(cmd);

	assert_false(restore_entries(&e, 1, NULL, NULL));
	if (!strstr(why, because))
		fail_msg("\"%s\" does not say \"%s\"", why, because);
	mir_destroy(mirror);
}

/* The session goes on. */
static void refused_saving(const char *because)
{
	int fd = new_file();

	assert_false(mir_save(mirror, fd, 1000, why, sizeof(why)));
	assert_string_equal(why, because);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(fd);
}

/* ---- green contexts ---- */

#define GREEN(id, of, ...) \
	CMD(GREEN_CREATE, green_create, .green = (id), .parent = (of), .members = {1}, __VA_ARGS__)
#define GREEN_END(id) CMD(GREEN_DESTROY, green_destroy, .green = (id))
#define GREEN_STREAM(id, of) \
	CMD(GREEN_STREAM, green_stream, .flags = 1, .stream = (id), .green = (of))

static uint32_t multiprocessors(uint32_t green)
{
	struct qCUcmd c = CMD(GREEN_PARTS, green_parts, .parent = green);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.green_parts.sms;
}

static void forbidden_greens(void **state)
{
	(void)state;
	refused_command(GREEN_END(5), "none of a saved");
	refused_command(CMD(GREEN_PARTS, green_parts), "none of a saved");
	refused_command(CMD(GREEN_CREATE, green_create, .green = 5), "cannot be done again");
	refused_command(GREEN(5, 4, .groups = 1), "cannot be done again");
	refused_command(GREEN(5, 0, .groups = 1, .least = 99), "cannot be done again");
	refused_command(GREEN_STREAM(5, 4), "cannot be done again");
}

/* A number may be a later one's. */
static void greens_that_have_ended(void **state)
{
	(void)state;
	processors = 4;
	make_session();
	assert_int_equal(ask(GREEN(5, 0, .groups = 1, .least = 3)), 0);
	assert_int_equal(ask(GREEN(6, 5, .groups = 1, .least = 2)), 0);
	assert_int_equal(ask(GREEN_STREAM(7, 6)), 0);
	assert_int_equal(ask(GREEN_END(5)), 0);
	refused_saving("it has a green context that needs something which has ended");
	assert_int_equal(ask(GREEN(5, 0)), 0);
	refused_saving("it has a green context that needs something which has ended");
	assert_int_equal(ask(GREEN_END(6)), 0);
	refused_saving("it has a stream of a green context that needs something which has ended");
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 7)), 0);
	save_and_restore();
	assert_int_equal(multiprocessors(5), 4);
	mir_destroy(mirror);
}

static void greens_made_again(void **state)
{
	struct qCUcmd c;
	unsigned int round;

	(void)state;
	processors = 4;
	make_session();
	assert_int_equal(ask(GREEN(8, 0)), 0);
	assert_int_equal(ask(GREEN(9, 0, .groups = 1, .least = 3)), 0);
	assert_int_equal(ask(GREEN_END(8)), 0);
	assert_int_equal(ask(GREEN(5, 9, .groups = 1, .least = 2)), 0);
	assert_int_equal(ask(GREEN_STREAM(7, 5)), 0);
	assert_int_equal(
		ask(CMD(STREAM_ATTR_SET, stream_attr_set, .stream = 7, .attr = 3, .value = {2})),
		0);
	for (round = 1; round < 4; round++) {
		save_and_restore();
		assert_int_equal(multiprocessors(9), 3);
		assert_int_equal(multiprocessors(5), 2);
		assert_int_equal(ask(GREEN(9, 0)), QCU_ERR_InvalidResourceHandle);
		c = CMD(STREAM_ATTR_GET, stream_attr_get, .stream = 7, .attr = 3);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(c.stream_attr_get.value[0], 2);
		assert_int_equal(ask(CMD(MEMSET, memset, .dst = memory_at, .width = 4, .height = 1,
					 .elem = 1, .value = round, .stream = 7)),
				 0);
		assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 7)), 0);
		assert_int_equal(word_at(memory_at), 0x01010101 * round);
	}
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 7)), 0);
	assert_int_equal(ask(GREEN_END(5)), 0);
	assert_int_equal(ask(GREEN_END(9)), 0);
	mir_destroy(mirror);
}

/* ---- links ---- */

#define LINK(id, ...) CMD(LINK_CREATE, link_create, .link = (id), __VA_ARGS__)
#define LINK_END(id)  CMD(LINK_DESTROY, link_destroy, .link = (id))

/* A unit with a variable of this name. */
static const char *unit(const char *name)
{
	static char text[200];

	snprintf(text, sizeof(text),
		 ".version 8.3\n.target sm_75\n.address_size 64\n"
		 ".visible .global .align 4 .u32 %s = 5;\n",
		 name);
	return text;
}

static struct qCUcmd adding(uint32_t link, const char *text)
{
	struct qCUcmd c = CMD(LINK_ADD, link_add, .buf = {1, strlen(text) + 1}, .link = link,
			      .type = QCU_LINK_PTX);

	c.flags = QCU_F_SEGS;
	return c;
}

static int add_unit(uint32_t link, const char *text)
{
	const struct qcu_seg seg = {(uintptr_t)text, strlen(text) + 1};
	struct qCUcmd c = adding(link, text);

	return ask_with(&c, NULL, &seg, 1);
}

/* The image that the link makes, which the caller frees. */
static char *linked(uint32_t link)
{
	struct qCUcmd c = CMD(LINK_COMPLETE, link_complete, .link = link);
	struct qcu_seg seg;
	char *image;

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	seg.len = c.link_complete.bytes;
	image = calloc(1, seg.len + 1);
	seg.gpa = (uintptr_t)image;
	c = CMD(RESULT_READ, result_read, .buf = {1, seg.len}, .what = QCU_RESULT_DATA,
		.forget = 1);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	return image;
}

static void forbidden_links(void **state)
{
	struct archive_entry e[2] = {ENTRY(LINK(2)), ENTRY(adding(2, "a"))};

	(void)state;
	refused_command(LINK_END(2), "none of a saved");
	refused_command(CMD(LINK_COMPLETE, link_complete, .link = 2), "none of a saved");
	refused_command(LINK(2, .jit = {.rsvd = 1}), "cannot be done again");
	refused_command(adding(2, "a"), "another length");
	e[1].len = 2;
	assert_false(restore_entries(&e[1], 1, "a", NULL));
	assert_non_null(strstr(why, "cannot be done again"));
	mir_destroy(mirror);
	/* The link is there, but this is no image. */
	e[0].len = 0;
	assert_false(restore_entries(e, 2, "a", NULL));
	mir_destroy(mirror);
}

static void links_that_have_failed(void **state)
{
	uint32_t i;

	(void)state;
	make_session();
	assert_int_equal(ask(LINK(2)), 0);
	assert_int_equal(add_unit(2, unit("a")), 0);
	assert_int_equal(add_unit(2, "no PTX"), QCU_ERR_InvalidKernelImage);
	refused_saving("it has a link that has failed");
	assert_int_equal(ask(LINK_END(2)), 0);
	save_and_restore();
	/* More than anybody links. */
	assert_int_equal(ask(LINK(2)), 0);
	for (i = 0; i < 1100; i++)
		assert_int_equal(add_unit(2, unit("a")), 0);
	refused_saving("there was no memory for what would have to be saved");
	mir_destroy(mirror);
}

static void links_made_again(void **state)
{
	char *before, *after;

	(void)state;
	make_session();
	assert_int_equal(ask(LINK(3)), 0);
	assert_int_equal(add_unit(3, unit("gone")), 0);
	assert_int_equal(ask(LINK_END(3)), 0);
	assert_int_equal(ask(LINK(3, .jit = {.flags = QCU_JIT_LOGS})), 0);
	assert_int_equal(ask(LINK(2)), 0);
	assert_int_equal(add_unit(2, unit("a")), 0);
	assert_int_equal(add_unit(2, unit("b")), 0);
	save_and_restore();
	before = linked(2);
	assert_non_null(strstr(before, "a ="));
	assert_non_null(strstr(before, "b ="));
	assert_null(strstr(before, "gone"));
	assert_int_equal(add_unit(3, unit("c")), 0);
	/* One that is done, and one to which more is added. */
	save_and_restore();
	after = linked(2);
	assert_string_equal(after, before);
	free(after);
	free(before);
	assert_int_equal(add_unit(3, unit("d")), 0);
	after = linked(3);
	assert_non_null(strstr(after, "c ="));
	assert_non_null(strstr(after, "d ="));
	free(after);
	assert_int_equal(add_unit(3, unit("c")), 0);
	assert_int_equal(ask(CMD(LINK_COMPLETE, link_complete, .link = 3)), QCU_ERR_InvalidPtx);
	assert_int_equal(ask(LINK_END(3)), 0);
	assert_int_equal(ask(LINK_END(2)), 0);
	mir_destroy(mirror);
}

/* ---- conditional nodes ---- */

#define COND(id, in, ...) \
	CMD(COND_CREATE, cond_create, .cond = (id), .graph = (in), .handle = 0, __VA_ARGS__)
#define COND_END(id) CMD(COND_DESTROY, cond_destroy, .cond = (id))

static uint64_t make_cond(struct qCUcmd c)
{
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.cond_create.handle;
}

/* Graph 5: if the value of handle 3 is not 0, four bytes of the memory become 9s. */
static int make_conditional_graph(void)
{
	struct {
		struct qcu_graph_node cond_head;
		struct qcu_graph_cond cond;
		struct qcu_graph_node body_head;
		struct qcu_graph_body body;
		struct qcu_graph_node fill_head;
		struct qcu_graph_memset fill;
	} nodes = {
		{.bytes = sizeof(nodes.cond_head) + sizeof(nodes.cond), .type = QCU_NODE_COND},
		{.cond = 3, .type = QCU_COND_IF, .size = 1},
		{.bytes = sizeof(nodes.body_head) + sizeof(nodes.body),
		 .type = QCU_NODE_BODY,
		 .index = 1},
		{0},
		{.bytes = sizeof(nodes.fill_head) + sizeof(nodes.fill),
		 .type = QCU_NODE_MEMSET,
		 .index = 2},
		{.dst = memory_at, .width = 4, .height = 1, .value = 9, .elem = 1},
	};
	struct qCUcmd c =
		CMD(GRAPH_MAKE, graph_make, .buf = {1, sizeof(nodes)}, .graph = 5, .nodes = 3);
	const struct qcu_seg seg = {(uintptr_t)&nodes, sizeof(nodes)};

	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

/* Does a launch do the body? */
static bool is_body_done(void)
{
	uint32_t word = 0;

	copy(false, memory_at, &word, sizeof(word));
	assert_int_equal(
		ask(CMD(GRAPH_LAUNCH, graph_launch, .graph = 5, .event = QCU_GRAPH_NO_EVENT)), 0);
	word = word_at(memory_at);
	assert_true(!word || word == 0x09090909);
	return word;
}

static void forbidden_conds(void **state)
{
	struct archive_entry e[3] = {ENTRY(COND(2, 0)), ENTRY(COND(3, 2)), ENTRY(COND(4, 2))};
	const struct be_wanted bad[] = {
		{0, 0, 0, 0}, {7, 1ull << 32, 0, 0}, {1ull << 48, 0, 0, 0}, {UINT64_MAX, 0, 0, 0}};
	struct be_wanted wanted[3] = {{0}};
	unsigned int i;

	(void)state;
	refused_command(COND_END(2), "none of a saved");
	refused_command(COND(3, 2), "cannot be done again");
	assert_false(restore_entries(e, 2, NULL, NULL));
	assert_non_null(strstr(why, "COND_CREATE cannot be done again"));
	mir_destroy(mirror);
	e[1].wanted = e[2].wanted = 1;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wanted[1] = bad[i];
		e[1].cmd.cond_create.handle = bad[i].addr;
		assert_false(restore_entries(e, 2, NULL, wanted));
		assert_non_null(strstr(why, "cannot be done again"));
		mir_destroy(mirror);
	}
	/* A handle that another one has, and an answer that is not the wanted handle. */
	wanted[1] = wanted[2] = (struct be_wanted){.addr = 7};
	e[1].cmd.cond_create.handle = e[2].cmd.cond_create.handle = 7;
	assert_false(restore_entries(e, 3, NULL, wanted));
	assert_non_null(strstr(why, "cannot be done again"));
	mir_destroy(mirror);
	e[1].cmd.cond_create.handle = 8;
	assert_false(restore_entries(e, 2, NULL, wanted));
	assert_non_null(strstr(why, "another answer"));
	mir_destroy(mirror);
}

/* A GPU's handles are what CUDA makes them. */
static void conds_that_cannot_be_saved(void **state)
{
	struct be_ops ops = be_soft;

	(void)state;
	ops.cond_saved = NULL;
	backend = &ops;
	make_session();
	make_cond(COND(2, 0));
	refused_saving("it has a conditional node, whose handle CUDA chooses");
	assert_int_equal(ask(COND_END(2)), 0);
	save_and_restore();
	mir_destroy(mirror);
	backend = &be_soft;
	make_session();
	make_cond(COND(2, 0));
	make_cond(COND(3, 2));
	assert_int_equal(make_conditional_graph(), 0);
	assert_int_equal(ask(COND_END(2)), 0);
	refused_saving("it has a conditional node that needs something which has ended");
	make_cond(COND(2, 0));
	refused_saving("it has a conditional node that needs something which has ended");
	assert_int_equal(ask(COND_END(3)), 0);
	refused_saving("it has an executable graph that needs something which has ended");
	assert_int_equal(ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = 5)), 0);
	save_and_restore();
	mir_destroy(mirror);
}

/* Handles are what they were, and new ones are others. */
static void conds_made_again(void **state)
{
	uint64_t handle[4];
	unsigned int round;

	(void)state;
	make_session();
	make_cond(COND(2, 0));
	make_cond(COND(6, 2));
	handle[0] = make_cond(COND(3, 2, .value = 1, .flags = QCU_COND_DEFAULT));
	handle[1] = make_cond(COND(4, 3, .type = QCU_COND_IF, .size = 1));
	assert_int_equal(ask(COND_END(6)), 0);
	assert_int_equal(make_conditional_graph(), QCU_ERR_Success);
	for (round = 0; round < 3; round++) {
		assert_true(is_body_done());
		save_and_restore();
		assert_int_equal(make_conditional_graph(), QCU_ERR_InvalidResourceHandle);
	}
	handle[2] = make_cond(COND(6, 2));
	assert_true(handle[2] > handle[1] && handle[1] > handle[0]);
	handle[3] = make_cond(COND(7, 3, .type = QCU_COND_IF, .size = 1));
	assert_true(handle[3] > handle[2]);
	/* The node is there, and has one body. */
	assert_int_equal(ask(COND(8, 3, .type = QCU_COND_IF, .size = 2)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = 5)), 0);
	assert_int_equal(make_conditional_graph(), 0);
	assert_true(is_body_done());
	mir_destroy(mirror);
}

/* Without a default, a value stays what kernels have made of it. */
static void values_of_conds(void **state)
{
	struct archive_entry e[2] = {ENTRY(COND(2, 0)), ENTRY(COND(3, 2))};
	struct be_wanted wanted[2] = {{0}, {.addr = 7}};
	struct qCUcmd c;
	unsigned int round;

	(void)state;
	e[1].wanted = 1;
	e[1].cmd.cond_create.handle = 7;
	for (wanted[1].size = 0; wanted[1].size < 2; wanted[1].size++) {
		assert_true(restore_entries(e, 2, NULL, wanted));
		c = CMD(MALLOC, malloc, .size = 4096);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		memory_at = c.malloc.ptr;
		assert_int_equal(make_conditional_graph(), 0);
		for (round = 0; round < 3; round++) {
			assert_int_equal(is_body_done(), wanted[1].size);
			save_and_restore();
		}
		assert_int_equal(make_cond(COND(4, 2)), 8);
		mir_destroy(mirror);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_greens),
		cmocka_unit_test(greens_that_have_ended),
		cmocka_unit_test(greens_made_again),
		cmocka_unit_test(forbidden_links),
		cmocka_unit_test(links_that_have_failed),
		cmocka_unit_test(links_made_again),
		cmocka_unit_test(forbidden_conds),
		cmocka_unit_test(conds_that_cannot_be_saved),
		cmocka_unit_test(conds_made_again),
		cmocka_unit_test(values_of_conds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
