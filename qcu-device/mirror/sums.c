// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sums of device memory. The kernel reads memory as fast as the GPU can. It is PTX, so that it runs
 * on any GPU, and has no variables: the program's modules have theirs as before.
 */
#include "qcu-device/mirror/sums.h"

#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/zero.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/memory/ahead.h"
#include "qcu-device/mirror/archive.h"

#define THREADS 256

_Static_assert(AHEAD_BYTES == 4194304 && AHEAD_STEP == 0x9e3779b97f4a7c15u &&
		       AHEAD_STIR == 0xd6e8feb86659fd93u && AHEAD_SHIFT == 32 && THREADS == 256,
	       "the kernel has these numbers");

/* Adds the word x, which has this position, to the sums. */
#define ADD_WORD(position)                         \
	"or.b64 %o, %o, %x;\n"                     \
	"add.u64 %y, " position ", 1;\n"           \
	"mul.lo.u64 %y, %y, 0x9e3779b97f4a7c15;\n" \
	"add.u64 %x, %x, %y;\n"                    \
	"shr.u64 %y, %x, 32;\n"                    \
	"xor.b64 %x, %x, %y;\n"                    \
	"mul.lo.u64 %x, %x, 0xd6e8feb86659fd93;\n" \
	"shr.u64 %y, %x, 32;\n"                    \
	"xor.b64 %x, %x, %y;\n"                    \
	"mul.lo.u64 %x, %x, 0xd6e8feb86659fd93;\n" \
	"shr.u64 %y, %x, 32;\n"                    \
	"xor.b64 %x, %x, %y;\n"                    \
	"add.u64 %s, %s, %x;\n"

/*
 * A block sums up one piece: each thread every 256th word, and the first one the bytes that are no
 * whole word. Then half of the threads take the other half's sums, again and again.
 *
 * x: a word, stirred; s: the sum; o: all bits that are set; w: the position; n: the number of
 * words.
 */
/* clang-format off */
static const char kernel_text[] =
	".version 6.4\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry qcu_sums(.param .u64 from, .param .u64 len, .param .u64 out)\n"
	"{\n"
	".reg .pred %p;\n"
	".reg .u32 %t, %c, %h, %a, %b;\n"
	".reg .u64 %f, %l, %r, %s, %o, %w, %n, %x, %y, %m, %e;\n"
	".shared .align 8 .b8 parts[4096];\n"
	"ld.param.u64 %f, [from];\n"
	"ld.param.u64 %l, [len];\n"
	"ld.param.u64 %r, [out];\n"
	"mov.u32 %t, %tid.x;\n"
	"mov.u32 %c, %ctaid.x;\n"
	/* The piece of this block. */
	"mul.wide.u32 %x, %c, 4194304;\n"
	"add.u64 %f, %f, %x;\n"
	"sub.u64 %l, %l, %x;\n"
	"min.u64 %l, %l, 4194304;\n"
	"shr.u64 %n, %l, 3;\n"
	"mov.u64 %s, 0;\n"
	"mov.u64 %o, 0;\n"
	"cvt.u64.u32 %w, %t;\n"
	"$words:\n"
	"setp.ge.u64 %p, %w, %n;\n"
	"@%p bra $tail;\n"
	"shl.b64 %x, %w, 3;\n"
	"add.u64 %x, %f, %x;\n"
	"ld.global.u64 %x, [%x];\n"
	ADD_WORD("%w")
	"add.u64 %w, %w, 256;\n"
	"bra $words;\n"
	/* m: the first of the last bytes; e: where they end; h: by how many bits to shift. */
	"$tail:\n"
	"shl.b64 %m, %n, 3;\n"
	"setp.ge.u64 %p, %m, %l;\n"
	"@%p bra $keep;\n"
	"setp.ne.u32 %p, %t, 0;\n"
	"@%p bra $keep;\n"
	"add.u64 %m, %f, %m;\n"
	"add.u64 %e, %f, %l;\n"
	"mov.u64 %x, 0;\n"
	"mov.u32 %h, 0;\n"
	"$bytes:\n"
	"ld.global.u8 %y, [%m];\n"
	"shl.b64 %y, %y, %h;\n"
	"or.b64 %x, %x, %y;\n"
	"add.u32 %h, %h, 8;\n"
	"add.u64 %m, %m, 1;\n"
	"setp.lt.u64 %p, %m, %e;\n"
	"@%p bra $bytes;\n"
	ADD_WORD("%n")
	/* a: this thread's position in `parts`; b: that of the thread whose sums it takes. */
	"$keep:\n"
	"mov.u32 %a, parts;\n"
	"shl.b32 %h, %t, 4;\n"
	"add.u32 %a, %a, %h;\n"
	"st.shared.u64 [%a], %s;\n"
	"st.shared.u64 [%a+8], %o;\n"
	"mov.u32 %h, 128;\n"
	"$half:\n"
	"bar.sync 0;\n"
	"setp.ge.u32 %p, %t, %h;\n"
	"@%p bra $next;\n"
	"shl.b32 %b, %h, 4;\n"
	"add.u32 %b, %a, %b;\n"
	"ld.shared.u64 %x, [%b];\n"
	"ld.shared.u64 %y, [%b+8];\n"
	"add.u64 %s, %s, %x;\n"
	"or.b64 %o, %o, %y;\n"
	"st.shared.u64 [%a], %s;\n"
	"st.shared.u64 [%a+8], %o;\n"
	"$next:\n"
	"shr.u32 %h, %h, 1;\n"
	"setp.ne.u32 %p, %h, 0;\n"
	"@%p bra $half;\n"
	"setp.ne.u32 %p, %t, 0;\n"
	"@%p bra $end;\n"
	"mul.wide.u32 %x, %c, 16;\n"
	"add.u64 %r, %r, %x;\n"
	"st.global.u64 [%r], %s;\n"
	"st.global.u64 [%r+8], %o;\n"
	"$end:\n"
	"ret;\n"
	"}\n";
