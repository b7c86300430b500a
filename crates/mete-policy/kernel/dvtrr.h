/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Distributed group virtual-time round robin: what one processor needs of others, and the calls of its owner. The twin of
 * src/distributed/mod.rs and search.rs. What takes locks says so; everything else is called under one.
 */
#ifndef METE_DVTRR_H
#define METE_DVTRR_H

#include "dvtrr_take.h"

/* How many members of another queue are looked at before the next queue is. */
#define DVTRR_LOOKED_AT 4
/* How many members of a queue divide what those who are due cannot use. */
#define DVTRR_LENT_TO 16

/* What came of looking for a client to take from another processor. */
enum dvtrr_search {
	DVTRR_TAKEN,
	DVTRR_NONE_DUE,
	/* Members elsewhere are due, and no client that would help them may run here. */
	DVTRR_BARRED,
};

/* Takes a client to the queues of another processor. In eBPF it is a function of its own, which the verifier looks at once. */
#ifndef DVTRR_TAKE
#define DVTRR_TAKE(p, number, from, to) dvtrr_take(p, number, from, to)
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

/* A client that waits under a member of another processor's queue and may run on this one. A hint. */
static __always_inline __u32 dvtrr_client_under(struct dvtrr *p, __u32 other, __u32 member, __u32 processor)
{
	struct dvtrr_queue *queue;
	__u32 domain;

	while (DVTRR_CAN_LOOP && (domain = dvtrr_domain_of(p, member)) != DVTRR_NONE) {
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, domain));
		if (!queue || member == DVTRR_NONE)
			return DVTRR_NONE;
		member = dvtrr_first(queue, queue->due);
		if (member == DVTRR_NONE)
			return DVTRR_NONE;
	}
	return dvtrr_may_run(p, member, processor) ? member : DVTRR_NONE;
}

/* A client under a member that is due, among the first of a line of another processor's queue. A hint. */
static __always_inline __u32 dvtrr_due_in(struct dvtrr *p, __u32 other, struct dvtrr_queue *queue, __u32 line,
					  __u64 limit, __u32 processor, enum dvtrr_search *search)
{
	__u32 number = dvtrr_line_of(queue, line)->first, nth, client;
	struct dvtrr_member *member;

	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LOOKED_AT; nth = dvtrr_after(nth)) {
		member = dvtrr_member_at(p, number);
		if (!member)
			break;
		if (dvtrr_is_due(p, number, limit)) {
			client = dvtrr_client_under(p, other, number, processor);
			if (client != DVTRR_NONE)
				return client;
			*search = DVTRR_BARRED;
		}
		number = member->next;
	}
	return DVTRR_NONE;
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
	struct dvtrr_queue *queue;
	__u32 nth, other, client;
	__u64 limit;

	for (nth = 1; DVTRR_CAN_LOOP && domain && nth < p->processors; nth++) {
		other = dvtrr_other(p, processor, nth);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, home));
		if (!queue)
			return search;
		limit = domain->limit;
		client = home == DVTRR_ROOT ? dvtrr_ahead_on(p, other, processor) : DVTRR_NONE;
		if (client == DVTRR_NONE)
			client = dvtrr_due_in(p, other, queue, queue->due, limit, processor, &search);
		if (client == DVTRR_NONE)
			client = dvtrr_due_in(p, other, queue, !queue->due, limit, processor, &search);
		if (client != DVTRR_NONE && DVTRR_TAKE(p, client, other, processor))
			return DVTRR_TAKEN;
	}
	return search;
}

/* Whether the member of a domain's queue that runs on another processor is due more than a quantum. A hint. */
static __always_inline int dvtrr_runs_on(struct dvtrr *p, __u32 other, __u32 home, __u64 limit)
{
	__u32 *runs = dvtrr_running_at(p, other), member = runs ? *runs : DVTRR_NONE, its_home;
	struct dvtrr_account *account;

	while (DVTRR_CAN_LOOP && member != DVTRR_NONE) {
		its_home = dvtrr_home(p, member);
		if (its_home == home)
			break;
		member = dvtrr_above(p, its_home, other);
	}
	account = member == DVTRR_NONE ? 0 : dvtrr_account_of(p, member);
	return account &&
	       dvtrr_is_before(account->used + dvtrr_virtual(p->quantum_ns, account->share), limit);
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
		if (waits == DVTRR_NONE || !dvtrr_runs_on(p, other, home, domain->limit))
			continue;
		client = dvtrr_client_under(p, other, waits, processor);
		if (client != DVTRR_NONE && DVTRR_TAKE(p, client, other, processor))
			return DVTRR_TAKEN;
		search = DVTRR_BARRED;
	}
	return search;
}

