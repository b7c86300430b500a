/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the dispatcher needs to know of its clients: how long each had the processor, and when it wakes, blocks and ends.
 * The first stands in mapped memory, where the dispatcher looks when it has to. The rest are rows in a ring; the
 * dispatcher is woken for those that it has to act upon.
 */
#include "dispatch.h"

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Priorities from this one on are those of ordinary tasks. */
#define MAX_RT_PRIO 100
/* An ordinary task that yields to all others. */
#define SCHED_IDLE 5
/* The state of a task that has the processor for the last time. */
#define TASK_DEAD 0x80

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	__u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	int prio;
	unsigned int policy;
	int pid;
	int tgid;
};

#pragma clang attribute pop

char LICENSE[] SEC("license") = "GPL";

/* The clients by the numbers of their threads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_CLIENTS);
	__type(key, __u32);
	__type(value, __u32);
} clients_of_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} rows SEC(".maps");

struct client clients[MOST_CLIENTS] SEC(".bss.clients");
struct processor processors[MOST_PROCESSORS] SEC(".bss.processors");
/* Rows that found no room. The dispatcher looks at all clients then. */
__u64 lost;
/* Never used: the dispatcher gets the types of globals only, and it reads rows. */
struct row form_of_rows;

static __always_inline struct client *client_of(__u32 thread, __u32 *number)
{
	__u32 *found = bpf_map_lookup_elem(&clients_of_threads, &thread), client;

	if (!found)
		return 0;
	/* Read once: the element may be given to another thread meanwhile. */
	client = *(volatile __u32 *)found;
	if (client >= MOST_CLIENTS)
		return 0;
	*number = client;
	return &clients[client & (MOST_CLIENTS - 1)];
}

/* The account of a client that gets the processor, and of one that loses it. */
static __always_inline void begin_stint(struct client *client, __u64 now)
{
	__s64 used_ns = (__s64)client->account >> 1;

	*(volatile __u64 *)&client->account = (__u64)(used_ns - (__s64)now) << 1 | 1;
}

static __always_inline void end_stint(struct client *client, __u64 since_ns, __u64 now)
{
	__s64 used_ns = (__s64)client->account >> 1;

	if (client->account & 1)
		used_ns += now;
	else
		/* It became a client while it had the processor. */
		used_ns += now - (since_ns > client->joined_ns ? since_ns : client->joined_ns);
	*(volatile __u64 *)&client->account = (__u64)used_ns << 1;
}

/* A row, to be submitted; 0 if there is no room. */
static __always_inline struct row *begin_row(enum what what, __u32 number, __u32 thread, __u32 at, __u64 now)
{
	struct row *row = bpf_ringbuf_reserve(&rows, sizeof(*row), 0);

	if (!row) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	*row = (struct row){
		.time_ns = now, .what = what, .number = number, .thread = thread, .processor = at
	};
	return row;
}

