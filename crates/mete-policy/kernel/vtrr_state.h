/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Group virtual-time round robin in C: the twin of src/vtrr/group.rs, written once and compiled twice, to eBPF and
 * natively behind the trait Policy (design decision D12). This file has what is known of clients, domains, queues
 * and processors. What the words mean and why the arithmetic is exact stands in src/vtrr/mod.rs.
 *
 * The including file defines the types of numbers (__u8 to __u64, __s64) and
 *
 *	vtrr_wide		a signed integer that holds sums of what is due. Natively 128 bits. In eBPF 64 bits, and
 *				its loader keeps shares, quanta and the number of members so small that they suffice
 *	VTRR_CAN_LOOP		a condition that is true; in eBPF it is how the verifier knows that loops end
 *	vtrr_entity_at(p, n)	the entity of that number, or NULL
 *	vtrr_queue_at(p, n)	the queue of that domain, or NULL
 *	vtrr_seat_at(p, n)	what runs on that processor, or NULL
 *	vtrr_late_at(p, q, n)	a pointer to the n-th late member of a queue, or NULL
 *
 * where p is a struct vtrr *, which the including file defines with the members clients, first_domain (the entity that is
 * the root), domains, processors (all of __u32), late (the room for late members in each queue) and quantum_ns.
 */
#ifndef METE_VTRR_STATE_H
#define METE_VTRR_STATE_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* No entity, no place in a queue, and the end of a queue. */
#define VTRR_NONE (~0u)

#define VTRR_ROOT 0u

enum vtrr_client_state {
	VTRR_ABSENT,
	VTRR_BLOCKED,
	VTRR_READY,
	VTRR_RUNNING,
};

enum vtrr_stop {
	VTRR_EXPIRED,
	VTRR_PREEMPTED,
	VTRR_YIELDED,
	VTRR_STOP_BLOCKED,
};

/*
 * A client or, behind the clients, a domain: what a queue knows about it while it is a member, and what is
 * remembered about it while it is not (src/vtrr/slot.rs, src/vtrr/departure.rs).
 */
struct vtrr_entity {
	/* What it has now. While it is a member, member_share is what its queue counts. */
	__u32 share;
	/* The domain in whose queue it stands as a member; for a domain, its parent. */
	__u32 home;
	__u8 state; /* enum vtrr_client_state; a domain is VTRR_ABSENT until it is made known */
	__u8 is_member;
	/* It cannot be selected: the client runs, or the domain has no member to select. */
	__u8 busy;
	/* The client runs without having been picked: nothing was charged in advance. */
	__u8 unpicked;

	__u32 member_share;
	/* The time counter: quanta that are due in this cycle. */
	__u32 counter;
	/* The cycle that the counter belongs to, modulo 2^32: an older counter has still to be reset. */
	__u32 cycle;
	/* How much was used of the next quantum that comes off the counter; less than a quantum. */
	__u64 used_ns;

	/* The neighbours in the queue, and the children in the tree that finds places in it (vtrr_line.h). */
	__u32 previous;
	__u32 next;
	__u32 left;
	__u32 right;

	/* The last departure. departed_share 0: it was never in a queue. */
	__u32 departed_share;
	__u64 departed_cycle;
	__s64 departed_due_ns;

	/* The processor that the client was picked for last. */
	__u32 processor;
};

/* The queue of a domain's members (src/vtrr/queue.rs). */
struct vtrr_queue {
	__u32 head;
	__u32 root; /* of the tree that finds places */
	/* The first member behind the current one: the one that was selected last. */
	__u32 cursor;
	/* The current member's counter after the selection, and its key. */
	__u32 current_counter;
	__u64 current_key;
	/* The number of the cycle, from 1. */
	__u64 cycle;
	/* The sum of the shares. */
	__u64 total;
	/* The sum of what is due to all members in this cycle. */
	vtrr_wide due_ns;
	/* Members that can be selected. With none, the domain itself is busy in its parent's queue. */
	__u32 idle;
	/* Members that have something left of an earlier cycle, because they ran when it ended. */
	__u32 late;
};

/* A client that was picked and has not stopped. */
struct vtrr_run {
	__u32 client; /* VTRR_NONE: there is none */
	__u64 since_ns;
};

/* What runs on a processor: the client that was picked last, and the one before it while that has not left. */
struct vtrr_seat {
	struct vtrr_run latest;
	struct vtrr_run before;
};

/* Where an entity belongs in a queue: larger shares first, ties by number (VTRR paper, 3.1). */
static __always_inline __u64 vtrr_key(__u32 share, __u32 number)
{
	return (__u64)~share << 32 | number;
}

/* Behind every member, and before every member. */
#define VTRR_KEY_LAST (~0ull)
#define VTRR_KEY_FIRST 0ull

/* Makes an empty queue of zeros. */
static __always_inline void vtrr_begin_queue(struct vtrr_queue *queue)
{
	queue->head = VTRR_NONE;
	queue->root = VTRR_NONE;
	queue->cursor = VTRR_NONE;
	queue->current_key = VTRR_KEY_LAST;
	queue->cycle = 1;
}

/* Makes a seat on which no client runs. */
static __always_inline void vtrr_begin_seat(struct vtrr_seat *seat)
{
	seat->latest.client = VTRR_NONE;
	seat->before.client = VTRR_NONE;
}

#endif
