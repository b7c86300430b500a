/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A timer looks for decisions that are late, and for tasks that have waited for long. */
#ifndef METE_LOOKS_BPF_H
#define METE_LOOKS_BPF_H

#include "ahead.bpf.h"
#include "leaving.bpf.h"
#include "patience.bpf.h"
#include "timer.bpf.h"

/* How late a decision may be; looked at as often. */
#define DEADLINE_NS (10ull * 1000 * 1000)
#define LOOKS_A_SECOND 100
/*
 * A task that is bound to some processors goes ahead sooner than LONG_WAIT says, because a policy that does not know bounds may always
 * find others for these.
 */
#define LONG_WAIT_BOUND 2

/* Whether something was to be decided at the last look. */
__u32 was_pending;

/* How many tasks were put in line in this second, beside the kernel's own. Not a variable of the loop: the verifier would follow each value. */
__u32 put_in_line;
/* The word of the task that was put in line last: the next second begins behind it, so that all have their turn. */
__u32 put_last;
/* The turns on all processors up to this second, and since the last one. */
__u64 turns;
__u64 turns_in_last;

static __always_inline void count_turns(void)
{
	__u64 before = turns, now = 0;
	struct processor *processor;
	__u32 nth;

	bpf_for(nth, 0, PROCESSORS)
	{
		processor = processor_at(nth);
		now += processor->decided + processor->alone + processor->undecided + processor->hastened +
		       processor->went_ahead;
	}
	turns = now;
	turns_in_last = now - before;
}

static __always_inline int is_overdue(const struct task *task, __u32 waited)
{
	__u32 most = shared.online & ~task->allowed ? LONG_WAIT_BOUND : LONG_WAIT;

	if (task->is_kernel)
		return waited >= LONG_WAIT_KERNEL;
	return waited >= most && put_in_line < most_hastened(waited, turns_in_last);
}

static __always_inline void check_wait(__u32 client)
{
	struct task *task = &tasks[masked(client, CLIENTS)];

	if (!is_overdue(task, shared.seconds - task->queued_in) || is_in(&overdue, client))
		return;
	put_in(&overdue, client);
	if (!task->is_kernel) {
		put_in_line++;
		put_last = client >> 6;
	}
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
	__u32 nth, at, first = put_last + 1;

	put_in_line = 0;
	count_turns();
	bpf_for(nth, 0, WORDS)
	{
		at = masked(first + nth, WORDS);
		if (waiting.words[at])
			check_waits(at);
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
			wake_processor(nth);
	}
}

/* Those that were to go ahead at the last look, as the processor has them. */
static struct waiting_ahead {
	__u64 ahead[2];
} seen_ahead[PROCESSORS];

/* Whether one that is to go ahead here was to do so at the last look. One that has just woken is about to. */
static __always_inline int is_held_up(const struct processor *processor, const struct waiting_ahead *seen)
{
	return (processor->ahead[0] && processor->ahead[0] == seen->ahead[0]) ||
	       (processor->ahead[1] && processor->ahead[1] == seen->ahead[1]);
}

/*
 * A client that is to go ahead may have waited since the last look: a task of a higher class may have the processor, or one that went
 * ahead runs for long. The policy decides about all that wait now.
 */
static __always_inline void find_those_ahead(void)
{
	__u32 nth;

	bpf_for(nth, 0, PROCESSORS)
	{
		struct waiting_ahead *seen = &seen_ahead[masked(nth, PROCESSORS)];
		struct processor *processor = processor_at(nth);

		if (is_held_up(processor, seen))
			call_off(processor);
		seen->ahead[0] = processor->ahead[0];
		seen->ahead[1] = processor->ahead[1];
	}
}

/* Whether a processor has waited for a decision for too long. That the policy had no processor meanwhile is not its fault. */
static __always_inline int is_late(void)
{
	/* In this order: the moment may be that of the next wish, and not of one before. */
	__u32 is_pending = *(volatile __u32 *)&shared.is_pending;
	__u64 offered_ns = *(volatile __u64 *)&shared.offered_ns;

	return is_pending && offered_ns && (__s64)(bpf_ktime_get_ns() - offered_ns) > (__s64)DEADLINE_NS;
}

static int look(void *map, int *key, struct timed *timed)
{
	if (++shared.looks >= LOOKS_A_SECOND) {
		shared.looks = 0;
		shared.seconds++;
		find_overdue();
		free_domains_left();
		/* The deciding thread runs now and then, so that it does not seem to be forgotten. */
		want_decision();
		wake_idle();
	}
	find_those_ahead();
	if (is_late())
		shared.is_stalled = 1;
	/* Something is to be decided, as at the last look, and a processor may have found nothing just before. */
	if (shared.is_pending && was_pending)
		wake_idle();
	was_pending = shared.is_pending;
	go_on_after(timed, DEADLINE_NS);
	return 0;
}

#endif
