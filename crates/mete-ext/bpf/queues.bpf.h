/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The queues of distributed group VTRR: the policy of crates/mete-policy/kernel, with its arrays in maps.
 *
 * Each processor has queues of its own, and a lock for them. No decision takes another processor's lock, but for one that
 * has nothing due itself: it looks there for a task that is, and takes it.
 */
#ifndef METE_QUEUES_BPF_H
#define METE_QUEUES_BPF_H

#include "numbers.bpf.h"

#define QUEUES (PROCESSORS * DOMAINS)
/* Of clients, and behind them of domains: an account each, and a member for each queue. Powers of two, as above. */
#define ACCOUNTS (2 * CLIENTS)
#define MEMBERS (2 * QUEUES)

_Static_assert(CLIENTS + DOMAINS <= ACCOUNTS && CLIENTS + QUEUES <= MEMBERS,
	       "each client and each domain has a place");

/* What the owner may change while the scheduler rules. */
struct settings {
	__u64 quantum_ns; /* a millisecond at least */
} settings SEC(".bss.settings");

/*
 * What the kernel is told: it ends a slice at the first tick after it, and a slice begins right after a tick as a rule. So one
 * that is as long as a quantum of a millisecond would take two ticks, and one that is shorter by half a tick of a thousandth of a second takes one.
 */
#define HALF_A_TICK_NS (500ull * 1000)
#define SLICE_NS (settings.quantum_ns - HALF_A_TICK_NS)

#define DVTRR_CAN_LOOP CAN_LOOP

#include "dvtrr_state.h"

/* The policy's dimensions are constants here, so that the verifier sees them. */
struct dvtrr {
	__u32 clients;
	__u32 domains;
	__u32 processors;
	__u64 quantum_ns;
	struct queues_lock *held; /* the lock that was taken last */
};

/* How many processors there are. */
const volatile __u32 processor_count = 1;

/*
 * The locks of the processors' queues, each in a cache line of its own. The kernel's own lock: where processors are virtual,
 * it lets the holder go on, and the verifier sees that each lock is given back.
 */
struct queues_lock {
	struct bpf_spin_lock lock;
	__u8 rest_of_line[60];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESSORS);
	__type(key, __u32);
	__type(value, struct queues_lock);
} locks SEC(".maps");

/* What is known of a processor beside its queues, and what is counted of it. */
struct processor {
	__u32 running; /* the client that was chosen last, while it runs */
	__u32 is_asked; /* the task that runs is asked to give way to one that goes ahead */
	/* The clients that were chosen last as they woke, one that waited its turn and one that goes ahead: see is_pending(). */
	__u32 pending[2];
	struct dvtrr_line ahead; /* the clients that go ahead of all others */
	/* Choices; tasks taken from other processors; choices that could not be carried out. */
	__u64 decisions;
	__u64 stolen;
	__u64 missed;
} __attribute__((aligned(64)));

/* What is known of a task beside the policy. */
struct task {
	/* Its processor time up to which it was charged. */
	__u64 charged_ns;
	/* The processors that it may run on, a bit each. */
	__u64 allowed;
	/* Those that have chosen it since it was queued and could not take it: it is bound for now, or they are about to go. */
	__u64 refused;
	/* The processor in whose run queue the kernel has it. */
	__u32 processor;
	/* It is the one that runs there, whatever the policy has chosen meanwhile. */
	__u32 is_current;
	/* In which second it was queued last, or ran: the value of seconds then. */
	__u32 queued_in;
	/* It is one of the kernel's own threads. */
	__u32 is_kernel;
	/* One more than the number of its domain; or 0. */
	__u32 in_domain;
	/* It is to go ahead because it has waited for long. */
	__u32 is_hastened;
};

/* The seconds since the scheduler began, as sweeps count them (sweep.bpf.h). */
__u32 seconds;

/* The processors that found nothing to run, a bit each. */
__u64 idle;

