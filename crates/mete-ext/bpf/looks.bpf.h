/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A timer looks for decisions that are late, and for tasks that have waited for long. */
#ifndef METE_LOOKS_BPF_H
#define METE_LOOKS_BPF_H

#include "clients.bpf.h"
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

/* How many tasks were put in line in this second. Not a variable of the loop: the verifier would follow each value. */
__u32 put_in_line;

static __always_inline void check_wait(__u32 client)
{
	struct task *task = &tasks[masked(client, CLIENTS)];
	__u32 most = shared.online & ~task->allowed ? LONG_WAIT_BOUND : LONG_WAIT;
	__u32 waited = shared.seconds - task->queued_in;

	if (waited < most || (put_in_line >= HASTENED_AT_ONCE && waited < TOO_LONG_WAIT) ||
	    is_in(&overdue, client))
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
			wake_processor(nth);
	}
}

static int look(void *map, int *key, struct timed *timed)
{
	__u64 since = shared.pending_since_ns;

	if (++shared.looks >= LOOKS_A_SECOND) {
		shared.looks = 0;
		shared.seconds++;
		find_overdue();
		/* The deciding thread runs now and then, so that it does not seem to be forgotten. */
		want_decision();
		wake_idle();
	}
	if (shared.is_pending && (__s64)(bpf_ktime_get_ns() - since) > (__s64)DEADLINE_NS) {
		shared.is_stalled = 1;
		wake_idle();
	}
	go_on_after(timed, DEADLINE_NS);
	return 0;
}

#endif
