/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Group virtual-time round robin: a tree of VTRR queues. The twin of src/vtrr/group.rs, where it is described. A
 * domain's entity has the number first_domain plus its own.
 *
 * Loops over levels end at the root, because a domain's parent is known before the domain is.
 */
#ifndef METE_VTRR_GROUP_H
#define METE_VTRR_GROUP_H

#include "vtrr_progress.h"
#include "vtrr_queue.h"

static __always_inline __u32 vtrr_entity_of(const struct vtrr *p, __u32 domain)
{
	return p->first_domain + domain;
}

/* A domain as an entity; NULL for the root, which is in no queue. The caller has checked that it is below p->domains. */
static __always_inline struct vtrr_entity *vtrr_above(struct vtrr *p, __u32 domain)
{
	return domain == VTRR_ROOT ? 0 : vtrr_entity_at(p, vtrr_entity_of(p, domain));
}

static __always_inline int vtrr_is_known(struct vtrr *p, __u32 domain)
{
	struct vtrr_entity *entity = vtrr_above(p, domain);

	return domain == VTRR_ROOT || (domain < p->domains && entity && entity->state != VTRR_ABSENT);
}

/* Whether a client that runs is charged in a domain's queue: the client, or the domain that it is inside of, stands there. */
static __always_inline int vtrr_is_charged(struct vtrr *p, __u32 client, __u32 domain)
{
	struct vtrr_entity *member = vtrr_entity_at(p, client);
	__u32 home;

	while (VTRR_CAN_LOOP && member && (home = member->home) != domain)
		member = vtrr_above(p, home);
	return member && member->is_member;
}

static __always_inline __u64 vtrr_unused_of(struct vtrr *p, const struct vtrr_run *run, __u32 domain,
					    __u64 left_ns)
{
	return run->client != VTRR_NONE && vtrr_is_charged(p, run->client, domain) ? left_ns : 0;
}

/* The sum of what members of a domain's queue were charged in advance, for clients that run now, and have not used yet. */
static __always_inline __u64 vtrr_unused_ns(struct vtrr *p, __u32 domain, __u64 now)
{
	__u64 unused_ns = 0;
	__u32 processor;

	for (processor = 0; VTRR_CAN_LOOP && processor < p->processors; processor++) {
		struct vtrr_seat *seat = vtrr_seat_at(p, processor);

		if (!seat)
			break;
		if (seat->before.client == VTRR_NONE) {
			unused_ns +=
				vtrr_unused_of(p, &seat->latest, domain, vtrr_left_ns(p, &seat->latest, now));
			continue;
		}
		/* While the client before has not left, the latest one was picked ahead and has not begun. */
		unused_ns += vtrr_unused_of(p, &seat->before, domain, vtrr_left_ns(p, &seat->before, now));
		unused_ns += vtrr_unused_of(p, &seat->latest, domain, p->quantum_ns);
	}
	return unused_ns;
}

/* Notes whether a member can be selected, and what follows from that for the domains above it. */
static __always_inline void vtrr_mark(struct vtrr *p, __u32 number, int busy)
{
	struct vtrr_entity *entity = vtrr_entity_at(p, number);
	struct vtrr_queue *queue;
	__u32 others;

	while (VTRR_CAN_LOOP && entity && entity->is_member && entity->busy != busy) {
		entity->busy = busy;
		queue = vtrr_queue_at(p, entity->home);
		if (!queue)
			return;
		/* The other idle members: only the first and the last idle one change the domain's own entity. */
		others = queue->idle - busy;
		queue->idle = others + !busy;
		if (others)
			return;
		entity = vtrr_above(p, entity->home);
	}
}

