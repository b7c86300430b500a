/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Memory allocated to a domain: resident bytes, kept per address space and kind of page, so that
 * what an address space gives back, at the latest when it ends, leaves the domain that was charged.
 *
 * The classic form of kmem:rss_stat and not its typed form: the kernel sums its per-processor
 * counters for it, so the size is exact; the typed form's counter lags behind by up to 32 pages
 * for each processor, and would leave that residue in the domain for ever.
 */
#ifndef METE_MEMORY_H
#define METE_MEMORY_H

#include "domain.h"

#define SWAPPED_PAGES 2 /* the kind that is not resident */

struct space_key {
	__u32 space;
	__u32 kind;
};

/*
 * What an address space holds and who pays for it, in one word that is exchanged whole: whatever is
 * taken out of it is taken off one account and what is put in is put on one, so that the accounts add
 * up whichever processors do it at the same time.
 */
#define PAYER_SHIFT 48
#define BYTES_MASK ((1ull << PAYER_SHIFT) - 1)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct space_key);
	__type(value, __u64);
} spaces SEC(".maps");

/* Private; the rows carry copies. */
__s64 domain_bytes[METE_DOMAINS] SEC(".bss.memory");

/* Address spaces that found no room in `spaces`, and so are missing from the sums. */
__u64 spaces_missed SEC(".bss.missed");

/* Moves `bytes` to a domain's account and logs what it then holds. */
static __always_inline void charge(__u16 domain, __s64 bytes)
{
	struct mete_area *area = area_here();
	__s64 before = __sync_fetch_and_add(&domain_bytes[domain & (METE_DOMAINS - 1)], bytes);
	struct mete_record r = { METE_MEMORY, domain, METE_NO_DOMAIN, before + bytes, current_task() };

	if (area)
		mete_log_nested(area, &r, 1);
}

static __always_inline __u64 *space_of(const struct space_key *key, _Bool is_own, __u16 domain)
{
	__u64 *space = bpf_map_lookup_elem(&spaces, key);
	__u64 empty = (__u64)domain << PAYER_SHIFT;

	if (space || !is_own)
		return space;
	if (bpf_map_update_elem(&spaces, key, &empty, BPF_NOEXIST))
		__sync_fetch_and_add(&spaces_missed, 1);
	return bpf_map_lookup_elem(&spaces, key);
}

/* The account that an address space stands on changes when its tasks are bound anew. */
static __always_inline void settle(__u64 *space, __u16 domain, __u64 bytes)
{
	__u64 before = __sync_lock_test_and_set(space, (__u64)domain << PAYER_SHIFT | bytes);
	__u16 payer = before >> PAYER_SHIFT;
	__s64 given_back = before & BYTES_MASK;

	if (payer == domain) {
		charge(domain, bytes - given_back);
		return;
	}
	charge(payer, -given_back);
	charge(domain, bytes);
}

SEC("tracepoint/kmem/rss_stat")
int on_rss_stat(struct trace_event_raw_rss_stat *ctx)
{
	struct space_key key = { ctx->mm_id, ctx->member };
	volatile __u16 *table = pid_table();
	_Bool is_own = ctx->curr;
	__u64 bytes = ctx->size & BYTES_MASK;
	__u64 *space;
	__u16 domain;

	if (!table || key.kind == SWAPPED_PAGES)
		return 0;
	domain = domain_of(table, current_task());
	space = space_of(&key, is_own, domain);
	if (!space)
		return 0;
	settle(space, is_own ? domain : *space >> PAYER_SHIFT, bytes);
	/* Not its own task: it is being torn down, so nobody else is about to add to it. */
	if (bytes == 0 && !is_own)
		bpf_map_delete_elem(&spaces, &key);
	return 0;
}

#endif
