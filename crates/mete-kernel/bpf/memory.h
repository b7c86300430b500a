/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Memory allocated to a domain: resident bytes, kept per address space and kind of page, so that
 * what an address space gives back, at the latest when it ends, leaves the domain that was charged.
 *
 * Every report settles what the address space holds as a whole, and so does taking stock, which
 * goes over all tasks: what there was before comes into the sums by the same way as what comes
 * later, in whatever order the two happen.
 */
#ifndef METE_MEMORY_H
#define METE_MEMORY_H

#include "domain.h"

#define PAGE_SHIFT 12
#define KINDS 4
#define SWAPPED_PAGES 2 /* the kind that is not resident */

/*
 * What an address space holds of each kind and who pays for it, in one word that is exchanged whole:
 * whatever is taken out of it is taken off one account and what is put in is put on one, so that the
 * accounts add up whichever processors do it at the same time.
 */
#define PAYER_SHIFT 48
#define BYTES_MASK ((1ull << PAYER_SHIFT) - 1)

struct space {
	__u64 held[KINDS];
};

/* By the address of its structure: no two have the same at a time, and its end is reported. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, struct space);
} spaces SEC(".maps");

/* Private; the rows carry copies. */
__s64 domain_bytes[METE_DOMAINS] SEC(".bss.memory");

/* Domains with something on their account, ever. Of others nothing is known. */
__u8 is_counted[METE_DOMAINS] SEC(".bss.counted");

/* Address spaces that found no room in `spaces`, and so are missing from the sums. */
__u64 spaces_missed SEC(".bss.missed");

/*
 * Since 6.2 the kernel counts pages per processor and adds up when 32 pages or more have come
 * together. What each processor has not handed in yet lies at the counter's own address plus the
 * processor's offset, which the kernel does not name to programs: it is the distance from the address of
 * an element of this map to that of the processor's copy.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} landmark SEC(".maps");

#define MAX_PROCESSORS 4096

/* By processor; 0 where there is none. */
__u64 processor_offsets[MAX_PROCESSORS] SEC(".bss.offsets");

/* Run once, before anything else here. */
SEC("raw_tp")
int find_offsets(void *ctx)
{
	__u64 element = (__u64)&landmark;
	__u32 only = 0;

	/* By copies of pointers: the verifier lets no program do sums with the pointers themselves. */
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

/* What processors have counted and not handed in. */
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

/* The bytes of a kind that an address space holds. */
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

/* Logs what is on a domain's account at the time of the row's stamp. */
static __always_inline void log_account(__u16 domain)
{
	struct mete_area *area = area_here();
	struct mete_record r = { METE_MEMORY, domain, METE_NO_DOMAIN, 0, current_task() };

	r.account = &domain_bytes[domain & (METE_DOMAINS - 1)];
	if (area)
		mete_log_nested(area, &r, 1);
}

/* Moves bytes to a domain's account. */
static __always_inline void charge(__u16 domain, __s64 bytes)
{
	__sync_fetch_and_add(&domain_bytes[domain & (METE_DOMAINS - 1)], bytes);
	is_counted[domain & (METE_DOMAINS - 1)] = 1;
}

/* Sets what an address space holds of a kind, and who pays for it. Answers with who paid before. */
static __always_inline __u16 settle(__u64 *held, __u16 domain, __u64 bytes)
{
	__u64 before = __sync_lock_test_and_set(held, (__u64)domain << PAYER_SHIFT | bytes);

	charge(before >> PAYER_SHIFT, -(__s64)(before & BYTES_MASK));
	charge(domain, bytes);
	return before >> PAYER_SHIFT;
}

/* Everything that an address space holds. Answers with who paid before. */
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
 * Whose an address space is that is not the running task's and was never heard of: its owner's. At a
 * fork that is the child, which still has the parent's number then, and so the parent's domain.
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
	/* Not its own task: it is being torn down, so nobody else is about to add to it. */
	if (!is_own && is_empty(space))
		bpf_map_delete_elem(&spaces, &key);
	return 0;
}

/* Whether a task that had this address space a moment ago may have been the last one. */
static __always_inline _Bool has_left(struct task_struct *task, struct mm_struct *mm)
{
	struct mm_struct *now = task->mm;

	return now != mm && (now || task->signal->live.counter == 0);
}

/*
 * Counts what is there already. By the leaders, whose domain is the process's; by another thread only
 * where the leader has ended. Between reading and settling, the address space may have changed, or
 * ended with a report that found nothing: so both are looked at once more.
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
	for (__u32 kind = 0; kind < KINDS; kind++) {
		__u64 bytes = bytes_of(mm, kind);

		if (kind != SWAPPED_PAGES && bytes != (space->held[kind] & BYTES_MASK))
			settle(&space->held[kind], domain, bytes);
	}
	if (has_left(task, mm)) {
		for (__u32 kind = 0; kind < KINDS; kind++)
			settle(&space->held[kind], domain, 0);
		bpf_map_delete_elem(&spaces, &key);
	}
	return 0;
}

/* A row for every domain that has or had anything. Run where nothing interrupts it that logs memory. */
SEC("raw_tp")
int log_accounts(void *ctx)
{
	for (__u32 domain = 0; domain < METE_DOMAINS; domain++) {
		if (is_counted[domain])
			log_account(domain);
	}
	return 0;
}

#endif
