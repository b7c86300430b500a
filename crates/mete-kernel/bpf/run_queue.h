/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Run-queue length at the tick: an asynchronous event, sampled (thesis 3.3.1, 4.3.1). */
#ifndef METE_RUN_QUEUE_H
#define METE_RUN_QUEUE_H

#include "area.h"

SEC("perf_event")
int on_tick(void *ctx)
{
	struct task_struct *task = current_task();
	struct mete_area *area = area_here();
	struct mete_record r = { METE_RUN_QUEUE, 0, METE_NO_DOMAIN, task->se.cfs_rq->rq->nr_running, task };

	if (area)
		mete_log(area, &r);
	return 0;
}

#endif
