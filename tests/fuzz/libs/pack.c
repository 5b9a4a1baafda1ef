// SPDX-License-Identifier: GPL-2.0-or-later
/* The choices of a random call, and how they travel. */
#include <string.h>

#include "tests/fuzz/libs/pack.h"

#define ARRAY_MAX (64u << 10) /* bytes of an array that is filled */

struct fuzz_world fuzz_world;

static uint32_t below(struct fuzz_call *f, uint32_t n)
{
	return fuzz_random(&f->random, n);
}

static uint64_t any_word(struct fuzz_call *f)
{
	uint64_t high = below(f, 1u << 30), low = below(f, 1u << 30);

	return high << 34 ^ low << 4 ^ below(f, 16);
}

bool fuzz_is_odd(struct fuzz_call *f)
{
	switch (f->mood) {
	case FUZZ_TAME:
		return false;
	case FUZZ_ODD:
		return !below(f, 8);
	case FUZZ_WILD:
		break;
	}
	return below(f, 2);
}

static uint64_t odd_number(struct fuzz_call *f, unsigned int bits)
{
	switch (below(f, 13)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return bits <= 32 ? INT32_MAX : INT64_MAX;
	case 3:
		return bits <= 32 ? (uint64_t)(int64_t)INT32_MIN : (uint64_t)INT64_MIN;
	case 4:
		return 1ull << below(f, 64);
	case 5:
		return (1ull << 32) + f->usual;
	case 6:
		return (1ull << 62) + 1 + below(f, 2);
	case 7:
		return any_word(f);
	case 8:
		return 9 + below(f, 300);
	case 9:
		return 1024 + below(f, 1u << 16);
	case 10:
		return (uint64_t) - (int64_t)(1 + below(f, 100));
	case 11:
		return (1ull << below(f, 40)) - 1;
	}
	return below(f, 64);
}

uint64_t fuzz_number(struct fuzz_call *f, unsigned int bits)
{
	if (fuzz_is_odd(f))
		return odd_number(f, bits);
	switch (below(f, 12)) {
	case 0:
		return f->usual + 1;
	case 1:
		return 1;
	case 2:
		return below(f, 9);
	case 3:
		return 1u << below(f, 8);
	}
	return f->usual;
}

uint64_t fuzz_bounded(struct fuzz_call *f, unsigned int bits, int64_t least, int64_t greatest)
{
	uint64_t range = (uint64_t)greatest - (uint64_t)least;

	if (fuzz_is_odd(f)) {
		switch (below(f, 6)) {
		case 0:
			return (uint64_t)least - 1;
		case 1:
			return (uint64_t)greatest + 1;
		case 2:
			return (uint64_t)greatest;
		case 3:
			return (1ull << 32) + (uint64_t)least;
		}
		return odd_number(f, bits);
	}
	if (below(f, 2) && (int64_t)f->usual >= least && (int64_t)f->usual <= greatest)
		return f->usual;
	if (!below(f, 8) && range < 4096)
		return (uint64_t)(below(f, 2) ? least : greatest);
	return (uint64_t)least + below(f, range < 15 ? (uint32_t)range + 1 : 16);
}

uint64_t fuzz_enum(struct fuzz_call *f, const uint64_t *values, unsigned int count)
{
	if (!fuzz_is_odd(f))
		return values[below(f, count)];
	switch (below(f, 5)) {
	case 0:
		return values[count - 1] + 1;
	case 1:
		return UINT64_MAX;
	case 2:
		return (1ull << 32) + values[below(f, count)];
	case 3:
		return odd_number(f, 32);
	}
	return below(f, 128);
}

static double choose_real(struct fuzz_call *f)
{
	static const double values[] = {0, 1, -1, 0.5, 2, 1e-5, 3};
	static const double odd[] = {1e308, -1e308, 1e-320, __builtin_inf(), __builtin_nan(""),
				     1e10,  65536};

	if (fuzz_is_odd(f))
		return odd[below(f, sizeof(odd) / sizeof(odd[0]))];
	return values[below(f, sizeof(values) / sizeof(values[0]))];
}

