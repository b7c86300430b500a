// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* The kernel component: a handler for each characteristic. It is attached only while that is enabled. */
#include "ipc.bpf.h"
#include "memory.bpf.h"
#include "run_queue.bpf.h"
#include "select.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
