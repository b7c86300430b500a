/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Group VTRR as the scheduler of all ordinary tasks (SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE). A task is a client, a cgroup a
 * domain with the share cpu.weight; each processor has a tree of its own (tree.bpf.h).
 *
 *	a task becomes runnable		enqueue: it waits in a dispatch queue that it has alone, and in the processor's tree
 *	a processor needs a task	dispatch: the tree picks one; its queue's only task moves to the processor
 *	a task leaves its processor	stopping: the tree charges what was used, to the task and to its cgroups
 *	a processor has no task		dispatch: it takes one out of another processor's tree
 *
 * A picked task that is not in its queue any more, because it was dequeued or taken at that moment, leaves the tree; enqueue
 * brings it back.
 */
#include "tasks.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Why the kernel has ended this scheduler: enum scx_exit_kind, and a sentence. */
__u32 exit_kind;
char exit_reason[128];
char exit_message[256];

/* How many processors there are. */
const volatile __u32 processor_count = 1;

/* Charges a task that runs, or has just run. */
static __always_inline void charge(struct task_struct *p, __u32 client, struct task *task, __u32 stop,
				   __u64 now)
{
	__u64 used_ns = p->se.sum_exec_runtime - task->charged_ns;

	task->charged_ns = p->se.sum_exec_runtime;
	tree_ran(task->processor, client, used_ns, stop, now);
}

/* Without this operation, the kernel itself would put a task that wakes onto an idle processor, past the tree. */
s32 OPERATION(select_cpu, struct task_struct *p, s32 previous, u64 wake_flags)
{
	bool is_idle = 0;

	return scx_bpf_select_cpu_dfl(p, previous, wake_flags, &is_idle);
}

void OPERATION(enqueue, struct task_struct *p, u64 enq_flags)
{
	__u32 client = client_of(p), processor = scx_bpf_task_cpu(p);
	struct task *task = task_of(client);
	__u64 now = bpf_ktime_get_ns();

	/*
	 * A kernel thread bound to one processor does work that others wait for, so it goes ahead of all tasks, in order of
	 * arrival. So does a task without a number, which is in no tree.
	 */
	if (!task || (p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1)) {
		insert_into(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	/*
	 * The kernel moves the task into its queue when this operation has returned, and holds the lock of the processor's
	 * run queue until then. So dispatch on this processor finds a task that the tree picks; another processor may not.
	 */
	insert_into(p, client, QUANTUM_NS, enq_flags);
	if (task->processor != processor) {
		tree_leave(task->processor, client, now);
		task->processor = processor;
	}
	tree_wake(processor, client, now);
	scx_bpf_kick_cpu(processor, SCX_KICK_IDLE);
}

/* Moves the next task of this processor's tree to the processor. True if there is one. */
static __always_inline bool run_own(__u32 processor, struct task_struct *previous, __u32 before, __u64 now)
{
	__u32 tries, client;

	/* Tasks that have left at this very moment are few. */
	for (tries = 0; tries < 4; tries++) {
		client = tree_pick(processor, now);
		if (client >= CLIENTS)
			return 0;
		processor_at(processor)->decisions++;
		if (previous && client == before) {
			/* It goes on: nothing is moved, and the kernel keeps it. */
			previous->scx.slice = QUANTUM_NS;
			return 1;
		}
		if (move_to_local(client))
			return 1;
		processor_at(processor)->missed++;
		tree_ran(processor, client, 0, VTRR_STOP_BLOCKED, now);
	}
	/* If they are not, the kernel is to ask again: it takes a processor without a choice for one without tasks. */
	scx_bpf_kick_cpu(processor, 0);
	return 0;
}

/* Takes a task out of another processor's tree and runs it here. */
static __always_inline void run_foreign(__u32 processor, __u64 now)
{
	__u32 nth;

	bpf_for(nth, 1, processor_count)
	{
		__u32 other = (processor + nth) % processor_count;
		__u32 client = tree_pick(other, now);
		struct task *task = task_of(client);

		if (!task)
			continue;
		if (!move_to_local(client)) {
			/*
			 * It may not run here, or the kernel has not put it into its queue yet: the choice is given back.
			 * The other processor may have found its tree empty meanwhile and have become idle.
			 */
			tree_ran(other, client, 0, VTRR_PREEMPTED, now);
			scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
			continue;
		}
		tree_ran(other, client, 0, VTRR_STOP_BLOCKED, now);
		task->processor = processor;
		tree_wake(processor, client, now);
		processor_at(processor)->stolen++;
		return;
	}
}

void OPERATION(dispatch, s32 cpu, struct task_struct *previous)
{
	__u32 processor = cpu, before = CLIENTS;
	__u64 now = bpf_ktime_get_ns();
	struct task *task;

	/* The task that runs is queued again only after this: the tree has to know now that it is ready. */
	if (previous && previous->scx.flags & SCX_TASK_QUEUED) {
		before = client_of(previous);
		task = task_of(before);
		if (task)
			charge(previous, before, task, previous->scx.slice ? VTRR_PREEMPTED : VTRR_EXPIRED,
			       now);
	}
	if (!run_own(processor, previous, before, now) && before == CLIENTS)
		run_foreign(processor, now);
}

void OPERATION(running, struct task_struct *p)
{
	__u32 client = client_of(p);
	struct vtrr_entity *entity = entity_of(client);
	struct task *task = task_of(client);

	if (!task || !entity)
		return;
	task->charged_ns = p->se.sum_exec_runtime;
	/* As a rule the tree has picked it. */
	if (!entity->busy)
		tree_runs(task->processor, client, bpf_ktime_get_ns());
}

void OPERATION(stopping, struct task_struct *p, bool runnable)
{
	__u32 client = client_of(p), stop = p->scx.slice ? VTRR_PREEMPTED : VTRR_EXPIRED;
	struct task *task = task_of(client);

	if (task)
		charge(p, client, task, runnable ? stop : VTRR_STOP_BLOCKED, bpf_ktime_get_ns());
}

/* Also a task that waits can cease to be runnable: it is killed, moved or changed. */
void OPERATION(quiescent, struct task_struct *p, u64 deq_flags)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (task)
		tree_leave(task->processor, client, bpf_ktime_get_ns());
}

void OPERATION(set_weight, struct task_struct *p, u32 weight)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (task)
		tree_set_share(task->processor, client, weight, bpf_ktime_get_ns());
}

