/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Distributed group virtual-time round robin in C: the twin of src/distributed, written once and compiled twice, to eBPF
 * and natively behind the trait Policy (design decision D12). What the words mean, and why shares hold, stands there.
 *
 * The including file defines the types of numbers (__u8 to __u64, __s16 to __s64), a struct dvtrr with the members clients, domains,
 * processors (of __u32) and quantum_ns (of __u64), and
 *
 *	DVTRR_CAN_LOOP			a condition that is true; in eBPF it is how the verifier knows that loops end
 *	dvtrr_client_at(p, n)		the client of that number, or NULL
 *	dvtrr_account_at(p, n)		the account of that client, or behind the clients of that domain, or NULL
 *	dvtrr_domain_at(p, n)		that domain, or NULL
 *	dvtrr_queue_at(p, n)		the queue of that number, or NULL: for each processor all domains
 *	dvtrr_member_at(p, n)		the client of that number, or behind the clients that queue's domain, as a member; or NULL
 *	dvtrr_running_at(p, n)		which client runs on that processor, or NULL
 *	dvtrr_ahead_at(p, n)		that processor's line of clients that go ahead, or NULL
 *	dvtrr_lock(p, n)		takes the lock of a processor's queues, members and clients; 0 if there is none
 *	dvtrr_unlock(p)			gives back the lock that was taken last
 *	dvtrr_add(word, n)		adds to a 64-bit number at once and answers what it was before
 *	dvtrr_replace(word, old, new)	replaces a 64-bit number if it is still the old one; whether it was
 *	dvtrr_index(n, size)		the number, which is below that power of two
 *	dvtrr_after(n)			the next number; in eBPF one that the verifier does not follow, which would unroll the loop
 *	dvtrr_may_run(p, client, n)	whether a client may run on that processor
 *
 * where p is a struct dvtrr *. Accounts and domains are what processors share; everything else is a processor's own, under
 * its lock. No lock is taken while another is held. What is read of another processor without its lock is a hint.
 */
#ifndef METE_DVTRR_STATE_H
#define METE_DVTRR_STATE_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#include "dvtrr_causes.h"

/* No client, no member, the end of a line. */
#define DVTRR_NONE (~0u)

#define DVTRR_ROOT 0u

/* The line that a member stands in: one of its queue's two lines, none, or that of the clients that go ahead. */
#define DVTRR_NOWHERE 2
#define DVTRR_AHEAD 3

enum dvtrr_client_state {
	DVTRR_ABSENT,
	DVTRR_BLOCKED,
	DVTRR_READY,
	DVTRR_RUNNING,
	/* It is on its way to the queues of another processor, which it names already. */
	DVTRR_MOVING,
};

enum dvtrr_stop {
	DVTRR_EXPIRED,
	DVTRR_PREEMPTED,
	DVTRR_YIELDED,
	DVTRR_STOP_BLOCKED,
};

struct dvtrr_client {
	__u32 home; /* its domain */
	__u32 processor; /* in whose queues it stands, stood last, or will stand */
	__u32 state; /* enum dvtrr_client_state */
	/* What woke it last, or will wake it: see dvtrr_cause_of(). */
	__u32 cause;
	/* That it runs briefly when it wakes, as far as it was seen, for each cause, and for how long it has run since it woke. */
	__s16 beliefs[DVTRR_CAUSES];
	__u64 ran_ns;
	/* It runs ahead of its turn, or waits for that. */
	__u64 is_ahead;
};

/* What a client or a domain has had: virtual time, which wraps around. */
struct dvtrr_account {
	__u64 used;
	/* In how many processors' queues it stands, and above DVTRR_COUNTED the share that its domain counts for that. */
	__u64 standing;
	__u64 share;
};

/* Where a share begins in that number. No share is longer than what is left of it. */
#define DVTRR_COUNTED 32

struct dvtrr_domain {
	__u32 parent;
	__u32 is_known;
	__u64 children; /* the domains in it */
	/* Members are due as long as their virtual time is before it; by how much it was raised last. */
	__u64 limit;
	__u64 round;
	/* The members that stand in any processor's queue, and the sum of their shares. */
	__u64 members;
	__u64 total;
	/* What its own clients may use ahead of their turn; it is signed. */
	__u64 allowance_ns;
};

struct dvtrr_line {
	__u32 first;
	__u32 last;
};

/* The queue of one domain on one processor. Members that cannot be selected, because they run, stand in no line. */
struct dvtrr_queue {
	/* Members that may be due, in their turn, and those that were not due under the limit seen. */
	struct dvtrr_line lines[2];
	__u32 due; /* which line is the first of these */
	__u32 members; /* all members here, also those that run */
	__u64 seen;
	__u64 least; /* that the others have used; none of them waits if that is before the limit */
	__u64 lent; /* members are due here until this, too, if it is later than the limit */
};

struct dvtrr_member {
	__u32 previous;
	__u32 next;
	__u32 line;
};

/* Makes an empty queue of zeros. */
static __always_inline void dvtrr_begin_queue(struct dvtrr_queue *queue)
{
	queue->lines[0].first = queue->lines[0].last = DVTRR_NONE;
	queue->lines[1].first = queue->lines[1].last = DVTRR_NONE;
}

static __always_inline void dvtrr_begin_member(struct dvtrr_member *member)
{
	member->line = DVTRR_NOWHERE;
}

#endif
