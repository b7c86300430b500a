/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The kernel's side of a policy that decides outside the kernel, for all ordinary tasks. A task is a client, a cgroup a domain.
 *
 *	something happens	a row says so to the policy (rows.bpf.h)
 *	a processor is free	dispatch: the answer that lies there is carried out (answers.bpf.h)
 *	there is no choice	dispatch: if one task alone waits, it runs, and the policy is told (all policies would choose it)
 *	there is no answer	dispatch: the thread in which the policy decides runs on this processor, if it does not already
 *
 * The deciding thread is a task like any other, but it waits in a dispatch queue of its own and is not told to itself. It never
 * sleeps: it yields when it has read all rows, and is kept waiting until there is something to decide. A client that it interrupts
 * goes on behind it, without the policy's noticing, unless the policy decides otherwise meanwhile.
 *
 * No decision waits for the policy longer than until the deadline. After that, and at once when the deciding thread cannot run
 * (it is stopped, waits for memory, or has ended), tasks run in turn (waiting.bpf.h).
 */
#include "answers.bpf.h"
#include "ending.bpf.h"
#include "rows.bpf.h"
#include "waiting.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The dispatch queue of the deciding thread. */
#define POLICY_QUEUE CLIENTS
/* How long the deciding thread may run: if it has not yielded then, others run. */
#define POLICY_SLICE_NS (5ull * 1000 * 1000)
/* The slice of a task that the kernel's side has chosen itself. */
#define OWN_SLICE_NS (500ull * 1000)
/* A client with less left of its slice has used it up. */
#define LEAST_LEFT_NS (50ull * 1000)
/* How late a decision may be; looked at as often. */
#define DEADLINE_NS (10ull * 1000 * 1000)
#define LOOKS_A_SECOND 100
/*
 * How many seconds a task waits before it goes ahead, whatever the policy decides: well below the kernel's timeout. One that is bound
 * to some processors waits less, because a policy that does not know bounds may always find others for these.
 */
#define LONG_WAIT 5
#define LONG_WAIT_BOUND 2
#define HASTENED_AT_ONCE 64

/* The thread in which the policy decides. */
const volatile __s32 policy_thread;
const volatile __u32 processor_count = 1;

enum activity {
	ABSENT, /* not a client */
	AWAY,
	WAITING,
	RUNNING,
	INTERRUPTED, /* by the policy, and runs on behind it */
};

struct task {
	__u64 base_ns; /* its processor time when it joined */
	__u64 ends_ns; /* its processor time at the end of its slice */
	__u64 slice_ns; /* the slice that is decided, until it runs; or 0 */
	__u64 used_ns; /* what it had used since it joined, when it was interrupted */
	__u64 allowed; /* the processors that it may run on, a bit each */
	__u32 joined; /* which client of this number it is */
	__u32 generation; /* how often it has begun to wait */
	enum activity activity;
	__u32 domain;
	__u32 weight;
	__u32 queued_in; /* the second in which it began to wait */
	__u32 is_resumed; /* it goes on after it was interrupted, by the same decision */
	__u32 is_handed_over; /* the task that woke it is about to wait itself */
};

struct domain {
	__u64 cgroup; /* the kernel's number for it, which no other one gets */
	__u32 is_known;
	__u32 parent;
	__u32 weight;
	__u32 set; /* the weight that was set from outside; or 0 */
};

struct processor {
	__u32 interrupted; /* one more than the number of the client that the policy has interrupted; or 0 */
	__u32 cursor; /* where the kernel's side has come to in its turn */
	__u32 has_run; /* a client has run here since the processor last asked for a decision */
	__u32 is_asked; /* what runs was asked to give way, for the deciding thread */
	__u32 is_turn_of_policy; /* a task has run by turn while the policy was late: now the deciding thread may go on */
	__u64 decided; /* answers that were carried out */
	__u64 late; /* those that could not be: the task had left, or it came too late */
	__u64 alone; /* tasks that ran without a decision, because no other one waited */
	__u64 undecided; /* tasks that ran by turn, because no answer had come by the deadline */
	__u64 hastened; /* tasks that ran because they had waited for long */
	__u64 extended; /* slices that went on, because the policy was just deciding */
	__u64 rounds; /* how often the deciding thread has run */
} __attribute__((aligned(64)));

