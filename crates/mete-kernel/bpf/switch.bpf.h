/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Processor service time and performance counters: events of the type entry/exit, at the context switch
 * (thesis 4.3.1). A domain enters when a task of another domain leaves the processor to one of its tasks. At
 * its exit, the difference is charged to it.
 *
 * A second program on a tracepoint costs more than all that the first one does. So there is a program for
 * each combination of characteristics, and never two of them are attached at a time.
 */
#ifndef METE_SWITCH_H
#define METE_SWITCH_H

#include "domain.bpf.h"

/* Bits of phase.armed, beside those of the counters. */
#define SERVICE (1 << COUNTERS)
#define UNDIVIDED (SERVICE << 1) /* what counters have counted so far is charged to no domain */

/* What this processor remembers from the entry. Only these programs write it. */
struct phase {
	__u64 begin[COUNTERS + 1]; /* counters, then the run-queue clock in nanoseconds */
	__u32 armed; /* what the exit will be logged of: bit n is counter n, or SERVICE; and UNDIVIDED */
	__u32 generation; /* switching.generation when it was written */
	__u16 domain;
	__u16 moved_to; /* the domain of the running task now, if `moved` says that it has changed */
	__u32 pid; /* of the task that got the processor */
	__u64 missed; /* the number of switches that the kernel did not report; src/kernel/missed.rs reads it */
	__u64 seen; /* when the last switch was, on the run-queue clock */
	__u64 moved; /* when the running task first changed its domain, on the monotonic clock, or 0 */
	__u64 moved_last; /* when it did so last */
	__u64 renewed; /* when the two clocks were last compared, on the run-queue clock */
};

_Static_assert(sizeof(struct phase) % 64 == 0, "no cache line is shared by two processors");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct phase);
} phases SEC(".maps");

/* Counter n of processor p is at n * processors + p. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} counters SEC(".maps");

/* What the loader writes for the switch programs. */
struct switching {
	__u32 generation; /* changes with each attachment, which makes void what was remembered before */
	__u32 counters; /* bit n: counter n is open */
	__u32 service; /* whether service time is logged */
} switching SEC(".bss.switching");

/* Each processor compares the clocks a hundred times a second. */
#define RENEW_NS 10000000

/*
 * How far the monotonic clock is ahead of the clock of the run queues. To read both for each row would double
 * the cost of a row. So they are compared now and then: at a switch, when the run queue's clock is exact.
 */
__s64 ahead_ns SEC(".bss.clocks");

static __always_inline void compare_clocks(struct phase *phase, __u64 now)
{
	if (now - phase->renewed < RENEW_NS)
		return;
	phase->renewed = now;
	*(volatile __s64 *)&ahead_ns = bpf_ktime_get_ns() - now;
}

static __always_inline __u64 read_counter(__u32 nth)
{
	struct bpf_perf_event_value value;
	__u32 at = nth * settings.processors + bpf_get_smp_processor_id();

	if (bpf_perf_event_read_value(&counters, at, &value, sizeof(value)))
		return 0;
	return value.counter;
}

/* One switch, as all its events see it. */
struct passage {
	struct mete_area *area;
	struct phase *phase;
	struct task_struct *next;
	__u64 now; /* on the run-queue clock */
	__u16 from;
	__u16 to;
};

static __always_inline _Bool stays(const struct passage *p, __u16 event)
{
	return p->from == p->to &&
	       !(METE_READ(mete_pair_of(p->area, p->to, event)->flags) & METE_PAIR_KEEP_INTERNAL);
}

static __always_inline void leave(const struct passage *p, __u16 event, __u64 delta)
{
	struct mete_record r = { event, p->from, p->to, delta, 0, p->now };

	mete_exit(p->area, &r, 0);
}

static __always_inline void pass_service(const struct passage *p)
{
	if (stays(p, METE_SERVICE_TIME))
		return;
	if (p->phase->armed & SERVICE)
		leave(p, METE_SERVICE_TIME, p->now - p->phase->begin[COUNTERS]);
	p->phase->armed &= ~SERVICE;
	if (!mete_enter(p->area, p->to, METE_SERVICE_TIME))
		return;
	p->phase->begin[COUNTERS] = p->now;
	p->phase->armed |= SERVICE;
}

