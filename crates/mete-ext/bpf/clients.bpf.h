/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the kernel's side of a policy outside the kernel knows: of each task, each cgroup and each processor, and what it shares
 * with the policy.
 */
#ifndef METE_CLIENTS_BPF_H
#define METE_CLIENTS_BPF_H

#include "rows.bpf.h"
#include "waiting.bpf.h"

/* The dispatch queue of the deciding thread. */
#define POLICY_QUEUE CLIENTS

/* The thread in which the policy decides. The policy's side sets it, and sets another one if that one hangs. 0: it has ended. */
struct deciding {
	__s32 thread;
} __attribute__((aligned(64))) deciding SEC(".bss.deciding");

enum activity {
	ABSENT, /* not a client */
	AWAY,
	WAITING,
	RUNNING,
	INTERRUPTED, /* by the policy, and runs on behind it */
};

struct task {
	__u64 base_ns; /* its processor time when it joined */
	__u64 ends_ns; /* its processor time at the end of its slice */
	__u64 slice_ns; /* the slice that is decided, until it runs; or 0 */
	__u64 used_ns; /* what it had used since it joined, when it was interrupted */
	__u64 allowed; /* the processors that it may run on, a bit each */
	__u32 joined; /* which client of this number it is */
	__u32 generation; /* how often it has begun to wait */
	enum activity activity;
	__u32 domain;
	__u32 weight;
	__u32 queued_in; /* the second in which it began to wait */
	__u32 is_resumed; /* it goes on after it was interrupted, by the same decision */
	__u32 is_handed_over; /* the task that woke it is about to wait itself */
	__u32 has_yielded; /* it gives way by itself */
	__u32 is_kernel; /* it is one of the kernel's own threads */
	__u32 is_ahead; /* it goes ahead now, and has not begun */
	__u32 was_ahead; /* the policy had said that it goes ahead, when it ran last; or it is new, and may */
	__u64 ahead; /* the policy's: by what it is to be woken to go ahead, where and for how long (ahead.bpf.h). 0: the policy is to be asked */
};

struct domain {
	__u64 cgroup; /* the kernel's number for it, which no other one gets */
	__u32 is_known;
	__u32 parent;
	__u32 weight;
	__u32 set; /* the weight that was set from outside; or 0 */
};

struct processor {
	__u32 interrupted; /* one more than the number of the client that the policy has interrupted; or 0 */
	__u32 cursor; /* where the kernel's side has come to in its turn */
	__u32 has_run; /* a client has run here since the processor last asked for a decision */
	__u32 is_turn_of_policy; /* a task has run by turn while the policy was late: now the deciding thread may go on */
	/* The clients that go ahead here, in this order: one more than the number, and the generation above that; or 0. */
	__u64 ahead[2];
	__u64 owes_decision; /* a client goes ahead here: the policy is to know when it has run */
	__u64 decided; /* answers that were carried out */
	__u64 late; /* those that could not be: the task had left, or it came too late */
	__u64 alone; /* tasks that ran without a decision, because no other one waited */
	__u64 undecided; /* tasks that ran by turn, because no answer had come by the deadline */
	__u64 hastened; /* tasks that ran because they had waited for long */
	__u64 extended; /* slices that went on, because the policy was just deciding */
	__u64 rounds; /* how often the deciding thread has run */
	__u64 went_ahead; /* tasks that ran at once when they woke, as the policy had said before */
} __attribute__((aligned(64)));

/* What both sides read and write. Masks have a bit for each processor. */
struct shared {
	__u64 offered_ns; /* when a processor could first have it decided; or 0 */
	__u32 is_pending; /* something is to be decided; the policy clears it before it reads rows */
	__u32 is_stalled; /* the same: the deadline has passed */
	__u64 idle; /* the processors that have found nothing to run */
	__u64 kept; /* the processors that no task that wakes takes from their clients before their slices are over */
	__u64 online;
	__u64 wakes; /* the policy's: those that are to look for an answer, if they are idle */
	__u64 preempts; /* the policy's: those whose client gives way */
	__u32 is_deciding; /* the deciding thread runs */
	__u32 is_able; /* the deciding thread runs or waits */
	__u32 seconds;
	__u32 looks;
} __attribute__((aligned(64)));

struct shared shared SEC(".bss.shared");
struct task tasks[CLIENTS] SEC(".bss.tasks");
struct domain domains[DOMAINS] SEC(".bss.domains");
struct processor processors[PROCESSORS] SEC(".bss.processors");

static __always_inline struct task *task_of(__u32 client)
{
	return client < CLIENTS ? &tasks[masked(client, CLIENTS)] : 0;
}

static __always_inline struct processor *processor_at(__u32 processor)
{
	return &processors[masked(processor, PROCESSORS)];
}

static __always_inline __u64 bit_of(__u32 processor)
{
	return 1ull << (processor & 63);
}

static __always_inline int decides(const struct task_struct *p)
{
	return p->pid == deciding.thread;
}

static __always_inline void tell_of(const struct task_struct *p, enum row_kind kind, __u32 client,
				    const struct task *task)
{
	tell(kind, client, task->generation, p->se.sum_exec_runtime - task->base_ns);
}

/* What is left of a client's slice; something, in any case: the kernel asks when a slice is over, and not for one of none. */
static __always_inline __u64 left_of(const struct task_struct *p, const struct task *task)
{
	__s64 left_ns = task->ends_ns - p->se.sum_exec_runtime;

	return left_ns > 0 ? left_ns : 1;
}

/*
 * A processor that is idle looks for work. If it finds none, it says again that it is idle; one that a task of a higher class has
 * taken meanwhile does not, and is not taken for idle again.
 */
static __always_inline void wake_processor(__u32 processor)
{
	__sync_fetch_and_and(&shared.idle, ~bit_of(processor));
	scx_bpf_kick_cpu(processor, SCX_KICK_IDLE);
}

/* Whether the client that runs next on a processor keeps it. Others do not have to give the line of the cache away for nothing. */
static __always_inline void note_kept(__u32 cpu, int keeps)
{
	if (keeps && !(shared.kept & bit_of(cpu)))
		__sync_fetch_and_or(&shared.kept, bit_of(cpu));
	if (!keeps && shared.kept & bit_of(cpu))
		__sync_fetch_and_and(&shared.kept, ~bit_of(cpu));
}

/* The same for none that runs next, and whether one did. What waits is looked at only after this: the answer is used for that. */
static __always_inline int take_kept(__u32 cpu)
{
	return !!(__sync_fetch_and_and(&shared.kept, ~bit_of(cpu)) & bit_of(cpu));
}

/* Something is to be decided, from now on. */
static __always_inline void want_decision(void)
{
	if (shared.is_pending)
		return;
	shared.offered_ns = 0;
	/*
	 * An exchange: the wish is there before is_deciding is read. The deciding thread says first that it yields, and reads the wish
	 * then. So one of both sees the other.
	 */
	__sync_lock_test_and_set(&shared.is_pending, 1);
}

#endif
