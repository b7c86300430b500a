/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What one processor needs of others: a client to take when it has nothing due, and a limit that goes up. The twin of
 * src/distributed/search.rs. What takes locks says so; everything else is called under one, or only looks.
 */
#ifndef METE_DVTRR_SEARCH_H
#define METE_DVTRR_SEARCH_H

#include "dvtrr_take.h"

/* How many members of another queue are looked at before the next queue is. */
#define DVTRR_LOOKED_AT 4
/* How many members of a queue divide what those who are due cannot use. */
#define DVTRR_LENT_TO 16
/* A round brings an average member this part of a quantum. */
#define DVTRR_PARTS 3
/* But where there are others, it brings each processor this number, as long as that is no more than one for each member. */
#define DVTRR_BETWEEN_LOOKS 24
/* How many quanta of an average member those owe at most that were lent what others could not use. */
#define DVTRR_MOST_LENT 16

/* How many steps a processor that is idle takes through another one's queues, to find a client that may run on its own. */
#define DVTRR_SEARCHED 256
/* What came of looking for a client to take from another processor. */
enum dvtrr_search {
	DVTRR_TAKEN,
	DVTRR_NONE_DUE,
	/* Members elsewhere are due, and no client that would help them may run here. */
	DVTRR_BARRED,
};

/* In eBPF these are functions of their own, which the verifier looks at once. */
#ifndef DVTRR_TAKE
#define DVTRR_TAKE(p, number, from, to) dvtrr_take(p, number, from, to)
#define DVTRR_TURN(p, processor, home) dvtrr_turn_there(p, processor, home)
#define DVTRR_CLIENT_UNDER(p, other, member, processor) dvtrr_client_under(p, other, member, processor)
#endif

static __always_inline __u32 dvtrr_other(const struct dvtrr *p, __u32 processor, __u32 nth)
{
	return (processor + nth) % p->processors;
}

/* The first member that waits in a queue of another processor. A hint. */
static __always_inline __u32 dvtrr_first(struct dvtrr_queue *queue, __u32 line)
{
	__u32 first = dvtrr_line_of(queue, line)->first;

	return first != DVTRR_NONE ? first : dvtrr_line_of(queue, !line)->first;
}

/* The first member of a line that is a domain, or a client that may run on this processor, if it is among the first. A hint. */
static __always_inline __u32 dvtrr_useful_in(struct dvtrr *p, struct dvtrr_queue *queue, __u32 line,
					     __u32 processor)
{
	__u32 number = dvtrr_line_of(queue, line)->first, nth;
	struct dvtrr_member *member;

	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LOOKED_AT; nth = dvtrr_after(nth)) {
		member = dvtrr_member_at(p, number);
		if (!member)
			return DVTRR_NONE;
		if (dvtrr_domain_of(p, number) != DVTRR_NONE || dvtrr_may_run(p, number, processor))
			return number;
		number = member->next;
	}
	return DVTRR_NONE;
}

/* A client that waits under a member of another processor's queue and may run on this one. A hint. */
static __always_inline __u32 dvtrr_client_under(struct dvtrr *p, __u32 other, __u32 member, __u32 processor)
{
	struct dvtrr_queue *queue;
	__u32 domain;

	while (DVTRR_CAN_LOOP && (domain = dvtrr_domain_of(p, member)) != DVTRR_NONE) {
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, domain));
		if (!queue || member == DVTRR_NONE)
			return DVTRR_NONE;
		member = dvtrr_useful_in(p, queue, queue->due, processor);
		if (member == DVTRR_NONE)
			member = dvtrr_useful_in(p, queue, !queue->due, processor);
		if (member == DVTRR_NONE)
			return DVTRR_NONE;
	}
	return dvtrr_may_run(p, member, processor) ? member : DVTRR_NONE;
}

/* What was seen among the first members of a queue's lines. */
struct dvtrr_seen {
	int is_due; /* one is due */
	int is_long; /* there are others behind them */
};

/* A client under a member that is due, among the first of a line of another processor's queue. A hint. */
static __always_inline __u32 dvtrr_due_in(struct dvtrr *p, __u32 other, struct dvtrr_queue *queue, __u32 line,
					  __u64 limit, __u32 processor, struct dvtrr_seen *seen)
{
	__u32 number = dvtrr_line_of(queue, line)->first, nth, client;
	struct dvtrr_member *member;

	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LOOKED_AT; nth = dvtrr_after(nth)) {
		member = dvtrr_member_at(p, number);
		if (!member)
			return DVTRR_NONE;
		if (dvtrr_is_due(p, number, limit)) {
			client = DVTRR_CLIENT_UNDER(p, other, number, processor);
			if (client != DVTRR_NONE)
				return client;
			seen->is_due = 1;
		}
		number = member->next;
	}
	seen->is_long |= number != DVTRR_NONE;
	return DVTRR_NONE;
}

