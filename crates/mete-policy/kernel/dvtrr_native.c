/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Distributed group virtual-time round robin, compiled for the tests: src/kernel_vtrr.rs calls it. */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed short __s16;
typedef signed int __s32;
typedef signed long long __s64;

#define DVTRR_CAN_LOOP 1

#include "dvtrr_state.h"

struct dvtrr {
	__u32 clients;
	__u32 domains;
	__u32 processors;
	__u64 quantum_ns;
	/* Arrays of the caller's: clients + domains, domains, processors * domains, clients + these, clients, processors (twice). */
	struct dvtrr_account *accounts;
	struct dvtrr_domain *all_domains;
	struct dvtrr_queue *queues;
	struct dvtrr_member *members;
	struct dvtrr_client *all_clients;
	__u64 *barred; /* for each client the processors that it may not run on, a bit each */
	__u32 *running;
	struct dvtrr_line *ahead;
};

static __always_inline struct dvtrr_client *dvtrr_client_at(struct dvtrr *p, __u32 number)
{
	return number < p->clients ? &p->all_clients[number] : 0;
}

static __always_inline struct dvtrr_account *dvtrr_account_at(struct dvtrr *p, __u32 number)
{
	return number < p->clients + p->domains ? &p->accounts[number] : 0;
}

static __always_inline struct dvtrr_domain *dvtrr_domain_at(struct dvtrr *p, __u32 number)
{
	return number < p->domains ? &p->all_domains[number] : 0;
}

static __always_inline struct dvtrr_queue *dvtrr_queue_at(struct dvtrr *p, __u32 number)
{
	return number < p->processors * p->domains ? &p->queues[number] : 0;
}

static __always_inline struct dvtrr_member *dvtrr_member_at(struct dvtrr *p, __u32 number)
{
	return number < p->clients + p->processors * p->domains ? &p->members[number] : 0;
}

static __always_inline __u32 *dvtrr_running_at(struct dvtrr *p, __u32 processor)
{
	return processor < p->processors ? &p->running[processor] : 0;
}

static __always_inline struct dvtrr_line *dvtrr_ahead_at(struct dvtrr *p, __u32 processor)
{
	return processor < p->processors ? &p->ahead[processor] : 0;
}

/* One thread makes all calls. */
static __always_inline int dvtrr_lock(struct dvtrr *p, __u32 processor)
{
	(void)p, (void)processor;
	return 1;
}

static __always_inline void dvtrr_unlock(struct dvtrr *p)
{
	(void)p;
}

/* Of processors beyond the first 64, a client is barred that is barred from any of these. */
static __always_inline int is_barred(__u64 barred, __u32 processor)
{
	return processor < 64 ? barred >> processor & 1 : barred != 0;
}

static __always_inline int dvtrr_may_run(struct dvtrr *p, __u32 client, __u32 processor)
{
	return client < p->clients && !is_barred(p->barred[client], processor);
}

static __always_inline __u32 dvtrr_index(__u32 number, __u32 size)
{
	(void)size;
	return number;
}

static __always_inline __u32 dvtrr_after(__u32 number)
{
	return number + 1;
}

static __always_inline __u64 dvtrr_add(__u64 *word, __u64 more)
{
	__u64 before = *word;

	*word += more;
	return before;
}

static __always_inline int dvtrr_replace(__u64 *word, __u64 before, __u64 after)
{
	if (*word != before)
		return 0;
	*word = after;
	return 1;
}

#include "dvtrr_choose.h"

/* What precedes each array in the caller's memory keeps it aligned for the widest of its numbers. */
#define ALIGNED(bytes) (((bytes) + sizeof(__u64) - 1) / sizeof(__u64) * sizeof(__u64))

/* The array of that many elements at an offset, which goes behind it. */
#define ARRAY(p, array, number)                                           \
	do {                                                              \
		(p)->array = (void *)((char *)(p) + offset);              \
		offset += ALIGNED((__u64)(number) * sizeof(*(p)->array)); \
	} while (0)

