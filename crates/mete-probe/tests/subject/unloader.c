/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads a shared object. Then, one step for each line of input: has it work in two threads; unloads it, after
 * which no code refers to it any more; has the other thread end; ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static void (*work)(uint64_t);
static int worked[2];
static int over[2];

static int told(const char *what)
{
	char line[16];

	puts(what);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) != NULL;
}

static void *other(void *unused)
{
	char byte;

	work(1);
	if (write(worked[1], "x", 1) != 1 || read(over[0], &byte, 1) < 0)
		return unused;
	return NULL;
}

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	pthread_t thread;
	char byte;

	work = plugin ? (void (*)(uint64_t))dlsym(plugin, "plugin_work") : NULL;
	if (!work || pipe(worked) || pipe(over))
		return 1;
	told("loaded");
	work(0);
	if (pthread_create(&thread, NULL, other, NULL) || read(worked[0], &byte, 1) != 1)
		return 1;
	told("worked");
	dlclose(plugin);
	told("unloaded");
	close(over[1]);
	pthread_join(thread, NULL);
	told("joined");
	return 0;
}
