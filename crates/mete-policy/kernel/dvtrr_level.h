/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The levels of the tree of domains on one processor: a client in its domain's queue, this domain in its parent's, and so on.
 *
 * Loops over them end at the root, because a domain's parent is known before the domain is. They ask last whether they may go on: after the last
 * level, clang would compile that into a jump to the next instruction, which the verifier refuses.
 */
#ifndef METE_DVTRR_LEVEL_H
#define METE_DVTRR_LEVEL_H

#include "dvtrr_account.h"

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

/* A member, and the queue that it stands in or would stand in. */
struct dvtrr_level {
	__u32 member;
	__u32 home; /* the domain whose queue it is */
	struct dvtrr_account *account; /* the member's */
	struct dvtrr_domain *domain; /* the home; NULL above the root */
};

static __always_inline struct dvtrr_level dvtrr_level_of(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	struct dvtrr_level level = { number, DVTRR_ROOT, dvtrr_account_at(p, number), 0 };

	if (!client || !level.account)
		return level;
	level.home = client->home;
	level.domain = dvtrr_domain_at(p, level.home);
	return level;
}

/* The home itself as a member of the queue above. Every decision does this several times: it computes nothing that is known. */
static __always_inline void dvtrr_ascend(struct dvtrr *p, struct dvtrr_level *level, __u32 processor)
{
	struct dvtrr_domain *domain = level->domain;

	level->domain = 0;
	if (level->home == DVTRR_ROOT || !domain)
		return;
	level->member = p->clients + dvtrr_queue_number(p, processor, level->home);
	level->account = dvtrr_account_at(p, p->clients + level->home);
	level->home = domain->parent;
	if (level->account)
		level->domain = dvtrr_domain_at(p, level->home);
}

/* Its queue. */
static __always_inline struct dvtrr_queue *dvtrr_queue_of(struct dvtrr *p, const struct dvtrr_level *level,
							  __u32 processor)
{
	return dvtrr_queue_at(p, dvtrr_queue_number(p, processor, level->home));
}

#endif
