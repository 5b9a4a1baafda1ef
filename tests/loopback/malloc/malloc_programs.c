// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Real programs with the library preloaded must work as they do without it: with their large
 * allocations in chunks; with a library that finds no device, which must print nothing about that;
 * and as programs without a kernel, which must not even look for the device.
 */
#include <unistd.h>

#include "tests/loopback/check.h"

#define MOST (1 << 20)

struct program {
	const char *name;
	const char *needs;
	const char *command;
};

static const struct program programs[] = {
	{"python3", "python3 -c 'import hashlib, multiprocessing'",
	 "python3 -c '\n"
	 "import array, hashlib, os, random\n"
	 "random.seed(1)\n"
	 "l = [random.random() for _ in range(100000)]\n"
	 "l.sort()\n"
	 "b = bytearray()\n"
	 "for i in range(300):\n"
	 "    b += bytes([i % 256]) * (i * 100)\n"
	 "    if i % 50 == 49: del b[:len(b) // 2]\n"
	 "big = [bytearray(n * 4096 + 1) for n in range(1, 200)]\n"
	 "assert all(x.count(0) == len(x) for x in big)\n"
	 "a = array.array(\"d\", l) * 4\n"
	 "s = \"x\" * 3000000 + str(len(big))\n"
	 "d = {i: str(i) for i in range(50000)}\n"
	 "h = hashlib.sha256()\n"
	 "for x in (repr(l[:1000]).encode(), bytes(b), a.tobytes(), s.encode(), "
	 "repr(d).encode()):\n"
	 "    h.update(x)\n"
	 "print(h.hexdigest(), len(b), len(a), flush=True)\n"
	 "pid = os.fork()\n"
	 "print(\"child\" if pid == 0 else os.waitpid(pid, 0)[1],\n"
	 "      hashlib.sha256(b).hexdigest(), a[1000], flush=True)\n"
	 "'"},
	{"gcc", "gcc --version",
	 "o=$(mktemp) && { for i in $(seq 1 50); do\n"
	 "  echo \"#include <stdio.h>\n"
	 "static int t$i[] = {$i, 2, 3}; double f$i(double x) { int k; for (k = 0; k < $i; k++)\n"
	 "x = x * t${i}[k % 3] + k / 3.0; putchar(k); return x; }\"\n"
	 "done; } | gcc -O2 -x c -c -o $o - && cksum <$o && rm $o"},
};

static char cwd[1024];

struct output {
	char out[MOST], err[MOST];
};

static void read_all(FILE *f, char *to)
{
	REQUIRE(f, "a file of output");
	to[fread(to, 1, MOST - 1, f)] = 0;
}

static void run(const char *env, const char *command, struct output *o)
{
	static char line[16384], errors[] = "/tmp/malloc_programs.XXXXXX";
	int fd = mkstemp(errors);
	FILE *f;

	REQUIRE(fd >= 0, "mkstemp");
	REQUIRE(snprintf(line, sizeof(line), "export %s; { %s\n} 2>%s", env, command, errors) <
			(int)sizeof(line),
		"too long");
	f = popen(line, "r");
	read_all(f, o->out);
	REQUIRE(pclose(f) == 0, "%s: it failed", env);
	f = fdopen(fd, "r");
	read_all(f, o->err);
	fclose(f);
	unlink(errors);
	memset(errors + sizeof(errors) - 7, 'X', 6);
}

/* Returns an environment with our library: [build folder]/[kind]/libcudart.so.13. */
static const char *with(const char *kind, const char *more)
{
	static char env[4096];

	snprintf(env, sizeof(env),
		 "LD_PRELOAD=%s/" BUILD "/tests/loopback/malloc_arm.so:%s/" BUILD
		 "/%s/libcudart.so.13 %s",
		 cwd, cwd, kind, more);
	return env;
}

static void same(const struct program *p)
{
	static struct output want, got;

	run("LC_ALL=C", p->command, &want);
	REQUIRE(strlen(want.out) > 10 && !*want.err, "%s says %.400s", p->name, want.err);

	run(with("loopback", "TEST_ARM=1 QCU_MALLOC_THRESHOLD=16K QCU_TRACE=1"), p->command, &got);
	REQUIRE(!strcmp(want.out, got.out), "%s in chunks: %.400s", p->name, got.out);
	REQUIRE(strstr(got.err, "large allocations are chunks"), "%s: it had no chunks", p->name);

	run(with("qcu-library", "TEST_ARM=1"), p->command, &got);
	REQUIRE(!strcmp(want.out, got.out), "%s without a device: %.400s", p->name, got.out);
	REQUIRE(strstr(got.err, "spy: open"), "%s has not looked for the device", p->name);
	REQUIRE(!strstr(got.err, "qcuda:"), "%s: %.400s", p->name, got.err);

	run(with("qcu-library", "TEST_ARM=1 QCU_MALLOC=0"), p->command, &got);
	REQUIRE(!strcmp(want.out, got.out), "%s, switched off: %.400s", p->name, got.out);
	REQUIRE(!*got.err, "%s, switched off: %.400s", p->name, got.err);

	run(with("qcu-library", "LC_ALL=C"), p->command, &got);
	REQUIRE(!strcmp(want.out, got.out), "%s without CUDA: %.400s", p->name, got.out);
	REQUIRE(!*got.err, "%s is no CUDA program: %.400s", p->name, got.err);
}

int main(void)
{
	unsigned int ran = 0;
	size_t i;

	REQUIRE(getcwd(cwd, sizeof(cwd)), "getcwd");
	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char command[256];

		snprintf(command, sizeof(command), "%s >/dev/null 2>&1", programs[i].needs);
		if (system(command) != 0) {
			printf("%s is not here\n", programs[i].name);
			continue;
		}
		same(&programs[i]);
		ran++;
	}
	if (!ran)
		puts("neither python3 nor gcc is here");
	return ran ? 0 : 77;
}
