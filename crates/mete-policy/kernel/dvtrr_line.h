/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Lines of members: the twin of src/distributed/line.rs. */
#ifndef METE_DVTRR_LINE_H
#define METE_DVTRR_LINE_H

#include "dvtrr_state.h"

static __always_inline struct dvtrr_line *dvtrr_line_of(struct dvtrr_queue *queue, __u32 line)
{
	return &queue->lines[dvtrr_index(line, 2)];
}

/* Puts a member, which stands nowhere, behind or in front of all others of a line. */
static __always_inline void dvtrr_line_push(struct dvtrr *p, struct dvtrr_line *line, __u32 which,
					    __u32 number, int is_first)
{
	struct dvtrr_member *member = dvtrr_member_at(p, number), *neighbour;

	if (!member)
		return;
	member->line = which;
	member->previous = is_first ? DVTRR_NONE : line->last;
	member->next = is_first ? line->first : DVTRR_NONE;
	neighbour = dvtrr_member_at(p, is_first ? line->first : line->last);
	if (neighbour && is_first)
		neighbour->previous = number;
	else if (neighbour)
		neighbour->next = number;
	if (is_first || line->first == DVTRR_NONE)
		line->first = number;
	if (!is_first || line->last == DVTRR_NONE)
		line->last = number;
}

/* Takes a member out of the line that it stands in. */
static __always_inline void dvtrr_line_remove(struct dvtrr *p, struct dvtrr_line *line, __u32 number)
{
	struct dvtrr_member *member = dvtrr_member_at(p, number), *previous, *next;

	if (!member || member->line == DVTRR_NOWHERE)
		return;
	previous = dvtrr_member_at(p, member->previous);
	next = dvtrr_member_at(p, member->next);
	if (previous)
		previous->next = member->next;
	else
		line->first = member->next;
	if (next)
		next->previous = member->previous;
	else
		line->last = member->previous;
	member->line = DVTRR_NOWHERE;
}

#endif