/* Puts a client into its domain's queue, and each domain above into its parent's if it was empty. */
static __always_inline void vtrr_enter(struct vtrr *p, __u32 client, __u64 now)
{
	struct vtrr_entity *entity;
	struct vtrr_queue *queue;
	__u32 number = client, home;
	int was_empty = 1;

	while (VTRR_CAN_LOOP && was_empty && (entity = vtrr_entity_at(p, number))) {
		home = entity->home;
		queue = vtrr_queue_at(p, home);
		if (!queue)
			break;
		was_empty = queue->head == VTRR_NONE;
		/* Busy until the mark below, so that the domains above count idle members only once. */
		vtrr_insert(p, queue, number, vtrr_unused_ns(p, home, now), 1);
		if (home == VTRR_ROOT)
			break;
		number = vtrr_entity_of(p, home);
	}
	vtrr_mark(p, client, 0);
}

/* Takes a client out of its domain's queue, and each domain that this leaves empty out of its parent's. */
static __always_inline void vtrr_leave(struct vtrr *p, __u32 client)
{
	struct vtrr_entity *entity;
	struct vtrr_queue *queue;
	__u32 number = client, home;

	vtrr_mark(p, client, 1);
	while (VTRR_CAN_LOOP && (entity = vtrr_entity_at(p, number)) && entity->is_member) {
		home = entity->home;
		queue = vtrr_queue_at(p, home);
		if (!queue)
			return;
		vtrr_remove(p, queue, number);
		if (queue->head != VTRR_NONE || home == VTRR_ROOT)
			return;
		number = vtrr_entity_of(p, home);
	}
}

/* Puts a member's changed share into effect: it departs and arrives again. */
static __always_inline void vtrr_change_share(struct vtrr *p, __u32 number, __u64 now)
{
	struct vtrr_entity *entity = vtrr_entity_at(p, number);
	struct vtrr_queue *queue;

	if (!entity || !entity->is_member)
		return;
	queue = vtrr_queue_at(p, entity->home);
	if (!queue)
		return;
	vtrr_remove(p, queue, number);
	vtrr_insert(p, queue, number, vtrr_unused_ns(p, entity->home, now), entity->busy);
}

/* Charges what was used of a quantum to a client and to the domains above it, which go on with it. */
static __always_inline void vtrr_charge(struct vtrr *p, __u32 client, __u64 ran_ns, int was_charged,
					int goes_on)
{
	struct vtrr_entity *entity;
	struct vtrr_queue *queue;
	__u32 number = client;

	while (VTRR_CAN_LOOP && (entity = vtrr_entity_at(p, number)) && entity->is_member) {
		queue = vtrr_queue_at(p, entity->home);
		if (!queue)
			return;
		vtrr_settle(p, queue, number, ran_ns, was_charged);
		if (goes_on)
			vtrr_stand_before(p, queue, number);
		if (entity->home == VTRR_ROOT)
			return;
		number = vtrr_entity_of(p, entity->home);
		/* Whatever the client does, its domains go on with their quanta if they have other ready members. */
		goes_on = 1;
	}
}

static __always_inline void vtrr_add_domain(struct vtrr *p, __u32 domain, __u32 parent, __u32 share)
{
	struct vtrr_entity *entity = vtrr_above(p, domain);

	if (domain >= p->domains || !entity || entity->state != VTRR_ABSENT)
		return;
	entity->home = vtrr_is_known(p, parent) ? parent : VTRR_ROOT;
	entity->share = share;
	entity->state = VTRR_BLOCKED;
}

static __always_inline void vtrr_set_domain_share(struct vtrr *p, __u32 domain, __u32 share, __u64 now)
{
	struct vtrr_entity *entity = vtrr_above(p, domain);

	if (!entity || !vtrr_is_known(p, domain))
		return;
	entity->share = share;
	vtrr_change_share(p, vtrr_entity_of(p, domain), now);
}

/* A client's entity; NULL for a number that no client can have. */
static __always_inline struct vtrr_entity *vtrr_client(struct vtrr *p, __u32 client)
{
	return client < p->clients ? vtrr_entity_at(p, client) : 0;
}

