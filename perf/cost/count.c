// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin of QEMU's emulator. Counts the instructions of a guest with one processor, of its kernel
 * and of its programs apart, and writes both counts to a file at each mark (bench.c).
 *
 *	-plugin count.so,out=FILE
 *
 * It counts in blocks. A block that an interrupt or a fault ends early counts whole, a few
 * instructions too many.
 */
#include <stdio.h>
#include <string.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static const unsigned char mov_mark[] = {0xb8, 0x51, 0x43, 0x55, 0x44}; /* to %eax */
static const unsigned char cpuid[] = {0x0f, 0xa2};

static struct qemu_plugin_scoreboard *board;
static qemu_plugin_u64 user, kernel;
static FILE *out;

static bool is_kernel(uint64_t address)
{
	return address >> 63;
}

static void write_counts(unsigned int cpu, void *unused)
{
	(void)unused;
	fprintf(out, "%llu %llu\n", (unsigned long long)qemu_plugin_u64_get(user, cpu),
		(unsigned long long)qemu_plugin_u64_get(kernel, cpu));
	fflush(out);
}

static bool insn_is(const struct qemu_plugin_insn *insn, const unsigned char *what, size_t size)
{
	unsigned char bytes[16];

	return qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) == size &&
	       !memcmp(bytes, what, size);
}

static void count_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;
	bool in_kernel = is_kernel(qemu_plugin_tb_vaddr(tb));

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64,
							  in_kernel ? kernel : user, n);
	for (i = 1; i < n && !in_kernel; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (insn_is(insn, cpuid, sizeof(cpuid)) &&
		    insn_is(qemu_plugin_tb_get_insn(tb, i - 1), mov_mark, sizeof(mov_mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, write_counts,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4) || !info->system_emulation ||
	    info->system.max_vcpus != 1) {
		fprintf(stderr, "count: needs out=FILE and a guest with one processor\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	board = qemu_plugin_scoreboard_new(2 * sizeof(uint64_t));
	user = (qemu_plugin_u64){board, 0};
	kernel = (qemu_plugin_u64){board, sizeof(uint64_t)};
	qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
	return 0;
}
