/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * IPC usage: a running task wakes another one. An event of the type on access, logged on both
 * sides, each with the other one as correspondent (thesis 4.3.1).
 */
#ifndef METE_IPC_H
#define METE_IPC_H

#include "domain.h"

/*
 * Whether the running task itself is the cause. An interrupt wakes tasks too, and then the running
 * task is just the one that was interrupted.
 *
 * The processor's interrupt flags cannot be read without per-processor symbols, but stacks tell.
 * Interrupts of kernel mode, and all soft interrupts, run on a stack of their own; `ctx`, the
 * tracepoint's argument array, lies on the stack that is in use. Interrupts of user mode do run
 * on the task's stack; but then the registers saved at its top say that no system call was made.
 */
static __always_inline _Bool is_task_context(__u64 *ctx, struct task_struct *task)
{
	void *stack = task->stack;
	struct pt_regs *regs;

	if ((void *)ctx < stack || (void *)ctx >= stack + THREAD_BYTES)
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	return regs->orig_ax >= 0;
}

SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	struct task_struct *sender = current_task();
	struct task_struct *receiver = (void *)ctx[0];
	volatile __u16 *table = pid_table();
	struct mete_area *area = area_here();
	struct mete_record send = { METE_IPC_SEND, 0, 0, 1, sender };
	struct mete_record receive = { METE_IPC_RECEIVE, 0, 0, 1, sender };

	if (!table || !area || !is_task_context(ctx, sender))
		return 0;
	send.domain = receive.correspondent = domain_of(table, sender);
	receive.domain = send.correspondent = domain_of(table, receiver);
	mete_log(area, &send);
	mete_log(area, &receive);
	return 0;
}

#endif
