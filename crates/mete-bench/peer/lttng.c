// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * LTTng-UST as a peer: for each line "row N" or "none N" on standard input, a loop of N rounds with
 * or without a tracepoint, and its nanoseconds a round on standard output.
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "row.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void run(_Bool logs, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) {
		__asm__ volatile("" : : "r"(i));
		if (logs)
			lttng_ust_tracepoint(mete_peer, row, 0, 1, 2, i);
	}
}

int main(void)
{
	unsigned long long rounds;
	char what[16];

	while (scanf("%15s %llu", what, &rounds) == 2) {
		_Bool logs = !strcmp(what, "row");
		uint64_t begin = now_ns();

		if (logs)
			run(1, rounds);
		else
			run(0, rounds);
		printf("%.4f\n", (double)(now_ns() - begin) / rounds);
		fflush(stdout);
	}
}
