// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranges, moments and names of NVTX, also bad ones: text that is no text, ranges that nobody ends
 * or that never began, more than anyone needs. Without a tool all of this does nothing. With one,
 * the program goes on as before.
 */
#include <thread>
#include <unistd.h>

#include "check.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif
#endif

#ifndef HAVE_NVTX
int main()
{
	printf("skipped: this toolkit has no nvtx3/nvToolsExt.h\n");
	return 77;
}
#else

#define DEEP 3000
#define MANY 3000

__global__ void count_up(int *n)
{
	atomicAdd(n, 1);
}

static nvtxEventAttributes_t attributes(nvtxMessageType_t type, nvtxMessageValue_t message)
{
	nvtxEventAttributes_t a = {};

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = type;
	a.message = message;
	return a;
}

static nvtxEventAttributes_t wide(const wchar_t *text)
{
	nvtxMessageValue_t m;

	m.unicode = text;
	return attributes(NVTX_MESSAGE_TYPE_UNICODE, m);
}

/* Names that are none. */
static void name_badly()
{
	static const wchar_t half[] = {0xd800, 0x110000, 0};
	nvtxEventAttributes_t a = wide(half), older = {}, none = wide(NULL);
	nvtxMessageValue_t m;
	char *large = (char *)malloc(1 << 20);

	REQUIRE(large, "no memory");
	memset(large, 'x', 1 << 20);
	large[(1 << 20) - 1] = '\0';
	nvtxMarkA(large);
	nvtxMarkA("quoted \"name\" \\ \n\t\x1b[2J \x7f");
	nvtxMarkA("\xff\xfe\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82");
	nvtxMarkA("");
	nvtxMarkEx(&a);
	nvtxMarkEx(&none);
	nvtxMarkEx(&older); /* of no size */
	m.ascii = "of an unknown type";
	a = attributes((nvtxMessageType_t)77, m);
	nvtxMarkEx(&a);
	nvtxRangePushA(large);
	nvtxRangePop();
	nvtxNameOsThreadA(4711, large);
	free(large);
}

static void begin_and_end_badly()
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("one"), other = nvtxDomainCreateW(L"other");
	nvtxEventAttributes_t a = wide(L"crossing");
	nvtxRangeId_t id = 0;
	int i;

	REQUIRE(nvtxRangePop() < 0, "a range ends that has not begun");
	nvtxRangeEnd(0);
	nvtxRangeEnd(~0ull);
	for (i = 0; i < DEEP; i++)
		nvtxRangePushA("deep");
	for (i = 0; i < DEEP; i++)
		nvtxRangePop();
	for (i = 0; i < MANY; i++)
		id = nvtxRangeStartA("started and never ended");
	nvtxRangeEnd(id);
	nvtxRangeEnd(id);
	nvtxDomainRangePushEx(domain, &a);
	nvtxDomainRangePushEx(other, &a);
	nvtxDomainRangePop(domain);
	nvtxDomainRangePop(other);
	nvtxDomainRangePop(other);
	nvtxDomainDestroy(domain);
	nvtxRangePushA("open at the end");
}

int main(int argc, char **argv)
{
	nvtxEventAttributes_t a;
	nvtxDomainHandle_t domain;
	nvtxMessageValue_t m;
	nvtxRangeId_t whole;
	int *n, got = 0;
	long i;

	CHECK(cudaMalloc(&n, sizeof(*n)));
	CHECK(cudaMemset(n, 0, sizeof(*n)));
	name_badly();

	whole = nvtxRangeStartA("whole work");
	nvtxRangePushA("outer");
	nvtxRangePushW(L"inner \u00e4");
	count_up<<<1, 32>>>(n);
	CHECK_LAUNCH();
	nvtxMarkA("launched");
	nvtxRangePop();
	CHECK(cudaMemcpy(&got, n, sizeof(got), cudaMemcpyDeviceToHost));
	nvtxRangePop();
	domain = nvtxDomainCreateA("library");
	m.registered = nvtxDomainRegisterStringA(domain, "registered");
	a = attributes(NVTX_MESSAGE_TYPE_REGISTERED, m);
	std::thread([&] {
		nvtxNameOsThreadA((uint32_t)gettid(), "helper");
		nvtxDomainRangePushEx(domain, &a);
		CHECK(cudaDeviceSynchronize());
		nvtxDomainRangePop(domain);
	}).join();
	nvtxRangeEnd(whole);

	begin_and_end_badly();
	for (i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--)
		nvtxMarkA("one of many");
	CHECK(cudaFree(n));
	REQUIRE(got == 32, "%d", got);
	printf("verified: ranges and names of NVTX, also bad ones, change nothing\n");
	return 0;
}
#endif