/* The least that one of the first members has used that wait in a queue; limit if none waits. A hint. */
static __always_inline __u64 dvtrr_least_used(struct dvtrr *p, struct dvtrr_queue *queue, int *found,
					      __u64 least)
{
	__u32 number = dvtrr_line_of(queue, !queue->due)->first, nth;
	struct dvtrr_account *account;
	struct dvtrr_member *member;

	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LOOKED_AT; nth = dvtrr_after(nth)) {
		member = dvtrr_member_at(p, number);
		account = member ? dvtrr_account_of(p, number) : 0;
		if (!account)
			break;
		if (!*found || dvtrr_is_before(account->used, least))
			least = account->used;
		*found = 1;
		number = member->next;
	}
	return least;
}

/* Raises the limit of a domain so far that its members are due a quantum each on average, and one that waits is due. */
static __always_inline void dvtrr_raise(struct dvtrr *p, __u32 processor, __u32 home)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	__u64 limit, raised, members, least = 0;
	struct dvtrr_queue *queue;
	int found = 0;
	__u32 nth;

	if (!domain)
		return;
	limit = domain->limit;
	members = domain->members;
	raised = limit + dvtrr_virtual(p->quantum_ns, domain->total / (members ? members : 1));
	/* Those that wait may have had more than others: then more than one round is over. */
	for (nth = 0; DVTRR_CAN_LOOP && nth < p->processors; nth++) {
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, dvtrr_other(p, processor, nth), home));
		if (queue)
			least = dvtrr_least_used(p, queue, &found, least);
	}
	if (found && dvtrr_is_before(raised, least + 1))
		raised = least + 1;
	/* Another processor may have raised it meanwhile. */
	if (dvtrr_replace(&domain->limit, limit, raised))
		domain->round = raised - limit;
}

/*
 * Those that are due may not run here, so those that wait here divide this processor as if that were theirs: the one that
 * has used the least becomes due, and the others come as much nearer to it.
 */
static __always_inline void dvtrr_lend(struct dvtrr *p, __u32 processor, __u32 home)
{
	struct dvtrr_queue *queue = dvtrr_queue_at(p, dvtrr_queue_number(p, processor, home));
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);
	struct dvtrr_account *account;
	struct dvtrr_member *member;
	__u64 least, lent;
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
	lent = least - domain->limit + 1;
	if ((__s64)lent <= 0)
		return;
	number = dvtrr_line_of(queue, !queue->due)->first;
	for (nth = 0; DVTRR_CAN_LOOP && nth < DVTRR_LENT_TO && (member = dvtrr_member_at(p, number));
	     nth = dvtrr_after(nth)) {
		account = dvtrr_account_of(p, number);
		if (account)
			dvtrr_add(&account->used, -lent);
		number = member->next;
	}
}

/* Has a processor go on whose members of this domain have all had what they were due. Takes locks. */
static __always_inline void dvtrr_go_on(struct dvtrr *p, __u32 processor, __u32 home)
{
	enum dvtrr_search search = dvtrr_take_due(p, processor, home);

	if (search == DVTRR_NONE_DUE)
		search = dvtrr_relieve(p, processor, home);
	if (search == DVTRR_NONE_DUE)
		dvtrr_raise(p, processor, home);
	if (search != DVTRR_BARRED)
		return;
	if (!dvtrr_lock(p, processor))
		return;
	dvtrr_lend(p, processor, home);
	dvtrr_unlock(p);
}

