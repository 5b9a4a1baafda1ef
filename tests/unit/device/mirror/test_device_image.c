// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which images a mirror passes on. The test makes images byte by byte and then makes one thing in
 * them wrong. Everything that nvcc has put into the test programs must be let through. Each image
 * has memory of exactly its length, so that the sanitizers see a read beyond its end.
 */
#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <lz4.h>
#include <zstd.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/image.h"

#define PTX ".version 8.0\n.target sm_75\n.address_size 64\n"

static int check_bytes(const void *image, size_t len, const char **why)
{
	void *copy = malloc(len ? len : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, image, len);
	rc = image_check(copy, len, why);
	free(copy);
	return rc;
}

static void good(const char *what, const void *image, size_t len)
{
	const char *why = "it has not been looked at";

	if (check_bytes(image, len, &why))
		fail_msg("%s: %s", what, why);
	assert_null(why);
}

static void bad(const char *what, const void *image, size_t len, const char *reason)
{
	const char *why = NULL;
	int rc = check_bytes(image, len, &why);

	if (rc != QCU_ERR_InvalidKernelImage || !why || !strstr(why, reason))
		fail_msg("%s: %d, %s; not: %s", what, rc, why ? why : "let through", reason);
}

/* One number in an image that is made wrong, and the expected reason. */
struct wrong {
	const char *what;
	size_t at, bytes;
	uint64_t value;
	const char *reason;
};

static void all_wrong(const void *image, size_t len, const struct wrong *w, size_t count)
{
	unsigned char *copy = malloc(len);
	size_t i;

	assert_non_null(copy);
	for (i = 0; i < count; i++, w++) {
		memcpy(copy, image, len);
		assert_in_range(w->at + w->bytes, 1, len);
		memcpy(copy + w->at, &w->value, w->bytes);
		bad(w->what, copy, len, w->reason);
	}
	free(copy);
}

/*
 * The image is cut short at every place, and each byte is changed. It is accepted or refused;
 * nothing else may happen.
 */
static void survive(const void *image, size_t len)
{
	unsigned char *copy = malloc(len), old;
	const char *why;
	size_t i;

	assert_non_null(copy);
	memcpy(copy, image, len);
	for (i = 0; i < len; i++) {
		old = copy[i];
		copy[i] ^= 0xff;
		(void)check_bytes(copy, len, &why);
		copy[i] = old ^ 0x80;
		(void)check_bytes(copy, len, &why);
		copy[i] = old;
		(void)check_bytes(copy, i, &why);
	}
	free(copy);
}

/* ---- pointers ---- */

static void no_image_by_its_address(void **state)
{
	struct {
		uint32_t magic, version;
		uint64_t data, parts;
	} wrapper = {0x466243b1, 1, 0x414141414000, 0};

	(void)state;
	bad("a wrapper", &wrapper, sizeof(wrapper), "by a pointer");
	wrapper.data = (uintptr_t)PTX;
	bad("a wrapper of what is good", &wrapper, sizeof(wrapper), "by a pointer");
	wrapper.version = 2;
	wrapper.parts = (uintptr_t)&wrapper;
	bad("a wrapper with parts", &wrapper, sizeof(wrapper), "by a pointer");
	bad("the beginning of one", &wrapper, 4, "by a pointer");
}

/* ---- PTX ---- */

static void ptx(void **state)
{
	static const char zeros[] = PTX "\0\0\0\0\0\0";
	static const char more[] = PTX "\0.visible .entry k() { ret; }";
	static const char comments[] = "\n // one\n/* two */ \t" PTX;
	static const struct {
		const char *what, *text;
	} none[] = {
		{"a word", "nonsense"},
		{"nothing but blanks", " \n\t "},
		{"nothing but a comment", "// .version 8.0"},
		{"a comment without an end", "/* .version 8.0"},
		{"another directive", ".target sm_75"},
		{"a library", "!<arch>\n"},
		{"bitcode", "BC\xc0\xde"},
	};
	size_t i;

	(void)state;
	bad("nothing", "", 0, "no zero byte");
	bad("one byte", "", 1, "neither");
	bad("no end", PTX, strlen(PTX), "no zero byte");
	bad("text behind the end", more, sizeof(more), "zero byte in it");
	for (i = 0; i < sizeof(none) / sizeof(*none); i++)
		bad(none[i].what, none[i].text, strlen(none[i].text) + 1, "neither");
	good("PTX", PTX, sizeof(PTX));
	good("PTX with zeros behind it", zeros, sizeof(zeros));
	good("PTX behind comments", comments, sizeof(comments));
	survive(comments, sizeof(comments));
}

