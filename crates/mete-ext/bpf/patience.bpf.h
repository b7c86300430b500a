/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * How long a task waits at most, whatever its share is. One that has waited for some seconds goes ahead of all others, for a moment.
 * The kernel ends a scheduler under which a task has waited for 30 seconds (timeout_ms), or its own work for that.
 */
#ifndef METE_PATIENCE_BPF_H
#define METE_PATIENCE_BPF_H

#include "scx.h"

/* After this number of seconds a task goes ahead, up to the kernel's next tick. */
#define LONG_WAIT 5
/*
 * For as many as this part of all turns, and this number in a second: they take little from the shares of the others. Where slices are
 * long, turns are few, and those up to the next tick are many times shorter.
 */
#define HASTENED_PART 16
#define HASTENED_LEAST 16
/* After this number of seconds as many go ahead as there are turns in a second: more would only wait for each other. */
#define TOO_LONG_WAIT 18
/*
 * The kernel's own threads do work that others wait for, such as that of its watchdog over this scheduler. They go ahead with the
 * next second, as many as there are.
 */
#define LONG_WAIT_KERNEL 1

/* How many tasks that have waited for this number of seconds may go ahead in a second, by the turns of the last one. */
static __always_inline __u64 most_hastened(__u32 waited, __u64 turns)
{
	return (waited >= TOO_LONG_WAIT ? turns : turns / HASTENED_PART) + HASTENED_LEAST;
}

#endif