/* Takes any client that waits at another processor. Takes locks. */
static __always_inline int dvtrr_take_any(struct dvtrr *p, __u32 processor)
{
	struct dvtrr_queue *queue;
	__u32 nth, other, member, client;

	for (nth = 1; DVTRR_CAN_LOOP && nth < p->processors; nth++) {
		other = dvtrr_other(p, processor, nth);
		queue = dvtrr_queue_at(p, dvtrr_queue_number(p, other, DVTRR_ROOT));
		if (!queue)
			return 0;
		client = dvtrr_ahead_on(p, other, processor);
		if (client == DVTRR_NONE) {
			member = dvtrr_first(queue, queue->due);
			if (member == DVTRR_NONE)
				continue;
			client = dvtrr_client_under(p, other, member, processor);
		}
		if (client != DVTRR_NONE && DVTRR_TAKE(p, client, other, processor))
			return 1;
	}
	return 0;
}

/* What a processor found in its queues: a client; nothing; or a domain all of whose members have had what is theirs. */
struct dvtrr_found {
	__u32 client;
	__u32 domain;
};

/* Looks for the next client, and has it run. Takes a lock. */
static __always_inline struct dvtrr_found dvtrr_look(struct dvtrr *p, __u32 processor)
{
	struct dvtrr_found found = { DVTRR_NONE, DVTRR_NONE };
	__u32 home = DVTRR_ROOT, member, *runs = dvtrr_running_at(p, processor);
	struct dvtrr_line *ahead = dvtrr_ahead_at(p, processor);
	struct dvtrr_client *client;
	int exhausted = 0;

	if (!dvtrr_lock(p, processor))
		return found;
	while (DVTRR_CAN_LOOP) {
		member = ahead && ahead->first != DVTRR_NONE ? ahead->first
							     : dvtrr_turn(p, processor, home, &exhausted);
		if (member == DVTRR_NONE) {
			if (exhausted)
				found.domain = home;
			break;
		}
		client = dvtrr_client_at(p, member);
		if (client) {
			dvtrr_hide(p, member, processor);
			client->state = DVTRR_RUNNING;
			if (runs)
				*runs = member;
			found.client = member;
			break;
		}
		home = dvtrr_domain_of(p, member);
	}
	dvtrr_unlock(p);
	return found;
}

/* The client that runs next on a processor; DVTRR_NONE if none waits. Takes locks. */
static __always_inline __u32 dvtrr_pick(struct dvtrr *p, __u32 processor)
{
	struct dvtrr_found found;

	if (processor >= p->processors)
		return DVTRR_NONE;
	while (DVTRR_CAN_LOOP) {
		found = dvtrr_look(p, processor);
		if (found.client != DVTRR_NONE)
			return found.client;
		if (found.domain != DVTRR_NONE)
			dvtrr_go_on(p, processor, found.domain);
		else if (!dvtrr_take_any(p, processor))
			return DVTRR_NONE;
	}
	return DVTRR_NONE;
}

static __always_inline void dvtrr_end_run(struct dvtrr *p, __u32 number, __u32 processor)
{
	__u32 *runs = dvtrr_running_at(p, processor);

	if (runs && *runs == number)
		*runs = DVTRR_NONE;
}

/* Whether the client that runs on a processor has to give way to the first one that goes ahead. */
static __always_inline int dvtrr_gives_way(struct dvtrr *p, __u32 processor)
{
	__u32 *runs = dvtrr_running_at(p, processor);
	struct dvtrr_client *client = runs ? dvtrr_client_at(p, *runs) : 0;

	return client && !client->is_ahead;
}

/* A client becomes runnable, on the processor that it names. Whether the one that runs there is to give way. */
static __always_inline int dvtrr_wake(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	struct dvtrr_line *ahead;
	int is_first;

	if (!client || client->state != DVTRR_BLOCKED)
		return 0;
	client->state = DVTRR_READY;
	dvtrr_enter(p, number, client->processor);
	client->is_ahead = dvtrr_goes_ahead(p, number, client->processor);
	ahead = dvtrr_ahead_at(p, client->processor);
	/* One that is ahead has the processor already, or was promised it. */
	is_first = client->is_ahead && ahead && ahead->first == DVTRR_NONE;
	dvtrr_put(p, number, client->processor, 0);
	return is_first && dvtrr_gives_way(p, client->processor);
}