struct processor processors[PROCESSORS] SEC(".bss.processors");
struct task tasks[CLIENTS] SEC(".bss.tasks");
struct dvtrr_client clients[CLIENTS] SEC(".bss.clients");
struct dvtrr_account accounts[ACCOUNTS] SEC(".bss.accounts");
struct dvtrr_domain domains[DOMAINS] SEC(".bss.domains");
struct dvtrr_queue queues[QUEUES] SEC(".bss.queues");
struct dvtrr_member members[MEMBERS] SEC(".bss.members");

static __always_inline struct processor *processor_at(__u32 processor)
{
	return &processors[masked(processor, PROCESSORS)];
}

static __always_inline struct dvtrr_client *dvtrr_client_at(struct dvtrr *p, __u32 number)
{
	return number < CLIENTS ? &clients[masked(number, CLIENTS)] : 0;
}

static __always_inline struct dvtrr_account *dvtrr_account_at(struct dvtrr *p, __u32 number)
{
	return number < ACCOUNTS ? &accounts[masked(number, ACCOUNTS)] : 0;
}

static __always_inline struct dvtrr_domain *dvtrr_domain_at(struct dvtrr *p, __u32 number)
{
	return number < DOMAINS ? &domains[masked(number, DOMAINS)] : 0;
}

static __always_inline struct dvtrr_queue *dvtrr_queue_at(struct dvtrr *p, __u32 number)
{
	return number < QUEUES ? &queues[masked(number, QUEUES)] : 0;
}

static __always_inline struct dvtrr_member *dvtrr_member_at(struct dvtrr *p, __u32 number)
{
	return number < MEMBERS ? &members[masked(number, MEMBERS)] : 0;
}

static __always_inline __u32 *dvtrr_running_at(struct dvtrr *p, __u32 processor)
{
	return &processor_at(processor)->running;
}

static __always_inline struct dvtrr_line *dvtrr_ahead_at(struct dvtrr *p, __u32 processor)
{
	return &processor_at(processor)->ahead;
}

static __always_inline int dvtrr_lock(struct dvtrr *p, __u32 processor)
{
	__u32 key = masked(processor, PROCESSORS);

	p->held = bpf_map_lookup_elem(&locks, &key);
	if (!p->held)
		return 0;
	bpf_spin_lock(&p->held->lock);
	return 1;
}

static __always_inline void dvtrr_unlock(struct dvtrr *p)
{
	bpf_spin_unlock(&p->held->lock);
}

static __always_inline __u64 dvtrr_add(__u64 *word, __u64 more)
{
	return __sync_fetch_and_add(word, more);
}

static __always_inline int dvtrr_replace(__u64 *word, __u64 before, __u64 after)
{
	return __sync_val_compare_and_swap(word, before, after) == before;
}

static __always_inline __u32 dvtrr_index(__u32 number, __u32 size)
{
	return masked_below(number, size);
}

/* One, as far as the verifier knows any number. */
__u32 step = 1;

static __always_inline __u32 dvtrr_after(__u32 number)
{
	return number + *(volatile __u32 *)&step;
}

static __always_inline int dvtrr_may_run(struct dvtrr *p, __u32 client, __u32 processor)
{
	struct task *task = &tasks[masked(client, CLIENTS)];

	return client < CLIENTS && (task->allowed & ~task->refused) >> (processor & 63) & 1 &&
	       !task->is_current;
}

#include "dvtrr_take.h"

#define POLICY                           \
	{ .clients = CLIENTS,            \
	  .domains = DOMAINS,            \
	  .processors = processor_count, \
	  .quantum_ns = settings.quantum_ns }

/*
 * Here and below are the calls of the policy. They are no inline functions, so that the verifier looks at each of them once
 * and not once for each place that calls it.
 */

__noinline int queues_take(__u32 number, __u32 from, __u32 to)
{
	struct dvtrr policy = POLICY;

	return dvtrr_take(&policy, number, masked(from, PROCESSORS), masked(to, PROCESSORS));
}