/* clang-format on */

struct sums {
	uint8_t *buffer;	  /* registered; one piece, or what the kernel writes */
	struct be_module *module; /* NULL: this processor computes */
	struct be_kernel *kernel;
};

_Static_assert(SUMS_MOST * sizeof(struct piece_sum) <= ARCHIVE_PIECE, "the buffer is that large");

static int sum_by_kernel(struct mirror *m, const struct sums *s, unsigned int device, uint64_t addr,
			 uint64_t len, struct piece_sum *out)
{
	const struct be_ops *ops = m->cfg.ops;
	const unsigned int count = (unsigned int)((len + AHEAD_BYTES - 1) / AHEAD_BYTES);
	const uint64_t params[] = {addr, len, (uintptr_t)s->buffer};
	const struct be_launch l = {
		.grid = {count, 1, 1},
		.block = {THREADS, 1, 1},
		.params = params,
		.param_bytes = sizeof(params),
	};
	struct be_stream *stream = ops->stream_legacy(m->be, device);
	int rc = ops->launch(m->be, s->kernel, &l, stream);

	if (!rc)
		rc = ops->stream_sync(m->be, stream);
	if (!rc)
		memcpy(out, s->buffer, count * sizeof(*out));
	return rc;
}

static int sum_a_copy(struct mirror *m, const struct sums *s, unsigned int device, uint64_t addr,
		      uint64_t len, struct piece_sum *out)
{
	const struct be_ops *ops = m->cfg.ops;
	struct be_stream *stream = ops->stream_legacy(m->be, device);
	int rc = 0;
	size_t n;

	for (; len && !rc; addr += n, len -= n, out++) {
		n = len < AHEAD_BYTES ? len : AHEAD_BYTES;
		rc = ops->copy_d2h(m->be, s->buffer, addr, n, stream);
		if (!rc)
			rc = ops->stream_sync(m->be, stream);
		if (!rc)
			*out = (struct piece_sum){ahead_sum(s->buffer, n),
						  !is_all_zero(s->buffer, n)};
	}
	return rc;
}

int sums_of(struct mirror *m, const struct sums *s, unsigned int device, uint64_t addr,
	    uint64_t len, struct piece_sum *out)
{
	return s->module ? sum_by_kernel(m, s, device, addr, len, out)
			 : sum_a_copy(m, s, device, addr, len, out);
}

bool sums_in_parts(struct mirror *m, const struct sums *s, const struct be_wanted *memory,
		   bool (*take)(void *arg, const struct be_wanted *part,
				const struct piece_sum *sum),
		   void *arg)
{
	const uint64_t end = memory->addr + memory->size, most = SUMS_MOST * (uint64_t)AHEAD_BYTES;
	struct piece_sum *sum = malloc(SUMS_MOST * sizeof(*sum));
	struct be_wanted part = *memory;
	bool ok = sum;

	for (; ok && part.addr < end; part.addr += part.size) {
		part.size = end - part.addr < most ? end - part.addr : most;
		ok = !sums_of(m, s, part.dev, part.addr, part.size, sum) && take(arg, &part, sum);
	}
	free(sum);
	return ok;
}

static bool load_kernel(struct mirror *m, struct sums *s, unsigned int device)
{
	const struct be_ops *ops = m->cfg.ops;
	const struct be_launch empty = {.grid = {1, 1, 1}, .block = {THREADS, 1, 1}};
	struct be_launch first = empty;
	/* No bytes: only an answer. */
	const uint64_t params[] = {0, 0, (uintptr_t)s->buffer};

	if (ops->module_load(m->be, kernel_text, sizeof(kernel_text), NULL, &s->module)) {
		s->module = NULL;
		return false;
	}
	first.params = params;
	first.param_bytes = sizeof(params);
	return !ops->kernel_find(m->be, s->module, "qcu_sums", &s->kernel) &&
	       !ops->launch(m->be, s->kernel, &first, ops->stream_legacy(m->be, device)) &&
	       !ops->stream_sync(m->be, ops->stream_legacy(m->be, device));
}

struct sums *sums_new(struct mirror *m, unsigned int device, bool kernel)
{
	struct sums *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->buffer = archive_pieces(1);
	if (!s->buffer || m->cfg.ops->host_register(m->be, s->buffer, ARCHIVE_PIECE)) {
		archive_pieces_end(s->buffer, 1);
		free(s);
		return NULL;
	}
	if (!kernel || load_kernel(m, s, device))
		return s;
	sums_free(m, s);
	return NULL;
}

void sums_free(struct mirror *m, struct sums *s)
{
	if (!s)
		return;
	if (s->module)
		m->cfg.ops->module_unload(m->be, s->module);
	(void)m->cfg.ops->host_unregister(m->be, s->buffer);
	archive_pieces_end(s->buffer, 1);
	free(s);
}
