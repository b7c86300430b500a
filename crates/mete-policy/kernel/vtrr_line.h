/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The members of a queue in their order: a list, and a tree over it that finds the place of an arrival.
 *
 * The tree is a treap: ordered by key from left to right, and by a hash of the members' numbers from the root down.
 * So it has the shape of a tree that was filled in random order, and an arrival or a departure takes as many steps as the
 * logarithm of the number of members (Aragon, Seidel: Randomized search trees, 1989). Decisions use the list alone.
 */
#ifndef METE_VTRR_LINE_H
#define METE_VTRR_LINE_H

#include "vtrr_state.h"

enum vtrr_side {
	VTRR_LEFT,
	VTRR_RIGHT,
};

/* A link of the tree: a side of a member, or the queue's root if the member is VTRR_NONE. */
struct vtrr_link {
	__u32 from;
	__u32 side;
};

static __always_inline __u64 vtrr_key_of(const struct vtrr_entity *entity, __u32 number)
{
	return vtrr_key(entity->member_share, number);
}

/* The priority in the tree: a bijection of 32 bits that scatters numbers (Steele, Vigna, 2021, over a step of MurmurHash3). */
static __always_inline __u32 vtrr_scatter(__u32 number)
{
	number ^= number >> 16;
	number *= 0x85ebca6bu;
	number ^= number >> 13;
	number *= 0xc2b2ae35u;
	return number ^ number >> 16;
}

static __always_inline void vtrr_set_link(struct vtrr *p, struct vtrr_queue *queue, struct vtrr_link link,
					  __u32 to)
{
	struct vtrr_entity *from = vtrr_entity_at(p, link.from);

	if (!from)
		queue->root = to;
	else if (link.side == VTRR_LEFT)
		from->left = to;
	else
		from->right = to;
}

/* Links an arrival, whose share is set, between its neighbours. */
static __always_inline void vtrr_line_insert(struct vtrr *p, struct vtrr_queue *queue,
					     struct vtrr_entity *entity, __u32 number)
{
	struct vtrr_link link = { VTRR_NONE, VTRR_LEFT };
	struct vtrr_link smaller = { number, VTRR_LEFT };
	struct vtrr_link larger = { number, VTRR_RIGHT };
	__u32 at = queue->root, before = VTRR_NONE, behind = VTRR_NONE;
	__u64 key = vtrr_key_of(entity, number);
	struct vtrr_entity *node, *neighbour;
	__u32 priority = vtrr_scatter(number);

	/* Down to the first member that belongs below the arrival. */
	while (VTRR_CAN_LOOP && (node = vtrr_entity_at(p, at)) && vtrr_scatter(at) > priority) {
		link.from = at;
		if (vtrr_key_of(node, at) < key) {
			before = at;
			link.side = VTRR_RIGHT;
			at = node->right;
		} else {
			behind = at;
			link.side = VTRR_LEFT;
			at = node->left;
		}
	}
	vtrr_set_link(p, queue, link, number);
	/* What was there goes below it: smaller keys to its left, larger ones to its right. */
	while (VTRR_CAN_LOOP && (node = vtrr_entity_at(p, at))) {
		if (vtrr_key_of(node, at) < key) {
			before = at;
			vtrr_set_link(p, queue, smaller, at);
			smaller.from = at;
			smaller.side = VTRR_RIGHT;
			at = node->right;
		} else {
			behind = at;
			vtrr_set_link(p, queue, larger, at);
			larger.from = at;
			larger.side = VTRR_LEFT;
			at = node->left;
		}
	}
	vtrr_set_link(p, queue, smaller, VTRR_NONE);
	vtrr_set_link(p, queue, larger, VTRR_NONE);

	entity->previous = before;
	entity->next = behind;
	neighbour = vtrr_entity_at(p, before);
	if (neighbour)
		neighbour->next = number;
	else
		queue->head = number;
	neighbour = vtrr_entity_at(p, behind);
	if (neighbour)
		neighbour->previous = number;
}

/* The link that leads to a member. */
static __always_inline struct vtrr_link vtrr_link_to(struct vtrr *p, struct vtrr_queue *queue,
						     const struct vtrr_entity *entity, __u32 number)
{
	struct vtrr_link link = { VTRR_NONE, VTRR_LEFT };
	__u64 key = vtrr_key_of(entity, number);
	struct vtrr_entity *node;
	__u32 at = queue->root;

	while (VTRR_CAN_LOOP && at != number && (node = vtrr_entity_at(p, at))) {
		link.from = at;
		link.side = vtrr_key_of(node, at) < key ? VTRR_RIGHT : VTRR_LEFT;
		at = link.side == VTRR_RIGHT ? node->right : node->left;
	}
	return link;
}

/* Unlinks a member. A cursor that stood on it stands on the next one. */
static __always_inline void vtrr_line_remove(struct vtrr *p, struct vtrr_queue *queue,
					     struct vtrr_entity *entity, __u32 number)
{
	struct vtrr_link link = vtrr_link_to(p, queue, entity, number);
	struct vtrr_entity *left, *right, *neighbour;

	/* Its two subtrees become one in its place: the root with the higher priority stays above the other. */
	left = vtrr_entity_at(p, entity->left);
	right = vtrr_entity_at(p, entity->right);
	__u32 left_at = entity->left, right_at = entity->right;
	while (VTRR_CAN_LOOP && left && right) {
		if (vtrr_scatter(left_at) > vtrr_scatter(right_at)) {
			vtrr_set_link(p, queue, link, left_at);
			link.from = left_at;
			link.side = VTRR_RIGHT;
			left_at = left->right;
			left = vtrr_entity_at(p, left_at);
		} else {
			vtrr_set_link(p, queue, link, right_at);
			link.from = right_at;
			link.side = VTRR_LEFT;
			right_at = right->left;
			right = vtrr_entity_at(p, right_at);
		}
	}
	vtrr_set_link(p, queue, link, left ? left_at : right_at);

	if (queue->cursor == number)
		queue->cursor = entity->next;
	neighbour = vtrr_entity_at(p, entity->previous);
	if (neighbour)
		neighbour->next = entity->next;
	else
		queue->head = entity->next;
	neighbour = vtrr_entity_at(p, entity->next);
	if (neighbour)
		neighbour->previous = entity->previous;
}

#endif
