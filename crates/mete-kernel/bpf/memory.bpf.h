/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Memory allocated to a domain: resident bytes. They are kept for each address space and kind of page, so
 * that what an address space gives back, at the latest when it ends, leaves the domain that was charged.
 *
 * Every report settles what the address space holds as a whole. take_stock, which goes over all tasks, does
 * the same. So older pages come into the sums in the same way as later ones, in either order.
 */
#ifndef METE_MEMORY_H
#define METE_MEMORY_H

#include "domain.bpf.h"

#define PAGE_SHIFT 12
#define KINDS 4
#define SWAPPED_PAGES 2 /* the one kind that is not resident */

/*
 * One word has the bytes that an address space holds of one kind, and the domain that pays for them. It is
 * exchanged as a whole: the old value is taken off the account of the old payer, and the new one is put on
 * that of the new payer. So the accounts add up, however many processors do this at the same time.
 */
#define PAYER_SHIFT 48
#define BYTES_MASK ((1ull << PAYER_SHIFT) - 1)

struct space {
	__u64 held[KINDS];
};

/* By the address of the mm_struct. No two have the same at a time, and the kernel reports when one ends. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, struct space);
} spaces SEC(".maps");

/* The account of each domain. The scheduler does not see it: rows carry copies. */
__s64 domain_bytes[METE_DOMAINS] SEC(".bss.memory");

/* Whether anything was ever charged to the domain. Of the others nothing is known. */
__u8 is_counted[METE_DOMAINS] SEC(".bss.counted");

/* The number of address spaces that found no room in `spaces`, and so are missing from the sums. */
__u64 spaces_missed SEC(".bss.missed");

/*
 * Since 6.2, each processor counts pages for itself, and hands them in when it has 32 or more. The pages that
 * it has not handed in yet are counted at the address of the counter plus the offset of the processor. The
 * kernel does not tell programs that offset. It is the distance from the address of an element of this map
 * to that of the processor's copy.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} landmark SEC(".maps");

#define MAX_PROCESSORS 4096

/* The offset of each processor; 0 where there is no such processor. */
__u64 processor_offsets[MAX_PROCESSORS] SEC(".bss.offsets");

/* Fills processor_offsets. The loader runs it once, before any other program of this file. */
SEC("raw_tp")
int find_offsets(void *ctx)
{
	__u64 element = (__u64)&landmark;
	__u32 only = 0;

	/* With copies of the pointers, because the verifier forbids sums with the pointers themselves. */
	if (bpf_probe_read_kernel(&element, sizeof(element), &element))
		return 1;
	element += bpf_core_field_offset(struct bpf_array, pptrs);
	if (bpf_probe_read_kernel(&element, sizeof(element), (void *)element))
		return 1;
	for (__u32 processor = 0; processor < settings.processors && processor < MAX_PROCESSORS;
	     processor++) {
		void *copy = bpf_map_lookup_percpu_elem(&landmark, &only, processor);
		__u64 address;

		if (copy && !bpf_probe_read_kernel(&address, sizeof(address), &copy))
			processor_offsets[processor] = address - element;
	}
	return 0;
}

/* The pages that processors have counted and not handed in yet. */
static __always_inline __s64 pages_at_hand(char *counters)
{
	__s64 pages = 0;

	for (__u32 processor = 0; processor < settings.processors && processor < MAX_PROCESSORS;
	     processor++) {
		__u64 offset = processor_offsets[processor];
		__s32 here;

		if (offset && !bpf_probe_read_kernel(&here, sizeof(here), counters + offset))
			pages += here;
	}
	return pages;
}

/* The bytes of one kind that an address space holds. */
static __always_inline __u64 bytes_of(struct mm_struct *mm, __u32 kind)
{
	char *counter = (char *)mm;
	char *at_hand;
	__s64 pages;

	if (bpf_core_type_exists(struct mm_rss_stat)) {
		counter +=
			bpf_core_field_offset(struct mm_struct___before_6_2, rss_stat) + kind * sizeof(pages);
		if (bpf_probe_read_kernel(&pages, sizeof(pages), counter))
			return 0;
	} else {
		counter += bpf_core_field_offset(struct mm_struct, rss_stat);
		counter += kind * bpf_core_type_size(struct percpu_counter);
		if (bpf_probe_read_kernel(&pages, sizeof(pages),
					  counter + bpf_core_field_offset(struct percpu_counter, count)) ||
		    bpf_probe_read_kernel(&at_hand, sizeof(at_hand),
					  counter + bpf_core_field_offset(struct percpu_counter, counters)))
			return 0;
		pages += pages_at_hand(at_hand);
	}
	return pages > 0 ? ((__u64)pages << PAGE_SHIFT) & BYTES_MASK : 0;
}

/* Logs the balance of a domain's account, as of the time stamp of the row. */
static __always_inline void log_account(__u16 domain)
{
	struct mete_area *area = area_here();
	struct mete_record r = { METE_MEMORY, domain, METE_NO_DOMAIN, 0, current_task() };

	r.account = &domain_bytes[domain & (METE_DOMAINS - 1)];
	if (area)
		mete_log_nested(area, &r, 1);
}

/* Adds bytes to the account of a domain. */
static __always_inline void charge(__u16 domain, __s64 bytes)
{
	__sync_fetch_and_add(&domain_bytes[domain & (METE_DOMAINS - 1)], bytes);
	is_counted[domain & (METE_DOMAINS - 1)] = 1;
}

