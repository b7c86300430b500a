/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The table from pid to accounting domain, for what keeps it up to date (domain.h) and for what only looks into it
 * (record.h). Who includes this has the eBPF headers already.
 */
#ifndef METE_DOMAIN_TABLE_H
#define METE_DOMAIN_TABLE_H

/* One element of two bytes for each pid: the loader sets its size, or puts another program's table in its place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u16));
} domain_of_pid SEC(".maps");

/* 0 only if the table had no element. */
static __always_inline volatile __u16 *pid_table(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&domain_of_pid, &only);
}

#endif
