/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a processor does in the queues of another one, under that one's lock: it takes a client out of them, and looks whose turn it
 * is. The twin of take() in src/distributed/search.rs.
 */
#ifndef METE_DVTRR_TAKE_H
#define METE_DVTRR_TAKE_H

#include "dvtrr_queue.h"

/* Whether a client waits in the queues of a processor. */
static __always_inline int dvtrr_waits(struct dvtrr *p, __u32 number, __u32 processor)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	return client && client->state == DVTRR_READY && client->processor == processor;
}

/*
 * Takes a client to the queues of another processor, in front of all others. Takes locks.
 *
 * Between the two locks it is moving: it stands in no queue, and is held in its account and those above, so that accounts of
 * domains that have clients are not taken for those of domains that return. Whoever ends the moving lets go of them.
 */
static __always_inline int dvtrr_take(struct dvtrr *p, __u32 number, __u32 from, __u32 to)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	int is_there;

	if (!client)
		return 0;
	if (!dvtrr_lock(p, from))
		return 0;
	is_there = dvtrr_waits(p, number, from);
	if (is_there) {
		dvtrr_hide(p, number, from);
		dvtrr_hold(p, number, from);
		dvtrr_leave(p, number, from);
		client->state = DVTRR_MOVING;
		client->processor = to;
	}
	dvtrr_unlock(p);
	if (!is_there)
		return 0;
	if (!dvtrr_lock(p, to))
		return 0;
	if (client->state == DVTRR_MOVING && client->processor == to) {
		client->state = DVTRR_READY;
		dvtrr_enter(p, number, to);
		dvtrr_release(p, number, to);
		dvtrr_put(p, number, to, 1);
	}
	dvtrr_unlock(p);
	return 1;
}

/* Has one that is due stand first in a queue, if any is. Takes a lock. */
static __always_inline void dvtrr_turn_there(struct dvtrr *p, __u32 processor, __u32 home)
{
	int exhausted = 0;

	if (!dvtrr_lock(p, processor))
		return;
	dvtrr_turn(p, processor, home, &exhausted);
	dvtrr_unlock(p);
}

#endif