/* The same among the first of both of its lines. */
static __always_inline __u32 dvtrr_due_among_first(struct dvtrr *p, __u32 other, struct dvtrr_queue *queue,
						   __u64 limit, __u32 processor, struct dvtrr_seen *seen)
{
	__u32 due = queue->due, client = dvtrr_due_in(p, other, queue, due, limit, processor, seen);

	return client != DVTRR_NONE ? client : dvtrr_due_in(p, other, queue, !due, limit, processor, seen);
}

/* Whether all members of a queue were looked at under this limit. A hint. */
static __always_inline int dvtrr_is_searched(struct dvtrr_queue *queue, __u64 limit)
{
	return !dvtrr_is_before(queue->seen, limit) && dvtrr_line_of(queue, queue->due)->first == DVTRR_NONE;
}

/*
 * A client under a member that is due in another processor's queue. Where none of the first ones is, all that stand in front
 * of one that is are looked at, and stand behind after that, so that no processor looks at them again in this round. One that is due by
 * what was lent there alone ends that. Takes a lock.
 */
static __always_inline __u32 dvtrr_due_at(struct dvtrr *p, __u32 other, __u32 home, __u64 limit,
					  __u32 processor, enum dvtrr_search *search)
{
	struct dvtrr_queue *queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, home));
	struct dvtrr_seen seen = { 0, 0 };
	__u32 nth, client = DVTRR_NONE;

	for (nth = 0; DVTRR_CAN_LOOP && nth < 2 && queue; nth = dvtrr_after(nth)) {
		seen.is_due = seen.is_long = 0;
		client = dvtrr_due_among_first(p, other, queue, limit, processor, &seen);
		if (client != DVTRR_NONE || seen.is_due || !seen.is_long || nth ||
		    dvtrr_is_searched(queue, limit))
			break;
		DVTRR_TURN(p, other, home);
	}
	if (client == DVTRR_NONE && seen.is_due)
		*search = DVTRR_BARRED;
	return client;
}

/* The first client that goes ahead on another processor, if it may run on this one. A hint. */
static __always_inline __u32 dvtrr_ahead_on(struct dvtrr *p, __u32 other, __u32 processor)
{
	struct dvtrr_line *ahead = dvtrr_ahead_at(p, other);
	__u32 client = ahead ? ahead->first : DVTRR_NONE;

	return client != DVTRR_NONE && dvtrr_may_run(p, client, processor) ? client : DVTRR_NONE;
}

/*
 * Takes a client from another processor: one of a member of this domain that is due and waits there. At the end of the
 * root's round also one that goes ahead there and waits still: something else has its processor. Takes locks.
 */
static __always_inline enum dvtrr_search dvtrr_take_due(struct dvtrr *p, __u32 processor, __u32 home)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	enum dvtrr_search search = DVTRR_NONE_DUE;
	__u32 nth, other, client;

	for (nth = 1; DVTRR_CAN_LOOP && domain && nth < p->processors; nth++) {
		other = dvtrr_other(p, processor, nth);
		client = home == DVTRR_ROOT ? dvtrr_ahead_on(p, other, processor) : DVTRR_NONE;
		if (client == DVTRR_NONE)
			client = dvtrr_due_at(p, other, home, domain->limit, processor, &search);
		if (client != DVTRR_NONE && DVTRR_TAKE(p, client, other, processor))
			return DVTRR_TAKEN;
	}
	return search;
}

/* The member of a domain's queue on another processor that runs there, or has the client that runs. A hint. */
static __always_inline __u32 dvtrr_running_in(struct dvtrr *p, __u32 other, __u32 home)
{
	__u32 *runs = dvtrr_running_at(p, other), member = runs ? *runs : DVTRR_NONE, its_home;

	while (DVTRR_CAN_LOOP && member != DVTRR_NONE) {
		its_home = dvtrr_home(p, member);
		if (its_home == home)
			break;
		member = dvtrr_above(p, its_home, other);
	}
	return member;
}

/* Whether a member is due more than this time. */
static __always_inline int dvtrr_is_due_more(struct dvtrr *p, __u32 member, __u64 ns, __u64 limit)
{
	struct dvtrr_account *account = dvtrr_account_of(p, member);

	return account && dvtrr_is_before(account->used + dvtrr_virtual(ns, account->share), limit);
}

/* Whether the member of a domain's queue that runs on another processor is due more than so many quanta. A hint. */
static __always_inline int dvtrr_runs_on(struct dvtrr *p, __u32 other, __u32 home, __u64 quanta, __u64 limit)
{
	__u32 member = dvtrr_running_in(p, other, home);

	return member != DVTRR_NONE && dvtrr_is_due_more(p, member, quanta * p->quantum_ns, limit);
}

