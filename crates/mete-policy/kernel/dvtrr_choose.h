/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Which client runs next: the twin of choose() and go_on() in src/distributed/search.rs. All of this takes locks, and is called
 * under none.
 */
#ifndef METE_DVTRR_CHOOSE_H
#define METE_DVTRR_CHOOSE_H

#include "dvtrr.h"

/* In eBPF these are functions of their own, which the verifier looks at once. */
#ifndef DVTRR_LOOK
#define DVTRR_LOOK(p, processor) dvtrr_look(p, processor)
#define DVTRR_TAKE_DUE(p, processor, home) dvtrr_take_due(p, processor, home)
#define DVTRR_RELIEVE(p, processor, home) dvtrr_relieve(p, processor, home)
#define DVTRR_LEND(p, processor, home) dvtrr_lend_there(p, processor, home)
#define DVTRR_PASS(p, processor, home, tries) dvtrr_pass(p, processor, home, tries)
#define DVTRR_RAISE(p, processor, home) dvtrr_raise(p, processor, home)
#define DVTRR_TAKE_ANY(p, processor) dvtrr_take_any(p, processor)
#endif

/* Has a processor go on whose members of this domain have all had what they were due. Whether it took a client from another. */
static __always_inline int dvtrr_go_on(struct dvtrr *p, __u32 processor, __u32 home, __u32 tries)
{
	int search = DVTRR_TAKE_DUE(p, processor, home), pass;

	if (search == DVTRR_NONE_DUE)
		search = DVTRR_RELIEVE(p, processor, home);
	if (search == DVTRR_BARRED)
		DVTRR_LEND(p, processor, home);
	if (search != DVTRR_NONE_DUE)
		return search == DVTRR_TAKEN;
	pass = DVTRR_PASS(p, processor, home, tries);
	if (pass == DVTRR_LAGS)
		DVTRR_RAISE(p, processor, home);
	if (pass != DVTRR_ALONE)
		return 0;
	/* Others may wait elsewhere, and if they have had what they were due, a new round is due. */
	if (DVTRR_TAKE_DUE(p, processor, DVTRR_ROOT) == DVTRR_TAKEN)
		return 1;
	DVTRR_RAISE(p, processor, DVTRR_ROOT);
	return 0;
}

/* The client that runs next on a processor; DVTRR_NONE if none waits. Adds to taken how many it took from other processors. */
static __always_inline __u32 dvtrr_pick(struct dvtrr *p, __u32 processor, __u64 *taken)
{
	struct dvtrr_found found;
	__u32 tries;

	if (processor >= p->processors)
		return DVTRR_NONE;
	for (tries = 0; DVTRR_CAN_LOOP; tries = dvtrr_after(tries)) {
		found = DVTRR_LOOK(p, processor);
		if (found.client != DVTRR_NONE)
			return found.client;
		if (found.domain != DVTRR_NONE) {
			*taken += dvtrr_go_on(p, processor, found.domain, tries);
			continue;
		}
		if (!DVTRR_TAKE_ANY(p, processor))
			return DVTRR_NONE;
		++*taken;
	}
	return DVTRR_NONE;
}

#endif