/* Writes a row, and wakes the dispatcher if it has to act upon it. */
static __always_inline void tell(enum what what, __u32 number, __u32 thread, __u32 at, __u64 now,
				 int is_urgent)
{
	struct row *row = begin_row(what, number, thread, at, now);

	if (row)
		bpf_ringbuf_submit(row, is_urgent ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* Whether a task that is no client has to wait where a chosen client runs. Real-time tasks have their own precedence. */
static __always_inline int is_rest(struct task_struct *task)
{
	return task->prio >= MAX_RT_PRIO && task->policy != SCHED_IDLE && task->pid;
}

/* Tasks that are no clients wait where this client runs. Whether the dispatcher knows. */
static __always_inline int rest_waits(struct processor *processor, __u32 at, enum why why)
{
	__u32 number = processor->client;
	struct row *row;

	if (number >= MOST_CLIENTS || !clients[number & (MOST_CLIENTS - 1)].is_chosen)
		return 0;
	if ((processor->told & why) == why)
		return 1;
	row = begin_row(WAITED, number, 0, at, bpf_ktime_get_ns());
	if (!row)
		return 0;
	row->why = why;
	/* Before it is told: the dispatcher asks to be told again as soon as it has read the row. */
	processor->told |= why;
	bpf_ringbuf_submit(row, BPF_RB_FORCE_WAKEUP);
	return 1;
}

/* A task that is no client has become able to run on a processor. */
static __always_inline void rest_woke(__u32 at, __u32 thread)
{
	struct processor *processor;

	if (at >= MOST_PROCESSORS)
		return;
	processor = &processors[at];
	/*
	 * It may have to wait when the one that runs has blocked, or when the client that has stepped back comes to the front again; or there was no
	 * room for the row.
	 */
	if (!processor->has_rest && !processor->gives_way &&
	    rest_waits(processor, at, processor->untold | HAS_WOKEN)) {
		processor->untold = 0;
		return;
	}
	processor->untold |= HAS_WOKEN;
	processor->woken = thread;
}

/* A task that is no client has the processor. */
static __always_inline void has_its_turn(struct processor *processor, __u32 thread)
{
	if (thread == processor->lost)
		processor->untold &= ~HAS_LOST;
	if (thread == processor->woken)
		processor->untold &= ~HAS_WOKEN;
}

/*
 * A client has lost the processor, in this state of its. One that ends is a client until it has it for the last time: its
 * parent waits for what it does until then.
 */
static __always_inline void loses(struct client *client, __u32 number, __u32 thread, __u32 at, __u64 now,
				  unsigned int state)
{
	*(volatile enum activity *)&client->activity = state ? AWAY : ABLE_TO_RUN;
	if (state & TASK_DEAD)
		bpf_map_delete_elem(&clients_of_threads, &thread);
	if (state)
		tell(state & TASK_DEAD ? ENDED : BLOCKED, number, thread, at, now, client->is_chosen);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	__u32 at = bpf_get_smp_processor_id(), number = NO_CLIENT;
	struct processor *processor;
	struct client *client;
	__u64 now = bpf_ktime_get_ns();
	int is_served = 0, is_missed;

	if (at >= MOST_PROCESSORS)
		return 0;
	processor = &processors[at];
	client = client_of(prev->pid, &number);
	if (client) {
		end_stint(client, processor->since_ns, now);
		loses(client, number, prev->pid, at, now, preempt ? 0 : prev_state);
	} else if (is_rest(prev)) {
		if (processor->since_ns)
			processor->rest_ns += now - processor->since_ns;
		is_served = !preempt && prev_state;
		if (!is_served) {
			processor->untold |= HAS_LOST;
			processor->lost = prev->pid;
		}
	}
	processor->since_ns = now;
	number = NO_CLIENT;
	client = client_of(next->pid, &number);
	processor->has_rest = !client && is_rest(next);
	if (processor->has_rest)
		has_its_turn(processor, next->pid);
	if (client) {
		is_missed = client->activity == AWAY;
		client->processor = at;
		*(volatile enum activity *)&client->activity = ABLE_TO_RUN;
		begin_stint(client, now);
		/* The kernel has not told that it woke. */
		if (is_missed)
			tell(WOKE, number, next->pid, at, now, 1);
	}
	/* A real-time task is gone soon: what waits meanwhile waits behind the client, too. */
	if (client || next->prio >= MAX_RT_PRIO)
		processor->client = number;
	/* While a client steps back, the dispatcher knows that tasks wait; each time it runs itself there, the kernel chooses anew. */
	if (client && processor->untold && !processor->gives_way) {
		if (rest_waits(processor, at, processor->untold))
			processor->untold = 0;
	} else if (is_served && processor->gives_way) {
		tell(SERVED, number, 0, at, now, client != 0);
	}
	/* When one has blocked, the one that has waited has the processor now; and beside an idle one, none waits. */
	if (is_served && processor->has_rest || !next->pid)
		processor->untold = 0;
	return 0;
}

static __always_inline int woke(struct task_struct *task)
{
	struct client *client;
	__u32 number;

	client = client_of(task->pid, &number);
	if (client) {
		*(volatile enum activity *)&client->activity = ABLE_TO_RUN;
		tell(WOKE, number, task->pid, task->thread_info.cpu, bpf_ktime_get_ns(), 1);
	} else if (is_rest(task)) {
		rest_woke(task->thread_info.cpu, task->pid);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return woke(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	return woke(task);
}

/* Tells of a thread of this number, which a client has to do with. If there is no room, the dispatcher looks at all clients. */
static __always_inline void tell_of_thread(enum what what, __u32 number, __u32 thread,
					   struct task_struct *other)
{
	__u32 at = bpf_get_smp_processor_id();
	struct row *row = begin_row(what, number, thread, at, bpf_ktime_get_ns());

	if (!row)
		return;
	row->born = other->pid;
	row->process = other->tgid;
	bpf_ringbuf_submit(row, BPF_RB_FORCE_WAKEUP);
}

/* A thread that a client has started is to be a client, too. If there is no room, it is found when all threads are looked at. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 number;

	if (client_of(parent->pid, &number))
		tell_of_thread(BORN, number, parent->pid, child);
	return 0;
}

/* The thread of this number is no client any more. The number that it had as one; or NO_CLIENT. */
static __always_inline __u32 take_client(__u32 thread, __u64 now)
{
	__u32 number = NO_CLIENT;
	struct client *client = client_of(thread, &number);

	if (!client)
		return NO_CLIENT;
	if (client->account & 1)
		end_stint(client, 0, now);
	*(volatile enum activity *)&client->activity = AWAY;
	bpf_map_delete_elem(&clients_of_threads, &thread);
	return number;
}

/*
 * A thread that was not the first one of its process starts another program: the kernel gives it the first one's number, and the
 * beginning of that one. The first one may have ended under either number. So both clients end, and the thread is taken up anew.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int former)
{
	__u32 at = bpf_get_smp_processor_id(), of_former, of_first, first = task->pid;
	__u64 now = bpf_ktime_get_ns();

	if (first == former)
		return 0;
	/* Before it is told, after which the thread may be a client again. */
	of_former = take_client(former, now);
	of_first = take_client(first, now);
	/* Before the ends are: the thread may be in front, and leaves that as the client that it was. */
	tell_of_thread(RENUMBERED, NO_CLIENT, former, task);
	if (of_former != NO_CLIENT)
		tell(ENDED, of_former, former, at, now, 1);
	if (of_first != NO_CLIENT)
		tell(ENDED, of_first, first, at, now, 1);
	return 0;
}
