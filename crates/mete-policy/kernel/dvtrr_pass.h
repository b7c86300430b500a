/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A domain leaves its turn to others where the members that are due run elsewhere: the twin of src/distributed/passing.rs. */
#ifndef METE_DVTRR_PASS_H
#define METE_DVTRR_PASS_H

#include "dvtrr_search.h"

/* A domain lags behind when it is due this part of a quantum more than its members are about to use. */
#define DVTRR_LAG 4
/* How often a domain is passed over before a decision. */
#define DVTRR_PASSED_OVER 6

/* In eBPF these are functions of their own, which the verifier looks at once. */
#ifndef DVTRR_COUNT_RUNNING
#define DVTRR_COUNT_RUNNING(p, processor, home) dvtrr_count_running(p, processor, home)
#define DVTRR_RUNS_ELSEWHERE(p, processor, home, quanta) dvtrr_runs_elsewhere(p, processor, home, quanta)
#endif

/* Whether a domain is due more than the quanta of its members that run on other processors, and a part of one. */
static __always_inline int dvtrr_lags(struct dvtrr *p, __u32 member, __u32 processor)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, dvtrr_home(p, member));
	__u64 run = DVTRR_COUNT_RUNNING(p, processor, dvtrr_domain_of(p, member));

	return domain &&
	       dvtrr_is_due_more(p, member, run * p->quantum_ns + p->quantum_ns / DVTRR_LAG, domain->limit);
}

/* Whether no other member waits in a queue in which this one does. */
static __always_inline int dvtrr_is_alone(struct dvtrr *p, __u32 member, __u32 processor)
{
	struct dvtrr_queue *queue =
		dvtrr_queue_at(p, dvtrr_queue_number(p, processor, dvtrr_home(p, member)));

	return queue && dvtrr_holds_none_but(&queue->lines[0], member) &&
	       dvtrr_holds_none_but(&queue->lines[1], member);
}

/* What came of passing over a domain. */
enum dvtrr_pass {
	/* It lags behind, so others of its members run, too. */
	DVTRR_LAGS,
	DVTRR_PASSED,
	/* No other domain waits here. */
	DVTRR_ALONE,
};

/*
 * A domain, or the one above it, leaves its turn here to others, if members of it that are due some quanta run on other
 * processors, and can use what it is due as well, in time. If they cannot, it lags behind. The more often domains were passed
 * over, the more such members have to be due: 1, 4 and 16 quanta, twice each. Takes a lock.
 */
static __always_inline enum dvtrr_pass dvtrr_pass(struct dvtrr *p, __u32 processor, __u32 home, __u32 tries)
{
	__u32 member = dvtrr_above(p, home, processor), above;
	__u64 quanta = 1ull << (tries / 2 * 2 & 7);
	struct dvtrr_member *itself;
	struct dvtrr_domain *root;
	struct dvtrr_queue *queue;

	if (tries >= DVTRR_PASSED_OVER || member == DVTRR_NONE ||
	    !DVTRR_RUNS_ELSEWHERE(p, processor, home, quanta))
		return DVTRR_LAGS;
	while (DVTRR_CAN_LOOP && dvtrr_is_alone(p, member, processor)) {
		above = dvtrr_above(p, dvtrr_home(p, member), processor);
		if (above == DVTRR_NONE)
			break;
		member = above;
	}
	if (dvtrr_lags(p, member, processor))
		return DVTRR_LAGS;
	if (dvtrr_is_alone(p, member, processor)) {
		root = dvtrr_domain_at(p, DVTRR_ROOT);
		return root && root->members > 1 && tries <= 1 ? DVTRR_ALONE : DVTRR_LAGS;
	}
	if (!dvtrr_lock(p, processor))
		return DVTRR_LAGS;
	itself = dvtrr_member_at(p, member);
	queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, dvtrr_home(p, member)));
	if (itself && queue && itself->line < DVTRR_NOWHERE)
		dvtrr_stand_behind(p, queue, !queue->due, member);
	dvtrr_unlock(p);
	return DVTRR_PASSED;
}

#endif