/* Sets the bytes of one kind that an address space holds, and their payer. Returns the payer before. */
static __always_inline __u16 settle(__u64 *held, __u16 domain, __u64 bytes)
{
	__u64 before = __sync_lock_test_and_set(held, (__u64)domain << PAYER_SHIFT | bytes);

	charge(before >> PAYER_SHIFT, -(__s64)(before & BYTES_MASK));
	charge(domain, bytes);
	return before >> PAYER_SHIFT;
}

/* The same for all resident kinds. Returns the payer before. */
static __always_inline __u16 settle_all(struct space *space, struct mm_struct *mm, __u16 domain)
{
	__u16 payer = domain;

	for (__u32 kind = 0; kind < KINDS; kind++) {
		if (kind != SWAPPED_PAGES)
			payer = settle(&space->held[kind], domain, bytes_of(mm, kind));
	}
	return payer;
}

static __always_inline struct space *new_space(__u64 key, __u16 domain)
{
	__u64 nothing = (__u64)domain << PAYER_SHIFT;
	struct space empty = { { nothing, nothing, nothing, nothing } };

	if (bpf_map_update_elem(&spaces, &key, &empty, BPF_NOEXIST) && !bpf_map_lookup_elem(&spaces, &key))
		__sync_fetch_and_add(&spaces_missed, 1);
	return bpf_map_lookup_elem(&spaces, &key);
}

static __always_inline _Bool is_empty(const struct space *space)
{
	return !((space->held[0] | space->held[1] | space->held[3]) & BYTES_MASK);
}

/*
 * The owner of an address space that is not that of the running task and was not reported before. At a fork
 * that is the child. The child still has the number of its parent then, and so the domain of its parent.
 */
static __always_inline struct task_struct *owner_of(struct mm_struct *mm)
{
	return bpf_core_field_exists(mm->owner) ? mm->owner : (void *)0;
}

static __always_inline void first_report(volatile __u16 *table, struct mm_struct *mm,
					 struct task_struct *task)
{
	__u16 domain = domain_of(table, task);
	struct space *space = new_space((__u64)mm, domain);

	if (!space)
		return;
	settle_all(space, mm, domain);
	log_account(domain);
}

SEC("tp_btf/rss_stat")
int on_rss_stat(__u64 *ctx)
{
	struct mm_struct *mm = (void *)ctx[0];
	__u32 kind = (__u32)ctx[1] & (KINDS - 1);
	struct task_struct *task = current_task();
	volatile __u16 *table = pid_table();
	_Bool is_own = task->mm == mm;
	__u64 key = (__u64)mm;
	struct space *space;
	__u16 before, domain;

	if (!table || kind == SWAPPED_PAGES)
		return 0;
	space = bpf_map_lookup_elem(&spaces, &key);
	if (!space) {
		if (!is_own)
			task = owner_of(mm);
		if (task)
			first_report(table, mm, task);
		return 0;
	}
	before = space->held[kind] >> PAYER_SHIFT;
	domain = is_own ? domain_of(table, task) : before;
	if (domain == before) {
		settle(&space->held[kind], domain, bytes_of(mm, kind));
	} else {
		/* Its tasks have been bound anew: it moves as a whole. */
		before = settle_all(space, mm, domain);
		log_account(before);
	}
	log_account(domain);
	/* Not a report by its own task: it is being torn down, so nothing is added to it any more. */
	if (!is_own && is_empty(space))
		bpf_map_delete_elem(&spaces, &key);
	return 0;
}

/* Whether a task has given up the address space that it had a moment ago, and may have been its last task. */
static __always_inline _Bool has_left(struct task_struct *task, struct mm_struct *mm)
{
	struct mm_struct *now = task->mm;

	return now != mm && (now || task->signal->live.counter == 0);
}

/*
 * Counts the pages that are there already. It settles an address space at the leader of the process, whose
 * domain is that of the process, and at another thread only if the leader has ended.
 */
SEC("iter/task")
int take_stock(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	volatile __u16 *table = pid_table();
	struct mm_struct *mm;
	struct space *space;
	__u16 domain;
	__u64 key;

	if (!task || !table)
		return 0;
	mm = task->mm;
	key = (__u64)mm;
	if (!mm)
		return 0;
	space = bpf_map_lookup_elem(&spaces, &key);
	if (space && task->pid != task->tgid)
		return 0;
	domain = domain_of(table, task);
	if (!space)
		space = new_space(key, domain);
	if (!space)
		return 0;
	settle_all(space, mm, domain);
	/* The space may have changed between the read and the exchange: so each kind is read once more. */
	for (__u32 kind = 0; kind < KINDS; kind++) {
		__u64 bytes = bytes_of(mm, kind);

		if (kind != SWAPPED_PAGES && bytes != (space->held[kind] & BYTES_MASK))
			settle(&space->held[kind], domain, bytes);
	}
	/* It may also have ended meanwhile, and its last report came before there was anything to settle. */
	if (has_left(task, mm)) {
		for (__u32 kind = 0; kind < KINDS; kind++)
			settle(&space->held[kind], domain, 0);
		bpf_map_delete_elem(&spaces, &key);
	}
	return 0;
}

static long log_account_of(__u64 nth, void *unused)
{
	__u32 domain = nth & (METE_DOMAINS - 1);

	if (is_counted[domain])
		log_account(domain);
	return 0;
}

/*
 * Logs a row for every domain that was ever charged. The loader runs it as a test run, which no program that
 * logs memory interrupts.
 */
SEC("raw_tp")
int log_accounts(void *ctx)
{
	/* No loop of C: the verifier would follow each domain, for most of the time that a component takes to load. */
	bpf_loop(METE_DOMAINS, log_account_of, 0, 0);
	return 0;
}

#endif
