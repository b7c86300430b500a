/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * From task to accounting domain (thesis 3.5, 4.3.4): a table that is indexed by pid. Three write to it: the
 * scheduler; the programs below, for tasks that change their cgroup; and the programs of select.bpf.h, for
 * new tasks and for processes that become what a rule selects. A read takes no helper call. Every new task
 * overwrites its entry, so no entry has to be cleared when a task ends.
 */
#ifndef METE_DOMAIN_H
#define METE_DOMAIN_H

#include "area.bpf.h"
#include "domain_table.bpf.h"

/* An entry of the table holds the domain and, where it comes from a cgroup of the task, BOUND_BY_CGROUP. */

/* The deepest nesting of cgroups, and the largest number of hierarchies, that the programs follow. */
#define CGROUP_DEPTH 32
#define HIERARCHIES 32

/* The identifier of a cgroup is unique only within its hierarchy. */
struct cgroup_key {
	__u64 id;
	__u64 hierarchy;
};

/* From a bound cgroup to the table entry of the tasks in it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct cgroup_key);
	__type(value, __u16);
} domain_of_cgroup SEC(".maps");

static __always_inline volatile __u16 *entry_of(volatile __u16 *table, __u32 pid)
{
	return &table[pid & settings.pid_mask];
}

static __always_inline __u16 domain_of(volatile __u16 *table, struct task_struct *task)
{
	return *entry_of(table, task->pid) & (METE_DOMAINS - 1);
}

#define READ(to, from) bpf_probe_read_kernel(&(to), sizeof(to), &(from))

/* The entry of the nearest bound cgroup: this one or one above it; 0 if none is bound. */
static __always_inline __u16 entry_by_cgroup(struct cgroup *cgroup)
{
	struct cgroup_key key = {};
	struct cgroup_root *root;
	struct kernfs_node *node;
	int hierarchy;

	if (READ(root, cgroup->root) || READ(hierarchy, root->hierarchy_id))
		return 0;
	key.hierarchy = hierarchy;
	for (int depth = 0; depth < CGROUP_DEPTH; depth++) {
		struct cgroup_subsys_state *above;
		__u16 *entry;

		if (READ(node, cgroup->kn) || READ(key.id, node->id))
			return 0;
		entry = bpf_map_lookup_elem(&domain_of_cgroup, &key);
		if (entry)
			return *entry;
		if (READ(above, cgroup->self.parent) || !above || READ(cgroup, above->cgroup))
			return 0;
	}
	return 0;
}

/* A walk over the cgroups that a task is in: one of each hierarchy. */
struct groups {
	struct list_head *head;
	struct list_head *node;
	__u16 entry;
};

static long ask_group(__u64 nth, struct groups *groups)
{
	struct cgrp_cset_link *link;
	struct cgroup *cgroup;
	__u16 entry;

	if (groups->node == groups->head)
		return 1;
	link = (void *)((char *)groups->node - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link));
	if (READ(cgroup, link->cgrp) || READ(groups->node, groups->node->next))
		return 1;
	entry = entry_by_cgroup(cgroup);
	if (entry && (!groups->entry || entry < groups->entry))
		groups->entry = entry;
	return 0;
}

/*
 * The entry that a task gets by its cgroups; 0 if none of them is bound. If cgroups of several hierarchies
 * are bound, the domain with the lowest number counts.
 */
static __always_inline __u16 entry_by_groups(struct task_struct *task)
{
	struct groups groups = {};
	struct css_set *set;

	if (READ(set, task->cgroups) || READ(groups.node, set->cgrp_links.next))
		return 0;
	groups.head = (void *)((char *)set + bpf_core_field_offset(struct css_set, cgrp_links));
	bpf_loop(HIERARCHIES, ask_group, &groups, 0);
	return groups.entry;
}

/* A task's own binding takes precedence over those of its cgroups (design decision D5). */
static __always_inline void follow_task(volatile __u16 *table, struct task_struct *task, __u32 pid)
{
	volatile __u16 *slot = entry_of(table, pid);
	__u16 old = *slot, entry;

	if (old && !(old & BOUND_BY_CGROUP))
		return;
	entry = entry_by_groups(task);
	if (entry != old)
		*slot = entry;
}

/* A walk over the threads of a process. The kernel frees none of them while a program runs. */
struct walk {
	struct list_head *head;
	struct list_head *node;
	__u16 entry;
	__u16 is_own;
};

/* A process cannot have more threads than there are pids. */
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
	if (walk->is_own)
		*entry_of(table, pid) = walk->entry;
	else
		follow_task(table, (void *)task, pid);
	return bpf_probe_read_kernel(&walk->node, sizeof(walk->node), &walk->node->next) != 0;
}

/* Moves all threads of a process: to `entry` if `is_own`, else each to the entry of its cgroups. */
static __always_inline void move_threads(struct task_struct *leader, __u16 entry, __u16 is_own)
{
	struct signal_struct *signal = leader->signal;
	struct walk walk = { &signal->thread_head, signal->thread_head.next, entry, is_own };

	bpf_loop(MAX_THREADS, move_thread, &walk, 0);
}

/* Follows tasks that move into bound cgroups and out of them. */
SEC("tp_btf/cgroup_attach_task")
int follow(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[2];
	_Bool is_whole_process = ctx[3] & 1;
	volatile __u16 *table = pid_table();

	if (!table)
		return 0;
	if (is_whole_process)
		move_threads(task, 0, 0);
	else
		follow_task(table, task, task->pid);
	return 0;
}

/* How many entries the program below has changed since it was loaded. */
__u64 regrouped SEC(".bss.regrouped");

/*
 * Runs for every task after a cgroup was bound or unbound. Tasks move and start meanwhile, so the loader runs
 * it until it changes nothing.
 */
SEC("iter/task")
int follow_all(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	volatile __u16 *table = pid_table();
	struct css_set *before, *after;
	__u16 old;

	if (!task || !table)
		return 0;
	old = *entry_of(table, task->pid);
	READ(before, task->cgroups);
	follow_task(table, task, task->pid);
	READ(after, task->cgroups);
	/* It moved meanwhile: `follow` may have written the new entry, and then this program the old one. */
	if (before != after)
		follow_task(table, task, task->pid);
	if (*entry_of(table, task->pid) != old)
		__sync_fetch_and_add(&regrouped, 1);
	return 0;
}

#endif