__noinline int queues_turn(__u32 processor, __u32 domain)
{
	struct dvtrr policy = POLICY;

	dvtrr_turn_there(&policy, masked(processor, PROCESSORS), masked(domain, DOMAINS));
	return 0;
}

#define DVTRR_TAKE(p, number, from, to) queues_take(number, from, to)
#define DVTRR_TURN(p, processor, home) queues_turn(processor, home)
#define DVTRR_CLIENT_UNDER(p, other, member, processor) queues_client_under(other, member, processor)
__noinline __u32 queues_client_under(__u32 other, __u32 member, __u32 processor);
#include "dvtrr_search.h"

__noinline __u32 queues_client_under(__u32 other, __u32 member, __u32 processor)
{
	struct dvtrr policy = POLICY;

	return dvtrr_client_under(&policy, masked(other, PROCESSORS), member, masked(processor, PROCESSORS));
}

__noinline int queues_count_running(__u32 processor, __u32 domain)
{
	struct dvtrr policy = POLICY;

	return dvtrr_count_running(&policy, masked(processor, PROCESSORS), domain);
}

__noinline int queues_runs_elsewhere(__u32 processor, __u32 domain, __u64 quanta)
{
	struct dvtrr policy = POLICY;

	return dvtrr_runs_elsewhere(&policy, masked(processor, PROCESSORS), domain, quanta);
}

#define DVTRR_COUNT_RUNNING(p, processor, home) queues_count_running(processor, home)
#define DVTRR_RUNS_ELSEWHERE(p, processor, home, quanta) queues_runs_elsewhere(processor, home, quanta)
#include "dvtrr.h"

/* A client in the low half, a domain in the high half. */
__noinline __u64 queues_look(__u32 processor)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_found found = dvtrr_look(&policy, masked(processor, PROCESSORS));

	return (__u64)found.domain << 32 | found.client;
}

/* An enum dvtrr_search. */
__noinline int queues_take_due(__u32 processor, __u32 domain)
{
	struct dvtrr policy = POLICY;

	return dvtrr_take_due(&policy, masked(processor, PROCESSORS), masked(domain, DOMAINS));
}

/* The same. */
__noinline int queues_relieve(__u32 processor, __u32 domain)
{
	struct dvtrr policy = POLICY;

	return dvtrr_relieve(&policy, masked(processor, PROCESSORS), masked(domain, DOMAINS));
}

__noinline int queues_raise(__u32 processor, __u32 domain)
{
	struct dvtrr policy = POLICY;

	dvtrr_raise(&policy, masked(processor, PROCESSORS), masked(domain, DOMAINS));
	return 0;
}

/* An enum dvtrr_pass. */
__noinline int queues_pass(__u32 processor, __u32 domain, __u32 tries)
{
	struct dvtrr policy = POLICY;

	return dvtrr_pass(&policy, masked(processor, PROCESSORS), masked(domain, DOMAINS), tries);
}

__noinline int queues_lend(__u32 processor, __u32 domain)
{
	struct dvtrr policy = POLICY;

	dvtrr_lend_there(&policy, masked(processor, PROCESSORS), masked(domain, DOMAINS));
	return 0;
}

__noinline int queues_take_any(__u32 processor)
{
	struct dvtrr policy = POLICY;

	return dvtrr_take_any(&policy, masked(processor, PROCESSORS));
}

static __always_inline struct dvtrr_found found_of(__u64 halves)
{
	struct dvtrr_found found = { (__u32)halves, halves >> 32 };

	return found;
}

#define DVTRR_LOOK(p, processor) found_of(queues_look(processor))
#define DVTRR_TAKE_DUE(p, processor, home) queues_take_due(processor, home)
#define DVTRR_RELIEVE(p, processor, home) queues_relieve(processor, home)
#define DVTRR_LEND(p, processor, home) queues_lend(processor, home)
#define DVTRR_PASS(p, processor, home, tries) queues_pass(processor, home, tries)
#define DVTRR_RAISE(p, processor, home) queues_raise(processor, home)
#define DVTRR_TAKE_ANY(p, processor) queues_take_any(processor)
#include "dvtrr_choose.h"

