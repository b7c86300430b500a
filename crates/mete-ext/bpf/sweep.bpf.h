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

#include "patience.bpf.h"
#include "timer.bpf.h"
#include "waking.bpf.h"

#define SWEEP_NS (1000ull * 1000 * 1000)
/* Tasks that went ahead because they had waited for long; tasks that were lost, and found. */
__u64 hastened;
__u64 found;

/* Whether the client went ahead, because it has waited for that long. */
static __always_inline int sweep_client(__u32 number, __u32 longest)
{
	struct dvtrr_client *client = policy_client(number);
	struct task *task = task_of(number);
	__u32 waited;

	if (!client || !task)
		return 0;
	waited = seconds - task->queued_in;
	if (client->state == DVTRR_READY && waited >= longest && queues_hasten(number)) {
		task->queued_in = seconds;
		return 1;
	}
	/* In the moment in which it is queued, or taken, this may seem so. */
	if (client->state == DVTRR_BLOCKED && waited >= 2 && scx_bpf_dsq_nr_queued(number) > 0) {
		task->queued_in = seconds;
		found++;
		wake_on(number, task->processor);
	}
	return 0;
}

static int sweep(void *map, int *key, struct timed *timed)
{
	__u32 number, gone_ahead = 0;

	seconds++;
	bpf_for(number, 0, CLIENTS) gone_ahead +=
		sweep_client(number, gone_ahead < HASTENED_AT_ONCE ? LONG_WAIT : TOO_LONG_WAIT);
	hastened += gone_ahead;
	go_on_after(timed, SWEEP_NS);
	return 0;
}

#endif
