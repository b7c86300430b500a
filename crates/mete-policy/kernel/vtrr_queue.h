/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * One VTRR run queue: selection, time counters, virtual times, the scheduling cycle (VTRR paper, 3.1). The twin of
 * src/vtrr/queue.rs, function by function; the reasons stand there.
 */
#ifndef METE_VTRR_QUEUE_H
#define METE_VTRR_QUEUE_H

#include "vtrr_line.h"

/* size * part / whole, rounded down, where the product may need more bits than there are. */
static __always_inline __u64 vtrr_part(__u64 size, __u32 part, __u32 whole)
{
	return size / whole * part + size % whole * part / whole;
}

/* The time that is due to a member in this cycle: the counter's quanta less what was used of the next one. */
static __always_inline __s64 vtrr_due_ns(const struct vtrr *p, const struct vtrr_entity *entity)
{
	return (__s64)(entity->counter * p->quantum_ns) - (__s64)entity->used_ns;
}

/* Sets the counter to the quanta that due_ns begins, and notes the excess. */
static __always_inline void vtrr_set_due_ns(const struct vtrr *p, struct vtrr_entity *entity, __s64 due_ns)
{
	__s64 quantum_ns = (__s64)p->quantum_ns;
	__u64 quanta;

	/* A debt of a whole quantum would need a counter below 0. */
	if (due_ns < 1 - quantum_ns)
		due_ns = 1 - quantum_ns;
	/* Not negative, so an unsigned division serves: eBPF has no other before its fourth version. */
	quanta = (__u64)(due_ns + quantum_ns - 1) / (__u64)quantum_ns;
	entity->counter = (__u32)quanta;
	entity->used_ns = quanta * (__u64)quantum_ns - (__u64)due_ns;
}

/* Sets a larger counter, and what is due to most_ns at most, as far as the counter allows it. */
static __always_inline void vtrr_raise(const struct vtrr *p, struct vtrr_entity *entity, __u32 counter,
				       vtrr_wide most_ns)
{
	vtrr_wide whole_ns = (vtrr_wide)(counter * p->quantum_ns);
	vtrr_wide least_ns = whole_ns - (vtrr_wide)p->quantum_ns + 1;
	vtrr_wide due_ns = most_ns < least_ns ? least_ns : most_ns > whole_ns ? whole_ns : most_ns;

	entity->counter = counter;
	entity->used_ns = (__u64)(whole_ns - due_ns);
}

/* Resets the counter for a new cycle and answers the quanta that are forfeit. */
static __always_inline __u32 vtrr_reset(struct vtrr_entity *entity, __u32 cycle)
{
	__u32 kept = entity->counter < entity->member_share ? entity->counter : entity->member_share;
	__u32 forfeit = entity->counter - kept;

	entity->counter = entity->member_share + kept;
	entity->cycle = cycle;
	return forfeit;
}

/* A member, with its counter reset if that is of an earlier cycle; NULL at the end of the queue. */
static __always_inline struct vtrr_entity *vtrr_refreshed(struct vtrr *p, struct vtrr_queue *queue,
							  __u32 number)
{
	struct vtrr_entity *entity = vtrr_entity_at(p, number);

	if (entity && entity->cycle != (__u32)queue->cycle) {
		__u32 forfeit = vtrr_reset(entity, (__u32)queue->cycle);

		/* The sum counted the forfeited quanta as due. */
		queue->due_ns -= (vtrr_wide)(forfeit * p->quantum_ns);
	}
	return entity;
}

/* From there on, the first member that is not busy. */
static __always_inline __u32 vtrr_first_idle(struct vtrr *p, __u32 number)
{
	struct vtrr_entity *entity;

	while (VTRR_CAN_LOOP && (entity = vtrr_entity_at(p, number)) && entity->busy)
		number = entity->next;
	return number;
}

/* From there on, the first member that is not busy and is due something. */
static __always_inline __u32 vtrr_first_due(struct vtrr *p, struct vtrr_queue *queue, __u32 number)
{
	struct vtrr_entity *entity;

	while (VTRR_CAN_LOOP && (entity = vtrr_refreshed(p, queue, number))) {
		if (!entity->busy && entity->counter > 0)
			return number;
		number = entity->next;
	}
	return VTRR_NONE;
}

