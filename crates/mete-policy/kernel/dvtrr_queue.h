/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The queues of one processor: who stands in them, and whose turn it is. The twin of src/distributed/queue.rs, as it
 * needs one processor's lock, which the caller holds.
 */
#ifndef METE_DVTRR_QUEUE_H
#define METE_DVTRR_QUEUE_H

#include "dvtrr_boosting.h"
#include "dvtrr_level.h"
#include "dvtrr_line.h"

/* How many quanta a member has to make up for at most. */
#define DVTRR_MOST_OWED 256
/* How many quanta beyond two rounds a member may be behind; what it is due beyond that is forfeited. */
#define DVTRR_MOST_BEHIND 16

static __always_inline int dvtrr_is_empty(const struct dvtrr_queue *queue)
{
	return queue->lines[0].first == DVTRR_NONE && queue->lines[1].first == DVTRR_NONE;
}

static __always_inline int dvtrr_is_due(struct dvtrr *p, __u32 member, __u64 limit)
{
	struct dvtrr_account *account = dvtrr_account_of(p, member);

	return account && dvtrr_is_before(account->used, limit);
}

/* Takes a member out of its line of a queue. */
static __always_inline void dvtrr_leave_line(struct dvtrr *p, struct dvtrr_queue *queue, __u32 number)
{
	struct dvtrr_member *member = dvtrr_member_at(p, number);

	if (member)
		dvtrr_line_remove(p, dvtrr_line_of(queue, member->line), number);
}

/* Puts a member of a queue behind all others of a line. */
static __always_inline void dvtrr_stand_behind(struct dvtrr *p, struct dvtrr_queue *queue, __u32 line,
					       __u32 number)
{
	dvtrr_leave_line(p, queue, number);
	dvtrr_line_push(p, dvtrr_line_of(queue, line), line, number, 0);
}

/* Puts a client into a line; with the first one to select, the domain itself can be selected in its parent's queue. */
static __always_inline void dvtrr_show(struct dvtrr *p, __u32 client, __u32 processor, int is_first)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);
	struct dvtrr_queue *queue;
	int was_empty = 1;

	for (; was_empty && level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		queue = dvtrr_queue_of(p, &level, processor);
		if (!queue)
			return;
		was_empty = dvtrr_is_empty(queue);
		dvtrr_line_push(p, dvtrr_line_of(queue, queue->due), queue->due, level.member, is_first);
	}
}

/* Lets a client wait where it stands in its turn, or ahead of all others. */
static __always_inline void dvtrr_put(struct dvtrr *p, __u32 number, __u32 processor, int is_first)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	struct dvtrr_line *ahead = dvtrr_ahead_at(p, processor);

	if (client && ahead && client->is_ahead)
		dvtrr_line_push(p, ahead, DVTRR_AHEAD, number, is_first);
	else
		dvtrr_show(p, number, processor, is_first);
}

/* Takes a client out of its line, and each domain above that has no other member to select. */
static __always_inline void dvtrr_hide(struct dvtrr *p, __u32 number, __u32 processor)
{
	struct dvtrr_member *itself = dvtrr_member_at(p, number);
	struct dvtrr_line *ahead = dvtrr_ahead_at(p, processor);
	struct dvtrr_level level = dvtrr_level_of(p, number);
	struct dvtrr_queue *queue;
	int is_empty = 1;

	if (itself && ahead && itself->line == DVTRR_AHEAD) {
		dvtrr_line_remove(p, ahead, number);
		return;
	}
	for (; is_empty && level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		queue = dvtrr_queue_of(p, &level, processor);
		if (!queue)
			return;
		dvtrr_leave_line(p, queue, level.member);
		is_empty = dvtrr_is_empty(queue);
	}
}

/* A member stands in one more processor's queue of this domain. */
static __always_inline void dvtrr_add_place(struct dvtrr *p, struct dvtrr_account *account,
					    struct dvtrr_domain *domain)
{
	__u64 before = 0, after = 0;

