/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Whether the running task itself is the cause of what happens. An interrupt may be it, too, and
 * then the running task is just the one that was interrupted.
 */
#ifndef METE_CONTEXT_H
#define METE_CONTEXT_H

#include "domain.h"

enum context {
	OF_TASK,
	OF_SOFT_INTERRUPT, /* work that an interrupt or a system call has put off */
	OF_INTERRUPT,
};

#define SERVING_SOFT_INTERRUPT 0x100
#define IN_INTERRUPT 0xff0000 /* or in one that cannot be masked */

/*
 * Without the processor's own count, stacks tell most of it. Interrupts of kernel mode, and all soft
 * interrupts, run on a stack of their own; `ctx`, the tracepoint's argument array, lies on the stack
 * that is in use. Interrupts of user mode do run on the task's stack; but then the registers saved
 * at its top say that no system call was made.
 */
static __always_inline enum context context_by_stack(__u64 *ctx, struct task_struct *task)
{
	void *stack = task->stack;
	struct pt_regs *regs;

	if ((void *)ctx < stack || (void *)ctx >= stack + THREAD_BYTES)
		return OF_SOFT_INTERRUPT;
	regs = (void *)bpf_task_pt_regs(task);
	return regs->orig_ax >= 0 ? OF_TASK : OF_INTERRUPT;
}

/*
 * Each processor counts how deep in interrupts it is. The variable is not named to programs; but it
 * lies at a fixed distance from the processor's run queue, which the task leads to.
 */
static __always_inline enum context context_of(__u64 *ctx, struct task_struct *task)
{
	char *run_queue = (char *)task->se.cfs_rq->rq;
	__u32 count;

	/* In most cases, the cheaper answer is the right one. The kernel's own threads make no system calls,
	 * and some run soft interrupts on their own stacks. */
	if (!(task->flags & PF_KTHREAD) && context_by_stack(ctx, task) == OF_TASK)
		return OF_TASK;
	if (!settings.preempt_count ||
	    bpf_probe_read_kernel(&count, sizeof(count), run_queue + settings.preempt_count))
		return context_by_stack(ctx, task);
	if (count & IN_INTERRUPT)
		return OF_INTERRUPT;
	return count & SERVING_SOFT_INTERRUPT ? OF_SOFT_INTERRUPT : OF_TASK;
}

#endif