/* Finds the arrays' places, and answers how much memory they take together. */
static __u64 lay_out(struct dvtrr *p)
{
	__u64 offset = ALIGNED(sizeof(*p));

	ARRAY(p, accounts, p->clients + p->domains);
	ARRAY(p, all_domains, p->domains);
	ARRAY(p, queues, p->processors * p->domains);
	ARRAY(p, members, p->clients + p->processors * p->domains);
	ARRAY(p, all_clients, p->clients);
	ARRAY(p, barred, p->clients);
	ARRAY(p, running, p->processors);
	ARRAY(p, ahead, p->processors);
	return offset;
}

/* How much memory a policy takes. */
__u64 mete_dvtrr_bytes(__u32 clients, __u32 domains, __u32 processors)
{
	struct dvtrr p = { .clients = clients, .domains = domains, .processors = processors };

	return lay_out(&p);
}

/* Makes a policy in memory of zeros, aligned to 8 bytes. There is at least one domain and one processor. */
void mete_dvtrr_begin(struct dvtrr *p, __u32 clients, __u32 domains, __u32 processors, __u64 quantum_ns)
{
	__u32 number;

	p->clients = clients;
	p->domains = domains;
	p->processors = processors;
	p->quantum_ns = quantum_ns;
	lay_out(p);
	for (number = 0; number < processors * domains; number++)
		dvtrr_begin_queue(&p->queues[number]);
	for (number = 0; number < clients + processors * domains; number++)
		dvtrr_begin_member(&p->members[number]);
	for (number = 0; number < processors; number++) {
		p->running[number] = DVTRR_NONE;
		p->ahead[number].first = p->ahead[number].last = DVTRR_NONE;
	}
	p->all_domains[DVTRR_ROOT].is_known = 1;
}

void mete_dvtrr_add_domain(struct dvtrr *p, __u32 domain, __u32 parent, __u32 share)
{
	dvtrr_add_domain(p, domain, parent, share);
}

void mete_dvtrr_remove_domain(struct dvtrr *p, __u32 domain)
{
	dvtrr_remove_domain(p, domain);
}

void mete_dvtrr_set_domain_share(struct dvtrr *p, __u32 domain, __u32 share)
{
	if (domain != DVTRR_ROOT && dvtrr_is_known(p, domain))
		dvtrr_set_share(p, p->clients + domain, p->all_domains[domain].parent, share);
}

void mete_dvtrr_add(struct dvtrr *p, __u32 client, __u32 domain, __u32 share)
{
	dvtrr_add_client(p, client, domain, share);
}

void mete_dvtrr_remove(struct dvtrr *p, __u32 number)
{
	dvtrr_remove(p, number);
}

void mete_dvtrr_set_share(struct dvtrr *p, __u32 number, __u32 share)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	if (client && client->state != DVTRR_ABSENT)
		dvtrr_set_share(p, number, client->home, share);
}

void mete_dvtrr_set_allowed(struct dvtrr *p, __u32 client, __u64 allowed)
{
	if (client < p->clients)
		p->barred[client] = ~allowed;
}

/* Whether the client waited for its turn, which comes now. */
__u32 mete_dvtrr_hasten(struct dvtrr *p, __u32 number)
{
	return dvtrr_hasten(p, number);
}

/* The constants, in the order in which the test of src/distributed/mod.rs has them; 0 behind the last. */
__s64 mete_dvtrr_constant(__u32 nth)
{
	static const __s64 all[] = {
		DVTRR_SCALE,     DVTRR_MOST_NS,       DVTRR_MOST,        DVTRR_MOST_KEPT,
		DVTRR_MOST_OWED, DVTRR_MOST_BEHIND,   DVTRR_LOOKED_AT,   DVTRR_LENT_TO,
		DVTRR_PARTS,     DVTRR_BETWEEN_LOOKS, DVTRR_MOST_LENT,   DVTRR_SEARCHED,
		DVTRR_LAG,       DVTRR_PASSED_OVER,   DVTRR_POSITIVE,    DVTRR_NEGATIVE,
		DVTRR_THRESHOLD, DVTRR_LEAST_BELIEF,  DVTRR_MOST_BELIEF, DVTRR_LONG_RUN,
		DVTRR_RATIO,     DVTRR_SAVED,         DVTRR_MOST_DEBT,   DVTRR_MOST_RAN_NS,
		DVTRR_CAUSES,    DVTRR_PORTS,
	};

	return nth < sizeof(all) / sizeof(*all) ? all[nth] : 0;
}

