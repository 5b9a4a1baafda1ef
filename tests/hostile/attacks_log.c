// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks on the reader of the log: more text than anybody can keep, and bytes that control a
 * terminal.
 */
#include <stdio.h>
#include <string.h>

#include "tests/hostile/attack.h"

#define Q ATTACK_FIRST
/* As much as an operator can read. A flood would be some hundred times that. */
#define LOG_BYTES 32768u

static bool bounded_log(struct scene *s)
{
	uint64_t bytes = host_bytes(&s->h);

	printf("the device has said %llu bytes\n", (unsigned long long)bytes);
	return bytes <= LOG_BYTES || fell("that is too much");
}

static bool log_control(struct scene *s)
{
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		struct qCUcmd c = command(i & 1 ? QCU_OP_INFO : QCU_OP_CLOSE, 0);

		c.close.queue = i;
		guest_ask(&s->g, 0, &c, NULL, 0);
	}
	return bounded_log(s);
}

static bool log_sessions(struct scene *s)
{
	unsigned int i;

	for (i = 0; i < 200; i++) {
		struct qCUcmd c = command(i & 1 ? QCU_OP_COUNT : QCU_OP_MAP, i & 1);

		guest_fresh(&s->g, Q);
		if (guest_ask(&s->g, Q, &c, NULL, 0) != GUEST_GONE)
			return fell("a bad command is answered");
	}
	return bounded_log(s);
}

/* Commands about which a backend or a mirror may print something. */
static bool log_commands(struct scene *s)
{
	unsigned int i, k;
	uint16_t op;
	bool over;

	guest_fresh(&s->g, Q);
	for (i = 0; i < 60; i++) {
		for (op = 0; op < QCU_OP_COUNT; op++) {
			const struct qcu_rule *rule = qcu_rule(op);
			struct qCUcmd c = command(op, 1 + i);
			uint8_t name[64];

			if (!rule || !qcu_rule_user(rule) || rule->buffer == QCU_BUFFER_IN ||
			    rule->buffer == QCU_BUFFER_OUT || rule->buffer == QCU_BUFFER_STAY ||
			    op == QCU_OP_HOST_NEXT)
				continue;
			for (k = 0; k < sizeof(name); k++)
				name[k] = (uint8_t)(k + i);
			if (rule->buffer == QCU_BUFFER_MSG) {
				c.flags = QCU_F_MSG;
				c.buf.len = sizeof(name);
			} else {
				memset(c.body, 0x1b, rule->in);
			}
			guest_ask(&s->g, Q, &c, name, (uint32_t)c.buf.len * (c.flags != 0));
		}
		if (!session_settled(s, Q, &over))
			return false;
		if (over)
			guest_fresh(&s->g, Q);
	}
	return bounded_log(s);
}

/* Kernels with a failed assertion, and a module about which the compiler prints a lot. */
static bool log_kernels(struct scene *s)
{
	static const char image[] =
		".version 8.0\n.target sm_75\n.address_size 64\n"
		".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l,"
		" .param .b64 n, .param .b64 c);\n"
		".global .align 1 .b8 t[8] = {27,91,51,49,109,10,7,0};\n"
		".visible .entry k()\n{\n.reg .b64 %d<4>;\n"
		"mov.u64 %d1, t; cvta.global.u64 %d2, %d1;\n"
		"{\n.param .b64 p0; st.param.b64 [p0], %d2;\n"
		".param .b64 p1; st.param.b64 [p1], %d2;\n"
		".param .b32 p2; st.param.b32 [p2], 7;\n"
		".param .b64 p3; st.param.b64 [p3], %d2;\n"
		".param .b64 p4; st.param.b64 [p4], 1;\n"
		"call.uni __assertfail, (p0, p1, p2, p3, p4);\n}\nret;\n}\n";
	static const char odd[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				  ".entry \033[31m\a k()\n{\n\x7f bad\r\b;\n}\n";
	unsigned int i;
	int rc;

	for (i = 0; i < 40; i++) {
		guest_fresh(&s->g, Q);
		memcpy(s->g.ram + GUEST_SPACE(Q), odd, sizeof(odd));
		if (cmd_load(&s->g, Q, 3, GUEST_SPACE(Q), sizeof(odd)) == 0)
			return fell("nonsense is loaded");
		memcpy(s->g.ram + GUEST_SPACE(Q), image, sizeof(image));
		rc = cmd_load(&s->g, Q, 2, GUEST_SPACE(Q), sizeof(image));
		rc = rc ? rc : cmd_find(&s->g, Q, 2, 2, "k");
		if (rc)
			die("the kernel cannot be loaded: %d", rc);
		cmd_launch(&s->g, Q, 2, QCU_STREAM_LEGACY, 64, 0, 0);
		cmd_simple(&s->g, Q, QCU_OP_DEVICE_SYNC, 1);
	}
	return bounded_log(s);
}

const struct attack log_attacks[] = {
	{"log_control", log_control, {NULL}, true, "bad commands for control, by the thousand"},
	{"log_sessions", log_sessions, {NULL}, true, "sessions that break rules"},
	{"log_commands", log_commands, {NULL}, true, "commands with bytes that terminals obey"},
	{"log_kernels", log_kernels, {NULL}, true, "assertions and modules with such bytes"},
	{0},
};