/* What both sides read and write. Masks have a bit for each processor. */
struct shared {
	__u64 pending_since_ns;
	__u32 is_pending; /* something is to be decided; the policy clears it before it reads rows */
	__u32 is_stalled; /* the same: the deadline has passed */
	__u64 idle; /* the processors that have found nothing to run */
	__u64 online;
	__u64 wakes; /* the policy's: those that are to look for an answer, if they are idle */
	__u64 preempts; /* the policy's: those whose client gives way */
	__u32 is_deciding; /* the deciding thread runs */
	__u32 is_able; /* the deciding thread runs or waits */
	__u32 seconds;
	__u32 looks;
} __attribute__((aligned(64)));

struct shared shared SEC(".bss.shared");
struct task tasks[CLIENTS] SEC(".bss.tasks");
struct domain domains[DOMAINS] SEC(".bss.domains");
struct processor processors[PROCESSORS] SEC(".bss.processors");

static __always_inline struct task *task_of(__u32 client)
{
	return client < CLIENTS ? &tasks[masked(client, CLIENTS)] : 0;
}

static __always_inline struct processor *processor_at(__u32 processor)
{
	return &processors[masked(processor, PROCESSORS)];
}

static __always_inline __u64 bit_of(__u32 processor)
{
	return 1ull << (processor & 63);
}

static __always_inline int decides(const struct task_struct *p)
{
	return p->pid == policy_thread;
}

static __always_inline void tell_of(const struct task_struct *p, enum row_kind kind, __u32 client,
				    const struct task *task)
{
	tell(kind, client, task->generation, p->se.sum_exec_runtime - task->base_ns);
}

/* Something is to be decided, from now on. */
static __always_inline void want_decision(void)
{
	if (shared.is_pending)
		return;
	shared.pending_since_ns = bpf_ktime_get_ns();
	shared.is_pending = 1;
}

/* Has the policy decide soon on a task that waits on this processor: on an idle one, or in place of what runs here. */
static __always_inline void ask_policy(__u32 processor, int may_interrupt)
{
	__u64 others;

	want_decision();
	/* It reads all rows before it yields. */
	if (shared.is_deciding)
		return;
	if (shared.idle & bit_of(processor)) {
		scx_bpf_kick_cpu(processor, SCX_KICK_IDLE);
		return;
	}
	others = shared.idle;
	if (others) {
		scx_bpf_kick_cpu(lowest_bit(others), SCX_KICK_IDLE);
		return;
	}
	if (may_interrupt) {
		processor_at(processor)->is_asked = 1;
		scx_bpf_kick_cpu(processor, SCX_KICK_PREEMPT);
	}
}

/* The policy's answers are carried out on other processors. */
static __always_inline void kick_others(__u32 own)
{
	__u64 preempts = shared.preempts & ~bit_of(own);
	__u64 wakes = shared.wakes ? __sync_lock_test_and_set(&shared.wakes, 0) & ~bit_of(own) : 0;
	__u32 nth;

	if (!(wakes | preempts))
		return;
	bpf_for(nth, 0, PROCESSORS)
	{
		if (preempts >> (nth & 63) & 1)
			scx_bpf_kick_cpu(nth, SCX_KICK_PREEMPT);
		else if (wakes >> (nth & 63) & 1)
			scx_bpf_kick_cpu(nth, SCX_KICK_IDLE);
	}
}

static __always_inline int is_preempted(__u32 processor)
{
	if (!(shared.preempts & bit_of(processor)))
		return 0;
	return !!(__sync_fetch_and_and(&shared.preempts, ~bit_of(processor)) & bit_of(processor));
}

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
	shared.is_able = 1;
	shared.is_deciding = 0;
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
	if (!task->ends_ns)
		return ROW_YIELDED;
	return p->se.sum_exec_runtime + LEAST_LEFT_NS >= task->ends_ns ? ROW_EXPIRED : ROW_PREEMPTED;
}