/* ---- machine code ---- */

enum { SEC_NULL, SEC_SHSTRTAB, SEC_STRTAB, SEC_SYMTAB, SEC_TEXT, SEC_RELA, SEC_GLOBAL, SECTIONS };

#define SECTION_NAMES "\0.shstrtab\0.strtab\0.symtab\0.text.k\0.rela.text.k\0.nv.global"
#define SYMBOL_NAMES  "\0k\0v"

#define CODE_BYTES 512

struct machine_code {
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	char shstrtab[64];
	char strtab[8];
	Elf64_Sym symbol[4];
	unsigned char text[CODE_BYTES];
	Elf64_Rela rela[2];
	Elf64_Shdr section[SECTIONS];
};

static void put_section(struct machine_code *mc, unsigned int i, uint32_t name, uint32_t type,
			size_t offset, size_t size)
{
	mc->section[i] = (Elf64_Shdr){
		.sh_name = name,
		.sh_type = type,
		.sh_offset = offset,
		.sh_size = size,
		.sh_addralign = 8,
	};
}

#define PUT(mc, i, name, type, member) \
	put_section(mc, i, name, type, offsetof(struct machine_code, member), sizeof((mc)->member))

static void make_code(struct machine_code *mc)
{
	memset(mc, 0, sizeof(*mc));
	mc->head = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = 190,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(mc->head),
		.e_phoff = offsetof(struct machine_code, segment),
		.e_phentsize = sizeof(mc->segment),
		.e_phnum = 1,
		.e_shoff = offsetof(struct machine_code, section),
		.e_shentsize = sizeof(mc->section[0]),
		.e_shnum = SECTIONS,
		.e_shstrndx = SEC_SHSTRTAB,
	};
	mc->segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_offset = offsetof(struct machine_code, text),
		.p_filesz = sizeof(mc->text),
		.p_memsz = sizeof(mc->text),
		.p_align = 8,
	};
	memcpy(mc->shstrtab, SECTION_NAMES, sizeof(SECTION_NAMES));
	memcpy(mc->strtab, SYMBOL_NAMES, sizeof(SYMBOL_NAMES));
	mc->symbol[1] =
		(Elf64_Sym){1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SEC_TEXT, 0, CODE_BYTES};
	mc->symbol[2] = (Elf64_Sym){3, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, SEC_GLOBAL, 4, 4};
	mc->symbol[3] = (Elf64_Sym){3, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_ABS, 9, 9};
	mc->rela[0] = (Elf64_Rela){.r_offset = 120, .r_info = ELF64_R_INFO(2, 2)};
	mc->rela[1] = (Elf64_Rela){.r_offset = 0, .r_info = ELF64_R_INFO(3, 2)};
	PUT(mc, SEC_SHSTRTAB, 1, SHT_STRTAB, shstrtab);
	PUT(mc, SEC_STRTAB, 11, SHT_STRTAB, strtab);
	PUT(mc, SEC_SYMTAB, 19, SHT_SYMTAB, symbol);
	PUT(mc, SEC_TEXT, 27, SHT_PROGBITS, text);
	PUT(mc, SEC_RELA, 35, SHT_RELA, rela);
	/* The section is larger than the file. That is valid: its bytes are not in the file. */
	put_section(mc, SEC_GLOBAL, 48, SHT_NOBITS, sizeof(*mc), 1 << 20);
	mc->section[SEC_SYMTAB].sh_link = SEC_STRTAB;
	mc->section[SEC_SYMTAB].sh_info = 1;
	mc->section[SEC_SYMTAB].sh_entsize = sizeof(mc->symbol[0]);
	mc->section[SEC_TEXT].sh_link = SEC_SYMTAB;
	mc->section[SEC_RELA].sh_link = SEC_SYMTAB;
	mc->section[SEC_RELA].sh_info = SEC_TEXT;
	mc->section[SEC_RELA].sh_entsize = sizeof(mc->rela[0]);
}

