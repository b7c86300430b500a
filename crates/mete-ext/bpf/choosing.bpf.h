/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What runs next on a processor, one way after the other. outside.bpf.c has their order. */
#ifndef METE_CHOOSING_BPF_H
#define METE_CHOOSING_BPF_H

#include "answers.bpf.h"
#include "clients.bpf.h"

/* The slice of a task that the kernel's side has chosen itself. */
#define OWN_SLICE_NS (500ull * 1000)

/* A client with less left of its slice has used it up. */
#define LEAST_LEFT_NS (50ull * 1000)

/* The client that has the processor, and may keep it. */
struct holder {
	struct task_struct *p;
	struct task *task; /* 0: there is none */
	__u32 client;
	int has_slice; /* something of its slice is left, and nothing takes it away */
};

static __always_inline struct holder holder_of(struct task_struct *previous)
{
	struct holder holder = { previous, 0, CLIENTS, 0 };

	/* The kernel queues it again only after dispatch, if nothing gives it another slice here. */
	if (!previous || decides(previous) || !(previous->scx.flags & SCX_TASK_QUEUED))
		return holder;
	holder.client = client_of(previous);
	holder.task = task_of(holder.client);
	if (!holder.task || holder.task->activity != RUNNING ||
	    previous->se.sum_exec_runtime + LEAST_LEFT_NS >= holder.task->ends_ns)
		return holder;
	/* What else takes a slice away wants the deciding thread to run, and may come late: it has run already, and another client here. */
	holder.has_slice = !holder.task->has_yielded;
	return holder;
}

/*
 * The policy has been asked about a client that it let go ahead before, and lets it keep the processor. It may say again that the client
 * goes ahead, if it comes to know in time that it has blocked.
 */
static __always_inline void expect_ahead(struct processor *processor, struct task *task)
{
	if (!task->was_ahead)
		return;
	task->was_ahead = 0;
	processor->owes_decision = 1;
}

/* A client runs next, for this long, if it can. */
static __always_inline int let_run(__u64 slice_ns, struct task *task, __u32 client,
				   const struct holder *holder)
{
	/* It goes on: nothing is moved, and the kernel keeps it. */
	if (holder->task && client == holder->client) {
		task->ends_ns = holder->p->se.sum_exec_runtime + slice_ns;
		holder->p->scx.slice = slice_ns;
		task->has_yielded = 0;
		return 1;
	}
	if (!move_to_local(client))
		return 0;
	task->slice_ns = slice_ns;
	return 1;
}

/* Whether a task runs next by the policy's decision. */
static __always_inline int carry_out(__u64 answer, const struct holder *holder, __u32 cpu)
{
	__u32 client = answer_client(answer);
	struct task *task = task_of(client);
	struct processor *processor = processor_at(cpu);

	if (!task)
		return 0;
	/* The generation is that of its last wait: it may have run, or left, since. */
	if (is_of_generation(answer, task->generation) &&
	    (task->activity == WAITING || task->activity == INTERRUPTED ||
	     (holder->task && client == holder->client))) {
		if (let_run(answer_slice_ns(answer), task, client, holder)) {
			processor->decided++;
			note_kept(cpu, answer_keeps(answer));
			if (answer_keeps(answer))
				expect_ahead(processor, task);
			return 1;
		}
		note_kept(cpu, 0);
	}
	processor->late++;
	tell(ROW_MISSED, client, answer >> GENERATION_AT, 0);
	return 0;
}

/* The task that waits alone runs next. */
static __always_inline int take_only(struct processor *processor)
{
	__u32 client;

	if (waiting.count != 1)
		return 0;
	client = masked(last_put, CLIENTS);
	/* As a rule it is the one that began to wait last. */
	if (!(waiting.words[client / 64] >> (client & 63) & 1))
		client = first_waiting(0);
	if (client >= CLIENTS || !move_to_local(client))
		return 0;
	processor->alone++;
	return 1;
}

/* A task that waits runs next, in turn; of those that have waited for long, or of all. */
static __always_inline int take_in_turn(struct processor *processor, int only_overdue)
{
	__u32 tries, client, first = CLIENTS;

	if (!(only_overdue ? overdue.count : waiting.count))
		return 0;
	/* One that may not run here is passed over. */
	for (tries = 0; CAN_LOOP && tries < 64; tries++) {
		client = only_overdue ? first_overdue(processor->cursor) : first_waiting(processor->cursor);
		if (client >= CLIENTS || client == first)
			return 0;
		processor->cursor = masked(client + 1, CLIENTS);
		if (move_to_local(client))
			return 1;
		if (first >= CLIENTS)
			first = client;
	}
	return 0;
}

