// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The log of errors: each error adds one line. The line goes to the callbacks at once. The log can
 * be dumped from any position, also when it has more lines than it can hold.
 */
#include <unistd.h>

#include "check.h"

static int calls;
static char last[1000];

static void note(void *data, cudaLogLevel level, char *message, size_t length)
{
	void *p;

	REQUIRE(data == &calls && level == cudaLogLevelError, "%p, %d", data, (int)level);
	REQUIRE(length == strlen(message) && length < sizeof(last), "%zu", length);
	memcpy(last, message, length + 1);
	calls++;
	/* An error in the callback does not call the callback again. */
	EXPECT(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
	EXPECT(cudaMalloc(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
}

static unsigned int lines(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void bad_input(void)
{
	cudaLogIterator at;
	char text[10];
	size_t size = sizeof(text);

	REFUSED(cudaLogsRegisterCallback(NULL, NULL, NULL), cudaErrorInvalidValue);
	REFUSED(cudaLogsUnregisterCallback(NULL), cudaErrorInvalidValue);
	REFUSED(cudaLogsUnregisterCallback((cudaLogsCallbackHandle)text), cudaErrorInvalidValue);
	REFUSED(cudaLogsCurrent(NULL, 0), cudaErrorInvalidValue);
	REFUSED(cudaLogsCurrent(&at, 1), cudaErrorInvalidValue);
	REFUSED(cudaLogsDumpToMemory(NULL, NULL, &size, 0), cudaErrorInvalidValue);
	REFUSED(cudaLogsDumpToMemory(NULL, text, NULL, 0), cudaErrorInvalidValue);
	REFUSED(cudaLogsDumpToFile(NULL, NULL, 0), cudaErrorInvalidValue);
	REFUSED(cudaLogsDumpToFile(NULL, "/no/such/folder/file", 0), cudaErrorInvalidValue);
	/* The buffer has no room for a single line. */
	REFUSED(cudaLogsDumpToMemory(NULL, text, &size, 0), cudaErrorInvalidValue);
	REQUIRE(size == 0, "%zu bytes", size);
}

static void called_back(void)
{
	cudaLogsCallbackHandle one, two;

	OK(cudaLogsRegisterCallback(note, &calls, &one));
	REFUSED(cudaFree(&calls), cudaErrorInvalidValue);
	REQUIRE(calls == 1 && strstr(last, "cudaErrorInvalidValue: invalid argument"), "%d: %s",
		calls, last);
	OK(cudaLogsRegisterCallback(note, &calls, &two));
	REFUSED(cudaSetDevice(1000), cudaErrorInvalidDevice);
	REQUIRE(calls == 3 && strstr(last, "cudaErrorInvalidDevice"), "%d: %s", calls, last);
	OK(cudaLogsUnregisterCallback(one));
	OK(cudaLogsUnregisterCallback(two));
	REFUSED(cudaLogsUnregisterCallback(two), cudaErrorInvalidValue);
	REQUIRE(calls == 3, "called %d times", calls);
	OK(cudaGetLastError());
}

static void dumped(void)
{
	static char text[30000];
	char path[] = "/tmp/qcuda-logs-XXXXXX";
	cudaLogIterator at, again;
	size_t size = sizeof(text);
	FILE *f;
	int i, fd = mkstemp(path);

	OK(cudaLogsCurrent(&at, 0));
	again = at;
	OK(cudaLogsDumpToMemory(&at, text, &size, 0));
	REQUIRE(size == 0, "%zu bytes of nothing", size);
	for (i = 0; i < 3; i++)
		EXPECT(cudaSetDevice(1000), cudaErrorInvalidDevice);
	EXPECT(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
	size = sizeof(text);
	OK(cudaLogsDumpToMemory(&at, text, &size, 0));
	REQUIRE(size == strlen(text) && lines(text) == 4, "%u lines:\n%s", lines(text), text);
	REQUIRE(strstr(text, "invalid device ordinal") && strstr(text, "invalid argument"), "%s",
		text);
	size = sizeof(text);
	OK(cudaLogsDumpToMemory(&at, text, &size, 0));
	REQUIRE(size == 0, "%zu bytes, twice", size);
	/* If there is not enough room, the dump holds the last lines. */
	at = again;
	size = 200;
	OK(cudaLogsDumpToMemory(&at, text, &size, 0));
	REQUIRE(size < 200 && lines(text) < 4 && strstr(text, "left out") &&
			strstr(text, "invalid argument"),
		"%s", text);

	for (i = 0; i < 150; i++)
		EXPECT(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
	size = sizeof(text);
	OK(cudaLogsDumpToMemory(&again, text, &size, 0));
	REQUIRE(lines(text) == 101 && strstr(text, "left out"), "%u lines", lines(text));
	REQUIRE(fd >= 0, "no file");
	close(fd);
	OK(cudaLogsDumpToFile(NULL, path, 0));
	f = fopen(path, "r");
	REQUIRE(f, "no file");
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	remove(path);
	REQUIRE(lines(text) == 100, "%u lines", lines(text));
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
}

int main(void)
{
	bad_input();
	called_back();
	dumped();
	return 0;
}