/* Takes the n-th late member off the list; the last one takes its place. */
static __always_inline void vtrr_forget_late(struct vtrr *p, struct vtrr_queue *queue, __u32 nth)
{
	__u32 *place = vtrr_late_at(p, queue, nth);
	__u32 *last = vtrr_late_at(p, queue, queue->late - 1);

	if (place && last)
		*place = *last;
	queue->late--;
}

/* A member that still has to make up for an earlier cycle. */
static __always_inline __u32 vtrr_late(struct vtrr *p, struct vtrr_queue *queue)
{
	__u32 nth = 0, *number;

	if (!p->late)
		return VTRR_NONE;
	while (VTRR_CAN_LOOP && nth < queue->late && (number = vtrr_late_at(p, queue, nth))) {
		struct vtrr_entity *entity = vtrr_entity_at(p, *number);

		if (!entity || !entity->is_member) {
			vtrr_forget_late(p, queue, nth);
			continue;
		}
		vtrr_refreshed(p, queue, *number);
		/* A counter above the share: what is left over is of an earlier cycle. */
		if (entity->counter <= entity->member_share)
			vtrr_forget_late(p, queue, nth);
		else if (entity->busy)
			nth++;
		else
			return *number;
	}
	return VTRR_NONE;
}

/* The members that run at a cycle's end and are still due something make up for it in the next. */
static __always_inline void vtrr_note_late(struct vtrr *p, struct vtrr_queue *queue)
{
	struct vtrr_entity *entity;
	__u32 number = queue->head;

	while (VTRR_CAN_LOOP && (entity = vtrr_entity_at(p, number)) && queue->late < p->late) {
		__u32 nth = 0, *other;

		while (VTRR_CAN_LOOP && nth < queue->late && (other = vtrr_late_at(p, queue, nth)) &&
		       *other != number)
			nth++;
		if (entity->counter > 0 && nth == queue->late && (other = vtrr_late_at(p, queue, nth))) {
			*other = number;
			queue->late++;
		}
		number = entity->next;
	}
}

/* The VFT inequality: with the next quantum, the queue's virtual time overtakes this member's. */
static __always_inline int vtrr_is_behind(struct vtrr *p, struct vtrr_queue *queue,
					  const struct vtrr_entity *entity)
{
	vtrr_wide queue_due_ns = queue->due_ns - (vtrr_wide)p->quantum_ns;

	return entity->counter > 0 &&
	       vtrr_exceeds(vtrr_due_ns(p, entity), queue->total, entity->member_share, queue_due_ns);
}

/* The next member, if it has to run because of the time-counter invariant or the VFT inequality. */
static __always_inline __u32 vtrr_behind_current(struct vtrr *p, struct vtrr_queue *queue)
{
	__u32 number = vtrr_first_idle(p, queue->cursor);
	struct vtrr_entity *entity = vtrr_refreshed(p, queue, number);

	if (entity && (entity->counter > queue->current_counter || vtrr_is_behind(p, queue, entity)))
		return number;
	return VTRR_NONE;
}

/* The first member, in a new cycle if all have had what they were due. */
static __always_inline __u32 vtrr_at_the_head(struct vtrr *p, struct vtrr_queue *queue)
{
	__u32 first = vtrr_first_idle(p, queue->head), due;
	struct vtrr_entity *entity = vtrr_refreshed(p, queue, first);

	if (!entity)
		return VTRR_NONE;
	if (entity->counter > 0)
		return first;
	if (p->processors > 1) {
		due = vtrr_first_due(p, queue, queue->cursor);
		if (due == VTRR_NONE)
			due = vtrr_first_due(p, queue, first);
		if (due != VTRR_NONE)
			return due;
		vtrr_note_late(p, queue);
	}
	queue->cycle++;
	/* The new cycle's due of all, at once; each counter follows when its member is refreshed. */
	queue->due_ns += (vtrr_wide)queue->total * (vtrr_wide)p->quantum_ns;
	vtrr_refreshed(p, queue, first);
	return first;
}

