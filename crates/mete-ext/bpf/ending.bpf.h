/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Why the kernel has ended the scheduler. */
#ifndef METE_ENDING_BPF_H
#define METE_ENDING_BPF_H

#include "scx.h"

/* enum scx_exit_kind, and a sentence. */
__u32 exit_kind;
char exit_reason[128];
char exit_message[256];
/* What the kernel found then, with what the scheduler says of itself in it. */
char exit_dump[32768] SEC(".bss.dump");

void OPERATION(ended, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message), info->msg);
	bpf_probe_read_kernel_str(exit_dump, sizeof(exit_dump), info->dump);
	exit_kind = info->kind;
}

#endif
