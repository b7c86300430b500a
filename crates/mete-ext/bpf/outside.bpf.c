/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The kernel's side of a policy that decides outside the kernel, for all ordinary tasks. A task is a client, a cgroup a domain.
 *
 *	something happens	a row says so to the policy (rows.bpf.h)
 *	a processor is free	dispatch: the answer that lies there is carried out (answers.bpf.h)
 *	a client goes ahead	dispatch: it runs as soon as it wakes, as the policy said before (ahead.bpf.h)
 *	there is no choice	dispatch: if one task alone waits, it runs, and the policy is told (all policies would choose it)
 *	there is no answer	dispatch: the thread in which the policy decides runs on this processor, if it does not already
 *
 * The deciding thread is a task like any other, but it waits in a dispatch queue of its own and is not told to itself. It never
 * sleeps: it yields when it has read all rows, and is kept waiting until there is something to decide. A client that it interrupts
 * goes on behind it, without the policy's noticing, unless the policy decides otherwise meanwhile.
 *
 * No decision waits for the policy longer than until the deadline. After that, and at once when the deciding thread cannot run
 * (it is stopped, waits for memory, or has ended), tasks run in turn (waiting.bpf.h, looks.bpf.h).
 */
#include "ahead.bpf.h"
#include "asking.bpf.h"
#include "ending.bpf.h"
#include "looks.bpf.h"
#include "membership.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* How long the deciding thread may run: if it has not yielded then, others run. */
#define POLICY_SLICE_NS (5ull * 1000 * 1000)

s32 OPERATION(select_cpu, struct task_struct *p, s32 previous, u64 wake_flags)
{
	struct task *task = task_of(client_of(p));
	bool is_idle = 0;

	if (decides(p))
		return previous;
	if (task)
		task->is_handed_over = !!(wake_flags & SCX_WAKE_SYNC);
	return scx_bpf_select_cpu_dfl(p, previous, wake_flags, &is_idle);
}

/* The deciding thread waits until there is something to decide. */
static __always_inline void enqueue_policy(struct task_struct *p, u64 enq_flags)
{
	/* It was a client until it was said to decide. */
	leave(p);
	shared.is_able = 1;
	/* An exchange: see want_decision(). */
	__sync_lock_test_and_set(&shared.is_deciding, 0);
	insert_into(p, POLICY_QUEUE, POLICY_SLICE_NS, enq_flags);
	/* What has happened since it read the rows last. */
	if (shared.is_pending)
		ask_policy(scx_bpf_task_cpu(p), 1);
}

/* What a client did that waits from now on. */
static __always_inline enum row_kind how_it_came(const struct task_struct *p, const struct task *task)
{
	if (task->activity == AWAY)
		return ROW_WOKE;
	if (task->has_yielded)
		return ROW_YIELDED;
	return p->se.sum_exec_runtime + LEAST_LEFT_NS >= task->ends_ns ? ROW_EXPIRED : ROW_PREEMPTED;
}

