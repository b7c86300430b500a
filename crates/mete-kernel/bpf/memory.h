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

struct space {
	__s64 bytes;
	__u64 domain;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct space_key);
	__type(value, struct space);
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

static __always_inline struct space *space_of(const struct space_key *key, _Bool is_own, __u16 domain)
{
	struct space *space = bpf_map_lookup_elem(&spaces, key);
	struct space fresh = { 0, domain };

	if (space || !is_own)
		return space;
	if (bpf_map_update_elem(&spaces, key, &fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&spaces_missed, 1);
	return bpf_map_lookup_elem(&spaces, key);
}

/* The account that an address space stands on; another one when its tasks were bound anew. */
static __always_inline void settle(struct space *space, __u16 domain, __s64 bytes)
{
	__s64 before = __sync_lock_test_and_set(&space->bytes, bytes);
	__u16 payer = __sync_lock_test_and_set(&space->domain, domain);

	if (payer == domain) {
		charge(domain, bytes - before);
		return;
	}
	charge(payer, -before);
	charge(domain, bytes);
}

SEC("tracepoint/kmem/rss_stat")
int on_rss_stat(struct trace_event_raw_rss_stat *ctx)
{
	struct space_key key = { ctx->mm_id, ctx->member };
	volatile __u16 *table = pid_table();
	_Bool is_own = ctx->curr;
	__s64 bytes = ctx->size;
	struct space *space;
	__u16 domain;

	if (!table || key.kind == SWAPPED_PAGES)
		return 0;
	domain = domain_of(table, current_task());
	space = space_of(&key, is_own, domain);
	if (!space)
		return 0;
	settle(space, is_own ? domain : space->domain, bytes);
	/* Not its own task: it is being torn down, so nobody else is about to add to it. */
	if (bytes == 0 && !is_own)
		bpf_map_delete_elem(&spaces, &key);
	return 0;
}

#endif
