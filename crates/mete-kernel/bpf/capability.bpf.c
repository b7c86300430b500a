// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Programs that do nothing, to find out which kinds of programs this kernel accepts. The function and the
 * tracepoint exist in every kernel with eBPF. The kernel passes the tracepoint rarely and the function never.
 */
#include "kernel.h"

SEC("tp_btf/task_newtask")
int try_tracepoint(void *ctx)
{
	return 0;
}

SEC("fentry/bpf_fentry_test1")
int try_function_entry(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
