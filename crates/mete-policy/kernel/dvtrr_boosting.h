/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Clients that go ahead of all others when they wake: with the end of dvtrr_queue.h, which needs the domain's account, the twin of
 * src/distributed/boosting.rs.
 */
#ifndef METE_DVTRR_BOOSTING_H
#define METE_DVTRR_BOOSTING_H

#include "dvtrr_state.h"

/*
 * What a short run and a long run add to the belief that a client runs briefly when what woke it wakes it, what it has to exceed, and
 * its range.
 */
#define DVTRR_POSITIVE 5
#define DVTRR_NEGATIVE 20
#define DVTRR_THRESHOLD 20
#define DVTRR_LEAST_BELIEF (-100)
#define DVTRR_MOST_BELIEF 300
/* A run is long when it takes more than this part of a quantum. */
#define DVTRR_LONG_RUN 2
/* The part of its domain's time that clients may use ahead of their turn. */
#define DVTRR_RATIO 2
/* How many quanta a domain can save up for that, or be in arrears with. */
#define DVTRR_SAVED 10
/* How many quanta a member may have had too much while its clients go ahead. */
#define DVTRR_MOST_DEBT 4
/* More time than any run takes, and little enough for the sums. */
#define DVTRR_MOST_RAN_NS (1ull << 40)

/* What is believed of a client as far as that wakes it which does. */
static __always_inline __s16 *dvtrr_belief(struct dvtrr_client *client)
{
	return &client->beliefs[client->cause & (DVTRR_CAUSES - 1)];
}

/* Whatever wakes it. */
static __always_inline void dvtrr_believe(struct dvtrr_client *client, __s16 belief)
{
	__u32 cause;

	for (cause = 0; cause < DVTRR_CAUSES; cause++)
		client->beliefs[cause] = belief;
}

/* Judges a run, and the one ahead of its turn ends unless it was only interrupted. */
static __always_inline void dvtrr_judge(struct dvtrr_client *client, __u64 ran_ns, __u64 quantum_ns,
					enum dvtrr_stop stop)
{
	__u64 ran = client->ran_ns + ran_ns;
	__s16 *believed = dvtrr_belief(client);
	__s32 belief = *believed;
	int is_long;

	if (ran < ran_ns)
		ran = ~0ull;
	is_long = ran > quantum_ns / DVTRR_LONG_RUN;
	if (stop == DVTRR_STOP_BLOCKED && !is_long)
		belief += DVTRR_POSITIVE;
	else if (stop == DVTRR_STOP_BLOCKED || stop == DVTRR_EXPIRED)
		belief -= DVTRR_NEGATIVE;
	if (belief < DVTRR_LEAST_BELIEF)
		belief = DVTRR_LEAST_BELIEF;
	if (belief > DVTRR_MOST_BELIEF)
		belief = DVTRR_MOST_BELIEF;
	*believed = belief;
	if (stop != DVTRR_PREEMPTED || is_long)
		client->is_ahead = 0;
	client->ran_ns = stop == DVTRR_STOP_BLOCKED ? 0 : ran;
	if (stop == DVTRR_STOP_BLOCKED)
		client->cause = DVTRR_NO_EVENT;
}

/* All time that a domain uses widens its allowance, and what is used ahead takes it up. */
static __always_inline void dvtrr_allow(struct dvtrr *p, struct dvtrr_domain *domain, __u64 ran_ns,
					int is_ahead)
{
	__s64 most = p->quantum_ns * DVTRR_SAVED, more, now;

	if (ran_ns > DVTRR_MOST_RAN_NS)
		ran_ns = DVTRR_MOST_RAN_NS;
	more = (__s64)(ran_ns / DVTRR_RATIO) - (__s64)(is_ahead ? ran_ns : 0);
	now = (__s64)dvtrr_add(&domain->allowance_ns, more) + more;
	if (now > most)
		dvtrr_replace(&domain->allowance_ns, now, most);
	else if (now < -most)
		dvtrr_replace(&domain->allowance_ns, now, -most);
}

#endif
