/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How long sorting takes, by the two events of the stopwatch schema.
 *
 *	mete schema generate c stopwatch > stopwatch.h
 *	cc -O2 -I. -Icrates/mete-trace/include examples/c/stopwatch.c -o stopwatch
 *	mete record --schema stopwatch -o trace -- ./stopwatch 1000
 *	mete show trace
 *
 * Run by itself, it does the same work and records nothing; compiled with -DMETE_DISABLE, it has no code for that.
 */
#include <mete_recorder.h>
#include "stopwatch.h"

enum { SORTING, NUMBERS = 512 };

static int compare(const void *left, const void *right)
{
	int a = *(const int *)left, b = *(const int *)right;

	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	int numbers[NUMBERS];

	for (int round = 0; round < rounds; round++) {
		for (int at = 0; at < NUMBERS; at++)
			numbers[at] = (at * 7919 + round) % 1009;
		mete_log_START(SORTING, getpid(), round);
		qsort(numbers, NUMBERS, sizeof(numbers[0]), compare);
		mete_log_STOP(SORTING, getpid(), numbers[0]);
	}
	return 0;
}