/* The client that runs next. */
static __always_inline __u32 queues_pick(__u32 processor)
{
	struct dvtrr policy = POLICY;

	return dvtrr_pick(&policy, processor, &processor_at(processor)->stolen);
}

/*
 * Locks the queues in which a client stands, and says which processor's they are: the client's processor may change until they
 * are locked. 0: they are not.
 */
static __always_inline int lock_queues_of(struct dvtrr *p, struct dvtrr_client *client, __u32 *processor)
{
	volatile __u32 *now = &client->processor;

	while (CAN_LOOP) {
		*processor = *now;
		if (!dvtrr_lock(p, *processor))
			return 0;
		if (*now == *processor)
			return 1;
		dvtrr_unlock(p);
	}
	return 0;
}

/* What follows from a client that waits on a processor from now on. */
enum queues_answer {
	/* The one that runs there is to give way to it. */
	QUEUES_ASKS = 1,
	/* It is chosen already, to run when the one that runs there has stopped. */
	QUEUES_CHOSEN = 2,
};

/* Which of the two that are chosen already, and have not begun to run, a client would be: each may be there once. */
static __always_inline __u32 *pending_at(__u32 processor, const struct dvtrr_client *client)
{
	return &processor_at(processor)->pending[client->is_ahead ? 1 : 0];
}

/* Whether a client that was chosen at its wake-up has still to begin. What is noted may be long over. */
static __always_inline int is_pending(__u32 number, __u32 processor)
{
	struct dvtrr_client *client = number < CLIENTS ? &clients[masked(number, CLIENTS)] : 0;

	return client && client->state == DVTRR_RUNNING && client->processor == processor &&
	       !tasks[masked(number, CLIENTS)].is_current;
}

/*
 * Whether a client that waits is chosen at once. There must be no other choice. What runs there has to be the policy's, so that
 * it stops for it: if it is not, another processor may want to take the client, unless it is bound to this one. One that
 * goes ahead, and for which nothing gives way at once, would stand behind one that waited its turn and is chosen already.
 */
static __always_inline int may_be_chosen(struct dvtrr *p, __u32 number, struct dvtrr_client *client,
					 __u32 processor, int asks)
{
	int is_bound = tasks[masked(number, CLIENTS)].allowed == 1ull << (processor & 63);

	if (client->state != DVTRR_READY || (*dvtrr_running_at(p, processor) == DVTRR_NONE && !is_bound))
		return 0;
	if (client->is_ahead && !asks && is_pending(processor_at(processor)->pending[0], processor))
		return 0;
	return dvtrr_is_next(p, number, processor) && !is_pending(*pending_at(processor, client), processor);
}

/*
 * A client waits on this processor from now on, wherever it stood before. Answers with the sum of an enum queues_answer. It
 * is chosen at once if the caller allows that, and if it may be.
 */
__noinline int queues_wake(__u32 number, __u32 processor, __u32 may_choose)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_client *client = dvtrr_client_at(&policy, number);
	int answer = 0, stands = 1;
	__u32 locked;

	if (!client)
		return answer;
	if (!lock_queues_of(&policy, client, &locked))
		return answer;
	if (locked != processor) {
		dvtrr_withdraw(&policy, number);
		client->processor = processor;
		dvtrr_unlock(&policy);
		if (!lock_queues_of(&policy, client, &locked))
			return answer;
	}
	/* It was chosen and did not get to run. */
	if (client->state == DVTRR_RUNNING)
		dvtrr_ran(&policy, number, 0, DVTRR_PREEMPTED);
	if (client->state == DVTRR_BLOCKED) {
		stands = 0;
		if (dvtrr_rise(&policy, number, client))
			answer = QUEUES_ASKS;
	}
	if (may_choose && may_be_chosen(&policy, number, client, locked, answer & QUEUES_ASKS)) {
		*pending_at(locked, client) = number;
		if (stands)
			dvtrr_hide(&policy, number, locked);
		client->state = DVTRR_RUNNING;
		answer |= QUEUES_CHOSEN;
	} else if (!stands) {
		dvtrr_put(&policy, number, locked, 0);
	}
	dvtrr_unlock(&policy);
	return answer;
}