/*
 * Takes a client from a processor on which a member of this domain runs that is due more than its quantum: it has to go
 * on there, and those that wait beside it take its turns. Takes locks.
 */
static __always_inline enum dvtrr_search dvtrr_relieve(struct dvtrr *p, __u32 processor, __u32 home)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	enum dvtrr_search search = DVTRR_NONE_DUE;
	struct dvtrr_queue *queue;
	__u32 nth, other, waits, client;

	for (nth = 1; DVTRR_CAN_LOOP && domain && nth < p->processors; nth++) {
		other = dvtrr_other(p, processor, nth);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, home));
		if (!queue)
			return search;
		waits = dvtrr_first(queue, !queue->due);
		if (waits == DVTRR_NONE || !dvtrr_runs_on(p, other, home, 1, domain->limit))
			continue;
		client = DVTRR_CLIENT_UNDER(p, other, waits, processor);
		if (client != DVTRR_NONE && DVTRR_TAKE(p, client, other, processor))
			return DVTRR_TAKEN;
		search = DVTRR_BARRED;
	}
	return search;
}

/* The lesser of what was found and what this one has used, if it is not due. */
static __always_inline __u64 dvtrr_lesser(__u64 used, __u64 limit, int *found, __u64 least)
{
	if (dvtrr_is_before(used, limit) || (*found && !dvtrr_is_before(used, least)))
		return least;
	*found = 1;
	return used;
}

/* The least that a member of a queue has used that waits and is not due. A hint. */
static __always_inline __u64 dvtrr_least_used(struct dvtrr *p, struct dvtrr_queue *queue, __u64 limit,
					      int *found, __u64 least)
{
	/* Those in this line have not been looked at since they came, or since the limit was raised. */
	__u32 number = dvtrr_line_of(queue, queue->due)->first, nth;
	struct dvtrr_account *account;
	struct dvtrr_member *member;

	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LOOKED_AT; nth = dvtrr_after(nth)) {
		member = dvtrr_member_at(p, number);
		account = member ? dvtrr_account_of(p, number) : 0;
		if (!account)
			break;
		number = member->next;
		least = dvtrr_lesser(account->used, limit, found, least);
	}
	return dvtrr_lesser(queue->least, limit, found, least);
}

/* Raises the limit of a domain so far that its members are due a part of a quantum each on average, and one that waits is due. */
static __always_inline void dvtrr_raise(struct dvtrr *p, __u32 processor, __u32 home)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	__u64 limit, raised, quanta, round_ns, least_ns, least;
	struct dvtrr_queue *queue;
	int found = 0;
	__u32 nth;

	if (!domain)
		return;
	limit = domain->limit;
	/* With a quantum for each processor at least, they look at each other once in a round and not at each decision. */
	quanta = DVTRR_BETWEEN_LOOKS * (p->processors - 1);
	if (quanta > domain->members)
		quanta = domain->members;
	if (quanta < p->processors)
		quanta = p->processors;
	least_ns = quanta * p->quantum_ns;
	round_ns = domain->members * (p->quantum_ns / DVTRR_PARTS);
	raised = limit + dvtrr_virtual(round_ns > least_ns ? round_ns : least_ns, domain->total);
	/* Those that wait may have had more than others: then more than one round is over. One that is due is passed over. */
	least = limit;
	for (nth = 0; DVTRR_CAN_LOOP && nth < p->processors; nth++) {
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, dvtrr_other(p, processor, nth), home));
		if (queue)
			least = dvtrr_least_used(p, queue, limit, &found, least);
	}
	/* Under the same limit, no member would be looked at again. */
	if (dvtrr_is_before(raised, least + 1))
		raised = least + 1;
	/* Another processor may have raised it meanwhile. */
	if (dvtrr_replace(&domain->limit, limit, raised))
		domain->round = raised - limit;
}

/*
 * Those that are due may not run here, so those that wait here divide this processor: the one that has used the least becomes
 * due, here alone. Elsewhere it has had more than the others, and owes them some quanta for that at most.
 */