/* A task has woken. One that waits alone needs no decision where a processor is idle, or is about to be. */
static __always_inline void find_processor(__u32 processor, const struct task *task)
{
	__u64 idle = shared.idle & task->allowed;
	__u32 here = bpf_get_smp_processor_id();
	int is_handed_over = task->is_handed_over && task->allowed & bit_of(here);

	if (rows_are_many(here)) {
		ask_policy(processor, 1);
	} else if (waiting.count > 1 || (!idle && !is_handed_over)) {
		ask_policy(processor, !is_handed_over);
	} else if (idle) {
		scx_bpf_kick_cpu(idle & bit_of(processor) ? processor : lowest_bit(idle), SCX_KICK_IDLE);
	}
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
	/*
	 * A kernel thread bound to one processor does work that others wait for, so it goes ahead of all tasks, in order of
	 * arrival. So does a task without a number, which the policy does not know.
	 */
	if (!task || task->activity == ABSENT || (p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1)) {
		insert_into(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	task->queued_in = shared.seconds;
	if (task->activity == INTERRUPTED) {
		insert_into(p, client, task->ends_ns - p->se.sum_exec_runtime, enq_flags);
		put_in(&waiting, client);
		return;
	}
	kind = how_it_came(p, task);
	task->activity = WAITING;
	task->slice_ns = 0;
	task->is_resumed = 0;
	task->generation++;
	insert_into(p, client, OWN_SLICE_NS, enq_flags);
	put_in(&waiting, client);
	last_put = client;
	tell_of(p, kind, client, task);
	if (kind == ROW_WOKE)
		find_processor(processor, task);
	else if (!shared.is_pending && shared.idle & task->allowed)
		ask_policy(processor, 0);
}

/* Whether a task runs next by the policy's decision. */
static __always_inline int carry_out(__u64 answer, struct task_struct *previous, __u32 before, __u32 cpu)
{
	__u32 client = answer_client(answer);
	struct task *task = task_of(client);
	struct processor *processor = processor_at(cpu);

	if (!task)
		return 0;
	if (is_of_generation(answer, task->generation)) {
		task->slice_ns = answer_slice_ns(answer);
		processor->decided++;
		/* It goes on: nothing is moved, and the kernel keeps it. */
		if (previous && client == before) {
			task->ends_ns = previous->se.sum_exec_runtime + task->slice_ns;
			previous->scx.slice = task->slice_ns;
			task->slice_ns = 0;
			return 1;
		}
		if (move_to_local(client))
			return 1;
		processor->decided--;
	}
	processor->late++;
	tell(ROW_MISSED, client, answer >> 14, 0);
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
	__u32 tries, client;

	if (!(only_overdue ? overdue.count : waiting.count))
		return 0;
	/* One that may not run here is passed over. */
	for (tries = 0; CAN_LOOP && tries < 64; tries++) {
		client = only_overdue ? first_overdue(processor->cursor) : first_waiting(processor->cursor);
		if (client >= CLIENTS)
			return 0;
		processor->cursor = masked(client + 1, CLIENTS);
		if (move_to_local(client))
			return 1;
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

/* It goes on. */
static __always_inline int resume(struct processor *processor)
{
	__u32 client = forget_interrupted(processor);

	if (client >= CLIENTS || !move_to_local(client))
		return 0;
	tasks[masked(client, CLIENTS)].is_resumed = 1;
	return 1;
}

/* The deciding thread runs next, if it waits. */
static __always_inline int have_decided(void)
{
	want_decision();
	return move_to_local(POLICY_QUEUE);
}

void OPERATION(dispatch, s32 cpu, struct task_struct *previous)
{
	int has_decided = previous && decides(previous), was_preempted, was_asked, has_ended = 0;
	struct processor *processor = processor_at(cpu);
	__u32 before = CLIENTS;
	struct task *task = 0;
	__u64 answer;

	if (has_decided)
		kick_others(cpu);
	/* The client that runs is queued again only after this, if nothing gives it another slice here. */
	if (previous && !has_decided && previous->scx.flags & SCX_TASK_QUEUED) {
		before = client_of(previous);
		task = task_of(before);
		has_ended = !task || task->activity != RUNNING ||
			    previous->se.sum_exec_runtime + LEAST_LEFT_NS >= task->ends_ns;
	}
	was_preempted = is_preempted(cpu);
	was_asked = processor->is_asked;
	processor->is_asked = 0;
	/* It has given way by itself: what takes its slice away otherwise has asked. */
	if (task && !has_ended && !was_preempted && !was_asked) {
		task->ends_ns = 0;
		has_ended = 1;
	}
	if (was_preempted)
		forget_interrupted(processor);

	/* First what is to be decided, but not before what was decided just now; a policy that is late takes turns. */
	if (shared.is_pending && !has_decided && (!shared.is_stalled || processor->is_turn_of_policy) &&
	    move_to_local(POLICY_QUEUE)) {
		processor->is_turn_of_policy = 0;
		if (task && !has_ended && !was_preempted) {
			task->activity = INTERRUPTED;
			task->used_ns = previous->se.sum_exec_runtime - task->base_ns;
			processor->interrupted = before + 1;
		}
		return;
	}
	if (task && !has_ended && !was_preempted) {
		previous->scx.slice = task->ends_ns - previous->se.sum_exec_runtime;
		return;
	}
	if (resume(processor))
		return;
	if (take_in_turn(processor, 1)) {
		processor->hastened++;
		return;
	}
	answer = take_answer(cpu);
	if (answer && carry_out(answer, task ? previous : 0, before, cpu))
		return;
	if (!task && take_only(processor))
		return;
	if ((shared.is_stalled || !shared.is_able) && take_in_turn(processor, 0)) {
		processor->undecided++;
		processor->is_turn_of_policy = 1;
		return;
	}
	if (task) {
		/* Nothing else waits, or what is next is being decided at this moment: it goes on for a while. */
		if (waiting.count && have_decided())
			return;
		if (waiting.count)
			processor->extended++;
		task->ends_ns = previous->se.sum_exec_runtime + OWN_SLICE_NS;
		previous->scx.slice = OWN_SLICE_NS;
		return;
	}
	/* What has run here has blocked: the policy is told of it when it runs. */
	if (processor->has_run && !has_decided) {
		processor->has_run = 0;
		if (waiting.count && have_decided())
			return;
	}
	__sync_fetch_and_or(&shared.idle, bit_of(cpu));
}

void OPERATION(running, struct task_struct *p)
{
	__u32 client = client_of(p), processor = scx_bpf_task_cpu(p);
	struct task *task = task_of(client);

	if (shared.idle & bit_of(processor))
		__sync_fetch_and_and(&shared.idle, ~bit_of(processor));
	if (decides(p)) {
		shared.is_deciding = 1;
		processor_at(processor)->rounds++;
		return;
	}
	/* The kernel gives a client that runs its processor back by itself, after a task of a higher class. */
	if (!task || (task->activity != WAITING && task->activity != INTERRUPTED))
		return;
	take_out(&waiting, client);
	take_out(&overdue, client);
	if (task->slice_ns)
		p->scx.slice = task->slice_ns;
	else if (task->activity == WAITING && !task->is_resumed)
		tell(ROW_TAKEN, client, task->generation, processor);
	task->slice_ns = 0;
	task->is_resumed = 0;
	task->ends_ns = p->se.sum_exec_runtime + p->scx.slice;
	task->activity = RUNNING;
	processor_at(processor)->has_run = 1;
}

/* A task ceases to be runnable: it waits for something, has ended, or the kernel is about to change it. */
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
	task->activity = AWAY;
	tell_of(p, ROW_BLOCKED, client, task);
}

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

/*
 * A task of a higher class has taken the processor. Those that were to run here next are queued again, so that other
 * processors can take them.
 */
void OPERATION(cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
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
	want_decision();
}

s32 SLEEPABLE(init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return give_number(p);
}

/* From here on the policy schedules the task. Its cgroup can be asked for now, and not before. */
void OPERATION(enable, struct task_struct *p)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);
	struct cgroup *cgrp;

	if (!task || decides(p))
		return;
	cgrp = scx_bpf_task_cgroup(p);
	task->domain = domain_of(cgrp);
	bpf_cgroup_release(cgrp);
	task->base_ns = task->ends_ns = p->se.sum_exec_runtime;
	task->slice_ns = 0;
	task->allowed = p->cpus_ptr->bits[0];
	task->weight = p->scx.weight;
	task->joined++;
	task->activity = AWAY;
	tell_of(p, ROW_JOINED, client, task);
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
}

/* Its counterpart: another class schedules the task. */
void OPERATION(disable, struct task_struct *p)
{
	leave(p);
}

void OPERATION(exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
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
	domain = &domains[masked(number, DOMAINS)];
	domain->cgroup = cgrp->kn->id;
	domain->parent = parent;
	domain->weight = args->weight;
	domain->set = 0;
	domain->is_known = 1;
	tell(ROW_DOMAIN, number, 0, 0);
	return 0;
}

/* Nothing is in the domain any more. */
void OPERATION(cgroup_exit, struct cgroup *cgrp)
{
	__u32 number = domain_of(cgrp);
	struct domain *domain = &domains[masked(number, DOMAINS)];

	if (number == ROOT)
		return;
	domain->is_known = 0;
	domain->cgroup = 0;
	tell(ROW_DOMAIN, number, 0, 0);
	bpf_map_push_elem(&free_domains, &number, 0);
}

/* The kernel takes a task out of its queue before, and puts it back afterwards. */
void OPERATION(cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	__u32 client = client_of(p);
	struct task *task = task_of(client);

	if (!task || task->activity == ABSENT)
		return;
	task->domain = domain_of(to);
	tell_of(p, ROW_CHANGED, client, task);
}

void OPERATION(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	__u32 number = domain_of(cgrp);

	domains[masked(number, DOMAINS)].weight = weight;
	tell(ROW_DOMAIN, number, 0, 0);
}

/* What is handed to set_share(): a cgroup, and a share from outside, or (0) none any more. */
struct set_share_arguments {
	__u64 cgroup;
	__u32 domain; /* its number */
	__u32 share;
};

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

struct looker {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct looker);
} lookers SEC(".maps");

