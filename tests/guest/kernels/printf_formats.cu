// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * printf in a kernel supports the same formats as printf on the host: flags, widths, precisions,
 * length modifiers, strings and characters, one argument or many; also its return value. The
 * same macro prints on both sides, and the text must be the same.
 */
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define PRINT_ALL                                                                                  \
	printf("%d|%5d|%-5d|%05d|%+d|% d|%i\n", 42, 42, 42, 42, 42, 42, -42);                      \
	printf("%u|%x|%X|%#x|%o|%#o|%08x\n", 4000000000u, 0xbeefu, 0xbeefu, 0xbeefu, 8u, 8u, 77u); \
	printf("%lld|%llu|%llx|%ld|%lu|%hd\n", -1234567890123ll, 18446744073709551615ull,          \
	       0x123456789abcull, -5l, 5ul, (short)-7);                                            \
	printf("%f|%.3f|%10.2f|%-10.2f|%+.1f|%010.3f\n", 3.14159, 3.14159, 3.14159, 3.14159, 2.5,  \
	       -1.5);                                                                              \
	printf("%e|%.2E|%g|%G|%g|%g|%a\n", 12345.678, 0.00012, 1e10, 1e-10, 100000.0, 0.5, 1.0);   \
	printf("%g|%g|%g|%f\n", 1e308 * 10, -1e308 * 10, 0.0, 1e15);                               \
	printf("%c%c%c|%5c|%-3c|\n", 'a', 'b', 'c', 'd', 'e');                                     \
	printf("%s|%10s|%-10s|%.2s|%%\n", "text", "right", "left", "cut");                         \
	printf("%*d|%-*d|\n", 6, 1, 6, 2);                                                         \
	printf("no arguments at all\n");                                                           \
	printf("%d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);    \
	printf("%s", "");                                                                          \
	printf("%d %g %d %s %lld %c %g\n", 1, 2.0, 3, "four", 5ll, '6', 7.0f)

__global__ void print_all(int *returned)
{
	PRINT_ALL;
	returned[0] = printf("");
	returned[1] = printf("%d\n", 1);
	returned[2] = printf("%d %d %s\n", 1, 2, "3");
}

static std::string take(int file)
{
	std::string text(lseek(file, 0, SEEK_END), 0);

	REQUIRE(pread(file, &text[0], text.size(), 0) == (ssize_t)text.size(), "short read");
	REQUIRE(!ftruncate(file, 0) && lseek(file, 0, SEEK_SET) == 0, "cannot empty the file");
	return text;
}

int main(void)
{
	std::string got, want;
	int file = memfd_create("stdout", 0), out = dup(1), *dev, returned[3];
	size_t at;

	CHECK(cudaMalloc(&dev, sizeof(returned)));
	REQUIRE(file >= 0 && out >= 0 && dup2(file, 1) == 1, "no file");
	PRINT_ALL;
	printf("1\n1 2 3\n");
	fflush(stdout);
	want = take(file);
	print_all<<<1, 1>>>(dev);
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	got = take(file);
	dup2(out, 1);
	for (at = 0; at < got.size() && at < want.size() && got[at] == want[at]; at++)
		;
	REQUIRE(got == want, "differs from byte %zu on: \"%.30s\", expected \"%.30s\"", at,
		got.c_str() + at, want.c_str() + at);
	CHECK(cudaMemcpy(returned, dev, sizeof(returned), cudaMemcpyDeviceToHost));
	REQUIRE(returned[0] == 0 && returned[1] == 1 && returned[2] == 3, "returned %d, %d, %d",
		returned[0], returned[1], returned[2]);
	CHECK(cudaFree(dev));
	return verified("%zu bytes as on the host", got.size());
}
