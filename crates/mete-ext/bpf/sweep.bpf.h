/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Once a second all tasks are looked at: none may wait so long that the kernel ends the scheduler, and none may be lost.
 *
 * A share can be so small that a task's turn comes after minutes. The kernel does not allow that: such a task goes ahead
 * for a quantum. A task that the policy takes for blocked although the kernel has it in its queue would never run; it
 * is woken, and counted, because there should be none.
 */
#ifndef METE_SWEEP_BPF_H
#define METE_SWEEP_BPF_H

#include "waking.bpf.h"

#define SWEEP_NS (1000ull * 1000 * 1000)
/* How many seconds a task waits before it goes ahead: well below the kernel's timeout. */
#define LONG_WAIT 5
/* How many go ahead for that in a second, on all processors: they take little from the shares of the others. */
#define HASTENED_AT_ONCE 64

struct sweeper {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sweeper);
} sweepers SEC(".maps");

/* Tasks that went ahead because they had waited for long; tasks that were lost, and found. */
__u64 hastened;
__u64 found;

/* Whether the client went ahead. */
static __always_inline int sweep_client(__u32 number, int may_hasten)
{
	struct dvtrr_client *client = policy_client(number);
	struct task *task = task_of(number);
	__u32 waited;

	if (!client || !task)
		return 0;
	waited = seconds - task->queued_in;
	if (client->state == DVTRR_READY && waited >= LONG_WAIT && may_hasten) {
		task->queued_in = seconds;
		return queues_hasten(number);
	}
	/* In the moment in which it is queued, or taken, this may seem so. */
	if (client->state == DVTRR_BLOCKED && waited >= 2 && scx_bpf_dsq_nr_queued(number) > 0) {
		task->queued_in = seconds;
		found++;
		wake_on(number, task->processor);
	}
	return 0;
}

static int sweep(void *map, int *key, struct sweeper *sweeper)
{
	__u32 number, gone_ahead = 0;

	seconds++;
	bpf_for(number, 0, CLIENTS) gone_ahead += sweep_client(number, gone_ahead < HASTENED_AT_ONCE);
	hastened += gone_ahead;
	bpf_timer_start(&sweeper->timer, SWEEP_NS, 0);
	return 0;
}

static __always_inline s32 begin_sweeps(void)
{
	struct sweeper *sweeper;
	__u32 only = 0;
	s32 error;

	sweeper = bpf_map_lookup_elem(&sweepers, &only);
	if (!sweeper)
		return -ENOMEM;
	error = bpf_timer_init(&sweeper->timer, &sweepers, CLOCK_MONOTONIC);
	if (!error)
		error = bpf_timer_set_callback(&sweeper->timer, sweep);
	if (!error)
		error = bpf_timer_start(&sweeper->timer, SWEEP_NS, 0);
	return error;
}

#endif
