// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * GPA to HVA. A guest may pass any 64-bit address and any 64-bit length, so comparisons here are
 * written as `len > size - off`, which cannot wrap.
 */
#define _GNU_SOURCE /* MAP_NORESERVE */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "qcu-device/memory/guestmem.h"
#include "qcu-device/memory/named.h"

#define HUGETLBFS 0x958458f6u

/* The index of the first region that ends after gpa. */
static unsigned int first_after(const struct guestmem *mem, uint64_t gpa)
{
	unsigned int lo = 0, hi = mem->count;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;
		const struct guestmem_region *r = &mem->regions[mid];

		if (gpa >= r->gpa && gpa - r->gpa >= r->size)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int guestmem_add(struct guestmem *mem, uint64_t gpa, uint64_t size, void *hva)
{
	unsigned int i;

	if (!size || !hva || size - 1 > UINT64_MAX - gpa ||
	    size - 1 > (uint64_t)UINTPTR_MAX - (uintptr_t)hva)
		return -EINVAL;
	if (mem->count == GUESTMEM_REGIONS)
		return -ENOSPC;
	i = first_after(mem, gpa);
	if (i < mem->count) {
		const struct guestmem_region *r = &mem->regions[i];

		if (r->gpa <= gpa || r->gpa - gpa < size)
			return -EINVAL;
	}
	memmove(&mem->regions[i + 1], &mem->regions[i], (mem->count - i) * sizeof(mem->regions[0]));
	mem->regions[i] = (struct guestmem_region){.gpa = gpa, .size = size, .hva = hva};
	mem->count++;
	return 0;
}

uint64_t guestmem_run(const struct guestmem *mem, uint64_t gpa, uint64_t len, void **hva)
{
	unsigned int i = first_after(mem, gpa);
	const struct guestmem_region *r = &mem->regions[i];
	uint64_t off;

	if (i == mem->count || gpa < r->gpa || !len)
		return 0;
	off = gpa - r->gpa;
	*hva = r->hva + off;
	len = len > r->size - off ? r->size - off : len;
	if (mem->named)
		named_note(mem->named, gpa, len);
	return len;
}

int guestmem_map(struct guestmem *mem, uint64_t gpa, uint64_t size, uint64_t offset, int fd)
{
	uint64_t skip = 0;
	struct statfs st;
	uint8_t *p;
	int rc;

	if (!fstatfs(fd, &st) && (uint32_t)st.f_type == HUGETLBFS)
		skip = offset % (uint64_t)st.f_bsize;
	p = mmap(NULL, size + skip, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		 (off_t)(offset - skip));
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, size + skip, MADV_DONTDUMP);
	rc = guestmem_add(mem, gpa, size, p + skip);
	if (rc)
		munmap(p, size + skip);
	return rc;
}

/* In front of a region in huge pages some of its first one may stay mapped. */
void guestmem_unmap(struct guestmem *mem)
{
	while (mem->count) {
		const struct guestmem_region *r = &mem->regions[--mem->count];

		munmap(r->hva, r->size);
	}
}

void *guestmem_translate(const struct guestmem *mem, uint64_t gpa, uint64_t len)
{
	void *hva;

	return len && guestmem_run(mem, gpa, len, &hva) == len ? hva : NULL;
}