#define AT(member)    offsetof(struct machine_code, member), sizeof(((struct machine_code *)0)->member)
#define IN(i, member) AT(section[i].member)

static void code_headers(void **state)
{
	static const struct wrong wrong[] = {
		{"32 bits", AT(head.e_ident[EI_CLASS]), ELFCLASS32, "no machine code of a GPU"},
		{"big endian", AT(head.e_ident[EI_DATA]), ELFDATA2MSB, "no machine code of a GPU"},
		{"a CPU's", AT(head.e_machine), EM_X86_64, "no machine code of a GPU"},
		{"header size", AT(head.e_ehsize), 32, "header"},
		{"no sections", AT(head.e_shoff), 0, "where its sections are"},
		{"sections behind the end", AT(head.e_shoff), sizeof(struct machine_code),
		 "no table of sections"},
		{"sections far away", AT(head.e_shoff), UINT64_MAX - 63, "no table of sections"},
		{"size of a section's header", AT(head.e_shentsize), 32, "no table of sections"},
		{"one section too many", AT(head.e_shnum), SECTIONS + 1, "more sections"},
		{"all numbers of sections", AT(head.e_shnum), 0xfeff, "more sections"},
		{"no number of sections", AT(head.e_shnum), 0, "more sections"},
		{"section with names", AT(head.e_shstrndx), SECTIONS, "no names"},
		{"names in no section of names", AT(head.e_shstrndx), SEC_TEXT, "name"},
		{"one segment too many", AT(head.e_phoff), sizeof(struct machine_code) - 55,
		 "more segments"},
		{"segments far away", AT(head.e_phoff), UINT64_MAX - 8, "more segments"},
		{"number of segments", AT(head.e_phnum), 0xffff, "more segments"},
		{"size of a segment's header", AT(head.e_phentsize), 8, "more segments"},
		{"segment's place", AT(segment.p_offset),
		 sizeof(struct machine_code) - CODE_BYTES + 1, "a segment lies outside"},
		{"segment's size", AT(segment.p_filesz), UINT64_MAX, "a segment lies outside"},
		{"segment larger than in memory", AT(segment.p_memsz), 1, "bad size"},
		{"segment too large", AT(segment.p_memsz), 1ull << 41, "bad size"},
		{"segment's alignment", AT(segment.p_align), 3, "bad alignment"},
	};
	struct machine_code mc;

	(void)state;
	make_code(&mc);
	all_wrong(&mc, sizeof(mc), wrong, sizeof(wrong) / sizeof(*wrong));
	bad("no more than a magic number", ELFMAG, 4, "cut short");
	bad("half a header", &mc, 63, "cut short");
	bad("no table of sections", &mc, sizeof(mc) - 1, "more sections");
}

static void code_sections(void **state)
{
	const size_t size = sizeof(struct machine_code);
	const struct wrong wrong[] = {
		{"place", IN(SEC_TEXT, sh_offset), size - CODE_BYTES + 1, "a section lies outside"},
		{"place far away", IN(SEC_TEXT, sh_offset), UINT64_MAX - 63, "lies outside"},
		{"size", IN(SEC_TEXT, sh_size), size, "a section lies outside"},
		{"size that wraps", IN(SEC_TEXT, sh_size), UINT64_MAX, "lies outside"},
		{"alignment", IN(SEC_TEXT, sh_addralign), 24, "bad alignment"},
		{"great alignment", IN(SEC_TEXT, sh_addralign), 1ull << 63, "bad alignment"},
		{"size of what is not there", IN(SEC_GLOBAL, sh_size), UINT64_MAX, "bad size"},
		{"link", IN(SEC_TEXT, sh_link), SECTIONS, "belongs to none"},
		{"name", IN(SEC_TEXT, sh_name), 64, "name"},
		{"name far away", IN(SEC_TEXT, sh_name), UINT32_MAX, "name"},
		{"names without an end", AT(strtab[7]), 'x', "has no end"},
		{"section names without an end", AT(shstrtab[63]), 'x', "has no end"},
	};
	struct machine_code mc;
	size_t i;

	(void)state;
	make_code(&mc);
	all_wrong(&mc, sizeof(mc), wrong, sizeof(wrong) / sizeof(*wrong));
	/* A small file that takes long to check: the same symbols again and again. */
	for (i = SEC_SYMTAB; i < SECTIONS; i++) {
		PUT(&mc, i, 0, SHT_SYMTAB, text);
		mc.section[i].sh_size = 10 * sizeof(mc.symbol[0]);
		mc.section[i].sh_entsize = sizeof(mc.symbol[0]);
		mc.section[i].sh_link = SEC_STRTAB;
	}
	good("the same table several times", &mc, sizeof(mc));
	for (i = SEC_SYMTAB; i < SECTIONS; i++)
		mc.section[i].sh_size = 20 * sizeof(mc.symbol[0]);
	bad("tables in one another", &mc, sizeof(mc), "lie in one another");
}

