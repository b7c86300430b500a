/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The recording buffer and its producer, for C and BPF C. The definition is in src/layout.rs,
 * src/record.rs and src/protocol.rs beside this folder, which also give the reasons. A test runs
 * the same calls through both producers.
 *
 * There is one area for each processor: a page of header, 2^n bytes of data, a page of slack. In
 * eBPF an area is an element of a BPF_MAP_TYPE_ARRAY with BPF_F_MMAPABLE. The loader sets the value
 * size, and a constant (.rodata) tells the verifier the size of the buffer. Compile with -mcpu=v3:
 * the compare-and-exchange needs it (kernel 5.12).
 *
 * The file that includes this one provides __u16, __u32, __u64 (linux/types.h or vmlinux.h). A
 * record:
 *
 *	struct mete_trace_place place;
 *	__u64 *record = mete_trace_reserve(area, data_bytes, 24, &place, bpf_ktime_get_ns());
 *
 *	if (!record)
 *		return 0;
 *	record[2] = pid;
 *	mete_trace_commit(record, SCHEDIN, 24, &place);
 *
 * A program must not end between the two calls. A program that can call the flush thread does so
 * when place.at_mark is set. An eBPF program cannot, and the thread comes by itself.
 */
#ifndef METE_TRACE_H
#define METE_TRACE_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define METE_TRACE_MAGIC 0x014655424554454dull /* "METEBUF", 1 */
#define METE_TRACE_HEADER_BYTES 4096
#define METE_TRACE_SLACK_BYTES 4096
#define METE_TRACE_RECORD_HEADER_BYTES 16
#define METE_TRACE_RECORD_MAX_BYTES 4096
#define METE_TRACE_PADDING 0xffff
#define METE_TRACE_DUMP_BEGIN 0xfffe
#define METE_TRACE_DUMP_FINISH 0xfffd
#define METE_TRACE_SWITCHED_ON 0xfffc
#define METE_TRACE_SWITCHED_OFF 0xfffb
#define METE_TRACE_MISSED_RUNS 0xfffa
#define METE_TRACE_FIRST_RESERVED 0xfff0
#define METE_TRACE_TRIES 8
#define METE_TRACE_AREA_BYTES(data_bytes) (METE_TRACE_HEADER_BYTES + (data_bytes) + METE_TRACE_SLACK_BYTES)

struct mete_trace_area {
	__u64 magic;
	__u32 processor;
	__u32 size_log2; /* of the data; never read back */
	__u64 reserved0[6];
	__u64 reserve; /* low half: words ever reserved; high half: events that ever occurred */
	__u64 reserved1[7];
	__u64 released; /* bytes ever released; only the flush thread writes it */
	__u32 mark; /* bytes in use from which on the flush thread is called */
	__u32 reserved2[13];
	__u32 calls; /* counts calls: a futex */
	__u32 reserved3[(METE_TRACE_HEADER_BYTES - 196) / 4];
	__u64 data[]; /* data_bytes, and the slack */
};

#ifdef __cplusplus
#define METE_TRACE_ASSERT_ static_assert
#else
#define METE_TRACE_ASSERT_ _Static_assert
#endif
METE_TRACE_ASSERT_(sizeof(struct mete_trace_area) == METE_TRACE_HEADER_BYTES, "area layout");

struct mete_trace_place {
	__u32 serial;
	__u32 at_mark; /* this record has crossed the low-water mark */
};

#define METE_TRACE_READ(x) (*(volatile __typeof__(x) *)&(x))

/* A store that comes after all others. This is enough on x86, where stores are not reordered. */
#ifndef METE_TRACE_PUBLISH
#define METE_TRACE_PUBLISH(p, v)               \
	do {                                   \
		asm volatile("" ::: "memory"); \
		*(volatile __u64 *)(p) = (v);  \
	} while (0)
#endif

/* The data from a byte offset on. The offset is masked here, so that at most the slack can be spoiled. */
#define METE_TRACE_AT(area, data_bytes, offset) \
	((__u64 *)((char *)(area)->data + ((offset) & ((data_bytes) - 8))))