void OPERATION(enqueue, struct task_struct *p, u64 enq_flags)
{
	__u32 client = client_of(p), processor = scx_bpf_task_cpu(p);
	struct task *task = task_of(client);
	enum row_kind kind;

	if (decides(p)) {
		enqueue_policy(p, enq_flags);
		return;
	}
	/* The policy is asked neither about these nor about a task without a number, which it does not know. */
	if (!task || is_of_processor(p)) {
		insert_into(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	/* It was the deciding thread. */
	if (task->activity == ABSENT)
		join(p, client, task);
	task->queued_in = shared.seconds;
	/* Some begin as the kernel's and become programs. */
	task->is_kernel = !!(p->flags & PF_KTHREAD);
	if (task->activity == INTERRUPTED) {
		insert_into(p, client, left_of(p, task), enq_flags);
		put_in(&waiting, client);
		return;
	}
	kind = how_it_came(p, task);
	task->activity = WAITING;
	task->slice_ns = 0;
	task->is_ahead = 0;
	task->is_resumed = 0;
	task->has_yielded = 0;
	task->generation++;
	insert_into(p, client, OWN_SLICE_NS, enq_flags);
	put_in(&waiting, client);
	last_put = client;
	tell_of(p, kind, client, task);
	if (kind == ROW_WOKE)
		find_processor(client, task, processor);
	else if (!shared.is_pending && shared.idle & task->allowed)
		ask_policy(processor, 0);
	/* The kernel does not come by select_cpu for a task that is bound to one processor. */
	task->is_handed_over = 0;
}

void OPERATION(dispatch, s32 cpu, struct task_struct *previous)
{
	int has_decided = previous && decides(previous), was_preempted;
	struct processor *processor = processor_at(cpu);
	struct holder holder = holder_of(previous);

	was_preempted = is_preempted(cpu, holder.task ? holder.client + 1 : processor->interrupted);
	holder.has_slice &= !was_preempted;

	if (has_decided)
		kick_others(cpu);
	if (was_preempted)
		forget_interrupted(processor);
	if (is_taken_in_real_time(cpu))
		return;
	if (held & bit_of(cpu))
		__sync_fetch_and_and(&held, ~bit_of(cpu));
	settle(processor, &holder, has_decided);
	/* What was decided just now is carried out before more is decided. */
	if (!has_decided && let_policy_decide(processor, &holder, cpu)) {
		/* It decides about those, too. */
		call_off(processor);
		return;
	}
	/* One that has gone ahead itself keeps the processor. */
	if (!(holder.has_slice && shared.kept & bit_of(cpu)) && let_go_ahead(processor, cpu)) {
		give_interrupted_back(processor);
		return;
	}
	if (holder.has_slice) {
		previous->scx.slice = left_of(previous, holder.task);
		return;
	}
	if (take_next(processor, &holder, cpu))
		return;
	if (holder.task) {
		go_on(processor, &holder, cpu);
		return;
	}
	/* None that wakes from now on relies on what has run here, and one that did is seen below. */
	if (shared.kept & bit_of(cpu) && take_kept(cpu)) {
		processor->has_run = 1;
		has_decided = 0;
	}
	/* What has run here has blocked: the policy is told of it when it runs. */
	if (processor->has_run && !has_decided) {
		processor->has_run = 0;
		if (waiting.count && have_decided())
			return;
	}
	/* Nothing else is to run here, so a policy that was late may go on. */
	if (!has_decided && shared.is_pending && move_to_local(POLICY_QUEUE))
		return;
	/* What the policy decides on another processor would come too late: this one would not be asked again. */
	if (is_asked_beside_real_time(cpu) && take_undecided(processor, cpu))
		return;
	__sync_fetch_and_or(&shared.idle, bit_of(cpu));
}

void OPERATION(running, struct task_struct *p)
{
	__u32 client = client_of(p), processor = scx_bpf_task_cpu(p);
	struct task *task = task_of(client);
	int is_decided;

	if (shared.idle & bit_of(processor))
		__sync_fetch_and_and(&shared.idle, ~bit_of(processor));
	if (decides(p)) {
		/* It may have waited as a client when it was said to decide: the policy would choose for ever what waits no more. */
		leave(p);
		shared.is_deciding = 1;
		processor_at(processor)->rounds++;
		return;
	}
	/* The kernel gives a client its processor back by itself, after a task of a higher class, and after it has changed the client. */
	if (!task || (task->activity != WAITING && task->activity != INTERRUPTED))
		return;
	take_out(&waiting, client);
	take_out(&overdue, client);
	is_decided = task->slice_ns && !task->is_ahead;
	if (task->slice_ns)
		p->scx.slice = task->slice_ns;
	if (!is_decided && task->activity == WAITING && !task->is_resumed)
		tell(ROW_TAKEN, client, task->generation, processor);
	task->slice_ns = 0;
	/* It was said for one wake-up. */
	if (task->ahead) {
		task->ahead = 0;
		task->was_ahead = 1;
	}
	task->is_ahead = 0;
	task->is_resumed = 0;
	task->has_yielded = 0;
	task->ends_ns = p->se.sum_exec_runtime + p->scx.slice;
	task->activity = RUNNING;
	processor_at(processor)->has_run = 1;
}

/* A task ceases to be runnable: it waits for something, has ended, or the kernel is about to change it, and puts it back then. */
void OPERATION(quiescent, struct task_struct *p, u64 deq_flags)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (decides(p)) {
		shared.is_able = 0;
		shared.is_deciding = 0;
		return;
	}
	if (!task || task->activity == ABSENT || task->activity == AWAY)
		return;
	take_out(&waiting, client);
	take_out(&overdue, client);
	if (!(deq_flags & DEQUEUED_TO_SLEEP))
		return;
	task->activity = AWAY;
	tell_of(p, ROW_BLOCKED, client, task);
	if (has_ended(p, deq_flags))
		leave(p);
}

/*
 * A higher class takes a processor. The tasks that were to run there next are queued again, so that other processors can take
 * them. So does the client that the policy has interrupted there: else the policy would take it for running for as long as the
 * processor is away. For one that was to go ahead there, the policy finds a processor.
 */
void OPERATION(cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	struct processor *processor = processor_at(cpu);

	__sync_fetch_and_or(&held, bit_of(cpu));
	give_interrupted_back(processor);
	call_off(processor);
	scx_bpf_reenqueue_local();
}

/* A task gives way by itself. */
bool OPERATION(give_way, struct task_struct *from, struct task_struct *to)
{
	struct task *task = task_of(client_of(from));

	if (task && !decides(from))
		task->has_yielded = 1;
	from->scx.slice = 0;
	return 0;
}

/*
 * Without these two, the kernel would end the scheduler when a processor comes or goes. The kernel itself moves the tasks of
 * one that goes; the policy takes back what it has decided for it.
 */
void SLEEPABLE(cpu_online, s32 cpu)
{
	__sync_fetch_and_or(&shared.online, bit_of(cpu));
	want_decision();
}

void SLEEPABLE(cpu_offline, s32 cpu)
{
	__sync_fetch_and_and(&shared.online, ~bit_of(cpu));
	__sync_fetch_and_and(&shared.idle, ~bit_of(cpu));
	call_off(processor_at(cpu));
	want_decision();
}

s32 SLEEPABLE(init)
{
	s32 error = scx_bpf_create_dsq(POLICY_QUEUE, -1);

	if (error)
		return error;
	begin_numbers();
	domains[ROOT].is_known = 1;
	return begin_timer(look, DEADLINE_NS);
}

SEC(".struct_ops.link")
struct sched_ext_ops mete = {
	.select_cpu = (void *)select_cpu,
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.running = (void *)running,
	.quiescent = (void *)quiescent,
	.yield = (void *)give_way,
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
	.init = (void *)init,
	.exit = (void *)ended,
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED |
		 SCX_OPS_HAS_CGROUP_WEIGHT,
	/* The kernel ends the scheduler when a task has waited longer than this: patience.bpf.h is well below it. */
	.timeout_ms = 30000,
	.name = "mete_outside",
};
