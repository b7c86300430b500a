/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the programs need to know of the running kernel and of the eBPF interface, and no more. The structures
 * of the kernel name only the members that programs read. The loader finds out where those really lie, from
 * the type information of the running kernel (CO-RE).
 */
#ifndef METE_KERNEL_H
#define METE_KERNEL_H

#include "types.h"

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_NOEXIST = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_F_MMAPABLE = 1 << 10,
};

#define BPF_F_CURRENT_CPU 0xffffffffull
#define CLONE_INTO_CGROUP 0x200000000ull

/* In the flags of a task: it is one of the kernel's own threads. */
#define PF_KTHREAD 0x00200000

/* The stack of a thread on x86-64 without address sanitizer. Of larger stacks the programs see this part. */
#define THREAD_BYTES 16384

/* Priorities below this one are real-time ones. For those the kernel keeps no account of single stints. */
#define MAX_RT_PRIO 100

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
	unsigned int nr_running;
	__u64 clock;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* the same, as of when it got the processor */
	struct cfs_rq *cfs_rq;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct list_head {
	struct list_head *next;
};

/* The cgroups that a task is in. */
struct css_set {
	struct list_head cgrp_links;
};

/* One of them. */
struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
};

struct atomic {
	int counter;
};

struct signal_struct {
	struct list_head thread_head;
	struct atomic live; /* the number of threads that have not ended */
};

struct percpu_counter {
	__s64 count;
	__s32 *counters;
};

struct mm_struct {
	struct file *exe_file;
	struct task_struct *owner;
	struct percpu_counter rss_stat[4];
};

/* How address spaces were counted before 6.2. */
struct mm_rss_stat {
	__s64 count[4];
};

struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
};

struct bpf_array {
	void *pptrs[0];
};

struct net_device {
	unsigned int flags;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
};

struct fs_struct {
	struct path root;
};

typedef struct {
	__u32 val;
} kuid_t;

struct cred {
	kuid_t euid;
};

struct task_struct {
	void *stack;
	unsigned int flags;
	int prio;
	struct sched_entity se;
	struct mm_struct *mm;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	const struct cred *real_cred;
	char comm[16];
	struct fs_struct *fs;
	struct signal_struct *signal;
	struct list_head thread_node;
	struct css_set *cgroups;
};

struct pt_regs {
	long orig_ax;
};

struct bpf_iter__task {
	struct task_struct *task;
};

#pragma clang attribute pop

struct bpf_perf_event_value {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

/* The task that runs on this processor, with its type. */
#define current_task() ((struct task_struct *)bpf_get_current_task_btf())

/* The clock of the run queue that a task is on: exact at a switch, else as of the last scheduler event. */
static __always_inline __u64 run_queue_clock(struct task_struct *task)
{
	return task->se.cfs_rq->rq->clock;
}

#endif