static void code_symbols(void **state)
{
	static const struct wrong wrong[] = {
		{"name", AT(symbol[1].st_name), 8, "symbol's name"},
		{"name far away", AT(symbol[2].st_name), UINT32_MAX, "symbol's name"},
		{"section", AT(symbol[1].st_shndx), SECTIONS, "in no section"},
		{"function's size", AT(symbol[1].st_size), CODE_BYTES + 1,
		 "outside of its section"},
		{"function's size that wraps", AT(symbol[1].st_size), UINT64_MAX,
		 "outside of its section"},
		{"function's place", AT(symbol[1].st_value), 1, "outside of its section"},
		{"variable's place", AT(symbol[2].st_value), 1 << 20, "outside of its section"},
		{"names in no section of names", IN(SEC_SYMTAB, sh_link), SEC_TEXT,
		 "symbol's name"},
		{"size of one", IN(SEC_SYMTAB, sh_entsize), 16, "table of symbols"},
		{"no whole number of them", IN(SEC_SYMTAB, sh_size), 95, "table of symbols"},
		{"local ones", IN(SEC_SYMTAB, sh_info), 5, "table of symbols"},
		{"relocation's place", AT(rela[0].r_offset), CODE_BYTES, "relocation lies outside"},
		{"relocation far away", AT(rela[1].r_offset), UINT64_MAX,
		 "relocation lies outside"},
		{"relocation's symbol", AT(rela[0].r_info), 4ull << 32, "has no symbol"},
		{"size of a relocation", IN(SEC_RELA, sh_entsize), 16, "table of relocations"},
		{"no whole number of relocations", IN(SEC_RELA, sh_size), 40,
		 "table of relocations"},
		{"relocations' symbols", IN(SEC_RELA, sh_link), SEC_STRTAB, "have no symbols"},
		{"relocations' section", IN(SEC_RELA, sh_info), SECTIONS, "for no section"},
		{"relocations of nothing", IN(SEC_RELA, sh_info), 0, "for no section"},
	};
	struct machine_code mc;

	(void)state;
	make_code(&mc);
	all_wrong(&mc, sizeof(mc), wrong, sizeof(wrong) / sizeof(*wrong));
}

static void code_that_is_good(void **state)
{
	unsigned char longer[sizeof(struct machine_code) + 1] = {0};
	struct machine_code mc;

	(void)state;
	make_code(&mc);
	good("machine code", &mc, sizeof(mc));
	survive(&mc, sizeof(mc));
	/* Machine code as a program gets it from a file. */
	memcpy(longer, &mc, sizeof(mc));
	good("machine code with a zero byte behind it", longer, sizeof(longer));
	/* Numbers that do not fit into the header. */
	mc.section[0].sh_size = SECTIONS;
	mc.section[0].sh_link = SEC_SHSTRTAB;
	mc.head.e_shnum = 0;
	mc.head.e_shstrndx = SHN_XINDEX;
	good("numbers in the first section", &mc, sizeof(mc));
	mc.section[0].sh_link = SECTIONS;
	bad("a wrong one there", &mc, sizeof(mc), "no names");
	mc.section[0].sh_link = SEC_SHSTRTAB;
	mc.section[0].sh_size = UINT64_MAX / 64 + 2;
	bad("one that wraps", &mc, sizeof(mc), "more sections");
	/* Section types of CUDA's own. */
	make_code(&mc);
	mc.head.e_phnum = 0;
	mc.section[SEC_GLOBAL].sh_type = 0x70000007;
	good("memory that is not in the file", &mc, sizeof(mc));
	mc.section[SEC_RELA].sh_type = 0x70000082;
	mc.rela[0].r_offset = 1000;
	good("relocations of packed code", &mc, sizeof(mc));
	mc.rela[0].r_info = 4ull << 32;
	bad("that have no symbol", &mc, sizeof(mc), "has no symbol");
}

