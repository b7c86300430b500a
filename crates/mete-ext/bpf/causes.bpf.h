/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What wakes tasks (TAVS-5), as far as tracepoints show it: what the processor does on which a task is woken.
 *
 *	a task				another task wakes it
 *	an interrupt, a timer		so does that
 *	in it, a completed request	it has waited for a block device
 *	in it, data for a socket	it has waited for packets to the socket's port
 *
 * An interrupt has the processor until it is over, and what it does first and last is seen. What it completes or receives counts from there on,
 * until the next one or its end: a sender that an acknowledgement wakes is taken for one that the packet before woke. Wake-ups by tasks that
 * work for a device, as those that decrypt disks do, are those of these tasks. Where soft interrupts are themselves preempted (PREEMPT_RT), what
 * runs meanwhile is taken for a part of them.
 */
#ifndef METE_CAUSES_BPF_H
#define METE_CAUSES_BPF_H

#include "numbers.bpf.h"
#include "dvtrr_causes.h"

#define AF_INET 2
#define AF_INET6 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	unsigned short skc_family;
	__u16 skc_num; /* the socket's own port */
};

struct sock {
	struct sock_common __sk_common;
};

#pragma clang attribute pop

/* What a processor does at this moment: what wakes tasks there. */
struct doing {
	enum dvtrr_event event;
	/* What it did before: another interrupt, or that which was interrupted. */
	enum dvtrr_event before_interrupt;
	enum dvtrr_event before_timer;
	__u16 port; /* of a packet */
} __attribute__((aligned(64)));

struct doing doings[PROCESSORS] SEC(".bss.doings");

static __always_inline struct doing *doing_here(void)
{
	return &doings[masked(bpf_get_smp_processor_id(), PROCESSORS)];
}

static __always_inline __u32 cause_here(void)
{
	const struct doing *here = doing_here();

	return dvtrr_cause_of(here->event, here->port);
}

SEC("tp_btf/softirq_entry")
int on_softirq(__u64 *ctx)
{
	doing_here()->event = DVTRR_INTERRUPT;
	return 0;
}

/* Such work is done while nothing else is interrupted but a task. */
SEC("tp_btf/softirq_exit")
int on_softirq_end(__u64 *ctx)
{
	doing_here()->event = DVTRR_NO_EVENT;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int on_interrupt(__u64 *ctx)
{
	struct doing *here = doing_here();

	here->before_interrupt = here->event;
	here->event = DVTRR_INTERRUPT;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int on_interrupt_end(__u64 *ctx)
{
	struct doing *here = doing_here();

	here->event = here->before_interrupt;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer(__u64 *ctx)
{
	struct doing *here = doing_here();

	here->before_timer = here->event;
	here->event = DVTRR_INTERRUPT;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int on_timer_end(__u64 *ctx)
{
	struct doing *here = doing_here();

	here->event = here->before_timer;
	return 0;
}

/* What is completed in a task's own time wakes others for that task: nothing says when it is over. */
SEC("tp_btf/block_rq_complete")
int on_completion(__u64 *ctx)
{
	struct doing *here = doing_here();

	if (here->event != DVTRR_NO_EVENT)
		here->event = DVTRR_BLOCK;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int on_data(__u64 *ctx)
{
	const struct sock *socket = (const struct sock *)ctx[0];
	unsigned short family = socket->__sk_common.skc_family;
	struct doing *here = doing_here();

	if (here->event == DVTRR_NO_EVENT || (family != AF_INET && family != AF_INET6))
		return 0;
	here->port = socket->__sk_common.skc_num;
	here->event = DVTRR_PACKET;
	return 0;
}

#endif
