/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Distributed group virtual-time round robin: the calls of its owner. The twin of src/distributed/mod.rs. What takes locks
 * says so; everything else is called under one.
 */
#ifndef METE_DVTRR_H
#define METE_DVTRR_H

#include "dvtrr_pass.h"

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

/*
 * A client becomes runnable, on the processor that it names, and stands in no line yet. Whether the one that runs there is to
 * give way.
 */
static __always_inline int dvtrr_rise(struct dvtrr *p, __u32 number, struct dvtrr_client *client)
{
	struct dvtrr_line *ahead = dvtrr_ahead_at(p, client->processor);
	struct dvtrr_domain *domain = dvtrr_domain_at(p, client->home);

	client->state = DVTRR_READY;
	dvtrr_enter(p, number, client->processor);
	client->is_ahead = *dvtrr_belief(client) > DVTRR_THRESHOLD &&
			   dvtrr_may_go_ahead(p, number, client->processor, domain && domain->members <= 1);
	/* One that is ahead has the processor already, or was promised it. */
	return client->is_ahead && ahead && ahead->first == DVTRR_NONE &&
	       dvtrr_gives_way(p, client->processor);
}

/* The same, and it waits in line. */
static __always_inline int dvtrr_wake(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	int gives_way;

	if (!client || client->state != DVTRR_BLOCKED)
		return 0;
	gives_way = dvtrr_rise(p, number, client);
	dvtrr_put(p, number, client->processor, 0);
	return gives_way;
}

/* A client that runs has left its processor. */
static __always_inline void dvtrr_ran(struct dvtrr *p, __u32 number, __u64 ran_ns, enum dvtrr_stop stop)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	int was_ahead, goes_on;

	if (!client || client->state != DVTRR_RUNNING)
		return;
	dvtrr_end_run(p, number, client->processor);
	was_ahead = client->is_ahead;
	dvtrr_judge(client, ran_ns, p->quantum_ns, stop);
	dvtrr_charge(p, number, client->processor, ran_ns, was_ahead);
	/* One that is late has its turn at once again, and so have the domains that it is in, as long as they are due. */
	goes_on = stop == DVTRR_PREEMPTED || dvtrr_is_late(p, number);
	if (!goes_on && !was_ahead)
		dvtrr_end_turns(p, number, client->processor);
	if (stop == DVTRR_STOP_BLOCKED) {
		client->state = DVTRR_BLOCKED;
		dvtrr_leave(p, number, client->processor);
		return;
	}
	client->state = DVTRR_READY;
	dvtrr_put(p, number, client->processor, goes_on);
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
	struct dvtrr_domain *domain = dvtrr_domain_at(p, number), *above;

	/* A client of one that was forgotten may have woken. */
	if (!domain || !account || domain->is_known || domain->members)
		return;
	domain->parent = dvtrr_is_known(p, parent) ? parent : DVTRR_ROOT;
	domain->is_known = 1;
	account->share = share;
	account->used = 0;
	above = dvtrr_domain_at(p, domain->parent);
	if (above)
		__sync_fetch_and_add(&above->children, 1);
}

/* Forgets a domain whose members do not wait and do not run, and in which no domain is. */
static __always_inline void dvtrr_remove_domain(struct dvtrr *p, __u32 number)
{
	struct dvtrr_domain *domain = dvtrr_domain_at(p, number), *above;

	if (!domain || number == DVTRR_ROOT || !domain->is_known || domain->members || domain->children)
		return;
	domain->is_known = 0;
	above = dvtrr_domain_at(p, domain->parent);
	if (above)
		__sync_fetch_and_add(&above->children, -1);
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
	dvtrr_believe(client, 0);
	client->cause = DVTRR_NO_EVENT;
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