/* How many tasks were put in line in this second. Not a variable of the loop: the verifier would follow each value. */
__u32 put_in_line;

static __always_inline void check_wait(__u32 client)
{
	struct task *task = &tasks[masked(client, CLIENTS)];
	__u32 most = shared.online & ~task->allowed ? LONG_WAIT_BOUND : LONG_WAIT;

	if (shared.seconds - task->queued_in < most || put_in_line >= HASTENED_AT_ONCE)
		return;
	put_in_line++;
	put_in(&overdue, client);
}

/* Those of one word of the tasks that wait. */
__noinline int check_waits(__u32 nth)
{
	__u64 word = waiting.words[masked(nth, WORDS)];
	__u32 at;

	bpf_for(at, 0, 64)
	{
		if (word >> (at & 63) & 1)
			check_wait(nth * 64 + at);
	}
	return 0;
}

/* Tasks that have waited for long are put in line, to run ahead of all others. */
static __always_inline void find_overdue(void)
{
	__u32 nth;

	put_in_line = 0;
	bpf_for(nth, 0, WORDS)
	{
		if (waiting.words[masked(nth, WORDS)])
			check_waits(nth);
	}
}

/* Processors that found nothing look again. */
static __always_inline void wake_idle(void)
{
	__u64 idle = shared.idle;
	__u32 nth;

	bpf_for(nth, 0, PROCESSORS)
	{
		if (idle >> (nth & 63) & 1)
			scx_bpf_kick_cpu(nth, SCX_KICK_IDLE);
	}
}