static __always_inline void dvtrr_lend(struct dvtrr *p, __u32 processor, __u32 home)
{
	struct dvtrr_queue *queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	struct dvtrr_account *account;
	struct dvtrr_member *member;
	__u64 least, most, forgiven, members;
	__u32 number, nth;
	__s64 nearer;

	if (!queue || !domain)
		return;
	number = dvtrr_line_of(queue, !queue->due)->first;
	account = number == DVTRR_NONE ? 0 : dvtrr_account_of(p, number);
	if (!account)
		return;
	least = account->used;
	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LENT_TO && (member = dvtrr_member_at(p, number));
	     nth = dvtrr_after(nth)) {
		account = dvtrr_account_of(p, number);
		if (!account)
			break;
		/* The lesser of the two without a branch, each of which would double the paths that the verifier follows. */
		nearer = (__s64)(account->used - least);
		least += nearer & (nearer >> 63);
		number = member->next;
	}
	/* They are looked at again. */
	queue->seen = domain->limit - 1;
	if (dvtrr_is_before(least, domain->limit))
		return;
	members = domain->members ? domain->members : 1;
	most = domain->limit + dvtrr_virtual(DVTRR_MOST_LENT * p->quantum_ns, domain->total / members);
	forgiven = dvtrr_is_before(most, least) ? least - most : 0;
	queue->lent = least - forgiven + 1;
	if (!forgiven)
		return;
	number = dvtrr_line_of(queue, !queue->due)->first;
	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LENT_TO && (member = dvtrr_member_at(p, number));
	     nth = dvtrr_after(nth)) {
		account = dvtrr_account_of(p, number);
		if (account)
			dvtrr_add(&account->used, -forgiven);
		number = member->next;
	}
}

/* The same. Takes a lock. */
static __always_inline void dvtrr_lend_there(struct dvtrr *p, __u32 processor, __u32 home)
{
	if (!dvtrr_lock(p, processor))
		return;
	dvtrr_lend(p, processor, home);
	dvtrr_unlock(p);
}

/* On how many other processors members of a domain run. A hint. */
static __always_inline __u32 dvtrr_count_running(struct dvtrr *p, __u32 processor, __u32 home)
{
	__u32 nth, count = 0;

	for (nth = 1; DVTRR_CAN_LOOP && nth < p->processors; nth = dvtrr_after(nth)) {
		if (dvtrr_running_in(p, dvtrr_other(p, processor, nth), home) != DVTRR_NONE)
			count = dvtrr_after(count);
	}
	return count;
}

/* Whether a member of a domain runs on another processor and is due more than so many quanta. A hint. */
static __always_inline int dvtrr_runs_elsewhere(struct dvtrr *p, __u32 processor, __u32 home, __u64 quanta)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	__u32 nth;

	for (nth = 1; DVTRR_CAN_LOOP && domain && nth < p->processors; nth = dvtrr_after(nth)) {
		if (dvtrr_runs_on(p, dvtrr_other(p, processor, nth), home, quanta, domain->limit))
			return 1;
	}
	return 0;
}

/* The member that stands behind one in its queue. A hint. */
static __always_inline __u32 dvtrr_behind(struct dvtrr *p, __u32 processor, __u32 number)
{
	struct dvtrr_queue *queue =
		dvtrr_queue_at(p, dvtrr_queue_number(p, processor, dvtrr_home(p, number)));
	struct dvtrr_member *member = dvtrr_member_at(p, number);

	if (!queue || !member)
		return DVTRR_NONE;
	if (member->next != DVTRR_NONE || member->line != queue->due)
		return member->next;
	return dvtrr_line_of(queue, !queue->due)->first;
}

/* A client that waits in another processor's queues and may run on this one, among those that stand in front. A hint. */
static __always_inline __u32 dvtrr_any_at(struct dvtrr *p, __u32 other, __u32 processor)
{
	struct dvtrr_queue *queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, DVTRR_ROOT));
	__u32 member = queue ? dvtrr_first(queue, queue->due) : DVTRR_NONE, nth, next, domain;
	int is_searched = 0;

	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_SEARCHED && member != DVTRR_NONE;
	     nth = dvtrr_after(nth)) {
		next = DVTRR_NONE;
		domain = dvtrr_domain_of(p, member);
		if (domain == DVTRR_NONE && dvtrr_may_run(p, member, processor))
			return member;
		if (domain != DVTRR_NONE && !is_searched) {
			queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, domain));
			next = queue ? dvtrr_first(queue, queue->due) : DVTRR_NONE;
		}
		if (next == DVTRR_NONE)
			next = dvtrr_behind(p, other, member);
		is_searched = next == DVTRR_NONE;
		if (is_searched)
			next = dvtrr_above(p, dvtrr_home(p, member), other);
		member = next;
	}
	return DVTRR_NONE;
}

/* Takes any client that waits at another processor. Takes locks. */
static __always_inline int dvtrr_take_any(struct dvtrr *p, __u32 processor)
{
	__u32 nth, other, client;

	for (nth = 1; DVTRR_CAN_LOOP && nth < p->processors; nth++) {
		other = dvtrr_other(p, processor, nth);
		client = dvtrr_ahead_on(p, other, processor);
		if (client == DVTRR_NONE)
			client = dvtrr_any_at(p, other, processor);
		if (client != DVTRR_NONE && DVTRR_TAKE(p, client, other, processor))
			return 1;
	}
	return 0;
}

#endif
