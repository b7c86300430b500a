/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * A scheduler that decides nothing: tasks run in the order of their arrival, each on the processor on which the kernel has it. It has an
 * operation wherever group VTRR has one for each switch, and nothing in it. What it costs is what sched_ext itself costs: no
 * scheduler with these operations can be cheaper.
 */
#include "scx.h"

char LICENSE[] SEC("license") = "GPL";

s32 OPERATION(select_cpu, struct task_struct *p, s32 previous, u64 wake_flags)
{
	bool is_idle = 0;

	return scx_bpf_select_cpu_dfl(p, previous, wake_flags, &is_idle);
}

void OPERATION(enqueue, struct task_struct *p, u64 enq_flags)
{
	insert_into(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
}

void OPERATION(dispatch, s32 cpu, struct task_struct *previous)
{
}

void OPERATION(running, struct task_struct *p)
{
}

void OPERATION(stopping, struct task_struct *p, bool runnable)
{
}

void OPERATION(quiescent, struct task_struct *p, u64 deq_flags)
{
}

SEC(".struct_ops.link")
struct sched_ext_ops mete = {
	.select_cpu = (void *)select_cpu,
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.running = (void *)running,
	.stopping = (void *)stopping,
	.quiescent = (void *)quiescent,
	.timeout_ms = 30000,
	.name = "mete_empty",
};
