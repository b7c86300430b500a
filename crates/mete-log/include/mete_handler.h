/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The log handler in C, for eBPF programs: for the same calls it writes the same bytes as src/handler.rs.
 *
 * It runs on the processor that the area belongs to. Either no other handler of the same processor preempts
 * it, or it says that one can (mete_log_nested). The including file defines
 *
 *	METE_CLOCK(source)	the time stamp of that source (METE_STAMP_HARDWARE, _TICK, _RUN_QUEUE);
 *				it may use `r`, the record at hand
 *
 * and can define METE_PUBLISH(p, v), a store with release semantics (the default is enough on x86),
 * METE_RECORD_EXTRA, members that its clock needs in a record, and METE_COUNTER(r), the counter of a record,
 * which is read after the time stamp.
 */
#ifndef METE_HANDLER_H
#define METE_HANDLER_H

#include "mete_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define METE_BARRIER() asm volatile("" ::: "memory")

#ifndef METE_PUBLISH
#define METE_PUBLISH(p, v)                    \
	do {                                  \
		METE_BARRIER();               \
		*(volatile __u64 *)(p) = (v); \
	} while (0)
#endif

#ifndef METE_COUNTER
#define METE_COUNTER(r) ((r)->counter)
#endif

#define METE_READ(x) (*(volatile __typeof__(x) *)&(x))

/* One occurrence. The correspondent is METE_NO_DOMAIN if there is none. */
struct mete_record {
	__u16 event;
	__u16 domain;
	__u16 correspondent;
	__u64 counter;
#ifdef METE_RECORD_EXTRA
	METE_RECORD_EXTRA
#endif
};

static __always_inline struct mete_pair *mete_pair_of(struct mete_area *area, __u32 domain, __u32 event)
{
	return &area->pair[domain & (METE_DOMAINS - 1)][event & (METE_EVENTS - 1)];
}

/* Thesis 3.6.2: an occurrence that stays inside its domain is not logged, unless the pair asks for it. */
static __always_inline int mete_is_internal(const struct mete_pair *pair, const struct mete_record *r)
{
	return r->domain == r->correspondent && !(METE_READ(pair->flags) & METE_PAIR_KEEP_INTERNAL);
}

/* Counts one occurrence. True if it makes a row (thesis 4.3.5). */
static __always_inline int mete_reaches_threshold(struct mete_pair *pair)
{
	__u32 threshold = METE_READ(pair->threshold);
	__u32 count;

	if (threshold <= 1)
		return 1;
	count = METE_READ(pair->count) + 1;
	if (count < threshold) {
		pair->count = count;
		return 0;
	}
	pair->count = 0;
	return 1;
}

static __always_inline __u64 mete_stamp(struct mete_area *area, __u32 source, const struct mete_record *r)
{
	if (source == METE_STAMP_VIRTUAL)
		return area->header.virtual_clock++;
	return METE_CLOCK(source);
}

static __always_inline __u64 mete_who(const struct mete_record *r)
{
	return r->event | (__u64)r->domain << 16 | (__u64)r->correspondent << 32;
}

/* The word of the data at which row number `index` begins. It is masked where it is used, not here. */
static __always_inline __u64 mete_place(__u64 control, __u64 index)
{
	return (control >> METE_FIRST_SHIFT & METE_FIRST_MASK) +
	       (index << (control & METE_ROW_MASK) & control >> METE_LAST_SHIFT);
}

/* The row at `place`. Its words can run over into the slack. */
#define METE_ROW(area, place) ((volatile __u64 *)&(area)->data[(place) & (METE_DATA_BYTES / 8 - 1)])

static __always_inline void mete_refuse(struct mete_register *file)
{
	__sync_fetch_and_add(&file->lost, 1);
}

/* Writes one row into a file whose control word was read before. The clock is read first: a call in
 * the middle would push everything else out of the registers. */
static __always_inline void mete_put_row(struct mete_area *area, struct mete_register *file, __u64 control,
					 const struct mete_record *r)
{
	__u32 given = (control & METE_STAMP_MASK) >> METE_STAMP_SHIFT;
	/* A garbled word can name a source that does not exist. The row has no stamp then. */
	__u32 source = given > METE_STAMP_RUN_QUEUE ? 0 : given;
	__u64 stamp = source ? mete_stamp(area, source, r) : 0;
	__u64 index = METE_READ(file->index);
	volatile __u64 *row = METE_ROW(area, mete_place(control, index));
	__u64 counter = METE_COUNTER(r);

	if (control & METE_ADD)
		counter += METE_ROW(area, mete_place(control, index - 1))[!!(control & METE_ENTRY_WHO)];
	if (control & METE_ENTRY_WHO)
		*row++ = mete_who(r);
	if (control & METE_ENTRY_COUNTER)
		*row++ = counter;
	if (source)
		*row = stamp;
	METE_PUBLISH(&file->index, index + 1);
}

/*
 * Routes and writes one row; the threshold was passed before. `can_nest`: another handler can interrupt this
 * one on the same processor. That handler then finds the file busy and counts its row as lost.
 */
static __always_inline void mete_write_row(struct mete_area *area, struct mete_pair *pair,
					   const struct mete_record *r, int can_nest)
{
	struct mete_register *file = &area->file[METE_READ(pair->selector) & (METE_FILES - 1)];
	__u64 control = METE_READ(file->control);

	if (!(control & METE_ENABLED))
		return;
	if (control & METE_FROZEN || METE_READ(file->busy)) {
		mete_refuse(file);
		return;
	}
	if (can_nest)
		*(volatile __u32 *)&file->busy = 1;
	mete_put_row(area, file, control, r);
	if (can_nest)
		*(volatile __u32 *)&file->busy = 0;
}

/* The whole handler: filter, threshold, routing, row. */
static __always_inline void mete_log_nested(struct mete_area *area, const struct mete_record *r, int can_nest)
{
	struct mete_pair *pair = mete_pair_of(area, r->domain, r->event);

	if (mete_is_internal(pair, r) || !mete_reaches_threshold(pair))
		return;
	mete_write_row(area, pair, r, can_nest);
}

static __always_inline void mete_log(struct mete_area *area, const struct mete_record *r)
{
	mete_log_nested(area, r, 0);
}

/*
 * Entry and exit of a phase of use (thesis 4.3.5). The threshold is counted at the entry. mete_enter answers
 * whether this phase is to be logged, so that a costly value is read only if it is needed. The caller
 * remembers the answer and calls mete_exit only for such a phase.
 */
static __always_inline int mete_enter(struct mete_area *area, __u32 domain, __u32 event)
{
	return mete_reaches_threshold(mete_pair_of(area, domain, event));
}

static __always_inline void mete_exit(struct mete_area *area, const struct mete_record *r, int can_nest)
{
	struct mete_pair *pair = mete_pair_of(area, r->domain, r->event);

	if (!mete_is_internal(pair, r))
		mete_write_row(area, pair, r, can_nest);
}

#endif
