/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The numbers of tasks and cgroups: what clients and domains are for a policy. */
#ifndef METE_NUMBERS_BPF_H
#define METE_NUMBERS_BPF_H

#include "scx.h"

/* These are powers of two, so that a mask bounds an index. */
#define CLIENTS 16384u
#define DOMAINS 1024u
/* As many as a mask of 64 bits has room for. */
#define PROCESSORS 64u

/* The number of the topmost cgroup. */
#define ROOT 0u

/*
 * An index that the verifier sees to be below a power of two. The compiler, which may know that it is, must not leave the
 * mask out: the verifier follows no comparison of another copy.
 */
static __always_inline __u32 masked_below(__u32 number, __u32 size)
{
	asm volatile("" : "+r"(number));
	return number & (size - 1);
}

/* A mask of another size would make different numbers the same. */
#define masked(number, size)                                                        \
	({                                                                          \
		_Static_assert(((size) & ((size) - 1)) == 0,                        \
			       "a mask bounds an index below a power of two only"); \
		masked_below(number, size);                                         \
	})

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

/* The number of a task; CLIENTS for one that has none. */
static __always_inline __u32 client_of(const struct task_struct *p)
{
	/* The member is free for a scheduler that orders no queue by it. 0: the task has no number. */
	__u64 number = p->scx.dsq_vtime - 1;

	return number < CLIENTS ? number : CLIENTS;
}

/* The numbers of tasks that have left the scheduler's class. By where they are in memory: a program that another one replaces may get that one's thread number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CLIENTS);
	__type(key, __u64);
	__type(value, __u32);
} numbers_kept SEC(".maps");

/* Newer kernels forget a task's number when it leaves the class, also when it ends. */
static __always_inline void keep_number(const struct task_struct *p)
{
	__u32 client = client_of(p);
	__u64 task = (__u64)p;

	if (client < CLIENTS)
		bpf_map_update_elem(&numbers_kept, &task, &client, 0);
}

/* It has come back, or has ended. */
static __always_inline void find_number(struct task_struct *p)
{
	__u64 task = (__u64)p;
	__u32 *client = bpf_map_lookup_elem(&numbers_kept, &task);

	if (!client)
		return;
	p->scx.dsq_vtime = *client + 1;
	bpf_map_delete_elem(&numbers_kept, &task);
}

static __always_inline __u32 domain_of(struct cgroup *cgrp)
{
	__u32 *number = bpf_cgrp_storage_get(&domains_of_cgroups, cgrp, 0, 0);

	return number ? masked(*number, DOMAINS) : ROOT;
}

/*
 * Gives a task a number, and a dispatch queue that it has alone: 0, or why not. The queue stays when the task has ended, for the
 * next one of that number: the kernel ends a scheduler that names a queue that is gone, as a decision may that comes late.
 */
static __always_inline s32 give_number(struct task_struct *p)
{
	__u32 client;
	s32 error;

	if (bpf_map_pop_elem(&free_clients, &client))
		return -E2BIG;
	error = scx_bpf_create_dsq(client, -1);
	if (error && error != -EEXIST) {
		bpf_map_push_elem(&free_clients, &client, 0);
		return error;
	}
	p->scx.dsq_vtime = client + 1;
	return 0;
}

/* A task that may be scheduled one day. */
s32 SLEEPABLE(init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return give_number(p);
}

/* The task has none any more. */
static __always_inline void take_number_back(struct task_struct *p)
{
	__u32 client = client_of(p);

	p->scx.dsq_vtime = 0;
	bpf_map_push_elem(&free_clients, &client, 0);
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

/* The cgroup that contains this one; the topmost one contains itself. */
static __always_inline __u32 domain_above(struct cgroup *cgrp)
{
	struct cgroup *above;
	__u32 parent = ROOT;

	if (cgrp->level <= 0)
		return parent;
	above = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (above) {
		parent = domain_of(above);
		bpf_cgroup_release(above);
	}
	return parent;
}

/* The kernel's own scheduler counts this for a weight of 100. */
#define ORDINARY_SHARES (1024u << 10)

/*
 * The weight of a cgroup when it comes, as cpu.weight has it. What the kernel tells may be outdated, because it takes no notes
 * while its own scheduler rules; on Linux 6.12 it tells 0 of each cgroup from that time. So the weight is what its own
 * scheduler goes by, where that can be read.
 */
static __always_inline __u32 weight_of(struct cgroup *cgrp, __u32 told)
{
	__u32 nth = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	void *states = (void *)cgrp + bpf_core_field_offset(struct cgroup, subsys);
	struct task_group *group = 0;
	__u64 shares = 0, weight;

	if (bpf_core_field_exists(struct task_group, shares) &&
	    !bpf_probe_read_kernel(&group, sizeof(group), states + nth * sizeof(group)) && group)
		bpf_core_read(&shares, sizeof(shares), &group->shares);
	weight = (shares * 100 + ORDINARY_SHARES / 2) / ORDINARY_SHARES;
	/* A cgroup with cpu.idle has fewer shares than the smallest weight has; cpu.shares of version 1 may be more than the greatest. */
	if (shares)
		return weight < 1 ? 1 : weight > 10000 ? 10000 : weight;
	return told ? told : 100;
}

/* What is handed to set_share(): a cgroup, and a share from outside, or (0) none any more. */
struct set_share_arguments {
	__u64 cgroup;
	__u32 domain; /* its number */
	__u32 share;
};

/* Gives a cgroup a number: 0, or why not. */
static __always_inline s32 give_domain_number(struct cgroup *cgrp, __u32 *domain)
{
	__u32 *number;

	*domain = ROOT;
	if (cgrp->level > 0 && bpf_map_pop_elem(&free_domains, domain))
		return -E2BIG;
	number = bpf_cgrp_storage_get(&domains_of_cgroups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!number) {
		if (*domain != ROOT)
			bpf_map_push_elem(&free_domains, domain, 0);
		return -ENOMEM;
	}
	*number = *domain;
	return 0;
}

#endif
