/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the programs need to know of the running kernel and of the eBPF interface, and no more.
 * Kernel structures name only the members that are read; where those really lie is resolved
 * against the running kernel's own type information at load time (CO-RE).
 */
#ifndef METE_KERNEL_H
#define METE_KERNEL_H

#include "types.h"

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_NOEXIST = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_F_MMAPABLE = 1 << 10,
};

#define BPF_F_CURRENT_CPU 0xffffffffull
#define CLONE_INTO_CGROUP 0x200000000ull

/* x86-64 without address sanitizer; where stacks are larger, the programs see less of them. */
#define THREAD_BYTES 16384

/* Priorities below are real-time ones, whose run time is not accounted by stints. */
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
	__u64 prev_sum_exec_runtime; /* the same when it got the processor */
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

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct list_head {
	struct list_head *next;
};

struct signal_struct {
	struct list_head thread_head;
};

struct task_struct {
	void *stack;
	int prio;
	struct sched_entity se;
	int pid;
	struct signal_struct *signal;
	struct list_head thread_node;
	struct css_set *cgroups;
};

struct pt_regs {
	long orig_ax;
};

/* What perf hands to a program on kmem:rss_stat. */
struct trace_event_raw_rss_stat {
	unsigned int mm_id;
	unsigned int curr;
	int member;
	long size;
};

#pragma clang attribute pop

struct bpf_perf_event_value {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

/* The task that runs here, typed. */
#define current_task() ((struct task_struct *)bpf_get_current_task_btf())

/* The clock of the run queue a task is on: exact at a switch, else as of the last scheduler event. */
static __always_inline __u64 run_queue_clock(struct task_struct *task)
{
	return task->se.cfs_rq->rq->clock;
}

#endif
