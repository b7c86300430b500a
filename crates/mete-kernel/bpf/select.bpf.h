/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * A task gets its domain when it is created. A process gets another one as soon as it becomes what a rule
 * selects: at exec, and when it changes its name. After that, only another rule and the scheduler change the
 * domain, and, where it comes from a cgroup, the move out of that cgroup.
 */
#ifndef METE_SELECT_H
#define METE_SELECT_H

#include "rule.bpf.h"
#include "switch.bpf.h"

/*
 * Children inherit. The tracepoint is task_newtask and not sched_process_fork, because the workers that the
 * kernel itself adds to a process (of io_uring and vhost) do not pass the latter.
 */
SEC("tp_btf/task_newtask")
int inherit(__u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	volatile __u16 *table = pid_table();
	__u16 domain;

	/* The idle tasks of all processors have the number 0, which only the scheduler binds. */
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

/* An exec changes the program of a process, and may change its user. */
SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return reconsider(task, task->comm);
}

/* The name of a process is that of its first thread. */
SEC("tp_btf/task_rename")
int on_rename(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	if (task->pid != task->tgid)
		return 0;
	return reconsider(task, (const char *)ctx[1]);
}

#endif
