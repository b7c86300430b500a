// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* The kernel component: one handler for each characteristic, each attached only while enabled. */
#include "ipc.h"
#include "memory.h"
#include "run_queue.h"
#include "select.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
