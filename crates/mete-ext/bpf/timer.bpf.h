/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A timer that comes again and again. An object has one. */
#ifndef METE_TIMER_BPF_H
#define METE_TIMER_BPF_H

#include "scx.h"

struct timed {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct timed);
} timers SEC(".maps");

/* Runs each time, and then has the timer go on. */
typedef int at_time(void *map, int *key, struct timed *timed);

static __always_inline void go_on_after(struct timed *timed, __u64 period_ns)
{
	bpf_timer_start(&timed->timer, period_ns, 0);
}

/* 0, or why there is no timer. */
static __always_inline s32 begin_timer(at_time *runs, __u64 period_ns)
{
	struct timed *timed;
	__u32 only = 0;
	s32 error;

	timed = bpf_map_lookup_elem(&timers, &only);
	if (!timed)
		return -ENOMEM;
	error = bpf_timer_init(&timed->timer, &timers, CLOCK_MONOTONIC);
	if (!error)
		error = bpf_timer_set_callback(&timed->timer, runs);
	if (!error)
		error = bpf_timer_start(&timed->timer, period_ns, 0);
	return error;
}

#endif
