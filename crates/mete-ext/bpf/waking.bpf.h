/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Which processors are asked to look for work, when a task waits. */
#ifndef METE_WAKING_BPF_H
#define METE_WAKING_BPF_H

#include "tasks.bpf.h"

/* What runs on a processor gives way at once to a client that goes ahead. */
static __always_inline void have_give_way(__u32 processor)
{
	processor_at(processor)->is_asked = 1;
	scx_bpf_kick_cpu(processor, SCX_KICK_PREEMPT);
}

/* A client waits on a processor, which looks for it if it is idle, or if the client goes ahead of the one that runs. */
static __always_inline void wake_on(__u32 client, __u32 processor)
{
	if (queues_wake(client, processor, 0) & QUEUES_ASKS)
		have_give_way(processor);
	else
		scx_bpf_kick_cpu(processor, SCX_KICK_IDLE);
}

/*
 * A task waits on a processor that something else may have, such as a task of a higher class: another one that found
 * nothing to run may take it.
 */
static __always_inline void ask_idle(const struct task *task, __u32 processor)
{
	__u64 may = idle & task->allowed & ~(1ull << (processor & 63));
	__u32 nth;

	if (!may)
		return;
	for (nth = 0; CAN_LOOP && nth < PROCESSORS; nth = dvtrr_after(nth)) {
		if (may >> (nth & 63) & 1) {
			/* If it is idle, it says so again when it has found nothing. A task of a higher class may have it meanwhile. */
			__sync_fetch_and_and(&idle, ~(1ull << (nth & 63)));
			scx_bpf_kick_cpu(nth, SCX_KICK_IDLE);
			return;
		}
	}
}

#endif