static __always_inline void pass_counter(const struct passage *p, __u32 nth)
{
	__u16 event = METE_COUNTERS + nth;
	__u32 bit = 1u << nth;
	_Bool is_armed = p->phase->armed & bit;
	__u64 value = 0;

	if (stays(p, event))
		return;
	if (is_armed) {
		__u64 begin = p->phase->begin[nth & (COUNTERS - 1)];

		value = read_counter(nth);
		/* Most phases have no page fault and no migration, so there is nothing to charge. */
		if (value != begin)
			leave(p, event, value - begin);
	}
	p->phase->armed &= ~bit;
	if (!mete_enter(p->area, p->to, event))
		return;
	/* The entry goes on from the value of the exit, if there was one: nothing is lost or counted twice. */
	p->phase->begin[nth & (COUNTERS - 1)] = is_armed ? value : read_counter(nth);
	p->phase->armed |= bit;
}

/*
 * The same for programs that run seldom. A function with numbers only: the verifier looks at it once, and not for each
 * counter and each way to it.
 */
__noinline int pass_counter_here(__u32 nth, __u32 from, __u32 to, __u64 now)
{
	__u32 processor = bpf_get_smp_processor_id();
	struct passage p = { .area = area_of(processor), .now = now, .from = from, .to = to };

	p.phase = bpf_map_lookup_elem(&phases, &processor);
	if (p.area && p.phase)
		pass_counter(&p, nth & (COUNTERS - 1));
	return 0;
}

static __always_inline void pass_counters_here(const struct passage *p)
{
	for (__u32 nth = 0; nth < COUNTERS; nth++) {
		if (switching.counters & 1u << nth)
			pass_counter_here(nth, p->from, p->to, p->now);
	}
}

/* What was counted since the last switch that was seen cannot be divided, so no domain is charged for it. */
static __always_inline void forget_counts(struct phase *phase)
{
	phase->armed &= ~UNDIVIDED;
	for (__u32 nth = 0; nth < COUNTERS; nth++) {
		if (switching.counters & phase->armed & 1u << nth)
			phase->begin[nth & (COUNTERS - 1)] = read_counter(nth);
	}
}

/* A task of this domain gets the processor, at p->now. */
static __always_inline void arrive(struct passage *p, __u16 domain, _Bool has_service, _Bool has_counters)
{
	p->from = p->phase->domain;
	p->to = domain;
	p->phase->domain = domain;
	if (has_service)
		pass_service(p);
	if (!has_counters)
		return;
	if (p->phase->armed & UNDIVIDED)
		forget_counts(p->phase);
	for (__u32 nth = 0; nth < COUNTERS; nth++) {
		if (switching.counters & 1u << nth)
			pass_counter(p, nth);
	}
}

/* How long a task has had the processor, by the kernel's own account; 0 where the kernel keeps none. */
static __always_inline __u64 stint_of(struct task_struct *task)
{
	if (task->prio < MAX_RT_PRIO)
		return 0;
	return task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
}

/*
 * Some kernels do not pass the tracepoint at every switch. Then a task leaves that was not seen to arrive. It
 * arrived one stint ago, but not before the last switch that was seen.
 */
static __always_inline void arrive_late(struct passage *p, __u16 domain, struct task_struct *leaving,
					_Bool has_service)
{
	__u64 now = p->now;
	__u64 stint = stint_of(leaving);

	p->phase->missed++;
	if (p->phase->domain != domain)
		p->phase->armed |= UNDIVIDED;
	if (stint > now - p->phase->seen)
		stint = now - p->phase->seen;
	p->now = now - stint;
	arrive(p, domain, has_service, 0);
	p->now = now;
}

/*
 * The running task goes on in another domain. The run-queue clock stands still between switches. So the time
 * so far is divided only when the task leaves the processor, by the time that has passed since on the
 * monotonic clock. A domain between the first one and this one is charged at once.
 */
static __always_inline void move_running(struct task_struct *task, __u16 to)
{
	__u32 processor = bpf_get_smp_processor_id();
	struct phase *phase = bpf_map_lookup_elem(&phases, &processor);
	struct passage p = { .area = area_of(processor), .phase = phase, .next = task, .to = to };
	__u64 now;

	if (!phase || !p.area || phase->generation != switching.generation || phase->pid != task->pid)
		return;
	p.from = phase->moved ? phase->moved_to : phase->domain;
	if (p.from == to)
		return;
	p.now = run_queue_clock(task);
	pass_counters_here(&p);
	now = bpf_ktime_get_ns();
	if (phase->moved && switching.service && mete_enter(p.area, p.from, METE_SERVICE_TIME))
		leave(&p, METE_SERVICE_TIME, now - phase->moved_last);
	phase->moved_to = to;
	phase->moved_last = now;
	if (!phase->moved)
		phase->moved = now;
}