static __always_inline __u64 mete_trace_head(__u32 event, __u32 bytes, __u32 serial)
{
	return event | (__u64)bytes << 16 | (__u64)serial << 32;
}

/* An event that finds no room takes a serial number and nothing else. The carry leaves the word at the top. */
static __always_inline void mete_trace_lose(struct mete_trace_area *area)
{
	__sync_fetch_and_add(&area->reserve, 1ull << 32);
}

/*
 * A place for a record of `bytes` bytes (a constant: 16 to 4096, a multiple of 8) in a buffer of
 * `data_bytes` (a constant to the verifier, a power of two). Null if there is no room; the event is
 * counted as lost then.
 *
 * This is a macro so that `clock` is evaluated after the reserve word is read and before
 * mete_trace_take takes the place. So time stamps are in the order of the serial numbers.
 */
#define mete_trace_reserve(area, data_bytes, bytes, place, clock)                                      \
	({                                                                                             \
		struct mete_trace_area *area_ = (area);                                                \
		__u64 *record_ = 0;                                                                    \
		int tries_;                                                                            \
                                                                                                       \
		for (tries_ = 0; tries_ < METE_TRACE_TRIES; tries_++) {                                \
			__u64 old_ = METE_TRACE_READ(area_->reserve);                                  \
			__u64 used_ = mete_trace_used(area_, old_);                                    \
			__u64 stamp_;                                                                  \
                                                                                                       \
			if (!mete_trace_has_room(old_, used_, (data_bytes), (bytes)))                  \
				break;                                                                 \
			stamp_ = (clock);                                                              \
			record_ = mete_trace_take(area_, (data_bytes), (bytes), old_, used_, (place)); \
			if (record_) {                                                                 \
				record_[1] = stamp_;                                                   \
				break;                                                                 \
			}                                                                              \
		}                                                                                      \
		if (!record_)                                                                          \
			mete_trace_lose(area_);                                                        \
		record_;                                                                               \
	})

/* Bytes in use when the reserve word was `old`. */
static __always_inline __u64 mete_trace_used(struct mete_trace_area *area, __u64 old)
{
	__u32 released = METE_TRACE_READ(area->released) >> 3;

	return (__u64)((__u32)old - released) * 8;
}

/* The space before the end of the data, if the record does not fit into it. */
static __always_inline __u32 mete_trace_padding(__u64 old, __u32 data_bytes, __u32 bytes)
{
	__u32 to_end = data_bytes - ((__u32)old * 8 & (data_bytes - 1));

	return bytes > to_end ? to_end : 0;
}

static __always_inline int mete_trace_has_room(__u64 old, __u64 used, __u32 data_bytes, __u32 bytes)
{
	return used + mete_trace_padding(old, data_bytes, bytes) + bytes <= data_bytes;
}

/* Takes the place; null if another producer has taken one since `old` was read. */
static __always_inline __u64 *mete_trace_take(struct mete_trace_area *area, __u32 data_bytes, __u32 bytes,
					      __u64 old, __u64 used, struct mete_trace_place *place)
{
	__u32 padding = mete_trace_padding(old, data_bytes, bytes);
	__u32 offset = (__u32)old * 8;
	__u64 next = ((old >> 32) + 1) << 32 | (__u32)((__u32)old + (padding + bytes) / 8);
	__u32 mark = METE_TRACE_READ(area->mark);

	if (__sync_val_compare_and_swap(&area->reserve, old, next) != old)
		return 0;
	place->serial = old >> 32;
	place->at_mark = used < mark && used + padding + bytes >= mark;
	if (padding) {
		METE_TRACE_PUBLISH(METE_TRACE_AT(area, data_bytes, offset),
				   mete_trace_head(METE_TRACE_PADDING, padding, 0));
		offset += padding;
	}
	return METE_TRACE_AT(area, data_bytes, offset);
}

/* Completes the record: a reader that sees its first word sees the rest. */
static __always_inline void mete_trace_commit(__u64 *record, __u32 event, __u32 bytes,
					      const struct mete_trace_place *place)
{
	METE_TRACE_PUBLISH(record, mete_trace_head(event, bytes, place->serial));
}

#endif