/* ---- fat binaries ---- */

struct entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t payload_size;
	uint32_t packed_size, options;
	uint16_t minor, major;
	uint32_t arch, name_at, name_size;
	uint64_t flags, rsvd, unpacked_size;
	uint32_t option_at, option_size;
	char name[8];
};

struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	struct entry e;
	unsigned char payload[4096];
};

#define FLAG_LZ4       0x2000u
#define FLAG_ZSTD      0x8000u
#define FLAG_ENCRYPTED 0x10000u
#define HEADERS	       offsetof(struct fatbin, payload)

/* Returns the length. */
static size_t make_fatbin(struct fatbin *f, unsigned int kind, uint32_t flags, const void *code,
			  size_t len)
{
	size_t n = len;

	memset(f, 0, sizeof(*f));
	if (flags & FLAG_ZSTD)
		n = ZSTD_compress(f->payload, sizeof(f->payload), code, len, 1);
	else if (flags & FLAG_LZ4)
		n = (size_t)LZ4_compress_default(code, (char *)f->payload, (int)len,
						 sizeof(f->payload));
	else
		memcpy(f->payload, code, len);
	assert_in_range(n, 1, sizeof(f->payload));
	f->e = (struct entry){
		.kind = (uint16_t)kind,
		.version = 0x101,
		.header_size = sizeof(f->e),
		.payload_size = (n + 7) / 8 * 8,
		.packed_size = flags & (FLAG_ZSTD | FLAG_LZ4) ? (uint32_t)n : 0,
		.options = offsetof(struct entry, option_at),
		.arch = 75,
		.name_at = offsetof(struct entry, name),
		.name_size = 8,
		.flags = flags | 0x11,
		.unpacked_size = flags & (FLAG_ZSTD | FLAG_LZ4) ? len : 0,
		.option_at = offsetof(struct entry, name),
		.option_size = 8,
	};
	f->magic = 0xba55ed50;
	f->version = 1;
	f->header_size = 16;
	f->size = sizeof(f->e) + f->e.payload_size;
	return 16 + f->size;
}

#define FAT(member) offsetof(struct fatbin, member), sizeof(((struct fatbin *)0)->member)

static void fatbin_headers(void **state)
{
	static const struct wrong wrong[] = {
		{"version", FAT(version), 2, "unknown version"},
		{"header's size", FAT(header_size), 8, "longer than the image"},
		{"header behind the end", FAT(header_size), 0xffff, "longer than the image"},
		{"size", FAT(size), 4096, "longer than the image"},
		{"size that wraps", FAT(size), UINT64_MAX - 15, "longer than the image"},
		{"half an entry", FAT(size), 63, "an entry is cut short"},
		{"a piece behind the entry", FAT(e.payload_size), 8, "an entry"},
		{"entry's version", FAT(e.version), 0x201, "unknown version"},
		{"entry's header", FAT(e.header_size), 63, "longer than the rest"},
		{"entry's header behind the end", FAT(e.header_size), UINT32_MAX,
		 "longer than the rest"},
		{"entry's size", FAT(e.payload_size), 4096, "longer than the rest"},
		{"entry's size that wraps", FAT(e.payload_size), UINT64_MAX - 79,
		 "longer than the rest"},
		{"packed size", FAT(e.packed_size), 4096, "longer than the rest"},
		{"options", FAT(e.options), sizeof(struct entry) - 7, "options lie outside"},
		{"options far away", FAT(e.options), UINT32_MAX, "options lie outside"},
		{"options' text", FAT(e.option_at), sizeof(struct entry) - 7,
		 "options lie outside"},
		{"length of the options' text", FAT(e.option_size), UINT32_MAX,
		 "options lie outside"},
		{"name", FAT(e.name_at), UINT32_MAX, "name lies outside"},
		{"name's length", FAT(e.name_size), UINT32_MAX, "name lies outside"},
		{"kind", FAT(e.kind), 3, "unknown kind"},
		{"kind 0", FAT(e.kind), 0, "unknown kind"},
		{"packed, nobody knows how", FAT(e.packed_size), 8, "how an entry is packed"},
		{"packed, nobody knows how much", FAT(e.flags), FLAG_ZSTD,
		 "how an entry is packed"},
		{"packed twice", FAT(e.flags), FLAG_ZSTD | FLAG_LZ4, "how an entry is packed"},
		{"encrypted", FAT(e.flags), FLAG_ENCRYPTED, "cannot be read"},
	};
	struct fatbin f;
	size_t len = make_fatbin(&f, 1, 0, PTX, sizeof(PTX));

	(void)state;
	good("a fat binary", &f, len);
	all_wrong(&f, len, wrong, sizeof(wrong) / sizeof(*wrong));
	bad("the magic number alone", &f, 4, "cut short");
	bad("half a header", &f, 15, "cut short");
	bad("all but the last byte", &f, len - 1, "longer than the image");
	survive(&f, len);
}

