/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Distributed group VTRR as the scheduler of all ordinary tasks (SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE). A task is a
 * client, a cgroup a domain with the share cpu.weight (queues.bpf.h).
 *
 *	a task becomes runnable		enqueue: it waits in a dispatch queue that it has alone, and in the processor's queues
 *	a processor needs a task	dispatch: the policy chooses one; its queue's only task moves to the processor
 *	a task leaves its processor	stopping: what was used is charged, to the task and to its cgroups
 *
 * A chosen task that is not in its dispatch queue was dequeued at that moment, or is not there yet: see missed().
 */
#include "causes.bpf.h"
#include "sweep.bpf.h"
#include "dump.bpf.h"
#include "ending.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Charges a task that runs, or has just run. */
static __always_inline void charge(struct task_struct *p, __u32 client, struct task *task, __u32 stop)
{
	__u64 used_ns = p->se.sum_exec_runtime - task->charged_ns;

	task->charged_ns = p->se.sum_exec_runtime;
	/* It has run: should it wait now, that begins now. */
	task->queued_in = seconds;
	queues_ran(client, used_ns, stop);
}

/* A client wakes by what its waker's processor does now; where that is a task, it expects that since it has blocked. */
static __always_inline void expect_here(__u32 number)
{
	const struct doing *here = doing_here();
	struct dvtrr_client *client;

	if (here->event == DVTRR_NO_EVENT)
		return;
	client = policy_client(number);
	if (client)
		client->cause = dvtrr_cause_of(here->event, here->port);
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
	int answer;

	/* The policy is asked neither about these nor about a task without a number, which it does not know. */
	if (!task || is_of_processor(p)) {
		insert_into(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	task->processor = processor;
	task->refused = 0;
	task->queued_in = seconds;
	/* Some begin as the kernel's and become programs. */
	task->is_kernel = !!(p->flags & PF_KTHREAD);
	if (enq_flags & SCX_ENQ_WAKEUP)
		expect_here(client);
	answer = queues_wake(client, processor, 1);
	if (answer & QUEUES_CHOSEN) {
		if (answer & QUEUES_ASKS) {
			processor_at(processor)->is_asked = 1;
			enq_flags |= SCX_ENQ_PREEMPT;
		}
		insert_into(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
		return;
	}
	/*
	 * The kernel moves the task into its queue when this operation has returned, and holds the lock of the processor's
	 * run queue until then. So dispatch on this processor finds a task that the policy chooses; another processor may
	 * not.
	 */
	insert_into(p, client, SLICE_NS, enq_flags);
	/* If the processor is idle, the kernel has it look for a task by itself. */
	if (answer & QUEUES_ASKS)
		have_give_way(processor);
	ask_idle(task, processor);
}

/*
 * A task was chosen and is not in its dispatch queue, or may not run here. One that the kernel has on another processor
 * goes back there, and this one leaves it alone until it is queued again; that processor may have become idle meanwhile.
 * One of this processor was dequeued at this moment, and enqueue brings it back.
 */
static __always_inline void missed(__u32 processor, __u32 client)
{
	struct task *task = task_of(client);

	processor_at(processor)->missed++;
	queues_withdraw(client);
	if (!task || task->processor == processor)
		return;
	__sync_fetch_and_or(&task->refused, 1ull << (processor & 63));
	wake_on(client, task->processor);
}

void OPERATION(dispatch, s32 cpu, struct task_struct *previous)
{
	__u32 processor = cpu, before = CLIENTS, tries, client, was_asked = processor_at(processor)->is_asked;
	enum dvtrr_stop stop;
	struct task *task;

	processor_at(processor)->is_asked = 0;
	/* The task that runs is queued again only after this: the policy has to know now that it is ready. */
	if (previous && previous->scx.flags & SCX_TASK_QUEUED) {
		before = client_of(previous);
		task = task_of(before);
		/* To be asked takes what is left of a slice. */
		stop = previous->scx.slice || was_asked ? DVTRR_PREEMPTED : DVTRR_EXPIRED;
		if (task)
			charge(previous, before, task, stop);
	}
	if (is_taken_in_real_time(cpu))
		return;
	/* Tasks that have left at this very moment are few. */
	for (tries = 0; tries < 8; tries++) {
		client = queues_pick(processor);
		if (client >= CLIENTS) {
			__sync_fetch_and_or(&idle, 1ull << (processor & 63));
			return;
		}
		processor_at(processor)->decisions++;
		if (previous && client == before) {
			/* It goes on: nothing is moved, and the kernel keeps it. */
			previous->scx.slice = SLICE_NS;
			return;
		}
		if (move_to_local(client))
			return;
		missed(processor, client);
	}
	/* If they are not, the kernel is to ask again: it takes a processor without a choice for one without tasks. */
	scx_bpf_kick_cpu(processor, 0);
}

void OPERATION(running, struct task_struct *p)
{
	__u32 number = client_of(p), nth = scx_bpf_task_cpu(p);
	struct processor *processor = processor_at(nth);
	struct dvtrr_client *client = policy_client(number);
	struct task *task = task_of(number);

	if (idle >> (nth & 63) & 1)
		__sync_fetch_and_and(&idle, ~(1ull << (nth & 63)));
	if (!task || !client)
		return;
	task->charged_ns = p->se.sum_exec_runtime;
	task->processor = nth;
	task->is_current = 1;
	/* It has no claim to more than the kernel makes necessary: up to the next tick. */
	if (task->is_hastened) {
		task->is_hastened = 0;
		p->scx.slice = 1;
	}
	/*
	 * It was chosen when it woke, and one that goes ahead has come since then. Those that go ahead of all would only give way to each other:
	 * two of them did until their work was done, and beside a task in real time that took more than half a minute.
	 */
	if (processor->ahead.first != DVTRR_NONE && !client->is_ahead && !is_of_processor(p))
		have_give_way(nth);
	/* As a rule the policy has chosen it. The kernel gives it back its processor by itself after one of a higher class. */
	queues_run(number, client, nth);
}

void OPERATION(stopping, struct task_struct *p, bool runnable)
{
	struct processor *processor = processor_at(scx_bpf_task_cpu(p));
	__u32 client = client_of(p), stop;
	struct task *task = task_of(client);

	/* To be asked takes what is left of a slice. */
	stop = p->scx.slice || processor->is_asked ? DVTRR_PREEMPTED : DVTRR_EXPIRED;
	processor->is_asked = 0;
	if (!task)
		return;
	charge(p, client, task, runnable ? stop : DVTRR_STOP_BLOCKED);
	task->is_current = 0;
}

/* A task comes into a domain, or (with DVTRR_NONE) leaves the policy. */
static __always_inline void move_task(__u32 number, __u32 domain, __u32 weight)
{
	struct task *task = task_of(number);
	__u32 before;

	if (!task)
		return;
	before = task->in_domain;
	task->in_domain = domain == DVTRR_NONE ? 0 : domain + 1;
	if (task->in_domain)
		enter_domain(domain);
	queues_move(number, domain, weight);
	if (before)
		leave_domain(before - 1);
}

/* Also a task that waits can cease to be runnable: it is killed, moved or changed. */
void OPERATION(quiescent, struct task_struct *p, u64 deq_flags)
{
	__u32 number = client_of(p);
	struct dvtrr_client *client = policy_client(number);

	/* A task that blocks has stopped before: only a wake-up changes it now. */
	if (client && client->state != DVTRR_BLOCKED)
		queues_withdraw(number);
	if (has_ended(p, deq_flags))
		move_task(number, DVTRR_NONE, 0);
}

void OPERATION(set_weight, struct task_struct *p, u32 weight)
{
	__u32 number = client_of(p);
	struct dvtrr_client *client = policy_client(number);

	if (client)
		queues_set_share(number, client->home, weight);
}

void OPERATION(set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct task *task = task_of(client_of(p));

	if (task)
		task->allowed = mask->bits[0];
}

/* A higher class takes a processor. The tasks that were to run there next are queued again, so that other processors can take them. */
void OPERATION(cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/*
 * Without these two, the kernel would end the scheduler when a processor comes or goes. The kernel itself moves the tasks of
 * one that goes: it takes them out of their queues and puts them back elsewhere. A queue that is empty needs no care.
 */
void SLEEPABLE(cpu_online, s32 cpu)
{
}

void SLEEPABLE(cpu_offline, s32 cpu)
{
}

/* From here on the policy schedules the task. Its cgroup can be asked for now, and not before. */
void OPERATION(enable, struct task_struct *p)
{
	struct dvtrr_client *client;
	struct cgroup *cgrp;
	struct task *task;
	__u32 number;

	find_number(p);
	number = client_of(p);
	task = task_of(number);
	if (!task)
		return;
	cgrp = scx_bpf_task_cgroup(p);
	move_task(number, domain_of(cgrp), p->scx.weight);
	bpf_cgroup_release(cgrp);
	task->allowed = p->cpus_ptr->bits[0];
	task->is_current = 0;
	/*
	 * The kernel's own threads are believed to run briefly until they are seen not to: others wait for what they do, such as
	 * the kernel's watchdog over this scheduler, which runs too seldom to show it.
	 */
	client = policy_client(number);
	if (client && p->flags & PF_KTHREAD)
		dvtrr_believe(client, DVTRR_MOST_BELIEF);
}

/* Its counterpart: another class schedules the task. */
void OPERATION(disable, struct task_struct *p)
{
	move_task(client_of(p), DVTRR_NONE, 0);
	keep_number(p);
}

void OPERATION(exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	__u32 number;

	find_number(p);
	number = client_of(p);
	if (number >= CLIENTS)
		return;
	move_task(number, DVTRR_NONE, 0);
	take_number_back(p);
}

/* What decides on a domain's share: the weight of its cgroup, unless a share is set from outside. */
struct domain_share {
	__u64 cgroup; /* the kernel's number for it, which no other one gets */
	__u32 weight;
	__u32 set; /* 0: none */
};

struct domain_share shares[DOMAINS] SEC(".bss.shares");

static __always_inline void adopt_share(__u32 number)
{
	struct domain_share *share = &shares[masked(number, DOMAINS)];
	struct dvtrr_domain *domain = &domains[masked(number, DOMAINS)];

	if (number != DVTRR_ROOT)
		queues_set_share(CLIENTS + number, domain->parent, share->set ? share->set : share->weight);
}

s32 SLEEPABLE(cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct dvtrr policy = POLICY;
	__u32 parent = domain_above(cgrp), domain, weight;
	s32 error = give_domain_number(cgrp, &domain);

	if (error)
		return error;
	note_parent(domain, parent);
	shares[masked(domain, DOMAINS)].cgroup = cgrp->kn->id;
	weight = weight_of(cgrp, args->weight);
	shares[masked(domain, DOMAINS)].weight = weight;
	dvtrr_add_domain(&policy, masked(domain, DOMAINS), masked(parent, DOMAINS), weight);
	return 0;
}

static __always_inline void forget_domain(__u32 domain)
{
	struct dvtrr policy = POLICY;

	dvtrr_remove_domain(&policy, masked(domain, DOMAINS));
}

void OPERATION(cgroup_exit, struct cgroup *cgrp)
{
	__u32 domain = domain_of(cgrp);

	if (domain == DVTRR_ROOT)
		return;
	shares[masked(domain, DOMAINS)].cgroup = 0;
	shares[masked(domain, DOMAINS)].set = 0;
	let_domain_go(cgrp, domain);
}

/* The kernel takes a task out of its queue before, and puts it back afterwards. */
void OPERATION(cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct dvtrr_client *client = policy_client(client_of(p));

	if (client && client->state != DVTRR_ABSENT)
		move_task(client_of(p), domain_of(to), p->scx.weight);
}

void OPERATION(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	__u32 domain = domain_of(cgrp);

	shares[masked(domain, DOMAINS)].weight = weight;
	adopt_share(domain);
}

SEC("syscall")
int set_share(struct set_share_arguments *arguments)
{
	struct domain_share *share = &shares[masked(arguments->domain, DOMAINS)];

	/* It was removed since its number was looked up, and another one may have the number. */
	if (share->cgroup != arguments->cgroup)
		return -ENOENT;
	share->set = arguments->share;
	adopt_share(masked(arguments->domain, DOMAINS));
	return 0;
}

s32 SLEEPABLE(init)
{
	__u32 number;

	begin_numbers();
	bpf_for(number, 0, QUEUES) dvtrr_begin_queue(&queues[masked(number, QUEUES)]);
	bpf_for(number, 0, MEMBERS) dvtrr_begin_member(&members[masked(number, MEMBERS)]);
	bpf_for(number, 0, PROCESSORS)
	{
		struct processor *processor = processor_at(number);

		processor->running = DVTRR_NONE;
		processor->ahead.first = processor->ahead.last = DVTRR_NONE;
	}
	domains[DVTRR_ROOT].is_known = 1;
	return begin_timer(sweep, PART_NS);
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
	.set_cpumask = (void *)set_cpumask,
	.cpu_release = (void *)cpu_release,
	.cpu_online = (void *)cpu_online,
	.cpu_offline = (void *)cpu_offline,
	.init_task = (void *)init_task,
	.enable = (void *)enable,
	.disable = (void *)disable,
	.exit_task = (void *)exit_task,
	.cgroup_init = (void *)cgroup_init,
	.cgroup_exit = (void *)cgroup_exit,
	.cgroup_move = (void *)cgroup_move,
	.cgroup_set_weight = (void *)cgroup_set_weight,
	.dump_cpu = (void *)dump_cpu,
	.dump_task = (void *)dump_task,
	.init = (void *)init,
	.exit = (void *)ended,
	.flags = SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_HAS_CGROUP_WEIGHT,
	/* The kernel ends the scheduler when a task has waited longer than this, the most that can be asked for. See patience.bpf.h. */
	.timeout_ms = 30000,
	.name = "mete_group_vtrr",
};
