/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the scheduler's programs need to know of sched_ext and of the running kernel, and no more. The loader finds out
 * where the members really lie (CO-RE), and leaves out operations that the running kernel does not have.
 */
#ifndef METE_SCX_H
#define METE_SCX_H

#include "types.h"

typedef _Bool bool;
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* The queue of tasks that a processor runs next, in the order of their arrival. */
#define SCX_DSQ_LOCAL (1ull << 63 | 2)
#define SCX_SLICE_DFL (20ull * 1000 * 1000)
/* A task is queued because it wakes. */
#define SCX_ENQ_WAKEUP 1ull
/* Puts a task into a processor's queue in front of all others, and has the one that runs there stop. */
#define SCX_ENQ_PREEMPT (1ull << 32)
/* In the flags of a wake-up: the task that wakes it is about to wait. */
#define SCX_WAKE_SYNC (1ull << 4)
/* Wakes a processor only if it is idle. */
#define SCX_KICK_IDLE 1ull
/* Has a processor ask the scheduler at once. */
#define SCX_KICK_PREEMPT 2ull
/*
 * In the flags of a scheduler: the last task of a processor is queued, too, when its slice is used up; also tasks that are about to exit
 * are its, and those that may not leave their processor at this moment; and it knows the weights of cgroups. Some kernels do not know the
 * last two (src/flags.rs).
 */
#define SCX_OPS_ENQ_LAST (1ull << 1)
#define SCX_OPS_ENQ_EXITING (1ull << 2)
#define SCX_OPS_ENQ_MIGRATION_DISABLED (1ull << 4)
#define SCX_OPS_HAS_CGROUP_WEIGHT (1ull << 16)
/* In the flags of a task: it is runnable. */
#define SCX_TASK_QUEUED 1
/* In the flags of a task: it is one of the kernel's own threads. */
#define PF_KTHREAD 0x00200000

#define CLOCK_MONOTONIC 1

#define ENOENT 2
#define E2BIG 7
#define EEXIST 17
#define ENOMEM 12

/* What an open-coded loop of the kernel keeps on the stack. */
struct bpf_iter_num {
	__u64 opaque;
} __attribute__((aligned(8)));

/* The kernel's timer and lock for programs, by these names. */
struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_spin_lock {
	__u32 val;
};

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

struct cpumask {
	unsigned long bits[1];
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	const struct cpumask *cpus_ptr;
	int nr_cpus_allowed;
	int pid;
	struct sched_entity se;
	struct sched_ext_entity scx;
};

struct rt_rq {
	int rt_queued;
};

struct sched_dl_entity {
	u64 runtime;
};

/* The run queue of a processor. */
struct rq {
	struct rt_rq rt;
	/* Since Linux 7: the part of the processor that tasks of sched_ext have beside real-time tasks. */
	struct sched_dl_entity ext_server;
};

struct kernfs_node {
	u64 id;
};

enum cgroup_subsys_id {
	cpu_cgrp_id,
};

struct cgroup_subsys_state;

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[1];
};

/* What the kernel's own scheduler knows of a cgroup; the state of the controller is its first member. */
struct task_group {
	unsigned long shares;
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	const char *msg;
	const char *dump;
};

struct scx_dump_ctx;

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cpu_release_args {
	struct task_struct *task;
};

struct scx_cgroup_init_args {
	u32 weight;
};

#pragma clang attribute pop

/* The operations that are used here; the loader matches them with the kernel's by name. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *mask);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	void (*dump_cpu)(struct scx_dump_ctx *context, s32 cpu, bool is_idle);
	void (*dump_task)(struct scx_dump_ctx *context, struct task_struct *p);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
void scx_bpf_dump_bstr(char *format, unsigned long long *data, u32 data__sz) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;

/* Renamed in 6.13: each kernel has at least one of the two names. */
void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
bool scx_bpf_consume(u64 dsq_id) __ksym __weak;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;

static __always_inline void insert_into(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
	else
		scx_bpf_dispatch(p, dsq_id, slice, enq_flags);
}

static __always_inline bool move_to_local(u64 dsq_id)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local))
		return scx_bpf_dsq_move_to_local(dsq_id);
	return scx_bpf_consume(dsq_id);
}

/* Where there is the first one, the kernel warns of the second one. */
struct rq *scx_bpf_locked_rq(void) __ksym __weak;
struct rq *scx_bpf_cpu_rq(s32 cpu) __ksym __weak;

/* In dispatch: whether a real-time task waits for the processor. */
static __always_inline bool is_wanted_in_real_time(s32 cpu)
{
	struct rq *rq = 0;

	if (bpf_ksym_exists(scx_bpf_locked_rq))
		rq = scx_bpf_locked_rq();
	else if (bpf_ksym_exists(scx_bpf_cpu_rq))
		rq = scx_bpf_cpu_rq(cpu);
	return rq && rq->rt.rt_queued;
}

/* Whether the kernel lets a task run beside one in real time. */
static __always_inline bool is_served_beside_real_time(void)
{
	return bpf_core_field_exists(struct rq, ext_server);
}

/*
 * In dispatch: whether a task is to run here beside one in real time. If none does, the kernel does not ask again as long as any
 * waits for this processor.
 */
static __always_inline bool is_asked_beside_real_time(s32 cpu)
{
	return is_served_beside_real_time() && is_wanted_in_real_time(cpu);
}

/*
 * In dispatch: whether what is moved to the processor would not run. Linux before 7 asks for a task of the scheduler though a
 * real-time task waits already, and then runs the other one. Where the processor was idle before, it does not call cpu_release either:
 * what was moved to it would stay there until the real-time task ends.
 */
static __always_inline bool is_taken_in_real_time(s32 cpu)
{
	return !is_served_beside_real_time() && is_wanted_in_real_time(cpu);
}

/* Of struct sched_ext_ops.quiescent: the task sleeps, or ends. Without it, it is about to be changed, and comes back. */
#define DEQUEUED_TO_SLEEP 1u
/* The state of a task that has had the processor for the last time. */
#define TASK_DEAD 0x80

/* In quiescent: whether the task has ended. Linux before 7 may say so by exit_task only when its parent has asked how it ended. */
static __always_inline bool has_ended(const struct task_struct *p, u64 deq_flags)
{
	return deq_flags & DEQUEUED_TO_SLEEP && p->__state & TASK_DEAD;
}

/*
 * A kernel thread that is bound to one processor does work that others wait for: it goes ahead of all tasks, in order of arrival, and the
 * policy is not asked.
 */
static __always_inline bool is_of_processor(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1;
}

#define OPERATION(name, args...) \
	SEC("struct_ops/" #name) \
	BPF_PROG(name, ##args)
#define SLEEPABLE(name, args...)   \
	SEC("struct_ops.s/" #name) \
	BPF_PROG(name, ##args)

/*
 * A condition that is true, for loops that end by themselves but not before the verifier's eyes: the kernel ends a loop after
 * some millions of turns. Needs clang 19, which knows the instruction.
 */
#define CAN_LOOP                                                       \
	({                                                             \
		__label__ spent, done;                                 \
		int goes_on = 1;                                       \
		asm volatile goto("may_goto %l[spent]" : : : : spent); \
		goto done;                                             \
spent:                                                                 \
		goes_on = 0;                                           \
done:                                                                  \
		goes_on;                                               \
	})

#endif
