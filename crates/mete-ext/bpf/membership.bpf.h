/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Tasks and cgroups come, change and go: the policy is told. */
#ifndef METE_MEMBERSHIP_BPF_H
#define METE_MEMBERSHIP_BPF_H

#include "clients.bpf.h"
#include "leaving.bpf.h"

void OPERATION(set_weight, struct task_struct *p, u32 weight)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (!task || task->activity == ABSENT)
		return;
	task->weight = weight;
	tell_of(p, ROW_CHANGED, client, task);
}

void OPERATION(set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (!task || task->activity == ABSENT)
		return;
	task->allowed = mask->bits[0];
	tell_of(p, ROW_CHANGED, client, task);
}

/* From here on the policy schedules the task. */
static __always_inline void join(struct task_struct *p, __u32 client, struct task *task)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);

	task->domain = domain_of(cgrp);
	enter_domain(task->domain);
	bpf_cgroup_release(cgrp);
	task->base_ns = task->ends_ns = p->se.sum_exec_runtime;
	task->slice_ns = 0;
	task->is_handed_over = 0;
	task->has_yielded = 0;
	task->ahead = 0;
	task->was_ahead = 1;
	task->allowed = p->cpus_ptr->bits[0];
	task->weight = p->scx.weight;
	task->joined++;
	task->activity = AWAY;
	tell_of(p, ROW_JOINED, client, task);
}

/* The task's cgroup can be asked for now, and not before. */
void OPERATION(enable, struct task_struct *p)
{
	struct task *task;
	__u32 client;

	find_number(p);
	client = client_of(p);
	task = task_of(client);
	if (task && !decides(p))
		join(p, client, task);
}

static __always_inline void leave(struct task_struct *p)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (!task || task->activity == ABSENT)
		return;
	take_out(&waiting, client);
	take_out(&overdue, client);
	task->activity = ABSENT;
	tell_of(p, ROW_LEFT, client, task);
	leave_domain(task->domain);
}

/* Its counterpart: another class schedules the task. */
void OPERATION(disable, struct task_struct *p)
{
	leave(p);
	keep_number(p);
}

void OPERATION(exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	/* Another task may get its number. */
	if (decides(p))
		deciding.thread = 0;
	find_number(p);
	if (client_of(p) >= CLIENTS)
		return;
	leave(p);
	take_number_back(p);
}

s32 SLEEPABLE(cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	__u32 parent = domain_above(cgrp), number;
	s32 error = give_domain_number(cgrp, &number);
	struct domain *domain;

	if (error)
		return error;
	note_parent(number, parent);
	domain = &domains[masked(number, DOMAINS)];
	domain->cgroup = cgrp->kn->id;
	domain->parent = parent;
	domain->weight = weight_of(cgrp, args->weight);
	domain->set = 0;
	domain->is_known = 1;
	tell(ROW_DOMAIN, number, 0, 0);
	return 0;
}

/* The policy hears of it after all that its tasks did. */
static __always_inline void forget_domain(__u32 domain)
{
	domains[masked(domain, DOMAINS)].is_known = 0;
	tell(ROW_DOMAIN, domain, 0, 0);
}

void OPERATION(cgroup_exit, struct cgroup *cgrp)
{
	__u32 domain = domain_of(cgrp);

	if (domain == ROOT)
		return;
	domains[masked(domain, DOMAINS)].cgroup = 0;
	let_domain_go(cgrp, domain);
}

/* The kernel takes a task out of its queue before, and puts it back afterwards. */
void OPERATION(cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);
	__u32 before;

	if (!task || task->activity == ABSENT)
		return;
	before = task->domain;
	task->domain = domain_of(to);
	enter_domain(task->domain);
	tell_of(p, ROW_CHANGED, client, task);
	leave_domain(before);
}

void OPERATION(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	__u32 number = domain_of(cgrp);

	domains[masked(number, DOMAINS)].weight = weight;
	tell(ROW_DOMAIN, number, 0, 0);
}

SEC("syscall")
int set_share(struct set_share_arguments *arguments)
{
	struct domain *domain = &domains[masked(arguments->domain, DOMAINS)];

	/* It was removed since its number was looked up, and another one may have the number. */
	if (domain->cgroup != arguments->cgroup)
		return -ENOENT;
	domain->set = arguments->share;
	tell(ROW_DOMAIN, arguments->domain, 0, 0);
	want_decision();
	return 0;
}

#endif