static int look(void *map, int *key, struct looker *looker)
{
	if (++shared.looks >= LOOKS_A_SECOND) {
		shared.looks = 0;
		shared.seconds++;
		find_overdue();
		/* The deciding thread runs now and then, so that it does not seem to be forgotten. */
		want_decision();
		wake_idle();
	} else if (shared.is_pending && bpf_ktime_get_ns() - shared.pending_since_ns > DEADLINE_NS) {
		shared.is_stalled = 1;
		wake_idle();
	}
	bpf_timer_start(&looker->timer, DEADLINE_NS, 0);
	return 0;
}

static __always_inline s32 begin_looks(void)
{
	struct looker *looker;
	__u32 only = 0;
	s32 error;

	looker = bpf_map_lookup_elem(&lookers, &only);
	if (!looker)
		return -ENOMEM;
	error = bpf_timer_init(&looker->timer, &lookers, CLOCK_MONOTONIC);
	if (!error)
		error = bpf_timer_set_callback(&looker->timer, look);
	if (!error)
		error = bpf_timer_start(&looker->timer, DEADLINE_NS, 0);
	return error;
}

s32 SLEEPABLE(init)
{
	s32 error = scx_bpf_create_dsq(POLICY_QUEUE, -1);

	if (error)
		return error;
	begin_numbers();
	domains[ROOT].is_known = 1;
	return begin_looks();
}

SEC(".struct_ops.link")
struct sched_ext_ops mete = {
	.select_cpu = (void *)select_cpu,
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.running = (void *)running,
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
	.init = (void *)init,
	.exit = (void *)ended,
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_HAS_CGROUP_WEIGHT,
	/* The kernel ends the scheduler when a task has waited longer than this. LONG_WAIT is well below it. */
	.timeout_ms = 20000,
	.name = "mete_outside",
};
