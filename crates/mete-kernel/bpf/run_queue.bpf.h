/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Run-queue length at the tick: an asynchronous event, which is sampled (thesis 3.3.1, 4.3.1). The tick also
 * charges the running task for its service time so far.
 */
#ifndef METE_RUN_QUEUE_H
#define METE_RUN_QUEUE_H

#include "switch.bpf.h"

SEC("perf_event")
int on_tick(void *ctx)
{
	struct task_struct *task = current_task();
	struct mete_area *area = area_here();
	struct mete_record r = { METE_RUN_QUEUE, 0, METE_NO_DOMAIN, task->se.cfs_rq->rq->nr_running, task };

	if (!area)
		return 0;
	mete_log(area, &r);
	charge_so_far(area, task);
	return 0;
}

#endif
