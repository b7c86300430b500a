/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Cgroups that have gone, and tasks that are still in them.
 *
 * A task that ends has left its cgroup for Linux before 6.19 while it still runs: the cgroup can be removed then. Its number is given to
 * another one only when the last task of it has left the scheduler, too. Otherwise the other one would have its share and its place.
 */
#ifndef METE_LEAVING_BPF_H
#define METE_LEAVING_BPF_H

#include "numbers.bpf.h"

struct leaving {
	__u32 members; /* the tasks that are in the domain, and the domains */
	__u32 parent;
	__u32 is_gone; /* its cgroup was removed, and its number is not free yet */
};

struct leaving leaving[DOMAINS] SEC(".bss.leaving");
/* How many cgroups have gone whose numbers are not free. */
__u32 gone;

/* Each scheduler's own: forgets a domain that has no members. */
static __always_inline void forget_domain(__u32 domain);

static __always_inline void enter_domain(__u32 domain)
{
	__sync_fetch_and_add(&leaving[masked(domain, DOMAINS)].members, 1);
}

static __always_inline void leave_domain(__u32 domain)
{
	__sync_fetch_and_add(&leaving[masked(domain, DOMAINS)].members, -1);
}

/* A domain has come; the topmost one, too. */
static __always_inline void note_parent(__u32 domain, __u32 parent)
{
	if (domain == ROOT)
		return;
	leaving[masked(domain, DOMAINS)].parent = parent;
	enter_domain(parent);
}

/* The number of a cgroup that has gone is free, if nothing is in it. */
static __always_inline void free_domain(__u32 domain)
{
	struct leaving *of = &leaving[masked(domain, DOMAINS)];

	/* The timer may be here, too. */
	if (of->members || !__sync_val_compare_and_swap(&of->is_gone, 1, 0))
		return;
	forget_domain(domain);
	leave_domain(of->parent);
	__sync_fetch_and_add(&gone, -1);
	bpf_map_push_elem(&free_domains, &domain, 0);
}

/* A task that another class has, and that comes back, is in the topmost one from here on. */
static __always_inline void let_domain_go(struct cgroup *cgrp, __u32 domain)
{
	bpf_cgrp_storage_delete(&domains_of_cgroups, cgrp);
	__sync_fetch_and_add(&gone, 1);
	leaving[masked(domain, DOMAINS)].is_gone = 1;
	free_domain(domain);
}

/* Looks at those in which something was when they went. To be called now and then. */
__noinline int free_domains_left(void)
{
	__u32 domain;

	if (!gone)
		return 0;
	bpf_for(domain, 1, DOMAINS)
	{
		if (leaving[masked(domain, DOMAINS)].is_gone)
			free_domain(domain);
	}
	return 0;
}

#endif
