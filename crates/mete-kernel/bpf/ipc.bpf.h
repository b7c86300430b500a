/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * IPC usage: a task wakes another one, directly or by a packet that it sent. The event is of the type "on
 * access". It is logged for both sides, each with the other one as correspondent (thesis 4.3.1).
 */
#ifndef METE_IPC_H
#define METE_IPC_H

#include "network.bpf.h"

/* The domain of the task that causes this wake-up; METE_NO_DOMAIN where no task does. */
static __always_inline __u16 cause_of(__u64 *ctx, volatile __u16 *table, struct task_struct *task)
{
	enum context context = context_of(ctx, task);
	struct delivery *delivery;

	if (context == OF_TASK)
		return domain_of(table, task);
	if (context == OF_INTERRUPT)
		return METE_NO_DOMAIN;
	delivery = delivery_here();
	return delivery && delivery->entry ? delivery->entry & (METE_DOMAINS - 1) : METE_NO_DOMAIN;
}

SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	struct task_struct *running = current_task();
	struct task_struct *receiver = (void *)ctx[0];
	volatile __u16 *table = pid_table();
	struct mete_area *area = area_here();
	struct mete_record send = { METE_IPC_SEND, 0, 0, 1, running };
	struct mete_record receive = { METE_IPC_RECEIVE, 0, 0, 1, running };
	__u16 cause;

	if (!table || !area)
		return 0;
	cause = cause_of(ctx, table, running);
	if (cause == METE_NO_DOMAIN)
		return 0;
	send.domain = receive.correspondent = cause;
	receive.domain = send.correspondent = domain_of(table, receiver);
	mete_log(area, &send);
	mete_log(area, &receive);
	return 0;
}

#endif
