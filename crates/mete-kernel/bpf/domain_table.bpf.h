/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The table from pid to accounting domain: for the programs that keep it up to date (domain.bpf.h) and for
 * those that only read it (record.bpf.h). A file that includes this one includes the eBPF headers first.
 */
#ifndef METE_DOMAIN_TABLE_H
#define METE_DOMAIN_TABLE_H

/*
 * One element, with two bytes for each pid. The loader sets its size, or puts the table of another object in
 * its place.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u16));
} domain_of_pid SEC(".maps");

/* Never 0, for the table has its element; the verifier wants the check. */
static __always_inline volatile __u16 *pid_table(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&domain_of_pid, &only);
}

#endif
