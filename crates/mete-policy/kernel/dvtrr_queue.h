/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The queues of one processor: who stands in them, and whose turn it is. The twin of src/distributed/mod.rs as far as it
 * needs one processor's lock, which the caller holds.
 *
 * Loops over levels end at the root, because a domain's parent is known before the domain is.
 */
#ifndef METE_DVTRR_QUEUE_H
#define METE_DVTRR_QUEUE_H

#include "dvtrr_account.h"
#include "dvtrr_line.h"

static __always_inline __u32 dvtrr_queue_number(const struct dvtrr *p, __u32 processor, __u32 domain)
{
	return processor * p->domains + domain;
}

/* The domain that a member is; DVTRR_NONE for a client. */
static __always_inline __u32 dvtrr_domain_of(const struct dvtrr *p, __u32 member)
{
	return member < p->clients ? DVTRR_NONE : (member - p->clients) % p->domains;
}

/* The domain in whose queue a member stands. */
static __always_inline __u32 dvtrr_home(struct dvtrr *p, __u32 member)
{
	__u32 number = dvtrr_domain_of(p, member);
	struct dvtrr_client *client;
	struct dvtrr_domain *domain;

	if (number == DVTRR_NONE) {
		client = dvtrr_client_at(p, member);
		return client ? client->home : DVTRR_ROOT;
	}
	domain = dvtrr_domain_at(p, number);
	return domain ? domain->parent : DVTRR_ROOT;
}

static __always_inline struct dvtrr_account *dvtrr_account_of(struct dvtrr *p, __u32 member)
{
	__u32 domain = dvtrr_domain_of(p, member);

	return dvtrr_account_at(p, domain == DVTRR_NONE ? member : p->clients + domain);
}

/* The member above one whose home is this domain; DVTRR_NONE above the root's members. */
static __always_inline __u32 dvtrr_above(const struct dvtrr *p, __u32 home, __u32 processor)
{
	return home == DVTRR_ROOT ? DVTRR_NONE : p->clients + dvtrr_queue_number(p, processor, home);
}

static __always_inline int dvtrr_is_empty(const struct dvtrr_queue *queue)
{
	return queue->lines[0].first == DVTRR_NONE && queue->lines[1].first == DVTRR_NONE;
}

static __always_inline int dvtrr_is_due(struct dvtrr *p, __u32 member, __u64 limit)
{
	struct dvtrr_account *account = dvtrr_account_of(p, member);

	return account && dvtrr_is_before(account->used, limit);
}

/* Puts a member into a line; with the first one to select, the domain itself can be selected in its parent's queue. */
static __always_inline void dvtrr_show(struct dvtrr *p, __u32 member, __u32 processor, int is_first)
{
	struct dvtrr_queue *queue;
	__u32 home;
	int was_empty = 1;

	while (DVTRR_CAN_LOOP && was_empty && member != DVTRR_NONE) {
		home = dvtrr_home(p, member);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
		if (!queue)
			return;
		was_empty = dvtrr_is_empty(queue);
		dvtrr_line_push(p, queue, queue->due, member, is_first);
		member = dvtrr_above(p, home, processor);
	}
}

/* Takes a member out of its line, and each domain above that has no other member to select. */
static __always_inline void dvtrr_hide(struct dvtrr *p, __u32 member, __u32 processor)
{
	struct dvtrr_queue *queue;
	__u32 home;
	int is_empty = 1;

	while (DVTRR_CAN_LOOP && is_empty && member != DVTRR_NONE) {
		home = dvtrr_home(p, member);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
		if (!queue)
			return;
		dvtrr_line_remove(p, queue, member);
		is_empty = dvtrr_is_empty(queue);
		member = dvtrr_above(p, home, processor);
	}
}