	while (DVTRR_CAN_LOOP) {
		before = account->standing;
		after = (__u32)before ? before + 1 : account->share << DVTRR_COUNTED | 1;
		if (dvtrr_replace(&account->standing, before, after))
			break;
	}
	if ((__u32)before)
		return;
	dvtrr_forfeit(account, domain->limit, p->quantum_ns);
	dvtrr_add(&domain->members, 1);
	dvtrr_add(&domain->total, after >> DVTRR_COUNTED);
	dvtrr_count_share(account, domain);
}

static __always_inline void dvtrr_remove_place(struct dvtrr_account *account, struct dvtrr_domain *domain)
{
	__u64 before = 0;

	while (DVTRR_CAN_LOOP) {
		before = account->standing;
		if (dvtrr_replace(&account->standing, before, (__u32)before == 1 ? 0 : before - 1))
			break;
	}
	if ((__u32)before != 1)
		return;
	dvtrr_add(&domain->members, -1ull);
	dvtrr_add(&domain->total, -(before >> DVTRR_COUNTED));
}

/* Counts a client, and each domain above whose first client here it is, as members of their queues. */
static __always_inline void dvtrr_enter(struct dvtrr *p, __u32 client, __u32 processor)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);
	struct dvtrr_queue *queue;
	int was_empty = 1;

	for (; was_empty && level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		queue = dvtrr_queue_of(p, &level, processor);
		if (!queue)
			return;
		dvtrr_add_place(p, level.account, level.domain);
		was_empty = !queue->members++;
		if (was_empty)
			queue->lent = level.domain->limit;
	}
}

/* Undoes dvtrr_enter(). The client stands in no line any more. */
static __always_inline void dvtrr_leave(struct dvtrr *p, __u32 client, __u32 processor)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);
	struct dvtrr_queue *queue;
	int is_empty = 1;

	for (; is_empty && level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		queue = dvtrr_queue_of(p, &level, processor);
		if (!queue)
			return;
		dvtrr_remove_place(level.account, level.domain);
		is_empty = !--queue->members;
	}
}

/* Keeps the places of a client and of the domains above, while it stands in no queue. */
static __always_inline void dvtrr_hold(struct dvtrr *p, __u32 client, __u32 processor)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);

	for (; level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor))
		dvtrr_add_place(p, level.account, level.domain);
}

/* Undoes dvtrr_hold(). */
static __always_inline void dvtrr_release(struct dvtrr *p, __u32 client, __u32 processor)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);

	for (; level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor))
		dvtrr_remove_place(level.account, level.domain);
}

/* Whether a member has not had too much for its clients to go ahead. */
static __always_inline int dvtrr_has_little_debt(const struct dvtrr *p, const struct dvtrr_level *level)
{
	__u64 most = dvtrr_virtual(DVTRR_MOST_DEBT * p->quantum_ns, level->account->share);

	return dvtrr_is_before(level->account->used, level->domain->limit + most);
}

/*
 * Whether a client that wakes may go ahead of all others, if it is believed to run briefly; it may be the only member of its domain.
 * Its domain pays for that, if it has one below the root.
 */
static __always_inline int dvtrr_may_go_ahead(struct dvtrr *p, __u32 number, __u32 processor, int is_alone)
{
	struct dvtrr_level level = dvtrr_level_of(p, number);

	if (!level.domain)
		return 0;
	if (level.home != DVTRR_ROOT) {
		if (!is_alone && (__s64)level.domain->allowance_ns <= 0)
			return 0;
		dvtrr_ascend(p, &level, processor);
	}
	for (; level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		if (!dvtrr_has_little_debt(p, &level))
			return 0;
	}
	return 1;
}

/* Charges a client and the domains above it for time used; of time ahead of its turn its domain pays, if it has one below the root. */
static __always_inline void dvtrr_charge(struct dvtrr *p, __u32 client, __u32 processor, __u64 used_ns,
					 int is_ahead)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);

	if (level.home != DVTRR_ROOT && level.domain) {
		/* One that is alone goes ahead of no other member. */
		dvtrr_allow(p, level.domain, used_ns, is_ahead && level.domain->members > 1);
		if (is_ahead)
			dvtrr_ascend(p, &level, processor);
	}
	for (; level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		dvtrr_add(&level.account->used, dvtrr_virtual(used_ns, level.account->share));
		dvtrr_bound(level.account, level.domain, DVTRR_MOST_BEHIND * p->quantum_ns,
			    DVTRR_MOST_OWED * p->quantum_ns);
	}
}

