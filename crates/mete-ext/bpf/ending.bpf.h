/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Why the kernel has ended the scheduler. */
#ifndef METE_ENDING_BPF_H
#define METE_ENDING_BPF_H

#include "scx.h"

struct ending {
	__u32 kind; /* enum scx_exit_kind, when the rest is there; before, 0 */
	char reason[128];
	char message[256];
	char dump[32768]; /* what the kernel found then, with what the scheduler says of itself in it */
} ending SEC(".bss.ending");

void OPERATION(ended, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(ending.reason, sizeof(ending.reason), info->reason);
	bpf_probe_read_kernel_str(ending.message, sizeof(ending.message), info->msg);
	bpf_probe_read_kernel_str(ending.dump, sizeof(ending.dump), info->dump);
	/* An exchange, so that all before it is seen by the one that sees this. */
	__sync_lock_test_and_set(&ending.kind, info->kind);
}

#endif
