/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What programs that are generated from a schema need: the recording buffers, counters, registers. The
 * module generate/bpf of mete-schema says what each macro is for, and mete_trace.h how a buffer works.
 */
#ifndef METE_RECORD_H
#define METE_RECORD_H

#include "types.h"

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_F_MMAPABLE = 1 << 10,
};

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "domain_table.bpf.h"
#include "mete_trace.h"

/* Shared with the Rust code, by shared.bpf.c. */
enum mete_recording_limit {
	METE_FIRST_EVENT = 16, /* the number of the first event of a schema */
	METE_EVENT_WORDS = 16, /* words that have a bit for each event of a schema; a power of two */
	METE_VIRTUAL_COUNTERS = 16,
};

/*
 * The loader writes these constants before the programs are verified. The verifier removes the code of events
 * that are off.
 */
const volatile struct mete_recording {
	__u32 data_bytes; /* of each buffer; a power of two */
	__u32 processors; /* the number of possible processors */
	__u64 events[METE_EVENT_WORDS]; /* bit n: there is code for the event METE_FIRST_EVENT + n */
	__u32 pid_mask; /* of the table of domains: a power of two less one, or 0 where no task is bound */
	__u32 domain_mask; /* keeps the domain of an entry of that table */
} recording SEC(".rodata.recording");

/*
 * What the recorder changes while programs run; bit n as above. Programs are attached and detached one by
 * one. So no event is on before all are attached, and all are off before any is detached; else some kinds of
 * events would be recorded earlier and longer than others.
 */
volatile struct mete_switches {
	__u64 events[METE_EVENT_WORDS];
} switches SEC(".bss.switches");

/*
 * The buffers, which the recorder maps. The loader sets the size of an element, which is a multiple of the
 * page size, so the buffer of each processor begins on a page.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, METE_TRACE_AREA_BYTES(65536));
} buffers SEC(".maps");

/* Virtual counter n of processor p is at n * processors + p. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} counters SEC(".maps");

#define mete_place mete_trace_place

static __always_inline _Bool mete_is_on(__u32 id)
{
	__u32 nth = id - METE_FIRST_EVENT;

	if (!(recording.events[nth / 64 & (METE_EVENT_WORDS - 1)] >> (nth % 64) & 1))
		return 0;
	return switches.events[nth / 64 & (METE_EVENT_WORDS - 1)] >> (nth % 64) & 1;
}

/* What the records of one run of a program share. The first record fills it in. */
struct mete_here {
	struct mete_trace_area *area;
	__u64 now;
};

static __always_inline void *mete_begin(struct mete_place *place, struct mete_here *here, __u32 id,
					__u32 bytes)
{
	if (!mete_is_on(id))
		return 0;
	if (!here->area) {
		__u32 processor = bpf_get_smp_processor_id();

		here->area = bpf_map_lookup_elem(&buffers, &processor);
		if (!here->area)
			return 0;
		here->now = bpf_ktime_get_ns();
	}
	return mete_trace_reserve(here->area, recording.data_bytes, bytes, place, here->now);
}

struct mete_counter_value {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

/* The value of a counter; 0 if the machine has taken it away. */
static __always_inline __u64 mete_counter(__u32 nth)
{
	struct mete_counter_value value;
	__u32 at = nth * recording.processors + bpf_get_smp_processor_id();

	if (bpf_perf_event_read_value(&counters, at, (void *)&value, sizeof(value)))
		return 0;
	return value.counter;
}

/* The accounting domain of the running thread, by the kernel component's table; 0 where no task is bound. */
static __always_inline __u16 mete_domain(void)
{
	__u32 pid = bpf_get_current_pid_tgid();
	volatile __u16 *table;

	if (!recording.pid_mask)
		return 0;
	table = pid_table();
	return table ? table[pid & recording.pid_mask] & recording.domain_mask : 0;
}

/* At which word of its context a program on a function finds the registers of the call's arguments. */
#ifdef __TARGET_ARCH_x86
#define METE_PARAMETER_AT(n) \
	((n) == 0 ? 14 : (n) == 1 ? 13 : (n) == 2 ? 12 : (n) == 3 ? 11 : (n) == 4 ? 9 : 8)
#define METE_RETURNED_AT 10
#else
#define METE_PARAMETER_AT(n) (n)
#define METE_RETURNED_AT 0
#endif

#define METE_BEGIN(place, here, id, bytes) mete_begin(place, here, id, bytes)
#define METE_END(place, record, id, bytes) mete_trace_commit((__u64 *)(record), id, bytes, place)
#define METE_TIME() bpf_ktime_get_ns()
#define METE_DOMAIN() mete_domain()
#define METE_COUNTER(n) mete_counter(n)
#define METE_PARAMETER(ctx, n) (((__u64 *)(ctx))[METE_PARAMETER_AT(n)])
#define METE_RETURNED(ctx) (((__u64 *)(ctx))[METE_RETURNED_AT])

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#endif