/* A client runs on this processor that was not chosen. */
__noinline int queues_run_unchosen(__u32 number, __u32 processor)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_client *client = dvtrr_client_at(&policy, number);
	__u32 locked;

	if (!client)
		return 0;
	queues_wake(number, processor, 0);
	if (!lock_queues_of(&policy, client, &locked))
		return 0;
	if (client->state == DVTRR_READY) {
		dvtrr_hide(&policy, number, locked);
		client->state = DVTRR_RUNNING;
		*dvtrr_running_at(&policy, locked) = number;
	}
	dvtrr_unlock(&policy);
	return 0;
}

/* A client runs on this processor, whether or not it was chosen. */
static __always_inline void queues_run(__u32 number, const struct dvtrr_client *client, __u32 processor)
{
	/* As a rule it was chosen for this. Another processor changes that only if it has found the task missing (missed()), and then it did not run. */
	if (client->state == DVTRR_RUNNING && client->processor == processor)
		processor_at(processor)->running = number;
	else
		queues_run_unchosen(number, processor);
}

/* A client has run for a time. If it was chosen for that, it has stopped. */
__noinline int queues_ran(__u32 number, __u64 ran_ns, __u32 stop)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_client *client = dvtrr_client_at(&policy, number);
	__u32 locked;

	if (!client)
		return 0;
	if (!lock_queues_of(&policy, client, &locked))
		return 0;
	if (client->state == DVTRR_RUNNING)
		dvtrr_ran(&policy, number, ran_ns, (enum dvtrr_stop)stop);
	else
		dvtrr_charge(&policy, number, locked, ran_ns, 0);
	dvtrr_unlock(&policy);
	return 0;
}

/* A client waits and runs no more, until it wakes. */
__noinline int queues_withdraw(__u32 number)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_client *client = dvtrr_client_at(&policy, number);
	__u32 locked;

	if (!client)
		return 0;
	if (!lock_queues_of(&policy, client, &locked))
		return 0;
	dvtrr_withdraw(&policy, number);
	dvtrr_unlock(&policy);
	return 0;
}

/*
 * A client leaves the policy, or (with a domain) comes into another domain. It is not woken in between, as another processor may
 * try that has not carried out a choice of it.
 */
__noinline int queues_move(__u32 number, __u32 domain, __u32 share)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_client *client = dvtrr_client_at(&policy, number);
	__u32 locked;

	if (!client)
		return 0;
	if (!lock_queues_of(&policy, client, &locked))
		return 0;
	dvtrr_remove(&policy, number);
	if (domain != DVTRR_NONE)
		dvtrr_add_client(&policy, number, domain, share);
	dvtrr_unlock(&policy);
	return 0;
}

/* A client that has waited for long goes ahead of all others. Whether it did wait. */
__noinline int queues_hasten(__u32 number)
{
	struct dvtrr policy = POLICY;
	struct dvtrr_client *client = dvtrr_client_at(&policy, number);
	__u32 locked;
	int waited;

	if (!client)
		return 0;
	if (!lock_queues_of(&policy, client, &locked))
		return 0;
	waited = dvtrr_hasten(&policy, number);
	dvtrr_unlock(&policy);
	return waited;
}

__noinline int queues_set_share(__u32 entity, __u32 domain, __u32 share)
{
	struct dvtrr policy = POLICY;

	dvtrr_set_share(&policy, entity, domain, share ? share : 1);
	return 0;
}

#endif
