/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * A tree of group VTRR for each processor: the policy of crates/mete-policy/kernel, with its arrays in maps. Clients have
 * one entity for all trees, because a task waits on one processor at a time; a domain has one in each tree.
 */
#ifndef METE_TREE_BPF_H
#define METE_TREE_BPF_H

#include "scx.h"

#define CLIENTS 16384u
#define DOMAINS 1024u
#define PROCESSORS 16u
/* Clients, then the domains of each processor's tree: a power of two, so that a mask bounds an index. */
#define ENTITIES (CLIENTS + PROCESSORS * DOMAINS)

typedef __s64 vtrr_wide;
#define VTRR_CAN_LOOP CAN_LOOP

#include "vtrr_state.h"

struct vtrr {
	__u32 clients;
	__u32 first_domain;
	__u32 first_queue;
	__u32 domains;
	__u32 processors;
	__u32 late;
	__u64 quantum_ns;
	__u32 processor; /* whose tree it is */
};

#define QUANTUM_NS (1000ull * 1000)

/* The lock of each tree, and what is counted of it. Only code that runs with interrupts off takes a lock: see lock(). */
struct processor {
	__u32 lock;
	/* Choices from its own tree; tasks taken from other trees; choices from its own that could not be carried out. */
	__u64 decisions;
	__u64 stolen;
	__u64 missed;
} __attribute__((aligned(64)));

/* What decides on a domain's share: the weight of its cgroup, unless a share is set from outside. */
struct domain_share {
	__u32 weight;
	__u32 set; /* 0: none */
};

struct processor processors[PROCESSORS] SEC(".bss.processors");
struct domain_share shares[DOMAINS] SEC(".bss.shares");
struct vtrr_entity entities[ENTITIES] SEC(".bss.entities");
struct vtrr_queue queues[PROCESSORS * DOMAINS] SEC(".bss.queues");
struct vtrr_seat seats[PROCESSORS] SEC(".bss.seats");

/*
 * An index that the verifier sees to be below a power of two. The compiler, which may know that it is, must not leave the
 * mask out: the verifier follows no comparison of another copy.
 */
static __always_inline __u32 masked(__u32 number, __u32 size)
{
	asm volatile("" : "+r"(number));
	return number & (size - 1);
}

static __always_inline struct vtrr_entity *vtrr_entity_at(struct vtrr *p, __u32 number)
{
	return number < ENTITIES ? &entities[masked(number, ENTITIES)] : 0;
}

static __always_inline struct vtrr_queue *vtrr_queue_at(struct vtrr *p, __u32 domain)
{
	return &queues[masked(p->first_queue + domain, PROCESSORS * DOMAINS)];
}

/* A tree serves one processor, so it has one seat, and no member is late. */
static __always_inline struct vtrr_seat *vtrr_seat_at(struct vtrr *p, __u32 processor)
{
	return &seats[masked(p->processor, PROCESSORS)];
}

static __always_inline __u32 *vtrr_late_at(struct vtrr *p, struct vtrr_queue *queue, __u32 nth)
{
	return 0;
}

/*
 * 64 bits suffice. A share is at most 10,000 and a quantum is 1 ms (QUANTUM_NS), so at most 2 * 10^10 ns are due to a
 * member. The shares of a queue's members sum up to less than 2^28. So each product is below 2^63.
 */
static __always_inline int vtrr_exceeds(__s64 due_ns, __u64 total, __u32 share, vtrr_wide queue_due_ns)
{
	return due_ns * (__s64)total > (__s64)share * queue_due_ns;
}

static __always_inline vtrr_wide vtrr_proportional(vtrr_wide due_ns, __u32 share, __u64 total)
{
	__u64 due = (__u64)due_ns;

	return due / total * share + due % total * share / total;
}

#include "vtrr_group.h"

static __always_inline struct vtrr tree_of(__u32 processor)
{
	struct vtrr tree = {
		.clients = CLIENTS,
		.first_domain = CLIENTS + processor * DOMAINS,
		.first_queue = processor * DOMAINS,
		.domains = DOMAINS,
		.processors = 1,
		.quantum_ns = QUANTUM_NS,
		.processor = processor,
	};

	return tree;
}

