/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What running clients have been charged and not used yet, as far as the times of events show. The twin of
 * src/progress.rs.
 */
#ifndef METE_VTRR_PROGRESS_H
#define METE_VTRR_PROGRESS_H

#include "vtrr_state.h"

/* A client was picked for a processor. */
static __always_inline void vtrr_begin_run(struct vtrr *p, __u32 processor, __u32 client, __u64 now)
{
	struct vtrr_entity *entity = vtrr_entity_at(p, client);
	struct vtrr_seat *seat = vtrr_seat_at(p, processor);

	if (!entity || !seat)
		return;
	seat->before = seat->latest;
	seat->latest.client = client;
	seat->latest.since_ns = now;
	entity->processor = processor;
}

/* A client stopped or was removed. */
static __always_inline void vtrr_end_run(struct vtrr *p, const struct vtrr_entity *entity, __u32 client,
					 __u64 now)
{
	struct vtrr_seat *seat = vtrr_seat_at(p, entity->processor);

	if (!seat)
		return;
	if (seat->before.client == client) {
		seat->before.client = VTRR_NONE;
		/* The client that was picked ahead begins now, whenever it was picked. */
		seat->latest.since_ns = now;
	} else if (seat->latest.client == client) {
		/* A decision that was taken ahead is given back: the client before goes on as it did. */
		seat->latest = seat->before;
		seat->before.client = VTRR_NONE;
	}
}

/* What is left at a time of a run's quantum. */
static __always_inline __u64 vtrr_left_ns(const struct vtrr *p, const struct vtrr_run *run, __u64 now)
{
	__u64 used_ns = now > run->since_ns ? now - run->since_ns : 0;

	return used_ns < p->quantum_ns ? p->quantum_ns - used_ns : 0;
}

#endif
