/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Once in each second each task is looked at: none may wait so long that the kernel ends the scheduler, and none may be lost. A part
 * of them at a time, because the task that runs there at that moment pays for it. Between two looks at one there are nearly two
 * seconds at most.
 *
 * A share can be so small that a task's turn comes after minutes. The kernel does not allow that: such a task goes ahead
 * up to the next tick. A task that the policy takes for blocked although the kernel has it in its queue would never run; it
 * is woken, and counted, because there should be none.
 */
#ifndef METE_SWEEP_BPF_H
#define METE_SWEEP_BPF_H

#include "leaving.bpf.h"
#include "patience.bpf.h"
#include "timer.bpf.h"
#include "waking.bpf.h"

/* In how many parts; they divide the clients without a rest. */
#define PARTS 16
#define PART_NS (1000ull * 1000 * 1000 / PARTS)
/* Tasks that went ahead because they had waited for long; tasks that were lost, and found. */
__u64 hastened;
__u64 found;

/* How many went ahead in this second, beside the kernel's own. Not a variable of the loop: the verifier would follow each value. */
__u32 gone_ahead;
/* The client that was put ahead last: the next second begins behind it, so that all have their turn. */
__u32 put_ahead;
/* The client that is looked at next, and how many parts of this second are over. */
__u32 looked_at;
__u32 parts;
/* The decisions of all processors up to this second, and in the last one. */
__u64 decisions;
__u64 decisions_in_last;

static __always_inline void count_decisions(void)
{
	__u64 before = decisions, now = 0;
	__u32 nth;

	bpf_for(nth, 0, PROCESSORS) now += processor_at(nth)->decisions;
	decisions = now;
	decisions_in_last = now - before;
}

static __always_inline int has_waited_long(const struct task *task, __u32 waited)
{
	if (task->is_kernel)
		return waited >= LONG_WAIT_KERNEL;
	return waited >= LONG_WAIT && gone_ahead < most_hastened(waited, decisions_in_last);
}

static __always_inline void sweep_client(__u32 number)
{
	struct dvtrr_client *client = policy_client(number);
	struct task *task = task_of(number);
	__u32 waited;

	if (!client || !task)
		return;
	waited = seconds - task->queued_in;
	/* One that could not be put ahead at this moment is tried again in the next second. */
	if (client->state == DVTRR_READY && has_waited_long(task, waited) && queues_hasten(number)) {
		task->queued_in = seconds;
		hastened++;
		if (!task->is_kernel) {
			gone_ahead++;
			put_ahead = number;
			task->is_hastened = 1;
		}
		return;
	}
	/* In the moment in which it is queued, or taken, this may seem so. */
	if (client->state == DVTRR_BLOCKED && waited >= 2 && scx_bpf_dsq_nr_queued(number) > 0) {
		task->queued_in = seconds;
		found++;
		wake_on(number, task->processor);
	}
}

static __always_inline void begin_second(void)
{
	seconds++;
	gone_ahead = 0;
	looked_at = put_ahead + 1;
	count_decisions();
}

static int sweep(void *map, int *key, struct timed *timed)
{
	__u32 nth, first;

	if (!parts)
		begin_second();
	parts = (parts + 1) % PARTS;
	first = looked_at;
	bpf_for(nth, 0, CLIENTS / PARTS) sweep_client(masked(first + nth, CLIENTS));
	looked_at = first + CLIENTS / PARTS;
	free_domains_left();
	go_on_after(timed, PART_NS);
	return 0;
}

#endif