s32 SLEEPABLE(init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct vtrr tree = tree_of(0);
	struct task *task;
	__u32 client;
	s32 error;

	if (bpf_map_pop_elem(&free_clients, &client))
		return -E2BIG;
	task = task_of(client);
	if (!task)
		return -E2BIG;
	error = scx_bpf_create_dsq(client, -1);
	if (error) {
		bpf_map_push_elem(&free_clients, &client, 0);
		return error;
	}
	task->processor = 0;
	p->scx.dsq_vtime = client + 1;
	vtrr_add(&tree, client, VTRR_ROOT, 1);
	return 0;
}

/* From here on the task is scheduled by the trees. Its cgroup can be asked for now, and not before. */
void OPERATION(enable, struct task_struct *p)
{
	struct vtrr_entity *entity = entity_of(client_of(p));
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);

	if (entity) {
		entity->home = domain_of(cgrp);
		entity->share = p->scx.weight;
	}
	bpf_cgroup_release(cgrp);
}

void OPERATION(exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);
	struct vtrr_entity *entity = entity_of(client);

	if (!task || !entity)
		return;
	tree_leave(task->processor, client, bpf_ktime_get_ns());
	entity->state = VTRR_ABSENT;
	p->scx.dsq_vtime = 0;
	scx_bpf_destroy_dsq(client);
	bpf_map_push_elem(&free_clients, &client, 0);
}

/* Makes a cgroup known to every tree. No lock is needed: nothing is in the domain yet. */
s32 SLEEPABLE(cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	__u32 parent = VTRR_ROOT, domain = VTRR_ROOT, processor, *number;
	struct cgroup *above;

	if (cgrp->level > 0) {
		above = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
		if (above) {
			parent = domain_of(above);
			bpf_cgroup_release(above);
		}
		if (bpf_map_pop_elem(&free_domains, &domain))
			return -E2BIG;
	}
	number = bpf_cgrp_storage_get(&domains_of_cgroups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!number) {
		if (domain != VTRR_ROOT)
			bpf_map_push_elem(&free_domains, &domain, 0);
		return -ENOMEM;
	}
	*number = domain;
	shares[masked(domain, DOMAINS)].weight = args->weight;
	bpf_for(processor, 0, PROCESSORS)
	{
		struct vtrr tree = tree_of(masked(processor, PROCESSORS));

		vtrr_add_domain(&tree, domain, parent, args->weight);
	}
	return 0;
}

/* Nothing is in the domain any more. */
void OPERATION(cgroup_exit, struct cgroup *cgrp)
{
	__u32 domain = domain_of(cgrp), processor;

	if (domain == VTRR_ROOT)
		return;
	bpf_for(processor, 0, PROCESSORS)
	{
		struct vtrr tree = tree_of(masked(processor, PROCESSORS));
		struct vtrr_entity *entity = vtrr_above(&tree, domain);

		if (entity) {
			entity->state = VTRR_ABSENT;
			entity->departed_share = 0;
		}
	}
	shares[masked(domain, DOMAINS)].set = 0;
	bpf_map_push_elem(&free_domains, &domain, 0);
}

/* The kernel takes a task out of its queue before, and puts it back afterwards. */
void OPERATION(cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct vtrr_entity *entity = entity_of(client_of(p));

	if (entity && !entity->is_member) {
		entity->home = domain_of(to);
		entity->departed_share = 0;
	}
}

/* The trees take it up when a task of the cgroup wakes or runs: see adopt_shares(). */
void OPERATION(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	shares[masked(domain_of(cgrp), DOMAINS)].weight = weight;
}

s32 SLEEPABLE(init)
{
	__u32 number;

	begin_numbers();
	bpf_for(number, 0, PROCESSORS * DOMAINS)
		vtrr_begin_queue(&queues[masked(number, PROCESSORS * DOMAINS)]);
	bpf_for(number, 0, PROCESSORS) vtrr_begin_seat(&seats[masked(number, PROCESSORS)]);
	return 0;
}

void OPERATION(ended, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message), info->msg);
	exit_kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops mete = {
	.select_cpu = (void *)select_cpu,
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.running = (void *)running,
	.stopping = (void *)stopping,
	.quiescent = (void *)quiescent,
	.set_weight = (void *)set_weight,
	.init_task = (void *)init_task,
	.enable = (void *)enable,
	.exit_task = (void *)exit_task,
	.cgroup_init = (void *)cgroup_init,
	.cgroup_exit = (void *)cgroup_exit,
	.cgroup_move = (void *)cgroup_move,
	.cgroup_set_weight = (void *)cgroup_set_weight,
	.init = (void *)init,
	.exit = (void *)ended,
	.flags = SCX_OPS_HAS_CGROUP_WEIGHT,
	/* The kernel ends the scheduler when a task has waited longer than this. */
	.timeout_ms = 10000,
	.name = "mete_group_vtrr",
};
