/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Accounts of virtual time: the twin of src/distributed/account.rs. */
#ifndef METE_DVTRR_ACCOUNT_H
#define METE_DVTRR_ACCOUNT_H

#include "dvtrr_state.h"

/* Virtual time counts parts of a nanosecond. */
#define DVTRR_SCALE 12
/* More time than any run takes, and little enough for the arithmetic. */
#define DVTRR_MOST_NS (1ull << 40)
/* More virtual time than any member has had too much: a difference beyond it has wrapped around. */
#define DVTRR_MOST ((__s64)(1ull << 56))
/* The most virtual time that a member keeps as due or owed when its share changes. */
#define DVTRR_MOST_KEPT ((__s64)(1ull << 42))

static __always_inline __u64 dvtrr_virtual(__u64 used_ns, __u64 share)
{
	if (used_ns > DVTRR_MOST_NS)
		used_ns = DVTRR_MOST_NS;
	return (used_ns << DVTRR_SCALE) / (share ? share : 1);
}

static __always_inline int dvtrr_is_before(__u64 one, __u64 other)
{
	return (__s64)(other - one) > 0;
}

/* Forgets what is due beyond this time: a member that could not use it, or was away, has no claim to it. */
static __always_inline void dvtrr_forfeit(struct dvtrr_account *account, __u64 limit, __u64 most_ns)
{
	__u64 used = account->used, least = limit - dvtrr_virtual(most_ns, account->share);
	/* A member that was away for very long has had nothing, however the difference looks. */
	int has_wrapped = (__s64)(used - limit) > DVTRR_MOST;

	if (has_wrapped || dvtrr_is_before(used, least))
		dvtrr_replace(&account->used, used, least);
}

/* Forgets what was used too much beyond this time: that was no choice of the policy. */
static __always_inline void dvtrr_forgive(struct dvtrr_account *account, __u64 limit, __u64 most_ns)
{
	__u64 used = account->used, most = limit + dvtrr_virtual(most_ns, account->share);

	if (!dvtrr_is_before(used, most))
		dvtrr_replace(&account->used, used, most);
}

/*
 * Both, with what is due counted from two rounds before the limit. One of the two at most has something to forget, and mostly
 * neither: to see that costs less than their divisions.
 */
static __always_inline void dvtrr_bound(struct dvtrr_account *account, const struct dvtrr_domain *domain,
					__u64 most_behind_ns, __u64 most_owed_ns)
{
	__u64 limit = domain->limit, rounds = 2 * domain->round, used = account->used;
	__s64 ahead = (__s64)(used - limit);

	if (ahead >= 0 && (__s64)(used - (limit - rounds)) <= DVTRR_MOST)
		dvtrr_forgive(account, limit, most_owed_ns);
	else if (ahead >= 0 || ahead < -(__s64)rounds)
		dvtrr_forfeit(account, limit - rounds, most_behind_ns);
}

/*
 * Has a domain count the share that a member has now, if it stands in a queue. The share may change while another processor
 * does this, or has the member stand: whichever comes later sees the other, and one of them counts the difference.
 */
static __always_inline void dvtrr_count_share(struct dvtrr_account *account, struct dvtrr_domain *domain)
{
	__u64 standing, counted, share;

	while (DVTRR_CAN_LOOP) {
		standing = account->standing;
		share = account->share;
		counted = standing >> DVTRR_COUNTED;
		if (!(__u32)standing || counted == share)
			return;
		if (dvtrr_replace(&account->standing, standing, share << DVTRR_COUNTED | (__u32)standing))
			dvtrr_add(&domain->total, share - counted);
	}
}

/* Another share of a member of this domain; what is due to it, as time, stays. */
static __always_inline void dvtrr_change_share(struct dvtrr_account *account, struct dvtrr_domain *domain,
					       __u64 share)
{
	__u64 before = account->share, used = account->used, limit = domain->limit, size;
	__s64 lag = (__s64)(limit - used);

	if (before == share || !dvtrr_replace(&account->share, before, share))
		return;
	dvtrr_count_share(account, domain);
	if (lag > DVTRR_MOST_KEPT)
		lag = DVTRR_MOST_KEPT;
	if (lag < -DVTRR_MOST_KEPT)
		lag = -DVTRR_MOST_KEPT;
	/* By an unsigned division: eBPF has no other before its fourth version. */
	size = (__u64)(lag < 0 ? -lag : lag) * before / (share ? share : 1);
	dvtrr_replace(&account->used, used, lag < 0 ? limit + size : limit - size);
}

#endif
