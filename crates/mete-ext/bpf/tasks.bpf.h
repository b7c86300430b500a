/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The numbers of tasks and cgroups: what clients and domains are in the queues. */
#ifndef METE_TASKS_BPF_H
#define METE_TASKS_BPF_H

#include "queues.bpf.h"

/* Numbers that no task and no cgroup has. The maps have locks of their own, so any operation may use them. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, CLIENTS);
	__uint(value_size, sizeof(__u32));
} free_clients SEC(".maps"), free_domains SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} domains_of_cgroups SEC(".maps");

/* The number of a task; CLIENTS for one that the policy does not schedule. */
static __always_inline __u32 client_of(const struct task_struct *p)
{
	/* The member is free for a scheduler that orders no queue by it. 0: the task has no number. */
	__u64 number = p->scx.dsq_vtime - 1;

	return number < CLIENTS ? number : CLIENTS;
}

static __always_inline struct task *task_of(__u32 client)
{
	return client < CLIENTS ? &tasks[masked(client, CLIENTS)] : 0;
}

static __always_inline struct dvtrr_client *policy_client(__u32 client)
{
	return client < CLIENTS ? &clients[masked(client, CLIENTS)] : 0;
}

static __always_inline __u32 domain_of(struct cgroup *cgrp)
{
	__u32 *number = bpf_cgrp_storage_get(&domains_of_cgroups, cgrp, 0, 0);

	return number ? masked(*number, DOMAINS) : DVTRR_ROOT;
}

/* All numbers are free, but for the root's. */
static __always_inline void begin_numbers(void)
{
	__u32 nth;

	bpf_for(nth, 0, CLIENTS)
	{
		__u32 number = CLIENTS - 1 - nth;

		bpf_map_push_elem(&free_clients, &number, 0);
	}
	bpf_for(nth, 0, DOMAINS - 1)
	{
		__u32 number = DOMAINS - 1 - nth;

		bpf_map_push_elem(&free_domains, &number, 0);
	}
}

#endif
