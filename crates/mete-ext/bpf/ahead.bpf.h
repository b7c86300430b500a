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

/* The processors that tasks of higher classes have taken, as far as the kernel has said so. */
__u64 held;

/*
 * What the policy says of a client: the slice, in microseconds, above that one more than the number of the processor, and above that the
 * causes for which it is so, a bit each.
 */
#define AHEAD_PROCESSOR_AT 24
#define AHEAD_CAUSES_AT 32

enum ahead {
	NOT_AHEAD, /* the policy is to be asked */
	AHEAD_NOW,
	AHEAD_NEXT, /* after another one that goes ahead */
};

/* Whether the policy has said that a client goes ahead on this processor, woken by what wakes it now. */
static __always_inline int is_to_go_ahead(const struct task *task, __u32 cpu)
{
	return (task->ahead >> AHEAD_PROCESSOR_AT & 0xff) == cpu + 1 &&
	       task->ahead >> AHEAD_CAUSES_AT >> cause_here() & 1;
}

/* Whether a client that has begun to wait goes ahead on this processor. */
static __always_inline enum ahead send_ahead(__u32 client, const struct task *task, __u32 cpu)
{
	__u64 ahead = (__u64)task->generation << 32 | (client + 1);
	__u64 may = task->allowed & shared.online & ~held;
	struct processor *processor = processor_at(cpu);
	int is_kept = !!(shared.kept & bit_of(cpu));

	/* What the policy decides anyway, it decides about this client, too. */
	if (!is_to_go_ahead(task, cpu) || !(may & bit_of(cpu)) || shared.is_pending || shared.is_deciding)
		return NOT_AHEAD;
	/* Kept, but not by one that goes ahead: the policy decides. */
	if (is_kept && !processor->owes_decision)
		return NOT_AHEAD;
	if (!__sync_val_compare_and_swap(&processor->ahead[0], 0, ahead))
		return is_kept ? AHEAD_NEXT : AHEAD_NOW;
	return __sync_val_compare_and_swap(&processor->ahead[1], 0, ahead) ? NOT_AHEAD : AHEAD_NEXT;
}

static __always_inline int any_ahead(const struct processor *processor)
{
	return processor->ahead[0] || processor->ahead[1];
}

/* The first client that goes ahead here; 0 if there is none. */
static __always_inline __u64 take_ahead(struct processor *processor)
{
	if (processor->ahead[0])
		return __sync_lock_test_and_set(&processor->ahead[0], 0);
	return processor->ahead[1] ? __sync_lock_test_and_set(&processor->ahead[1], 0) : 0;
}

/* None goes ahead here. If one was to, and still waits, the policy decides. */
static __always_inline void call_off(struct processor *processor)
{
	__u32 nth;

	for (nth = 0; nth < 2; nth++) {
		__u64 ahead = take_ahead(processor);

		if (ahead && tasks[masked(ahead - 1, CLIENTS)].activity == WAITING)
			want_decision();
	}
}

/* The client that goes ahead runs next, unless it has run elsewhere meanwhile. */
static __always_inline int let_go_ahead(struct processor *processor, __u32 cpu)
{
	__u64 ahead = take_ahead(processor);
	__u32 client = masked(ahead - 1, CLIENTS);
	struct task *task = &tasks[client];

	if (!ahead || task->activity != WAITING)
		return 0;
	/* The kernel has changed it, and put it back. */
	if (task->generation != ahead >> 32 || !move_to_local(client)) {
		want_decision();
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return 0;
	}
	task->slice_ns = masked(task->ahead, 1u << AHEAD_PROCESSOR_AT) * 1000ull;
	task->is_ahead = 1;
	processor->owes_decision = 1;
	processor->went_ahead++;
	note_kept(cpu, 1);
	return 1;
}

/* When clients that went ahead have run, the policy is to know, even if one alone waits now. */
static __always_inline void settle(struct processor *processor, const struct holder *holder, int has_decided)
{
	if (!processor->owes_decision)
		return;
	if (has_decided) {
		/* It knows, unless one goes on behind it. */
		processor->owes_decision = !!processor->interrupted;
	} else if (!holder->has_slice && !any_ahead(processor)) {
		processor->owes_decision = 0;
		want_decision();
	}
}

#endif
