/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* How the deciding thread comes to decide, and how what it has decided comes to be carried out. */
#ifndef METE_ASKING_BPF_H
#define METE_ASKING_BPF_H

#include "ahead.bpf.h"

/* Has the policy decide soon on a task that waits on this processor: on an idle one, or in place of what runs here. */
static __always_inline void ask_policy(__u32 processor, int may_interrupt)
{
	__u64 idle;

	want_decision();
	/* It reads all rows before it yields. */
	if (shared.is_deciding)
		return;
	idle = shared.idle;
	if (idle)
		wake_processor(idle & bit_of(processor) ? processor : lowest_bit(idle));
	else if (may_interrupt)
		scx_bpf_kick_cpu(processor, SCX_KICK_PREEMPT);
}

/* The policy's answers are carried out on other processors. */
static __always_inline void kick_others(__u32 own)
{
	__u64 preempts = shared.preempts & ~bit_of(own);
	__u64 wakes = shared.wakes ? __sync_lock_test_and_set(&shared.wakes, 0) & ~bit_of(own) : 0;
	__u32 nth;

	if (!(wakes | preempts))
		return;
	bpf_for(nth, 0, PROCESSORS)
	{
		if (preempts >> (nth & 63) & 1)
			scx_bpf_kick_cpu(nth, SCX_KICK_PREEMPT);
		else if (wakes >> (nth & 63) & 1)
			wake_processor(nth);
	}
}

/* Whether the policy has the client of this number, plus one, give way here. Another one may run here since. */
static __always_inline int is_preempted(__u32 processor, __u32 client)
{
	if (!(shared.preempts & bit_of(processor)))
		return 0;
	__sync_fetch_and_and(&shared.preempts, ~bit_of(processor));
	return answers[masked(processor, PROCESSORS)].gives_way == client;
}

/*
 * A task has woken. One that waits alone needs no decision where a processor is idle, or is about to be; nor does one that goes ahead.
 * None needs one yet where all processors are kept: it is decided when the first of them is free.
 */
static __always_inline void find_processor(__u32 client, const struct task *task, __u32 processor)
{
	__u64 idle = shared.idle & task->allowed;
	__u32 here = bpf_get_smp_processor_id();
	int is_handed_over = task->is_handed_over && task->allowed & bit_of(here);
	enum ahead ahead = NOT_AHEAD;

	if (rows_are_many(here)) {
		ask_policy(processor, 1);
		return;
	}
	if (!idle && (!is_handed_over || processor == here))
		ahead = send_ahead(client, task, processor);
	if (ahead != NOT_AHEAD) {
		/* If it was handed over, what runs there is about to wait. */
		if (ahead == AHEAD_NOW && !is_handed_over)
			scx_bpf_kick_cpu(processor, SCX_KICK_PREEMPT);
	} else if (!idle && !(task->allowed & shared.online & ~shared.kept)) {
		return;
	} else if (waiting.count > 1 || (!idle && !is_handed_over)) {
		ask_policy(processor, !is_handed_over);
	} else if (idle) {
		wake_processor(idle & bit_of(processor) ? processor : lowest_bit(idle));
	}
}

#endif