/* Selects the member that runs next and charges it a quantum; VTRR_NONE when all are busy. */
static __always_inline __u32 vtrr_select(struct vtrr *p, struct vtrr_queue *queue)
{
	__u32 number = vtrr_late(p, queue);
	int is_late = number != VTRR_NONE;
	struct vtrr_entity *entity;

	if (!is_late)
		number = vtrr_behind_current(p, queue);
	if (number == VTRR_NONE)
		number = vtrr_at_the_head(p, queue);
	entity = vtrr_entity_at(p, number);
	if (!entity)
		return VTRR_NONE;
	entity->counter -= entity->counter > 0;
	queue->due_ns -= (vtrr_wide)p->quantum_ns;
	if (!is_late) {
		queue->current_key = vtrr_key_of(entity, number);
		queue->current_counter = entity->counter;
		queue->cursor = entity->next;
	}
	return number;
}

/* Charges what was really used. A quantum that was charged on selection is given back. */
static __always_inline void vtrr_settle(struct vtrr *p, struct vtrr_queue *queue, __u32 number, __u64 ran_ns,
					int was_charged)
{
	struct vtrr_entity *entity = vtrr_refreshed(p, queue, number);
	__u64 used_ns, quanta;
	__s64 before_ns;

	if (!entity)
		return;
	before_ns = vtrr_due_ns(p, entity);
	/* The quantum goes back before the real charge: that may then cross a whole quantum. */
	entity->counter += was_charged;
	used_ns = entity->used_ns + ran_ns;
	if (used_ns < ran_ns)
		used_ns = ~0ull;
	quanta = used_ns / p->quantum_ns;
	entity->counter -= quanta < entity->counter ? (__u32)quanta : entity->counter;
	entity->used_ns = used_ns % p->quantum_ns;
	queue->due_ns += vtrr_due_ns(p, entity) - before_ns;
}

/* After a member had to give way and was settled: if its quantum is not over, and no other has been selected, it is next. */
static __always_inline void vtrr_stand_before(struct vtrr *p, struct vtrr_queue *queue, __u32 number)
{
	struct vtrr_entity *entity = vtrr_entity_at(p, number), *before;

	if (!entity || vtrr_key_of(entity, number) != queue->current_key ||
	    entity->counter <= queue->current_counter)
		return;
	/* The member before it becomes the current one, with a counter of 0: any quantum left exceeds that. */
	before = vtrr_entity_at(p, entity->previous);
	queue->current_key = before ? vtrr_key_of(before, entity->previous) : VTRR_KEY_FIRST;
	queue->current_counter = 0;
	queue->cursor = number;
}

/*
 * What would be due to an entity if it had stayed and not run. A few whole cycles are more than any arrival is given, so
 * more of them are not counted.
 */
static __always_inline vtrr_wide vtrr_due_if_stayed_ns(const struct vtrr *p, const struct vtrr_queue *queue,
						       const struct vtrr_entity *entity)
{
	vtrr_wide whole_ns = (vtrr_wide)(entity->member_share * p->quantum_ns);
	__u64 cycles = queue->cycle > entity->departed_cycle ? queue->cycle - entity->departed_cycle : 0;
	__s64 due_ns = entity->departed_due_ns;
	__u64 size;

	if (cycles > 4 || !entity->departed_share)
		return 4 * whole_ns;
	if (entity->member_share < entity->departed_share) {
		/* Rounded towards zero, by an unsigned division. */
		size = vtrr_part(due_ns < 0 ? -(__u64)due_ns : (__u64)due_ns, entity->member_share,
				 entity->departed_share);
		due_ns = due_ns < 0 ? -(__s64)size : (__s64)size;
	}
	return due_ns + (vtrr_wide)cycles * whole_ns;
}

