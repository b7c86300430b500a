/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The log areas, one for each processor, and the clocks that the programs read. */
#ifndef METE_AREA_H
#define METE_AREA_H

#include "kernel.h"
#include "shared.h"

#include "mete_layout.h"

/*
 * What a record has in addition. `task`: the task whose run queue gives the time, which is read only if the
 * log file asks for that clock. `run_queue_ns`: where there is no such task, the time of that clock, which
 * the program has read already. `account`: if it is set, its balance is the counter. The account is read
 * after the time stamp, so that of several processors' rows the one with the newest stamp includes all that
 * was charged before it.
 */
#define METE_RECORD_EXTRA         \
	struct task_struct *task; \
	__u64 run_queue_ns;       \
	const volatile __s64 *account;
#define METE_COUNTER(r) ((r)->account ? *(r)->account : (r)->counter)
#define METE_CLOCK(source) row_clock(source, r->task, r->run_queue_ns)

static __always_inline __u64 row_clock(__u32 source, struct task_struct *task, __u64 run_queue_ns)
{
	if (source == METE_STAMP_HARDWARE)
		return bpf_ktime_get_ns();
	if (source == METE_STAMP_TICK)
		return bpf_jiffies64();
	if (source == METE_STAMP_RUN_QUEUE && task)
		return run_queue_clock(task);
	return source == METE_STAMP_RUN_QUEUE ? run_queue_ns : 0;
}

#include "mete_handler.h"

/* The loader writes these constants before the programs are verified, so that the verifier knows them. */
const volatile struct settings {
	__u32 pid_mask; /* the number of entries of the pid table, a power of two, less one */
	__u32 processors; /* the number of possible processors */
	__s64 preempt_count; /* bytes from a processor's run queue to its count of interrupts; 0 if unknown */
} settings SEC(".rodata.settings");

/*
 * Shared with the scheduler, which may write anything anywhere. The size of an element is a multiple of the
 * page size, so the area of each processor begins on a page. The loader sets max_entries.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mete_area);
} areas SEC(".maps");

static __always_inline struct mete_area *area_of(__u32 processor)
{
	return bpf_map_lookup_elem(&areas, &processor);
}

static __always_inline struct mete_area *area_here(void)
{
	return area_of(bpf_get_smp_processor_id());
}

#endif
