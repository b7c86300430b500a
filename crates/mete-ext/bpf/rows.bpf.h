/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a policy outside the kernel is told: rows, in a ring of memory for each processor, which the policy has mapped.
 *
 * A program may be interrupted by another one on the same processor. So a place in the ring is taken by an atomic addition, and the
 * row's sequence number, which is written last, says that the row is whole.
 */
#ifndef METE_ROWS_BPF_H
#define METE_ROWS_BPF_H

#include "causes.bpf.h"

/* In the ring of one processor; a power of two. */
#define ROWS 2048u
/* As many programs as may interrupt each other on a processor. */
#define NESTED 8u

enum row_kind {
	ROW_JOINED = 1, /* the policy schedules the task from now on: see struct task */
	ROW_LEFT, /* and no more */
	ROW_CHANGED, /* the task has another weight, domain or mask */
	ROW_WOKE, /* the task waits for a processor, after it was away */
	ROW_EXPIRED, /* it waits again, after it had its slice */
	ROW_PREEMPTED, /* the same, after it had less */
	ROW_YIELDED, /* the same, because it gave way by itself */
	ROW_BLOCKED, /* the task is away */
	ROW_TAKEN, /* the task runs without a decision; instead of what it has used, the row has the processor */
	ROW_MISSED, /* a decision about the task came late, or could not be carried out */
	ROW_DOMAIN, /* a cgroup has come, gone, or has another weight: see struct domain */
} __attribute__((packed));

struct row {
	__u64 time_ns;
	__u64 used_ns; /* what the task has used since it joined */
	__u32 number; /* the task's, or the domain's */
	__u32 generation; /* how often the task has begun to wait; in ROW_MISSED, the last bits of that for which it was decided (GENERATION_BITS) */
	enum row_kind kind;
	enum dvtrr_event event; /* in ROW_WOKE, what has woken the task, and the port of a packet */
	__u16 port;
	__u32 sequence; /* one more than the place of the row among all of its ring */
};

/* A line of the cache for each side. */
struct ring {
	__u32 begun; /* rows that were begun */
	__u32 lost; /* rows for which there was no room */
	__u8 rest_of_line[56];
	__u32 taken; /* rows that the policy has read */
	__u8 rest_of_second_line[60];
} __attribute__((aligned(64)));

struct ring rings[PROCESSORS] SEC(".bss.rings");
struct row rows[PROCESSORS * ROWS] SEC(".bss.rows");

/* Whether the policy has to read soon, so that nothing is lost. */
static __always_inline int rows_are_many(__u32 processor)
{
	struct ring *ring = &rings[masked(processor, PROCESSORS)];

	return ring->begun - ring->taken > ROWS / 2;
}

static __always_inline void tell(enum row_kind kind, __u32 number, __u32 generation, __u64 used_ns)
{
	__u32 processor = bpf_get_smp_processor_id(), place;
	struct ring *ring = &rings[masked(processor, PROCESSORS)];
	const struct doing *here = &doings[masked(processor, PROCESSORS)];
	struct row *row;

	if (ring->begun - ring->taken >= ROWS - NESTED) {
		__sync_fetch_and_add(&ring->lost, 1);
		return;
	}
	place = __sync_fetch_and_add(&ring->begun, 1);
	row = &rows[masked(processor, PROCESSORS) * ROWS + masked(place, ROWS)];
	row->time_ns = bpf_ktime_get_ns();
	row->used_ns = used_ns;
	row->number = number;
	row->generation = generation;
	row->kind = kind;
	row->event = kind == ROW_WOKE ? here->event : DVTRR_NO_EVENT;
	row->port = here->port;
	/* An exchange, so that all before it is seen by the one that sees this. */
	__sync_lock_test_and_set(&row->sequence, place + 1);
}

#endif
