/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What the queues and this scheduler know of a task, by its number. */
#ifndef METE_TASKS_BPF_H
#define METE_TASKS_BPF_H

#include "queues.bpf.h"

static __always_inline struct task *task_of(__u32 client)
{
	return client < CLIENTS ? &tasks[masked(client, CLIENTS)] : 0;
}

static __always_inline struct dvtrr_client *policy_client(__u32 client)
{
	return client < CLIENTS ? &clients[masked(client, CLIENTS)] : 0;
}

#endif
