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
	/* A task that is no client waits behind this client, on the row's processor. */
	WAITED = 4,
	/* The client has started a thread, in its own process or in a new one. */
	BORN = 5,
	/* A task that is no client has blocked on the row's processor, where a client gives way. */
	SERVED = 6,
	/* A thread has become the first one of its process, because it has started another program: it has that one's number now. */
	RENUMBERED = 7,
};

/* Why tasks wait that are no clients, as a sum. */
enum why {
	/* One has lost the processor to a client. */
	HAS_LOST = 1,
	/* One has woken, and as a rule needs little. */
	HAS_WOKEN = 2,
};

/* Whether a client wants the processor. */
enum activity {
	/* It has neither woken nor run nor blocked since it is a client. */
	UNSEEN = 0,
	ABLE_TO_RUN = 1,
	AWAY = 2,
};

/* A thread that the dispatcher gives the processor to. */
struct client {
	/*
	 * Twice the time that it had the processor, or while it has it, twice that less the time at which it got it, and 1.
	 * It is one word, so that a reader counts no stint twice, also during a write.
	 */
	__u64 account;
	/* When it became a client. */
	__u64 joined_ns;
	/* The processor that it has or had last. */
	__u32 processor;
	/* Whether the dispatcher has given it the processor: then it is told at once that the thread blocks. */
	__u32 is_chosen;
	enum activity activity;
	__u32 unused;
};

struct processor {
	/* The time that ordinary tasks had which are no clients. */
	__u64 rest_ns;
	/* Since when the present task has the processor; 0 before the first switch that was seen. */
	__u64 since_ns;
	/* The client that has the processor, or had it before the real-time task that has it now; or NO_CLIENT. */
	__u32 client;
	/* Why other tasks wait here, as far as the dispatcher knows already. Another processor may change this and untold meanwhile; then one is
	 * told of twice, or with the next switch to a client here, or when the step back ends. */
	enum why told;
	/* Whether a client has stepped back here because other tasks wait: then the dispatcher is told when one is served, and of no more that wait. */
	__u32 gives_way;
	/* Whether an ordinary task that is no client has the processor. */
	__u32 has_rest;
	/* Why such tasks wait of which the dispatcher does not know, and the last one for each reason. */
	enum why untold;
	__u32 lost;
	__u32 woken;
	__u32 unused;
};

struct row {
	__u64 time_ns;
	enum what what;
	/* The number of the client; in rows of SERVED, of the one that runs now, if one does. */
	__u32 number;
	/* The thread's number, the former one in rows of RENUMBERED: a client's number is given to another thread in time. SERVED and WAITED have none. */
	__u32 thread;
	__u32 processor;
	/* The thread that was started, or the thread's number now, and the process that it belongs to; in rows of BORN and RENUMBERED. */
	__u32 born;
	__u32 process;
	/* In rows of WAITED. */
	enum why why;
	__u32 unused;
};

#endif