/* Whether a client that waits runs next on its processor, whatever runs there now. */
__u32 mete_dvtrr_is_next(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	return client && client->state == DVTRR_READY && dvtrr_is_next(p, number, client->processor);
}

/* Where a blocked client wakes: on a processor on which no client is, or where it was, or on the first one that it may run on. */
static __u32 place(struct dvtrr *p, __u32 placed, __u64 barred)
{
	/* A client can name no other ones than the first 64. */
	__u32 nth, all = p->processors < 64 ? p->processors : 64, processor = placed & 63, first = 0;

	for (nth = 0; nth < all; nth++) {
		__u32 number = dvtrr_queue_number(p, processor, DVTRR_ROOT);

		if (!(barred >> processor & 1) && !dvtrr_queue_at(p, number)->members)
			return processor;
		processor = processor + 1 < all ? processor + 1 : 0;
	}
	if (!is_barred(barred, placed) || !~barred)
		return placed;
	while (barred >> first & 1)
		first++;
	return first < p->processors ? first : placed;
}

/* An event, of an enum dvtrr_event, is to wake a blocked client. */
void mete_dvtrr_expect(struct dvtrr *p, __u32 number, __u32 event, __u32 port)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	if (client && client->state == DVTRR_BLOCKED)
		client->cause = dvtrr_cause_of(event, port);
}

/* The causes for which a blocked client would go ahead if it woke now, a bit each. */
__u32 mete_dvtrr_goes_ahead(const struct dvtrr *of, __u32 number)
{
	struct dvtrr *p = (struct dvtrr *)of; /* nothing of it is written */
	struct dvtrr_client *client = dvtrr_client_at(p, number);
	__u32 cause, causes = 0;
	struct dvtrr_domain *domain;

	if (!client || client->state != DVTRR_BLOCKED)
		return 0;
	domain = dvtrr_domain_at(p, client->home);
	if (!dvtrr_may_go_ahead(p, number, client->processor, domain && !domain->members))
		return 0;
	for (cause = 0; cause < DVTRR_CAUSES; cause++)
		if (client->beliefs[cause] > DVTRR_THRESHOLD)
			causes |= 1u << cause;
	return causes;
}

/* The processor whose client is to give way, or DVTRR_NONE. */
__u32 mete_dvtrr_wake(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	if (client && client->state == DVTRR_BLOCKED)
		client->processor = place(p, client->processor, p->barred[number]);
	return dvtrr_wake(p, number) ? client->processor : DVTRR_NONE;
}

__u32 mete_dvtrr_pick(struct dvtrr *p, __u32 processor)
{
	__u64 taken = 0;

	return dvtrr_pick(p, processor, &taken);
}

/* Whether a client runs ahead of its turn, or waits for that. */
__u32 mete_dvtrr_is_ahead(struct dvtrr *p, __u32 number)
{
	struct dvtrr_client *client = dvtrr_client_at(p, number);

	return client && client->is_ahead;
}

/* Whether no client that wakes takes a processor from the one that runs there: it has gone ahead itself. */
__u32 mete_dvtrr_keeps(const struct dvtrr *p, __u32 processor)
{
	__u32 runs = processor < p->processors ? p->running[processor] : DVTRR_NONE;

	return runs < p->clients && p->all_clients[runs].is_ahead;
}

void mete_dvtrr_ran(struct dvtrr *p, __u32 client, __u64 ran_ns, __u32 stop)
{
	dvtrr_ran(p, client, ran_ns, (enum dvtrr_stop)stop);
}