/* What is due to an entity that arrives now (VTRR paper, 3.2). */
static __always_inline __s64 vtrr_due_on_arrival_ns(const struct vtrr *p, const struct vtrr_queue *queue,
						    __u32 share, vtrr_wide stayed_ns, __u64 unused_ns)
{
	vtrr_wide whole_ns = (vtrr_wide)(share * p->quantum_ns);
	vtrr_wide due_ns = queue->due_ns + (vtrr_wide)unused_ns;
	vtrr_wide least_ns = whole_ns;

	if (queue->total > 0)
		least_ns = due_ns <= 0 ? 0 : vtrr_proportional(due_ns, share, queue->total);
	if (stayed_ns < least_ns)
		least_ns = stayed_ns;
	return (__s64)(least_ns < whole_ns ? least_ns : whole_ns);
}

/* Keeps the time-counter invariant between the neighbours of an arrival, and counts it in the sums. */
static __always_inline void vtrr_admit(struct vtrr *p, struct vtrr_queue *queue, struct vtrr_entity *entity,
				       vtrr_wide stayed_ns)
{
	struct vtrr_entity *behind = vtrr_refreshed(p, queue, entity->next);
	struct vtrr_entity *before = vtrr_refreshed(p, queue, entity->previous);
	__u32 smallest = 0, counter = entity->counter;

	if (behind) {
		/* One that runs next may have one more, which it must not lend to an arrival before it. */
		int runs_next = entity->next == queue->cursor && behind->counter > queue->current_counter;

		smallest = behind->counter - runs_next;
	}
	if (before && before->counter < counter)
		counter = before->counter;
	if (counter < smallest)
		counter = smallest;
	if (counter > entity->counter)
		vtrr_raise(p, entity, counter, stayed_ns);
	entity->counter = counter;
	queue->due_ns += vtrr_due_ns(p, entity);
	queue->total += entity->member_share;
}

/* Puts an entity into a queue, as one that was away since its departure. */
static __always_inline void vtrr_insert(struct vtrr *p, struct vtrr_queue *queue, __u32 number,
					__u64 unused_ns, int busy)
{
	struct vtrr_entity *entity = vtrr_entity_at(p, number);
	vtrr_wide stayed_ns;

	if (!entity)
		return;
	if (queue->head == VTRR_NONE) {
		/* No member is there to be compared with: a new cycle begins. */
		queue->cycle++;
		queue->current_key = VTRR_KEY_LAST;
		queue->current_counter = 0;
	}
	entity->is_member = 1;
	entity->busy = busy;
	entity->member_share = entity->share;
	entity->cycle = (__u32)queue->cycle;
	stayed_ns = vtrr_due_if_stayed_ns(p, queue, entity);
	vtrr_set_due_ns(p, entity, vtrr_due_on_arrival_ns(p, queue, entity->share, stayed_ns, unused_ns));
	vtrr_line_insert(p, queue, entity, number);
	/* Right behind the current member: the pass has not gone by yet, so the arrival is next. */
	if (queue->current_key < vtrr_key_of(entity, number) && entity->next == queue->cursor)
		queue->cursor = number;
	vtrr_admit(p, queue, entity, stayed_ns);
}

/* Takes a member off the list of late ones; the others keep their order. */
static __always_inline void vtrr_is_never_late(struct vtrr *p, struct vtrr_queue *queue, __u32 number)
{
	__u32 nth, kept = 0, *from, *to;

	if (!p->late)
		return;
	for (nth = 0; VTRR_CAN_LOOP && nth < queue->late; nth++) {
		from = vtrr_late_at(p, queue, nth);
		to = vtrr_late_at(p, queue, kept);
		if (from && to && *from != number) {
			*to = *from;
			kept++;
		}
	}
	queue->late = kept;
}

/* Takes a member out of a queue, and remembers what it needs when it comes back. */
static __always_inline void vtrr_remove(struct vtrr *p, struct vtrr_queue *queue, __u32 number)
{
	struct vtrr_entity *entity = vtrr_refreshed(p, queue, number);

	if (!entity)
		return;
	/* It makes up for nothing in the queue that it may be in next. */
	vtrr_is_never_late(p, queue, number);
	vtrr_line_remove(p, queue, entity, number);
	entity->is_member = 0;
	entity->departed_cycle = queue->cycle;
	entity->departed_due_ns = vtrr_due_ns(p, entity);
	entity->departed_share = entity->member_share;
	queue->due_ns -= entity->departed_due_ns;
	queue->total -= entity->member_share;
}

#endif
