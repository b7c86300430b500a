/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The layout of a log area, for C and BPF C. The definition is in src/layout.rs, src/control.rs and
 * src/row.rs, next to this folder. A test compares every constant and runs the same calls through both
 * handlers.
 *
 * The including file provides __u16, __u32 and __u64 (linux/types.h or vmlinux.h). Before it includes this
 * file it can set the shape: METE_FILES_LOG2, METE_DOMAINS_LOG2, METE_EVENTS_LOG2, METE_DATA_LOG2.
 */
#ifndef METE_LAYOUT_H
#define METE_LAYOUT_H

/* Shape::KERNEL */
#ifndef METE_FILES_LOG2
#define METE_FILES_LOG2 10
#define METE_DOMAINS_LOG2 8
#define METE_EVENTS_LOG2 5
#define METE_DATA_LOG2 20
#endif

#define METE_FILES (1 << METE_FILES_LOG2)
#define METE_DOMAINS (1 << METE_DOMAINS_LOG2)
#define METE_EVENTS (1 << METE_EVENTS_LOG2)
#define METE_DATA_BYTES (1 << METE_DATA_LOG2)
#define METE_SLACK_BYTES 64
#define METE_PAGE 4096

#define METE_NO_DOMAIN 0xffff
#define METE_PAIR_KEEP_INTERNAL 1

/* The control word, see src/control.rs. */
#define METE_ROW_MASK 31 /* log2 of the words of a row */
#define METE_ENABLED (1ull << 5)
#define METE_FROZEN (1ull << 6)
#define METE_PLAIN (1ull << 7) /* follows from the other flags */
#define METE_ENTRY_EVENT (1ull << 8)
#define METE_ENTRY_DOMAIN (1ull << 9)
#define METE_ENTRY_CORRESPONDENT (1ull << 10)
#define METE_ENTRY_COUNTER (1ull << 11)
#define METE_ENTRY_WHO (METE_ENTRY_EVENT | METE_ENTRY_DOMAIN | METE_ENTRY_CORRESPONDENT)
#define METE_STAMP_SHIFT 12
#define METE_STAMP_MASK (7ull << METE_STAMP_SHIFT)
#define METE_STAMP_HARDWARE 1
#define METE_STAMP_TICK 2
#define METE_STAMP_VIRTUAL 3
#define METE_STAMP_RUN_QUEUE 4
#define METE_ADD (1ull << 15)
#define METE_FIRST_SHIFT 16 /* the file's first word in the data, 24 bits */
#define METE_FIRST_MASK 0xffffff
#define METE_LAST_SHIFT 40 /* the number of words of the file, minus one */

struct mete_register {
	__u64 index; /* the number of rows ever written; storing it commits a row */
	__u64 control; /* the scheduler writes it */
	__u64 lost; /* the number of rows refused: the file was frozen, or in use by an interrupted writer */
	__u32 busy; /* non-zero while an interruptible writer writes a row */
	__u32 reserved[9];
};

struct mete_pair {
	__u16 selector; /* the log file of this (domain, event) */
	__u16 flags; /* METE_PAIR_KEEP_INTERNAL */
	__u32 threshold; /* occurrences that make one row */
	__u32 count; /* occurrences since the last row */
	__u32 reserved;
};

struct mete_header {
	__u64 magic;
	__u8 shape[4];
	__u32 processor;
	__u64 reserved[6];
	__u64 virtual_clock; /* incremented at each reading */
	__u64 rest[(METE_PAGE - 72) / 8];
};

#define METE_PAGE_UP(n) (((n) + METE_PAGE - 1) & ~(METE_PAGE - 1))
#define METE_TABLE_OFFSET (METE_PAGE + 64 * METE_FILES)
#define METE_DATA_OFFSET METE_PAGE_UP(METE_TABLE_OFFSET + 16 * METE_DOMAINS * METE_EVENTS)
#define METE_AREA_BYTES METE_PAGE_UP(METE_DATA_OFFSET + METE_DATA_BYTES + METE_SLACK_BYTES)

struct mete_area {
	struct mete_header header;
	struct mete_register file[METE_FILES];
	struct mete_pair pair[METE_DOMAINS][METE_EVENTS];
	__u8 gap[METE_DATA_OFFSET - METE_TABLE_OFFSET - 16 * METE_DOMAINS * METE_EVENTS];
	__u64 data[(METE_AREA_BYTES - METE_DATA_OFFSET) / 8]; /* words, so that compilers store them whole */
};

_Static_assert(sizeof(struct mete_area) == METE_AREA_BYTES, "area layout");

#endif
