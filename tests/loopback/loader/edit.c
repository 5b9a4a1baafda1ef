// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes the symbol table of a file lie, or its code.
 *
 *	edit FILE rename OLD NEW	a function of another name, which is not longer
 *	edit FILE same A B		A gets B's address
 *	edit FILE empty A		A gets the size 0
 *	edit FILE machine N		the file is for another architecture
 *	edit FILE spoil A		a bit of A's first byte is another
 *	edit FILE headless A		the file has no section headers
 *
 * Of a stripped file it is the table of what the file exports.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static Elf64_Sym *table;
static size_t symbols;
static char *names;

static Elf64_Sym *find(const char *name)
{
	size_t i;

	for (i = 0; i < symbols; i++)
		if (!strcmp(names + table[i].st_name, name))
			return &table[i];
	fprintf(stderr, "there is no %s\n", name);
	exit(2);
}

/* Where in the file the code at an address is. */
static unsigned char *find_code(unsigned char *file, uint64_t addr)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(file + h->e_phoff);
	int i;

	for (i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && addr >= p[i].p_vaddr &&
		    addr - p[i].p_vaddr < p[i].p_filesz)
			return file + p[i].p_offset + (addr - p[i].p_vaddr);
	fprintf(stderr, "there is no code\n");
	exit(2);
}

int main(int argc, char **argv)
{
	int fd = argc > 3 ? open(argv[1], O_RDWR) : -1, i;
	struct stat st;
	unsigned char *p;
	Elf64_Shdr *s;
	Elf64_Ehdr *h;

	if (fd < 0 || fstat(fd, &st))
		return 2;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return 2;
	h = (Elf64_Ehdr *)p;
	s = (Elf64_Shdr *)(p + h->e_shoff);
	for (i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type == SHT_SYMTAB || (s[i].sh_type == SHT_DYNSYM && !table)) {
			table = (Elf64_Sym *)(p + s[i].sh_offset);
			symbols = s[i].sh_size / sizeof(*table);
			names = (char *)p + s[s[i].sh_link].sh_offset;
		}
	if (!strcmp(argv[2], "machine"))
		h->e_machine = (Elf64_Half)atoi(argv[3]);
	else if (!strcmp(argv[2], "headless"))
		h->e_shoff = 0;
	else if (!strcmp(argv[2], "empty"))
		find(argv[3])->st_size = 0;
	else if (!strcmp(argv[2], "spoil"))
		*find_code(p, find(argv[3])->st_value) ^= 1;
	else if (argc > 4 && !strcmp(argv[2], "same"))
		find(argv[3])->st_value = find(argv[4])->st_value;
	else if (argc > 4 && !strcmp(argv[2], "rename") && strlen(argv[4]) <= strlen(argv[3]))
		strcpy(names + find(argv[3])->st_name, argv[4]);
	else
		return 2;
	return munmap(p, (size_t)st.st_size) || close(fd);
}
