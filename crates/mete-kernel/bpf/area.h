/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The log areas, one per processor, and the programs' clocks. */
#ifndef METE_AREA_H
#define METE_AREA_H

#include "kernel.h"

#include "mete_layout.h"

/*
 * In a record: whose run queue gives the time, read only if the log file asks for that clock, or where there
 * is none the time of one, which was read already; and the account whose balance is the counter, if there is
 * one. It is read behind the time stamp, so that of several processors' rows the one with the newest stamp
 * has all that was charged before.
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

/* The events of the kernel component; src/event.rs says the same in Rust. */
enum mete_event {
	METE_SERVICE_TIME = 0,
	METE_IPC_SEND = 1,
	METE_IPC_RECEIVE = 2,
	METE_MEMORY = 3,
	METE_RUN_QUEUE = 4,
	METE_COUNTERS = 8,
};

/* What the loader knows before the programs are verified, so that the verifier knows it too. */
const volatile struct {
	__u32 pid_mask; /* entries of the pid table, a power of two, less one */
	__u32 processors; /* possible ones */
	__s64 preempt_count; /* bytes from a processor's run queue to its count of interrupts; 0 if not known */
} settings SEC(".rodata.settings");

/*
 * Shared with the scheduler, who may write anything anywhere. An element's size is a multiple of
 * the page size, so each processor's area begins on a page. The loader sets max_entries.
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
