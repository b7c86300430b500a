/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Clients that go ahead when they wake.
 *
 * While a client is blocked the policy can say that it will take its processor when it wakes. Then it runs at once, and the policy is
 * told afterwards: that it woke, that another one gave way, that it runs. That is for one wake-up: the policy decides when the client
 * has run, and says whether it goes ahead again.
 */
#ifndef METE_AHEAD_BPF_H
#define METE_AHEAD_BPF_H

#include "choosing.bpf.h"

/* A client that has begun to wait runs next on its processor; 0 if it does not, and the policy is to be asked. */
static __always_inline int send_ahead(__u32 client, const struct task *task, __u32 cpu)
{
	__u64 ahead = (__u64)task->generation << 32 | (client + 1);

	/* What the policy decides anyway, it decides about this client, too. */
	if (!task->ahead_us || shared.is_pending || shared.is_deciding ||
	    shared.kept & bit_of(cpu) || !(task->allowed & shared.online & bit_of(cpu)))
		return 0;
	return !__sync_val_compare_and_swap(&processor_at(cpu)->ahead, 0, ahead);
}

/* The client that goes ahead here; 0 if there is none. */
static __always_inline __u64 take_ahead(struct processor *processor)
{
	return processor->ahead ? __sync_lock_test_and_set(&processor->ahead, 0) : 0;
}

/* It runs next, unless it does not wait any more, or runs elsewhere. */
static __always_inline int let_go_ahead(struct processor *processor, __u32 cpu)
{
	__u64 ahead = take_ahead(processor);
	__u32 client = masked(ahead - 1, CLIENTS);
	struct task *task = &tasks[client];

	if (!ahead || task->activity != WAITING || task->generation != ahead >> 32)
		return 0;
	if (!move_to_local(client)) {
		want_decision();
		return 0;
	}
	task->slice_ns = task->ahead_us * 1000ull;
	task->ahead_us = 0;
	task->is_ahead = 1;
	processor->owes_decision = 1;
	processor->went_ahead++;
	note_kept(cpu, 1);
	return 1;
}

/* A client that went ahead has run: the policy is to know, even if one alone waits now. */
static __always_inline void settle(struct processor *processor)
{
	if (!processor->owes_decision)
		return;
	processor->owes_decision = 0;
	want_decision();
}

#endif