static __always_inline struct processor *processor_at(__u32 processor)
{
	return &processors[masked(processor, PROCESSORS)];
}

/*
 * The operations that come here are called with a run queue's lock held and interrupts off, so the holder of a lock is not
 * interrupted by an operation that wants the same lock. No lock is taken while another is held.
 */
static __always_inline void lock(__u32 processor)
{
	__u32 *word = &processor_at(processor)->lock;

	while (CAN_LOOP && __sync_val_compare_and_swap(word, 0, 1))
		;
}

static __always_inline void unlock(__u32 processor)
{
	__sync_lock_test_and_set(&processor_at(processor)->lock, 0);
}

static __always_inline __u32 share_of(__u32 domain)
{
	volatile struct domain_share *share = &shares[masked(domain, DOMAINS)];
	__u32 set = share->set, weight = share->weight;

	return set ? set : weight ? weight : 1;
}

/*
 * New shares of the domains above a client come into force here: where they are written, interrupts are on, or it is
 * another program that writes, and no lock can be taken.
 */
static __always_inline void adopt_shares(struct vtrr *tree, __u32 client, __u64 now)
{
	struct vtrr_entity *entity = vtrr_client(tree, client);
	__u32 domain;

	while (CAN_LOOP && entity) {
		domain = entity->home;
		entity = vtrr_above(tree, domain);
		if (!entity)
			return;
		entity->share = share_of(domain);
		if (entity->is_member && entity->share != entity->member_share)
			vtrr_change_share(tree, entity - entities, now);
	}
}

/*
 * What follows are the calls of the policy on one processor's tree, under its lock. They are no inline functions, so that
 * the verifier looks at each of them once and not once for each place that calls it.
 */
__noinline int tree_wake(__u32 processor, __u32 client, __u64 now)
{
	struct vtrr tree = tree_of(masked(processor, PROCESSORS));

	lock(processor);
	adopt_shares(&tree, client, now);
	vtrr_wake(&tree, client, now);
	unlock(processor);
	return 0;
}

__noinline __u32 tree_pick(__u32 processor, __u64 now)
{
	struct vtrr tree = tree_of(masked(processor, PROCESSORS));
	__u32 client;

	lock(processor);
	client = vtrr_pick(&tree, 0, now);
	unlock(processor);
	return client;
}

__noinline int tree_runs(__u32 processor, __u32 client, __u64 now)
{
	struct vtrr tree = tree_of(masked(processor, PROCESSORS));

	lock(processor);
	vtrr_runs_unpicked(&tree, client, now);
	unlock(processor);
	return 0;
}

__noinline int tree_ran(__u32 processor, __u32 client, __u64 ran_ns, __u32 stop, __u64 now)
{
	struct vtrr tree = tree_of(masked(processor, PROCESSORS));

	lock(processor);
	adopt_shares(&tree, client, now);
	vtrr_ran(&tree, client, ran_ns, (enum vtrr_stop)stop, now);
	unlock(processor);
	return 0;
}

/* A task that waits, or was picked, is to be in this tree no more. True if it was. */
__noinline int tree_leave(__u32 processor, __u32 client, __u64 now)
{
	struct vtrr tree = tree_of(masked(processor, PROCESSORS));
	struct vtrr_entity *entity = vtrr_client(&tree, client);
	int was_member = 0;

	lock(processor);
	if (entity && entity->is_member) {
		was_member = 1;
		vtrr_end_run(&tree, entity, client, now);
		vtrr_leave(&tree, client);
		entity->state = VTRR_BLOCKED;
		entity->unpicked = 0;
	}
	unlock(processor);
	return was_member;
}

__noinline int tree_set_share(__u32 processor, __u32 client, __u32 share, __u64 now)
{
	struct vtrr tree = tree_of(masked(processor, PROCESSORS));

	lock(processor);
	vtrr_set_share(&tree, client, share, now);
	unlock(processor);
	return 0;
}

#endif
