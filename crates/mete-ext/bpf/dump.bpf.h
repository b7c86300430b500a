/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What the kernel prints of the scheduler's state when it ends it for a fault, and when it is asked (SysRq-D). */
#ifndef METE_DUMP_BPF_H
#define METE_DUMP_BPF_H

#include "tasks.bpf.h"

static char format_of_processor[] =
	"last chosen: client %llu; asked %llu; first ahead: client %llu; decisions %llu, stolen %llu, missed %llu";

void OPERATION(dump_cpu, struct scx_dump_ctx *context, s32 cpu, bool is_idle)
{
	struct processor *processor = processor_at(cpu);
	unsigned long long numbers[6];

	if (is_idle)
		return;
	numbers[0] = processor->running;
	numbers[1] = processor->is_asked;
	numbers[2] = processor->ahead.first;
	numbers[3] = processor->decisions;
	numbers[4] = processor->stolen;
	numbers[5] = processor->missed;
	scx_bpf_dump_bstr(format_of_processor, numbers, sizeof(numbers));
}

/*
 * Its state is an enum dvtrr_client_state; its virtual time is due up to the limit of its domain. The kernel prints twelve numbers at
 * most.
 */
static char format_of_task[] =
	"client %llu of domain %llu, share %llu: state %llu, ahead %llu, virtual time after the limit: %lld; "
	"policy's processor %llu, kernel's %llu, allowed %llx, refused by %llx, current %llu, queued for %llu s";

void OPERATION(dump_task, struct scx_dump_ctx *context, struct task_struct *p)
{
	__u32 number = client_of(p);
	struct dvtrr_client *client = policy_client(number);
	struct task *task = task_of(number);
	struct dvtrr_account *account = &accounts[masked(number, CLIENTS)];
	unsigned long long numbers[12];

	if (!client || !task)
		return;
	numbers[0] = number;
	numbers[1] = client->home;
	numbers[2] = account->share;
	numbers[3] = client->state;
	numbers[4] = client->is_ahead;
	numbers[5] = account->used - domains[masked(client->home, DOMAINS)].limit;
	numbers[6] = client->processor;
	numbers[7] = task->processor;
	numbers[8] = task->allowed;
	numbers[9] = task->refused;
	numbers[10] = task->is_current;
	numbers[11] = seconds - task->queued_in;
	scx_bpf_dump_bstr(format_of_task, numbers, sizeof(numbers));
}

#endif
