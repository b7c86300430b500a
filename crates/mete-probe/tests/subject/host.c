/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads the shared object given, has it work and unloads it. Each line of input is one step. */
#include <dlfcn.h>
#include <mete.h>
#include <stdio.h>

METE_EVENT(number, METE_ACCESS);

int main(int argc, char **argv)
{
	char line[16];
	int round;

	for (round = 0; argc > 1 && fgets(line, sizeof(line), stdin); round++) {
		void *plugin = dlopen(argv[1], RTLD_NOW);
		void (*work)(uint64_t) = plugin ? (void (*)(uint64_t))dlsym(plugin, "plugin_work") : NULL;

		if (!work)
			return 1;
		work(round);
		METE_PROBE(number, 1, round);
		puts("worked");
		fflush(stdout);
		if (fgets(line, sizeof(line), stdin))
			dlclose(plugin);
		puts("unloaded");
		fflush(stdout);
	}
	return 0;
}