static __always_inline void vtrr_add(struct vtrr *p, __u32 client, __u32 domain, __u32 share)
{
	struct vtrr_entity *entity = vtrr_client(p, client);

	if (!entity || entity->state != VTRR_ABSENT)
		return;
	entity->state = VTRR_BLOCKED;
	entity->share = share;
	entity->home = vtrr_is_known(p, domain) ? domain : VTRR_ROOT;
	entity->departed_share = 0;
}

static __always_inline void vtrr_remove_client(struct vtrr *p, __u32 client, __u64 now)
{
	struct vtrr_entity *entity = vtrr_client(p, client);

	if (!entity)
		return;
	entity->state = VTRR_ABSENT;
	vtrr_end_run(p, entity, client, now);
	if (entity->is_member)
		vtrr_leave(p, client);
}

static __always_inline void vtrr_set_share(struct vtrr *p, __u32 client, __u32 share, __u64 now)
{
	struct vtrr_entity *entity = vtrr_client(p, client);

	if (!entity || entity->state == VTRR_ABSENT)
		return;
	entity->share = share;
	vtrr_change_share(p, client, now);
}

static __always_inline void vtrr_wake(struct vtrr *p, __u32 client, __u64 now)
{
	struct vtrr_entity *entity = vtrr_client(p, client);

	if (!entity || entity->state != VTRR_BLOCKED)
		return;
	entity->state = VTRR_READY;
	vtrr_enter(p, client, now);
}

/* The client that runs next on a processor; VTRR_NONE if none is ready. */
static __always_inline __u32 vtrr_pick(struct vtrr *p, __u32 processor, __u64 now)
{
	struct vtrr_queue *queue;
	__u32 domain = VTRR_ROOT, number;

	if (processor >= p->processors)
		return VTRR_NONE;
	/* A busy member is never selected, so every domain on the way down has an idle member to select. */
	while (VTRR_CAN_LOOP && (queue = vtrr_queue_at(p, domain))) {
		number = vtrr_select(p, queue);
		if (number == VTRR_NONE)
			break;
		if (number < p->clients) {
			vtrr_mark(p, number, 1);
			vtrr_begin_run(p, processor, number, now);
			return number;
		}
		domain = number - p->first_domain;
	}
	return VTRR_NONE;
}

/*
 * A client runs that was not picked: the kernel gave it its processor back after a task of a higher class. It is charged
 * when it stops. (The trait Policy has no such call: every other owner runs only clients that were picked.)
 */
static __always_inline void vtrr_runs_unpicked(struct vtrr *p, __u32 client, __u64 now)
{
	struct vtrr_entity *entity = vtrr_client(p, client);

	if (!entity)
		return;
	vtrr_wake(p, client, now);
	if (!entity->is_member || entity->busy)
		return;
	entity->unpicked = 1;
	vtrr_mark(p, client, 1);
}

/* A running client left its processor. */
static __always_inline void vtrr_ran(struct vtrr *p, __u32 client, __u64 ran_ns, enum vtrr_stop stop,
				     __u64 now)
{
	struct vtrr_entity *entity = vtrr_client(p, client);

	if (!entity || !entity->is_member || !entity->busy)
		return;
	vtrr_end_run(p, entity, client, now);
	/* A client that yields gives up the rest of its quantum, and of its domains'. */
	if (stop == VTRR_YIELDED && ran_ns < p->quantum_ns)
		ran_ns = p->quantum_ns;
	if (entity->unpicked || ran_ns != p->quantum_ns)
		vtrr_charge(p, client, ran_ns, !entity->unpicked, stop == VTRR_PREEMPTED);
	entity->unpicked = 0;
	vtrr_mark(p, client, 0);
	if (stop != VTRR_STOP_BLOCKED)
		return;
	entity->state = VTRR_BLOCKED;
	vtrr_leave(p, client);
}

#endif