/* Divides the time that the running task has used among the domains that it was in meanwhile. */
static __always_inline void settle_moved(struct passage *p, _Bool has_service)
{
	struct phase *phase = p->phase;
	__u64 now = p->now, clock, since, last;

	if (!phase->moved)
		return;
	clock = bpf_ktime_get_ns();
	since = clock - phase->moved;
	last = clock - phase->moved_last;
	phase->moved = 0;
	/* The clocks differ a little, and the change cannot have been before the phase began. */
	if (since > now - phase->begin[COUNTERS])
		since = now - phase->begin[COUNTERS];
	if (last > since)
		last = since;
	p->now = now - since;
	arrive(p, phase->moved_to, has_service, 0);
	p->now = now;
	/* What lies between the first change and the last one is charged already. Where it has come back, its phase goes on. */
	phase->begin[COUNTERS] += since - last;
}

/* Forgets what was remembered under another attachment. */
static __always_inline void begin_anew(struct phase *phase, __u32 pid)
{
	phase->generation = switching.generation;
	phase->armed = 0;
	phase->domain = METE_NO_DOMAIN;
	phase->moved = 0;
	phase->pid = pid;
}

/*
 * Charges a phase for its time so far, while it goes on. So all time is known at the latest one tick after it
 * was used, also that of a task that never leaves the processor. `task` has the processor.
 */
static __always_inline void charge_so_far(struct mete_area *area, struct task_struct *task)
{
	__u32 processor = bpf_get_smp_processor_id();
	volatile __u16 *table = pid_table();
	struct passage p = { .area = area, .next = task };
	struct mete_record r = { METE_SERVICE_TIME, 0, METE_NO_DOMAIN, 0, task };

	p.phase = bpf_map_lookup_elem(&phases, &processor);
	if (!switching.service || !table || !p.phase)
		return;
	p.now = run_queue_clock(task);
	if (p.phase->generation != switching.generation) {
		begin_anew(p.phase, task->pid);
		arrive(&p, domain_of(table, task), 1, 0);
	} else if (p.phase->pid != task->pid) {
		p.phase->moved = 0;
		arrive_late(&p, domain_of(table, task), task, 1);
	}
	settle_moved(&p, 1);
	/*
	 * The scheduler or the exec of another thread has bound it anew. What was counted in this phase is the former
	 * domain's: members of that domain may have counted most of it, who had the processor before this task.
	 */
	if (p.phase->domain != domain_of(table, task)) {
		arrive(&p, domain_of(table, task), 1, 0);
		if (p.phase->armed & UNDIVIDED)
			forget_counts(p.phase);
		pass_counters_here(&p);
	}
	p.phase->pid = task->pid;
	p.phase->seen = p.now;
	if (!(p.phase->armed & SERVICE) || p.now <= p.phase->begin[COUNTERS])
		return;
	r.domain = p.phase->domain;
	r.counter = p.now - p.phase->begin[COUNTERS];
	p.phase->begin[COUNTERS] = p.now;
	mete_exit(area, &r, 0);
}

static __always_inline int on_switch(__u64 *ctx, _Bool has_service, _Bool has_counters)
{
	__u32 processor = bpf_get_smp_processor_id();
	volatile __u16 *table = pid_table();
	struct task_struct *leaving = (void *)ctx[1];
	struct passage p = { .next = (void *)ctx[2] };

	p.area = area_of(processor);
	p.phase = bpf_map_lookup_elem(&phases, &processor);
	if (!table || !p.area || !p.phase)
		return 0;
	p.now = run_queue_clock(p.next);
	compare_clocks(p.phase, p.now);
	if (p.phase->generation != switching.generation)
		begin_anew(p.phase, leaving->pid);
	if (p.phase->pid != leaving->pid) {
		p.phase->moved = 0;
		arrive_late(&p, domain_of(table, leaving), leaving, has_service);
	}
	settle_moved(&p, has_service);
	arrive(&p, domain_of(table, p.next), has_service, has_counters);
	p.phase->pid = p.next->pid;
	p.phase->seen = p.now;
	return 0;
}

SEC("tp_btf/sched_switch")
int switch_service(__u64 *ctx)
{
	return on_switch(ctx, 1, 0);
}

SEC("tp_btf/sched_switch")
int switch_counters(__u64 *ctx)
{
	return on_switch(ctx, 0, 1);
}

SEC("tp_btf/sched_switch")
int switch_both(__u64 *ctx)
{
	return on_switch(ctx, 1, 1);
}

#endif
