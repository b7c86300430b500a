/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A higher class takes a processor. */
#ifndef METE_RELEASE_BPF_H
#define METE_RELEASE_BPF_H

#include "scx.h"

/* The tasks that were to run there next are queued again, so that other processors can take them. */
void OPERATION(cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

#endif