/* Counts a client, and each domain above whose first client here it is, as members of their queues. */
static __always_inline void dvtrr_enter(struct dvtrr *p, __u32 member, __u32 processor)
{
	struct dvtrr_account *account;
	struct dvtrr_domain *domain;
	struct dvtrr_queue *queue;
	__u32 home;
	int was_empty = 1;

	while (DVTRR_CAN_LOOP && was_empty && member != DVTRR_NONE) {
		home = dvtrr_home(p, member);
		account = dvtrr_account_of(p, member);
		domain = dvtrr_domain_at(p, home);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
		if (!account || !domain || !queue)
			return;
		if (!dvtrr_add(&account->places, 1)) {
			dvtrr_forfeit(account, domain->limit, p->quantum_ns);
			dvtrr_add(&domain->members, 1);
			dvtrr_add(&domain->total, account->share);
		}
		was_empty = !queue->members++;
		member = dvtrr_above(p, home, processor);
	}
}

/* Undoes dvtrr_enter(). The client stands in no line any more. */
static __always_inline void dvtrr_leave(struct dvtrr *p, __u32 member, __u32 processor)
{
	struct dvtrr_account *account;
	struct dvtrr_domain *domain;
	struct dvtrr_queue *queue;
	__u32 home;
	int is_empty = 1;

	while (DVTRR_CAN_LOOP && is_empty && member != DVTRR_NONE) {
		home = dvtrr_home(p, member);
		account = dvtrr_account_of(p, member);
		domain = dvtrr_domain_at(p, home);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
		if (!account || !domain || !queue)
			return;
		if (dvtrr_add(&account->places, -1ull) == 1) {
			dvtrr_add(&domain->members, -1ull);
			dvtrr_add(&domain->total, -account->share);
		}
		is_empty = !--queue->members;
		member = dvtrr_above(p, home, processor);
	}
}

/* Charges a client and the domains above it for time used. */
static __always_inline void dvtrr_charge(struct dvtrr *p, __u32 member, __u32 processor, __u64 used_ns)
{
	struct dvtrr_account *account;
	struct dvtrr_domain *domain;
	__u32 home;

	while (DVTRR_CAN_LOOP && member != DVTRR_NONE) {
		home = dvtrr_home(p, member);
		account = dvtrr_account_of(p, member);
		domain = dvtrr_domain_at(p, home);
		if (!account || !domain)
			return;
		dvtrr_add(&account->used, dvtrr_virtual(used_ns, account->share));
		/* A member that can use what it is due is never further behind. */
		dvtrr_forfeit(account, domain->limit - 2 * domain->round, 2 * p->quantum_ns);
		member = dvtrr_above(p, home, processor);
	}
}

/* Gives the domains above a client their turn: the others are next. */
static __always_inline void dvtrr_end_turns(struct dvtrr *p, __u32 client, __u32 processor)
{
	__u32 home = dvtrr_home(p, client), number;
	struct dvtrr_member *member;
	struct dvtrr_queue *queue;

	while (DVTRR_CAN_LOOP && (number = dvtrr_above(p, home, processor)) != DVTRR_NONE) {
		home = dvtrr_home(p, number);
		member = dvtrr_member_at(p, number);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
		if (!member || !queue)
			return;
		if (member->line == queue->due) {
			dvtrr_line_remove(p, queue, number);
			dvtrr_line_push(p, queue, queue->due, number, 0);
		}
	}
}

/*
 * The member whose turn it is in a queue. DVTRR_NONE: there is none to select, or, if exhausted is set, all have had what
 * they were due.
 */
static __always_inline __u32 dvtrr_turn(struct dvtrr *p, __u32 processor, __u32 home, int *exhausted)
{
	struct dvtrr_queue *queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	__u32 member;
	__u64 limit;

	while (DVTRR_CAN_LOOP && queue && domain) {
		limit = domain->limit;
		member = dvtrr_line_of(queue, queue->due)->first;
		if (member != DVTRR_NONE) {
			if (dvtrr_is_due(p, member, limit))
				return member;
			dvtrr_line_remove(p, queue, member);
			dvtrr_line_push(p, queue, !queue->due, member, 0);
			continue;
		}
		if (dvtrr_line_of(queue, !queue->due)->first == DVTRR_NONE)
			return DVTRR_NONE;
		if (queue->seen == limit) {
			*exhausted = 1;
			return DVTRR_NONE;
		}
		/* Under another limit, members that waited may be due. */
		queue->seen = limit;
		queue->due = !queue->due;
	}
	return DVTRR_NONE;
}

#endif