/* A client that runs has left its processor. */
static __always_inline void dvtrr_ran(struct dvtrr *p, __u32 number, __u64 ran_ns, enum dvtrr_stop stop)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	int was_ahead;

	if (!client || client->state != DVTRR_RUNNING)
		return;
	dvtrr_end_run(p, number, client->processor);
	was_ahead = client->is_ahead;
	dvtrr_judge(client, ran_ns, p->quantum_ns, stop);
	dvtrr_charge(p, number, client->processor, ran_ns, was_ahead);
	if (stop != DVTRR_PREEMPTED && !was_ahead)
		dvtrr_end_turns(p, number, client->processor);
	if (stop == DVTRR_STOP_BLOCKED) {
		client->state = DVTRR_BLOCKED;
		dvtrr_leave(p, number, client->processor);
		return;
	}
	client->state = DVTRR_READY;
	dvtrr_put(p, number, client->processor, stop == DVTRR_PREEMPTED);
}

/*
 * Has a client that waits for its turn go ahead of all others for a quantum, which its domain pays: it has no claim to
 * that, but the caller cannot let it wait. Whether it waited for its turn.
 */
static __always_inline int dvtrr_hasten(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	if (!client || client->state != DVTRR_READY || client->is_ahead)
		return 0;
	dvtrr_hide(p, number, client->processor);
	client->is_ahead = 1;
	dvtrr_put(p, number, client->processor, 0);
	return 1;
}

/* A client is not runnable any more, whatever it was before. */
static __always_inline void dvtrr_withdraw(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	if (!client || client->state == DVTRR_ABSENT || client->state == DVTRR_BLOCKED)
		return;
	dvtrr_end_run(p, number, client->processor);
	if (client->state == DVTRR_READY)
		dvtrr_hide(p, number, client->processor);
	if (client->state == DVTRR_MOVING)
		dvtrr_release(p, number, client->processor);
	else
		dvtrr_leave(p, number, client->processor);
	client->state = DVTRR_BLOCKED;
}

static __always_inline int dvtrr_is_known(struct dvtrr *p, __u32 number)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, number);

	return domain && domain->is_known;
}

/* Makes a domain known. Nothing is in it yet. */
static __always_inline void dvtrr_add_domain(struct dvtrr *p, __u32 number, __u32 parent, __u64 share)
{
	struct dvtrr_account *account = dvtrr_account_at(p, p->clients + number);
	struct dvtrr_domain *domain = dvtrr_domain_at(p, number);

	if (!domain || !account || domain->is_known)
		return;
	domain->parent = dvtrr_is_known(p, parent) ? parent : DVTRR_ROOT;
	domain->is_known = 1;
	account->share = share;
	account->used = 0;
}

/* Makes a client known, which is blocked. */
static __always_inline void dvtrr_add_client(struct dvtrr *p, __u32 number, __u32 home, __u64 share)
{
	struct dvtrr_account *account = dvtrr_account_at(p, number);
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	struct dvtrr_domain *domain;

	if (!client || !account || client->state != DVTRR_ABSENT)
		return;
	client->home = dvtrr_is_known(p, home) ? home : DVTRR_ROOT;
	client->state = DVTRR_BLOCKED;
	domain = dvtrr_domain_at(p, client->home);
	account->share = share;
	/* As one that was away: it has a quantum due when it comes. */
	account->used = (domain ? domain->limit : 0) - dvtrr_virtual(p->quantum_ns, share);
	client->belief = 0;
	client->ran_ns = 0;
	client->is_ahead = 0;
}

/* A client is not known any more. */
static __always_inline void dvtrr_remove(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	dvtrr_withdraw(p, number);
	if (client)
		client->state = DVTRR_ABSENT;
}

/* A client or, behind the clients, a domain has another share. */
static __always_inline void dvtrr_set_share(struct dvtrr *p, __u32 entity, __u32 home, __u64 share)
{
	struct dvtrr_account *account = dvtrr_account_at(p, entity);
	struct dvtrr_domain *domain = dvtrr_domain_at(p, home);

	if (account && domain)
		dvtrr_change_share(account, domain, share);
}

#endif