/* The client that the policy has interrupted here waits like any other. Its number, or CLIENTS. */
static __always_inline __u32 forget_interrupted(struct processor *processor)
{
	__u32 client = masked(processor->interrupted - 1, CLIENTS);

	if (!processor->interrupted)
		return CLIENTS;
	processor->interrupted = 0;
	if (tasks[client].activity != INTERRUPTED)
		return CLIENTS;
	tasks[client].activity = WAITING;
	return client;
}

/* The policy is told that a client waits which it takes for running. */
static __always_inline void tell_preempted(__u32 client)
{
	struct task *task = task_of(client);

	if (!task)
		return;
	task->generation++;
	tell(ROW_PREEMPTED, client, task->generation, task->used_ns);
}

/* Another one has the processor of the client that the policy has interrupted. */
static __always_inline void give_interrupted_back(struct processor *processor)
{
	tell_preempted(forget_interrupted(processor));
}

/* It goes on, if it still may run here. */
static __always_inline int resume(struct processor *processor)
{
	__u32 client = forget_interrupted(processor);

	if (client >= CLIENTS)
		return 0;
	if (!move_to_local(client)) {
		tell_preempted(client);
		want_decision();
		return 0;
	}
	tasks[masked(client, CLIENTS)].is_resumed = 1;
	return 1;
}

/* A processor can have it decided now. If that does not come, the policy is late from here on. */
static __always_inline void offer(void)
{
	if (!shared.offered_ns)
		shared.offered_ns = bpf_ktime_get_ns();
}

/* The deciding thread runs next, if it waits. */
static __always_inline int have_decided(void)
{
	want_decision();
	offer();
	return move_to_local(POLICY_QUEUE);
}

/* The deciding thread runs next where something is to be decided; where it is late, in turn with others. */
static __always_inline int let_policy_decide(struct processor *processor, const struct holder *holder,
					     __u32 cpu)
{
	if (!shared.is_pending)
		return 0;
	offer();
	if (shared.is_stalled && !processor->is_turn_of_policy)
		return 0;
	if (!move_to_local(POLICY_QUEUE))
		return 0;
	processor->is_turn_of_policy = 0;
	if (holder->has_slice) {
		holder->task->activity = INTERRUPTED;
		holder->task->used_ns = holder->p->se.sum_exec_runtime - holder->task->base_ns;
		processor->interrupted = holder->client + 1;
	} else {
		note_kept(cpu, 0);
	}
	return 1;
}

/* A task that waits runs next, though the policy has not decided so. */
static __always_inline int take_undecided(struct processor *processor, __u32 cpu)
{
	if (!take_in_turn(processor, 0))
		return 0;
	note_kept(cpu, 0);
	processor->undecided++;
	processor->is_turn_of_policy = 1;
	return 1;
}

/* A task runs next for which it is settled: what was interrupted, what is overdue, what the policy has decided, or has no choice in. */
static __always_inline int take_next(struct processor *processor, const struct holder *holder, __u32 cpu)
{
	__u64 answer;

	if (resume(processor))
		return 1;
	if (take_in_turn(processor, 1)) {
		processor->hastened++;
		note_kept(cpu, 0);
		return 1;
	}
	answer = take_answer(cpu);
	if (answer && carry_out(answer, holder, cpu))
		return 1;
	if (!holder->task && take_only(processor)) {
		note_kept(cpu, 0);
		return 1;
	}
	return (shared.is_stalled || !shared.is_able) && take_undecided(processor, cpu);
}

/* Nothing else waits, or what is next is being decided at this moment: the client that has run goes on for a while. */
static __always_inline void go_on(struct processor *processor, const struct holder *holder, __u32 cpu)
{
	/* Its slice is over. */
	note_kept(cpu, 0);
	if (waiting.count && have_decided())
		return;
	if (waiting.count)
		processor->extended++;
	processor->is_turn_of_policy = 1;
	holder->task->has_yielded = 0;
	holder->task->ends_ns = holder->p->se.sum_exec_runtime + OWN_SLICE_NS;
	holder->p->scx.slice = OWN_SLICE_NS;
}

#endif
