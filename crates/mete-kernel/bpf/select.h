/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Tasks get their domain when they are born, and processes another one as soon as they become what
 * a rule selects: at exec, and when they change their name. Nothing takes a domain away from them
 * again but another rule, the scheduler, and for cgroups the move out of one.
 */
#ifndef METE_SELECT_H
#define METE_SELECT_H

#include "rule.h"
#include "switch.h"

/*
 * Children inherit. task_newtask and not sched_process_fork, which the kernel's own helpers of a
 * process (io_uring's and vhost's workers) do not pass.
 */
SEC("tp_btf/task_newtask")
int inherit(__u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	volatile __u16 *table = pid_table();
	__u16 domain;

	if (!table || child->pid == 0)
		return 0;
	*entry_of(table, child->pid) = *entry_of(table, current_task()->pid);
	if (ctx[1] & CLONE_INTO_CGROUP)
		follow_task(table, child, child->pid);
	if (child->pid != child->tgid)
		return 0;
	domain = choose(child, child->comm);
	if (domain)
		*entry_of(table, child->pid) = domain;
	return 0;
}

static __always_inline int reconsider(struct task_struct *task, const char *comm)
{
	volatile __u16 *table = pid_table();
	__u16 domain = choose(task, comm);

	if (!table || !domain)
		return 0;
	move_threads(task, domain, 1);
	if (task == current_task())
		move_running(task, domain);
	return 0;
}

/* What its program, its parent and its user are now. */
SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return reconsider(task, task->comm);
}

/* A process has the name of its first thread. */
SEC("tp_btf/task_rename")
int on_rename(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (task->pid != task->tgid)
		return 0;
	return reconsider(task, (const char *)ctx[1]);
}

#endif