/* Whether a client is still due more than the last round gave it: it came too short before that. */
static __always_inline int dvtrr_is_late(struct dvtrr *p, __u32 client)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);

	return level.domain &&
	       dvtrr_is_before(level.account->used, level.domain->limit - level.domain->round);
}

/* Gives the domains above a client their turn: the others are next. */
static __always_inline void dvtrr_end_turns(struct dvtrr *p, __u32 client, __u32 processor)
{
	struct dvtrr_level level = dvtrr_level_of(p, client);
	struct dvtrr_member *member;
	struct dvtrr_queue *queue;

	for (dvtrr_ascend(p, &level, processor); level.domain && DVTRR_CAN_LOOP;
	     dvtrr_ascend(p, &level, processor)) {
		member = dvtrr_member_at(p, level.member);
		queue = dvtrr_queue_of(p, &level, processor);
		if (!member || !queue)
			return;
		if (member->line == queue->due)
			dvtrr_stand_behind(p, queue, queue->due, level.member);
	}
}

/* One that has used this time is not due under the limit. */
static __always_inline void dvtrr_note_waiting(struct dvtrr_queue *queue, __u64 used, __u64 limit)
{
	__u64 least = queue->least;

	if (dvtrr_is_before(least, limit) || dvtrr_is_before(used, least))
		queue->least = used;
}

/*
 * The member whose turn it is in a queue. DVTRR_NONE: there is none to select, or, if exhausted is set, all have had what
 * they were due.
 */
static __always_inline __u32 dvtrr_turn(struct dvtrr *p, __u32 processor, __u32 home, int *exhausted)
{
	struct dvtrr_queue *queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	struct dvtrr_account *account;
	__u64 limit, used;
	__u32 member;

	while (DVTRR_CAN_LOOP && queue && domain) {
		limit = domain->limit;
		/* What was lent here counts as long as it is later. */
		if (dvtrr_is_before(limit, queue->lent))
			limit = queue->lent;
		queue->lent = limit;
		member = dvtrr_line_of(queue, queue->due)->first;
		if (member != DVTRR_NONE) {
			account = dvtrr_account_of(p, member);
			if (!account)
				return DVTRR_NONE;
			used = account->used;
			if (dvtrr_is_before(used, limit))
				return member;
			dvtrr_note_waiting(queue, used, limit);
			dvtrr_stand_behind(p, queue, !queue->due, member);
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
		queue->least = limit - 1;
	}
	return DVTRR_NONE;
}

/* Whether a line holds this member alone, or nothing. */
static __always_inline int dvtrr_holds_none_but(const struct dvtrr_line *line, __u32 member)
{
	return line->first == DVTRR_NONE || (line->first == member && line->last == member);
}

/* Whether a client that waits on a processor is chosen next, because it is the only one that goes ahead, or that waits. */
static __always_inline int dvtrr_is_next(struct dvtrr *p, __u32 number, __u32 processor)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	struct dvtrr_line *ahead = dvtrr_ahead_at(p, processor);
	struct dvtrr_level level = dvtrr_level_of(p, number);
	struct dvtrr_queue *queue;

	if (!client || !ahead || !dvtrr_holds_none_but(ahead, number))
		return 0;
	if (client->is_ahead)
		return 1;
	for (; level.domain && DVTRR_CAN_LOOP; dvtrr_ascend(p, &level, processor)) {
		queue = dvtrr_queue_of(p, &level, processor);
		if (!queue || !dvtrr_holds_none_but(&queue->lines[0], level.member) ||
		    !dvtrr_holds_none_but(&queue->lines[1], level.member) ||
		    !dvtrr_is_before(level.account->used, level.domain->limit))
			return 0;
	}
	return 1;
}

#endif