static void fatbin_in_a_row(void **state)
{
	unsigned char two[2 * sizeof(struct fatbin)] = {0};
	struct fatbin f;
	size_t len = make_fatbin(&f, 1, 0, PTX, sizeof(PTX));

	(void)state;
	memcpy(two, &f, len);
	good("zeros behind it", two, len + 1);
	memcpy(two + len, "rubbish!rubbish!", 16);
	bad("something else behind it", two, len + 16, "something else");
	bad("a little of that", two, len + 8, "cut short");
	memcpy(two + len, &(uint32_t){0x466243b1}, 4);
	bad("a pointer behind it", two, len + 16, "something else");
	memcpy(two + len, &f, len);
	good("two in a row", two, 2 * len);
	bad("the second one is cut short", two, 2 * len - 8, "longer than the image");
	two[2 * len - f.e.payload_size] = 'x';
	bad("the second one is damaged", two, 2 * len, "neither");
}

static void fatbin_contents(void **state)
{
	static const uint32_t flags[] = {0, FLAG_LZ4, FLAG_ZSTD};
	char endless[64]; /* no zeros behind it */
	struct machine_code mc;
	struct fatbin f;
	size_t i, len;

	(void)state;
	memset(endless, ' ', sizeof(endless));
	memcpy(endless, PTX, strlen(PTX));
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		len = make_fatbin(&f, 1, flags[i], endless, sizeof(endless));
		bad("PTX without an end", &f, len, "no zero byte");
		len = make_fatbin(&f, 1, flags[i], "machine code", 13);
		bad("PTX that is none", &f, len, "neither");
		len = make_fatbin(&f, 2, flags[i], PTX, sizeof(PTX));
		bad("machine code that is none", &f, len, "machine code");
		make_code(&mc);
		len = make_fatbin(&f, 1, flags[i], &mc, sizeof(mc));
		bad("machine code in the place of PTX", &f, len, "PTX");
		mc.section[SEC_TEXT].sh_offset = UINT64_MAX;
		len = make_fatbin(&f, 2, flags[i], &mc, sizeof(mc));
		bad("damaged machine code", &f, len, "lies outside");
		make_code(&mc);
		len = make_fatbin(&f, 2, flags[i], &mc, sizeof(mc));
		good("machine code", &f, len);
		len = make_fatbin(&f, 1, flags[i], PTX, sizeof(PTX));
		good("PTX", &f, len);
		survive(&f, len);
	}
	len = make_fatbin(&f, 8, FLAG_ZSTD | FLAG_ENCRYPTED, "the linker's", 13);
	good("the linker's code", &f, len);
	f.e.unpacked_size = IMAGE_ENTRY_MAX + 1;
	bad("too much of it", &f, len, "more than it may");
}

