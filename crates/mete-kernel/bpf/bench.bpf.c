// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * What a row costs, compared with other means of output, on two tracepoints: the entry of a system call and
 * the context switch. Also what a call costs at every place where the scheduler's log is written. Each
 * program does one thing, under the same conditions. The maps are the bench's own, so it disturbs no log.
 */
#include "area.bpf.h"

struct bench_row {
	__u64 words[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} output SEC(".maps");

/* The time that was read goes here, so that the compiler keeps the call. */
__u64 last_clock SEC(".bss.clock");

static __always_inline int clock_alone(void)
{
	*(volatile __u64 *)&last_clock = bpf_ktime_get_ns();
	return 0;
}

/* The whole handler. The log file says which entries and which clock it uses. */
static __always_inline int row(struct task_struct *task)
{
	struct mete_area *area = area_here();
	struct mete_record r = { BENCH_EVENT, BENCH_DOMAIN, BENCH_CORRESPONDENT, 1, task };

	if (area)
		mete_log(area, &r);
	return 0;
}

/* A full ring takes no more rows. The bench maps the ring and empties it. */
static __always_inline int ring_buffer(void)
{
	struct bench_row *row = bpf_ringbuf_reserve(&ring, sizeof(*row), 0);

	if (!row)
		return 0;
	row->words[0] = BENCH_EVENT;
	row->words[1] = BENCH_DOMAIN;
	row->words[2] = bpf_ktime_get_ns();
	row->words[3] = 0;
	bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int perf_output(void *ctx)
{
	struct bench_row row = { { BENCH_EVENT, BENCH_DOMAIN, 0, 0 } };

	row.words[2] = bpf_ktime_get_ns();
	bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &row, sizeof(row));
	return 0;
}

#define BENCH(tracepoint, name, body)       \
	SEC("tp_btf/" #tracepoint)          \
	int tracepoint##_##name(__u64 *ctx) \
	{                                   \
		return body;                \
	}

BENCH(sys_enter, empty, 0)
BENCH(sys_enter, clock, clock_alone())
BENCH(sys_enter, row, row((void *)0))
BENCH(sys_enter, ring, ring_buffer())
BENCH(sys_enter, perf, perf_output(ctx))
BENCH(sched_switch, empty, 0)
BENCH(sched_switch, clock, clock_alone())
BENCH(sched_switch, row, row((void *)ctx[2]))
BENCH(sched_switch, ring, ring_buffer())
BENCH(sched_switch, perf, perf_output(ctx))
BENCH(sched_waking, empty, 0)

SEC("perf_event")
int tick_empty(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