uint64_t fuzz_real(struct fuzz_call *f)
{
	double value = choose_real(f);
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* An address that nothing may use, or that is none. */
static uint64_t wild_address(struct fuzz_call *f)
{
	switch (below(f, 8)) {
	case 0:
		return any_word(f);
	case 1:
		return 0x414141414141 + below(f, 64);
	case 2:
		return UINT64_MAX - below(f, 4096);
	case 3:
		return below(f, 4096);
	}
	return fuzz_world.decoy + (below(f, (uint32_t)fuzz_world.decoy_bytes) & ~7u);
}

uint64_t fuzz_address(struct fuzz_call *f, bool of_pointers)
{
	uint64_t base = of_pointers ? fuzz_world.pointers : fuzz_world.zeros;

	if (fuzz_is_odd(f) && (!fuzz_world.real || !below(f, 6)))
		return below(f, 3) || f->without_null ? wild_address(f) : 0;
	if (!below(f, 20) && !f->without_null)
		return 0;
	if (!below(f, 20))
		return base + below(f, 256); /* not aligned */
	return base + (uint64_t)below(f, 16) * (64u << 10);
}

/* ---- words ---- */

void fuzz_word(struct fuzz_call *f, uint64_t word)
{
	if (f->used == FUZZ_WORDS)
		f->overflow = true;
	else
		f->words[f->used++] = word;
}

void fuzz_bytes(struct fuzz_call *f, const void *bytes, uint64_t len)
{
	uint64_t padded = (len + 7) / 8;

	if (padded > FUZZ_WORDS - f->used) {
		f->overflow = true;
		return;
	}
	if (!padded)
		return;
	f->words[f->used + padded - 1] = 0;
	memcpy(&f->words[f->used], bytes, len);
	f->used += (unsigned int)padded;
}

void fuzz_device(struct fuzz_call *f, bool of_pointers)
{
	fuzz_word(f, fuzz_address(f, of_pointers));
}

/* ---- host memory ---- */

/* The size that the message says: mostly the right one. */
static uint64_t said_size(struct fuzz_call *f, uint64_t size)
{
	if (f->mood == FUZZ_TAME || below(f, 12))
		return size;
	switch (below(f, 6)) {
	case 0:
		return size + 1;
	case 1:
		return size - 1;
	case 2:
		return size + 8;
	case 3:
		return 0;
	case 4:
		return odd_number(f, 64);
	}
	return size + (1ull << 32);
}

static void fill(struct fuzz_call *f, void *at, uint64_t size, size_t element, bool real)
{
	uint8_t *to = at;
	uint64_t i;

	for (i = 0; i + element <= size; i += element) {
		uint64_t word = real ? 0 : fuzz_number(f, 8 * (unsigned int)element);
		double d = real ? choose_real(f) : 0;
		float s = (float)d;

		if (real && element == sizeof(s))
			memcpy(to + i, &s, sizeof(s));
		else if (real)
			memcpy(to + i, &d, sizeof(d));
		else if (element <= sizeof(word))
			memcpy(to + i, &word, element);
		else
			memset(to + i, f->mood == FUZZ_TAME ? 0 : (int)word, element);
	}
	memset(to + i, 0, size - i);
}

static void fill_words(struct fuzz_call *f, uint64_t size, size_t element, bool real)
{
	static uint64_t array[ARRAY_MAX / 8];

	/* More than that only the message says. */
	if (size > ARRAY_MAX)
		size = 64;
	fill(f, array, size, element, real);
	fuzz_bytes(f, array, size);
}

static void add_outs(struct fuzz_call *f, uint64_t size)
{
	uint64_t padded = (size + 7) & ~7ull;

	if (padded >= size && padded <= FUZZ_OUTS - f->outs)
		f->outs += (uint32_t)padded;
}

void fuzz_in(struct fuzz_call *f, uint64_t size, size_t element, bool real)
{
	uint64_t said = said_size(f, size);

	if (fuzz_is_odd(f) && !below(f, 3)) {
		fuzz_word(f,
			  below(f, 2) && !f->without_null ? QCU_LIB_NULL : 5 + odd_number(f, 64));
		return;
	}
	fuzz_word(f, QCU_LIB_HOST);
	fuzz_word(f, said);
	fill_words(f, said, element, real);
}

void fuzz_in_bytes(struct fuzz_call *f, const void *bytes, uint64_t size)
{
	fuzz_word(f, QCU_LIB_HOST);
	fuzz_word(f, said_size(f, size));
	fuzz_bytes(f, bytes, size);
}

/* Elements are spread over the rows, side by side in each. */
static void write_csr(int32_t *to, int64_t n, int64_t nnz, bool columns)
{
	int64_t row, i, at = 0;

	for (row = 0; row < n; row++) {
		const int64_t len = nnz / n + (row < nnz % n), gap = n - len;

		if (!columns)
			to[row] = (int32_t)at;
		for (i = 0; columns && i < len; i++)
			to[at + i] = (int32_t)(row * 7 % (gap + 1) + i);
		at += len;
	}
	if (!columns)
		to[n] = (int32_t)at;
}

void fuzz_csr(struct fuzz_call *f, int64_t n, int64_t nnz, bool columns)
{
	int32_t structure[FUZZ_CSR + 1];
	const int64_t count = columns ? nnz : n + 1;

	if (n < 1 || n > FUZZ_CSR || nnz < 1 || nnz > FUZZ_CSR || nnz > n * n || fuzz_is_odd(f)) {
		fuzz_in(f, (uint64_t)count * sizeof(*structure), sizeof(*structure), false);
		return;
	}
	write_csr(structure, n, nnz, columns);
	fuzz_in_bytes(f, structure, (uint64_t)count * sizeof(*structure));
}

void fuzz_inout(struct fuzz_call *f, uint64_t size, size_t element, bool real)
{
	uint64_t said = said_size(f, size);

	if (!f->without_null && fuzz_is_odd(f) && !below(f, 3)) {
		fuzz_word(f, QCU_LIB_NULL);
		return;
	}
	fuzz_word(f, QCU_LIB_BOTH);
	fuzz_word(f, said);
	fill_words(f, said, element, real);
	add_outs(f, said);
}

void fuzz_out(struct fuzz_call *f, uint64_t size)
{
	uint64_t said = said_size(f, size);

	if (!f->without_null && fuzz_is_odd(f) && !below(f, 3)) {
		fuzz_word(f, QCU_LIB_NULL);
		return;
	}
	fuzz_word(f, QCU_LIB_ROOM);
	fuzz_word(f, said);
	add_outs(f, said);
}

void fuzz_text(struct fuzz_call *f)
{
	char text[64];
	uint64_t len = 1 + below(f, sizeof(text) - 1), i;

	for (i = 0; i < len; i++)
		text[i] = (char)('a' + below(f, 26));
	if (!fuzz_is_odd(f))
		text[len - 1] = 0;
	fuzz_in_bytes(f, text, len);
}

void fuzz_scalar(struct fuzz_call *f, uint64_t room, size_t element, bool real, unsigned int way)
{
	uint8_t value[64];

	if (!f->without_null && fuzz_is_odd(f) && !below(f, 4)) {
		fuzz_word(f, QCU_LIB_NULL);
		return;
	}
	if (f->scalars_on_gpu != (fuzz_is_odd(f) && !below(f, 4))) {
		fuzz_word(f, QCU_LIB_DEVICE);
		fuzz_device(f, false);
		return;
	}
	fuzz_word(f, way == LIB_IN ? QCU_LIB_HOST : way == LIB_OUT ? QCU_LIB_ROOM : QCU_LIB_BOTH);
	fuzz_word(f, said_size(f, room));
	if (way & LIB_IN) {
		fill(f, value, room, element ? element : 1, real);
		fuzz_bytes(f, value, room);
	}
	if (way & LIB_OUT)
		add_outs(f, room);
}

/* ---- objects ---- */

/* A function that sets something in objects of a kind, or that makes one; -1: there is none. */
static int choose_setter(struct fuzz_call *f, uint32_t kind, bool makes)
{
	const struct lib_library *l = f->lib->lib;
	unsigned int i, seen = 0;
	int chosen = -1;

	for (i = 0; i < l->count; i++) {
		if (l->functions[i].sets != kind || l->functions[i].makes != makes)
			continue;
		if (fuzz_world.muted && fuzz_world.muted(f->lib, i))
			continue;
		if (!below(f, ++seen))
			chosen = (int)i;
	}
	return chosen;
}

static void pack_setting(struct fuzz_call *f, int function)
{
	struct fuzz_call inner = *f;
	struct qcu_lib_setting s = {.function = (uint16_t)function};
	unsigned int at = f->used;

	inner.setting = true;
	inner.self_taken = false;
	inner.depth++;
	inner.without_null =
		fuzz_world.without_null && fuzz_world.without_null(f->lib, (unsigned int)function);
	fuzz_word(&inner, 0);
	f->lib->functions[function].pack(&inner);
	f->random = inner.random;
	f->used = inner.used;
	f->overflow |= inner.overflow;
	s.args = (f->used - at - 1) * 8;
	if (fuzz_is_odd(f) && !below(f, 8))
		s.args = (uint32_t)odd_number(f, 32);
	if (!f->overflow)
		memcpy(&f->words[at], &s, sizeof(s));
}

static void pack_settings(struct fuzz_call *f, uint32_t kind, unsigned int count, bool made)
{
	int function;

	if (f->depth > 3 || (f->depth && !below(f, 4)))
		return;
	if (made) {
		function = choose_setter(f, kind, true);
		if (function < 0)
			return;
		pack_setting(f, function);
		if (below(f, 4))
			return;
	}
	while (count--) {
		uint32_t of = fuzz_is_odd(f) && !below(f, 8) ? below(f, QCU_LIB_KINDS) : kind;

		function = choose_setter(f, of, false);
		if (function >= 0)
			pack_setting(f, function);
	}
}

/* The number of an object, mostly of this kind. */
static uint64_t choose_object(struct fuzz_call *f, uint32_t kind)
{
	uint16_t number;

	if (fuzz_is_odd(f) && !below(f, 3))
		return below(f, 2) ? odd_number(f, 32) : below(f, 64);
	if (kind == QCU_LIB_CUBLASLT_HANDLE && !below(f, 5))
		kind = QCU_LIB_CUBLAS_HANDLE;
	if (kind == QCU_LIB_CURAND_GENERATOR && (!fuzz_world.object[kind][0] || below(f, 2))) {
		kind = QCU_LIB_CURAND_HOST;
		f->on_host = true;
	}
	number = fuzz_world.object[kind][below(f, FUZZ_OBJECTS)];
	return number ? number : fuzz_world.object[kind][0];
}

void fuzz_object(struct fuzz_call *f, uint32_t kind)
{
	unsigned int at;

	if (f->setting)
		return;
	fuzz_word(f, choose_object(f, kind));
	if (below(f, 4)) {
		fuzz_word(f, 1);
		fuzz_word(f, 0);
		return;
	}
	fuzz_word(f, 2 + below(f, 1u << 30));
	at = f->used;
	fuzz_word(f, 0);
	pack_settings(f, kind, 1 + below(f, 2), false);
	if (!f->overflow)
		f->words[at] = (f->used - at - 1) * 8;
}

void fuzz_either(struct fuzz_call *f, uint64_t count, size_t element)
{
	if (f->on_host == (fuzz_is_odd(f) && !below(f, 8)))
		fuzz_device(f, false);
	else
		fuzz_out(f, count * element);
}

void fuzz_bare(struct fuzz_call *f, uint32_t kind)
{
	if (fuzz_world.object[kind][0] && below(f, 2))
		fuzz_object(f, kind);
	else
		fuzz_word(f, 0);
}

void fuzz_second(struct fuzz_call *f, uint32_t kind)
{
	fuzz_word(f, choose_object(f, kind));
}

void fuzz_descriptor(struct fuzz_call *f, uint32_t kind)
{
	bool made = !f->lib->lib->kinds[kind].create;
	unsigned int at;

	if (f->setting && !f->self_taken) {
		f->self_taken = true;
		return;
	}
	if (!f->without_null && (!below(f, 40) || (fuzz_is_odd(f) && !below(f, 4)))) {
		fuzz_word(f, 0);
		return;
	}
	at = f->used;
	fuzz_word(f, 0);
	pack_settings(f, kind, below(f, 8) ? 1 : below(f, 4), made);
	if (!f->overflow)
		f->words[at] =
			1 + (f->used - at - 1) * 8 + (fuzz_is_odd(f) && !below(f, 8) ? 8 : 0);
}

void fuzz_pack(struct fuzz_call *f, unsigned int function)
{
	f->without_null = fuzz_world.without_null && fuzz_world.without_null(f->lib, function);
	f->lib->functions[function].pack(f);
	if (fuzz_is_odd(f) && !below(f, 16))
		fuzz_word(f, 0);
	else if (f->used && fuzz_is_odd(f) && !below(f, 16))
		f->used--;
}