static void what_unpacks(void **state)
{
	static const uint64_t sizes[] = {1, sizeof(PTX) - 1, sizeof(PTX) + 1, 4096, 1 << 20};
	unsigned char five[5 * sizeof(struct fatbin)];
	struct fatbin f;
	size_t i, len;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		len = make_fatbin(&f, 1, FLAG_ZSTD, PTX, sizeof(PTX));
		f.e.unpacked_size = sizes[i];
		bad("another size, Zstandard", &f, len, "does not unpack");
		len = make_fatbin(&f, 1, FLAG_LZ4, PTX, sizeof(PTX));
		f.e.unpacked_size = sizes[i];
		bad("another size, LZ4", &f, len, "does not unpack");
	}
	len = make_fatbin(&f, 1, FLAG_ZSTD, PTX, sizeof(PTX));
	f.payload[0] ^= 1;
	bad("damaged, Zstandard", &f, len, "does not unpack");
	f.payload[0] ^= 1;
	f.e.flags ^= FLAG_ZSTD | FLAG_LZ4;
	bad("Zstandard that says it is LZ4", &f, len, "does not unpack");
	f.e.flags ^= FLAG_ZSTD | FLAG_LZ4;
	f.e.unpacked_size = 0;
	bad("nothing", &f, len, "more than it may");
	f.e.unpacked_size = IMAGE_ENTRY_MAX + 1;
	bad("too much in one", &f, len, "more than it may");
	f.e.unpacked_size = UINT64_MAX;
	bad("as much as can be", &f, len, "more than it may");
	/* The sizes of these are checked before any is unpacked. */
	f.e.unpacked_size = IMAGE_ENTRY_MAX;
	for (i = 0; i < 5; i++)
		memcpy(five + i * len, &f, len);
	bad("too much in all", five, 5 * len, "more than it may");
	bad("not too much, but not right", five, len, "does not unpack");
}

/* ---- what nvcc makes ---- */

/* Reads a section of a program into memory of its own; NULL: there is none. */
static void *section_of(const char *path, const char *name, size_t *len)
{
	FILE *f = fopen(path, "rb");
	Elf64_Ehdr head;
	Elf64_Shdr names, s;
	void *p = NULL;
	char here[32];
	unsigned int i;

	if (!f)
		return NULL;
	if (fread(&head, sizeof(head), 1, f) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG))
		goto out;
	fseek(f, (long)(head.e_shoff + head.e_shstrndx * sizeof(s)), SEEK_SET);
	if (fread(&names, sizeof(names), 1, f) != 1)
		goto out;
	for (i = 0; i < head.e_shnum && !p; i++) {
		memset(here, 0, sizeof(here));
		fseek(f, (long)(head.e_shoff + i * sizeof(s)), SEEK_SET);
		if (fread(&s, sizeof(s), 1, f) != 1)
			goto out;
		fseek(f, (long)(names.sh_offset + s.sh_name), SEEK_SET);
		if (!fread(here, 1, sizeof(here) - 1, f) || strcmp(here, name) || !s.sh_size)
			continue;
		p = malloc(s.sh_size);
		assert_non_null(p);
		fseek(f, (long)s.sh_offset, SEEK_SET);
		assert_int_equal(fread(p, 1, s.sh_size, f), s.sh_size);
		*len = s.sh_size;
	}
out:
	fclose(f);
	return p;
}

/* The test programs are in folders beside this program's folder, if they have been built. */
static unsigned int programs_in(const char *folder)
{
	char path[PATH_MAX + 512], self[PATH_MAX] = "", *slash;
	unsigned int count = 0;
	struct dirent *d;
	DIR *dir;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (unsigned int up = 0; up < 2; up++) {
		slash = strrchr(self, '/');
		assert_non_null(slash);
		*slash = '\0';
	}
	strcat(self, folder);
	dir = opendir(self);
	while (dir && (d = readdir(dir))) {
		void *image;
		size_t len;

		snprintf(path, sizeof(path), "%s/%s", self, d->d_name);
		image = section_of(path, ".nv_fatbin", &len);
		if (!image)
			continue;
		good(path, image, len);
		free(image);
		count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

static void test_programs(void **state)
{
	unsigned int count = programs_in("/guest") + programs_in("/guest-O0");

	(void)state;
	if (!count) {
		print_message("skipped: the test programs have not been built here\n");
		skip();
	}
	print_message("%u programs\n", count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_image_by_its_address),
		cmocka_unit_test(ptx),
		cmocka_unit_test(code_headers),
		cmocka_unit_test(code_sections),
		cmocka_unit_test(code_symbols),
		cmocka_unit_test(code_that_is_good),
		cmocka_unit_test(fatbin_headers),
		cmocka_unit_test(fatbin_in_a_row),
		cmocka_unit_test(fatbin_contents),
		cmocka_unit_test(what_unpacks),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
