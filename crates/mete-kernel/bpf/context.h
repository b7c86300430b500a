/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Whether the running task itself is the cause of an event. The cause may also be an interrupt; then the
 * running task is only the one that was interrupted.
 */
#ifndef METE_CONTEXT_H
#define METE_CONTEXT_H

#include "domain.bpf.h"

enum context {
	OF_TASK,
	OF_SOFT_INTERRUPT, /* of work that an interrupt or a system call has put off */
	OF_INTERRUPT,
};

/* Bits of a processor's count of interrupts. */
#define SERVING_SOFT_INTERRUPT 0x100
#define IN_INTERRUPT 0xff0000 /* maskable ones and others */

/*
 * Without the processor's own count, the stack in use tells most contexts apart. `ctx`, the array of the
 * tracepoint's arguments, lies on that stack. Interrupts of kernel mode, and all soft interrupts, run on
 * stacks of their own. Interrupts of user mode run on the stack of the task; but then the registers that
 * are saved at its top say that no system call was made.
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
 * Each processor counts how deep in interrupts it is. Programs cannot name that variable. But it lies at a
 * fixed distance from the run queue of the processor, and the task points to the run queue.
 */
static __always_inline enum context context_of(__u64 *ctx, struct task_struct *task)
{
	char *run_queue = (char *)task->se.cfs_rq->rq;
	__u32 count;

	/*
	 * In most cases, the cheaper answer is the right one. It is never asked for the kernel's own threads:
	 * they make no system calls, and some run soft interrupts on their own stacks.
	 */
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
