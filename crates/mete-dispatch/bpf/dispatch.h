/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the eBPF programs of the dispatcher and the dispatcher share: the clients' accounts in mapped memory, and rows of
 * what happens to them.
 */
#ifndef METE_DISPATCH_H
#define METE_DISPATCH_H

#include "types.h"

#define MOST_CLIENTS 16384
#define MOST_PROCESSORS 1024
/* The number of no client. */
#define NO_CLIENT 0xffffffff

/* What happened, in a row. */
enum what {
	WOKE = 1,
	BLOCKED = 2,
	ENDED = 3,
	/* A task that is no client waits behind a client; the row has the processor. */
	WAITED = 4,
};

/* A thread that the dispatcher gives the processor to. */
struct client {
	/* The time that it had the processor, without the present stint. */
	__u64 used_ns;
	/* Since when it has the processor; 0 if it has not. */
	__u64 since_ns;
	/* The processor that it has or had last. */
	__u32 processor;
	/* Whether the dispatcher has given it the processor: then it is told at once that the thread blocks. */
	__u32 is_chosen;
};

struct processor {
	/* The time that tasks had which are no clients, but for the idle task. */
	__u64 rest_ns;
	/* Since when the present task has the processor. */
	__u64 since_ns;
	/* The client that has the processor, or NO_CLIENT. */
	__u32 client;
	/* Whether the dispatcher knows already that another task waits here. */
	__u32 is_told;
};

struct row {
	__u64 time_ns;
	enum what what;
	/* The number of the client, or of the processor. */
	__u32 number;
	/* The thread's number: a client's number is given to another thread in time. */
	__u32 thread;
	__u32 unused;
};

#endif
