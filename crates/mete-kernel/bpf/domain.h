/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * From task to accounting domain (thesis 3.5, 4.3.4): a table indexed by pid, written by the
 * scheduler and, for new tasks and tasks that change their cgroup, by the programs below. Reading it
 * takes no helper call. Every new task overwrites its entry, so that none is cleared at exit.
 */
#ifndef METE_DOMAIN_H
#define METE_DOMAIN_H

#include "area.h"
#include "domain_table.h"

/* An entry of the table: the domain, and whether it comes from the task's cgroup. */
#define BOUND_BY_CGROUP 0x8000

/* The deepest nesting of cgroups that is followed. */
#define CGROUP_DEPTH 32

/* From a cgroup's identifier to the entry of the tasks in it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u16);
} domain_of_cgroup SEC(".maps");

/* The hierarchy that cgroups are bound in, and -1 for none: identifiers are unique only within one. */
__s32 bound_hierarchy SEC(".data.binding") = -1;

static __always_inline volatile __u16 *entry_of(volatile __u16 *table, __u32 pid)
{
	return &table[pid & settings.pid_mask];
}

static __always_inline __u16 domain_of(volatile __u16 *table, struct task_struct *task)
{
	return *entry_of(table, task->pid) & (METE_DOMAINS - 1);
}

/* The entry that a cgroup or its nearest bound ancestor gives; 0 if there is none. */
static __always_inline __u16 entry_by_cgroup(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *css = &cgroup->self;

	for (int depth = 0; depth < CGROUP_DEPTH && css; depth++) {
		__u64 id = css->cgroup->kn->id;
		__u16 *entry = bpf_map_lookup_elem(&domain_of_cgroup, &id);

		if (entry)
			return *entry;
		css = css->parent;
	}
	return 0;
}

/* A task's own binding goes before its cgroup's (design decision D5). */
static __always_inline void move_task(volatile __u16 *table, __u32 pid, __u16 entry)
{
	volatile __u16 *old = entry_of(table, pid);

	if (*old == 0 || *old & BOUND_BY_CGROUP)
		*old = entry;
}

/*
 * Children inherit. task_newtask and not sched_process_fork, which the kernel's own helpers of a
 * process (io_uring's and vhost's workers) do not pass.
 */
SEC("tp_btf/task_newtask")
int inherit(__u64 *ctx)
{
	struct task_struct *child = (void *)ctx[0];
	volatile __u16 *table = pid_table();

	if (!table || child->pid == 0)
		return 0;
	*entry_of(table, child->pid) = *entry_of(table, current_task()->pid);
	if (ctx[1] & CLONE_INTO_CGROUP && bound_hierarchy == 0)
		move_task(table, child->pid, entry_by_cgroup(child->cgroups->dfl_cgrp));
	return 0;
}

/* A walk over a process's list of threads. The kernel keeps what is on it as long as a program runs. */
struct walk {
	struct list_head *head;
	struct list_head *node;
	__u16 entry;
};

/* More threads than pids. */
#define MAX_THREADS (1 << 22)

static long move_thread(__u64 nth, struct walk *walk)
{
	volatile __u16 *table = pid_table();
	char *task = (char *)walk->node - bpf_core_field_offset(struct task_struct, thread_node);
	__u32 pid;

	if (!table || walk->node == walk->head)
		return 1;
	if (bpf_probe_read_kernel(&pid, sizeof(pid), task + bpf_core_field_offset(struct task_struct, pid)))
		return 1;
	move_task(table, pid, walk->entry);
	return bpf_probe_read_kernel(&walk->node, sizeof(walk->node), &walk->node->next) != 0;
}

static __always_inline void move_threads(struct task_struct *leader, __u16 entry)
{
	struct signal_struct *signal = leader->signal;
	struct walk walk = { &signal->thread_head, signal->thread_head.next, entry };

	bpf_loop(MAX_THREADS, move_thread, &walk, 0);
}

/* Follows tasks into bound cgroups and out of them. */
SEC("tp_btf/cgroup_attach_task")
int follow(__u64 *ctx)
{
	struct cgroup *cgroup = (void *)ctx[0];
	struct task_struct *task = (void *)ctx[2];
	_Bool is_whole_process = ctx[3] & 1;
	volatile __u16 *table = pid_table();
	__u16 entry;

	if (!table || cgroup->root->hierarchy_id != bound_hierarchy)
		return 0;
	entry = entry_by_cgroup(cgroup);
	if (is_whole_process)
		move_threads(task, entry);
	else
		move_task(table, task->pid, entry);
	return 0;
}

#endif
