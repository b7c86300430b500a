/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* How long a task waits at most, whatever its share is. */
#ifndef METE_PATIENCE_BPF_H
#define METE_PATIENCE_BPF_H

/* A task that has waited for this number of seconds goes ahead of all others, for a moment. */
#define LONG_WAIT 5
/* How many go ahead for that in a second, on all processors: they take little from the shares of the others. */
#define HASTENED_AT_ONCE 64
/* After this number of seconds all go ahead: the kernel ends a scheduler under which a task has waited for 20 (timeout_ms). */
#define TOO_LONG_WAIT 10

#endif
