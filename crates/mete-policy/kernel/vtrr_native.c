/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Group virtual-time round robin, compiled for the simulator, the replayer and the tests: src/kernel_vtrr.rs calls it. */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed long long __s64;

typedef __int128 vtrr_wide;
#define VTRR_CAN_LOOP 1

#include "vtrr_state.h"

struct vtrr {
	__u32 clients;
	__u32 first_domain;
	__u32 domains;
	__u32 processors;
	__u32 late;
	__u64 quantum_ns;
	/* Arrays of the caller's: clients + domains, domains, processors, and domains * late. */
	struct vtrr_entity *entities;
	struct vtrr_queue *queues;
	struct vtrr_seat *seats;
	__u32 *late_members;
};

static __always_inline struct vtrr_entity *vtrr_entity_at(struct vtrr *p, __u32 number)
{
	return number < p->clients + p->domains ? &p->entities[number] : 0;
}

static __always_inline struct vtrr_queue *vtrr_queue_at(struct vtrr *p, __u32 domain)
{
	return domain < p->domains ? &p->queues[domain] : 0;
}

static __always_inline struct vtrr_seat *vtrr_seat_at(struct vtrr *p, __u32 processor)
{
	return processor < p->processors ? &p->seats[processor] : 0;
}

static __always_inline __u32 *vtrr_late_at(struct vtrr *p, struct vtrr_queue *queue, __u32 nth)
{
	return nth < p->late ? &p->late_members[(queue - p->queues) * p->late + nth] : 0;
}

/* Whether due_ns * total is larger than share * queue_due_ns. */
static __always_inline int vtrr_exceeds(__s64 due_ns, __u64 total, __u32 share, vtrr_wide queue_due_ns)
{
	return (vtrr_wide)due_ns * (vtrr_wide)total > (vtrr_wide)share * queue_due_ns;
}

/* due_ns * share / total, rounded down. */
static __always_inline vtrr_wide vtrr_proportional(vtrr_wide due_ns, __u32 share, __u64 total)
{
	return due_ns * share / (vtrr_wide)total;
}

#include "vtrr_group.h"

/* What precedes each array in the caller's memory keeps it aligned for the widest of its numbers. */
#define ALIGNED(bytes) (((bytes) + sizeof(vtrr_wide) - 1) / sizeof(vtrr_wide) * sizeof(vtrr_wide))

static __u64 entities_bytes(__u32 clients, __u32 domains)
{
	return ALIGNED(((__u64)clients + domains) * sizeof(struct vtrr_entity));
}

static __u64 queues_bytes(__u32 domains)
{
	return ALIGNED(domains * sizeof(struct vtrr_queue));
}

static __u64 seats_bytes(__u32 processors)
{
	return ALIGNED(processors * sizeof(struct vtrr_seat));
}

/* How much memory a policy takes. */
__u64 mete_vtrr_bytes(__u32 clients, __u32 domains, __u32 processors)
{
	/* Late members: those that run, and as many decisions taken ahead. */
	return ALIGNED(sizeof(struct vtrr)) + entities_bytes(clients, domains) + queues_bytes(domains) +
	       seats_bytes(processors) + 2ull * domains * processors * sizeof(__u32);
}

/* Makes a policy in memory of zeros, aligned to 16 bytes. There is at least one domain and one processor. */
void mete_vtrr_begin(struct vtrr *p, __u32 clients, __u32 domains, __u32 processors, __u64 quantum_ns)
{
	char *memory = (char *)p + ALIGNED(sizeof(struct vtrr));
	__u32 number;

	p->clients = clients;
	p->first_domain = clients;
	p->domains = domains;
	p->processors = processors;
	p->late = 2 * processors;
	p->quantum_ns = quantum_ns;
	p->entities = (struct vtrr_entity *)memory;
	memory += entities_bytes(clients, domains);
	p->queues = (struct vtrr_queue *)memory;
	memory += queues_bytes(domains);
	p->seats = (struct vtrr_seat *)memory;
	memory += seats_bytes(processors);
	p->late_members = (__u32 *)memory;
	for (number = 0; number < domains; number++)
		vtrr_begin_queue(&p->queues[number]);
	for (number = 0; number < processors; number++)
		vtrr_begin_seat(&p->seats[number]);
}

void mete_vtrr_add_domain(struct vtrr *p, __u32 domain, __u32 parent, __u32 share)
{
	vtrr_add_domain(p, domain, parent, share);
}

void mete_vtrr_set_domain_share(struct vtrr *p, __u32 domain, __u32 share, __u64 now)
{
	vtrr_set_domain_share(p, domain, share, now);
}

void mete_vtrr_add(struct vtrr *p, __u32 client, __u32 domain, __u32 share)
{
	vtrr_add(p, client, domain, share);
}

void mete_vtrr_remove(struct vtrr *p, __u32 client, __u64 now)
{
	vtrr_remove_client(p, client, now);
}

void mete_vtrr_set_share(struct vtrr *p, __u32 client, __u32 share, __u64 now)
{
	vtrr_set_share(p, client, share, now);
}

void mete_vtrr_wake(struct vtrr *p, __u32 client, __u64 now)
{
	vtrr_wake(p, client, now);
}

__u32 mete_vtrr_pick(struct vtrr *p, __u32 processor, __u64 now)
{
	return vtrr_pick(p, processor, now);
}

void mete_vtrr_ran(struct vtrr *p, __u32 client, __u64 ran_ns, __u32 stop, __u64 now)
{
	vtrr_ran(p, client, ran_ns, (enum vtrr_stop)stop, now);
}

__u64 mete_vtrr_cycle(const struct vtrr *p)
{
	return p->queues[VTRR_ROOT].cycle;
}
