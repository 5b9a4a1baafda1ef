// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program without CUDA that loads libraries with CUDA in them, as Python does, and unloads them.
 * Its exit code is the last library's answer.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int answer = 0, i, round;

	for (round = 0; round < 3; round++)
		for (i = 1; i < argc; i++) {
			void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
			int (*run)(void) = lib ? (int (*)(void))dlsym(lib, "plugin_run") : NULL;

			if (!run) {
				fprintf(stderr, "%s\n", dlerror());
				return 2;
			}
			answer = run();
			if (answer)
				return answer;
			dlclose(lib);
		}
	puts("done");
	return answer;
}
