// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
#include "record.bpf.h"

/* Made from a schema by mete. Changes here are lost. */
#ifndef METE_RECORD_HEAD
#define METE_RECORD_HEAD
typedef __INT8_TYPE__ mete_s8;
typedef __INT16_TYPE__ mete_s16;
typedef __INT32_TYPE__ mete_s32;
typedef __INT64_TYPE__ mete_s64;
typedef __UINT8_TYPE__ mete_u8;
typedef __UINT16_TYPE__ mete_u16;
typedef __UINT32_TYPE__ mete_u32;
typedef __UINT64_TYPE__ mete_u64;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error records are little endian
#endif

#ifdef __cplusplus
typedef bool mete_bool;
#define METE_ASSERT_ static_assert
#else
typedef _Bool mete_bool;
#define METE_ASSERT_ _Static_assert
#endif

struct mete_head {
	mete_u16 type;
	mete_u16 bytes; /* of the record */
	mete_u32 serial; /* the recorder's */
	mete_u64 time; /* the recorder's */
};
#endif

#pragma clang diagnostic ignored "-Wparentheses-equality"
#pragma clang diagnostic ignored "-Wtautological-compare"
#pragma clang diagnostic ignored "-Wconstant-logical-operand"

/* A process is about to be woken. */
struct mete_record_TRY_TO_WAKEUP {
	struct mete_head head;
	/* The process that is to be woken. */
	mete_s32 f_pid;
	/* The running process. It is the waker, unless an interrupt is. */
	mete_s32 f_waker;
	/* The processor that it ran on last. */
	mete_u32 f_last_cpu;
	/* Its priority as the kernel counts: 120 is nice 0, less than 100 is real-time. */
	mete_s32 f_priority;
};

#define METE_ID_TRY_TO_WAKEUP 16
#define METE_FINGERPRINT_TRY_TO_WAKEUP 0xd27ac7a792ad5930ull
METE_ASSERT_(sizeof(struct mete_record_TRY_TO_WAKEUP) == 32, "size of TRY_TO_WAKEUP");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TRY_TO_WAKEUP, f_pid) == 16, "place of TRY_TO_WAKEUP.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TRY_TO_WAKEUP, f_waker) == 20, "place of TRY_TO_WAKEUP.waker");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TRY_TO_WAKEUP, f_last_cpu) == 24, "place of TRY_TO_WAKEUP.last_cpu");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TRY_TO_WAKEUP, f_priority) == 28, "place of TRY_TO_WAKEUP.priority");

/* A process has been put into the run queue of a processor. */
struct mete_record_ADD_TO_RUNQ {
	struct mete_head head;
	/* The process. */
	mete_s32 f_pid;
	/* The processor. */
	mete_u32 f_target_cpu;
	/* Its priority. */
	mete_s32 f_priority;
	/* Whether it is new. */
	mete_u8 f_is_new;
	mete_u8 padding[3];
};

#define METE_ID_ADD_TO_RUNQ 17
#define METE_FINGERPRINT_ADD_TO_RUNQ 0x94925e98440f5d13ull
METE_ASSERT_(sizeof(struct mete_record_ADD_TO_RUNQ) == 32, "size of ADD_TO_RUNQ");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ADD_TO_RUNQ, f_pid) == 16, "place of ADD_TO_RUNQ.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ADD_TO_RUNQ, f_target_cpu) == 20, "place of ADD_TO_RUNQ.target_cpu");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ADD_TO_RUNQ, f_priority) == 24, "place of ADD_TO_RUNQ.priority");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ADD_TO_RUNQ, f_is_new) == 28, "place of ADD_TO_RUNQ.is_new");

/* A process blocks: it leaves the processor and the run queue. */
struct mete_record_REMOVE_FROM_RUNQ {
	struct mete_head head;
	/* The process. */
	mete_s32 f_pid;
	/* How it waits, one bit: 1 interruptible, 2 uninterruptible; the page of this schema has all of them. */
	mete_u32 f_state;
};

#define METE_ID_REMOVE_FROM_RUNQ 18
#define METE_FINGERPRINT_REMOVE_FROM_RUNQ 0xbfbd51936fa260e9ull
METE_ASSERT_(sizeof(struct mete_record_REMOVE_FROM_RUNQ) == 24, "size of REMOVE_FROM_RUNQ");
METE_ASSERT_(__builtin_offsetof(struct mete_record_REMOVE_FROM_RUNQ, f_pid) == 16, "place of REMOVE_FROM_RUNQ.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_REMOVE_FROM_RUNQ, f_state) == 20, "place of REMOVE_FROM_RUNQ.state");

/* The running process has left the processor. */
struct mete_record_SCHEDOUT {
	struct mete_head head;
	/* The processor time that it has used in its life, in nanoseconds, as the kernel accounts for it. */
	mete_u64 f_runtime_ns;
	/* The process. */
	mete_s32 f_pid;
	/* Its state: 0 if it could continue, otherwise how it waits, in the same bits. */
	mete_u32 f_state;
	/* Whether it was preempted. */
	mete_u8 f_is_preempted;
	mete_u8 padding[7];
};

#define METE_ID_SCHEDOUT 19
#define METE_FINGERPRINT_SCHEDOUT 0x89b9a13a3a939d0aull
METE_ASSERT_(sizeof(struct mete_record_SCHEDOUT) == 40, "size of SCHEDOUT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDOUT, f_runtime_ns) == 16, "place of SCHEDOUT.runtime_ns");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDOUT, f_pid) == 24, "place of SCHEDOUT.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDOUT, f_state) == 28, "place of SCHEDOUT.state");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDOUT, f_is_preempted) == 32, "place of SCHEDOUT.is_preempted");

/* A process has got the processor. */
struct mete_record_SCHEDIN {
	struct mete_head head;
	/* The process. */
	mete_s32 f_pid;
	/* Its priority. */
	mete_s32 f_priority;
	/* The process that the thread belongs to. */
	mete_s32 f_tgid;
	/* Whether it is a thread of the kernel. */
	mete_u8 f_is_kernel;
	mete_u8 padding[3];
};

#define METE_ID_SCHEDIN 20
#define METE_FINGERPRINT_SCHEDIN 0xd9e7efb43363745eull
METE_ASSERT_(sizeof(struct mete_record_SCHEDIN) == 32, "size of SCHEDIN");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDIN, f_pid) == 16, "place of SCHEDIN.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDIN, f_priority) == 20, "place of SCHEDIN.priority");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDIN, f_tgid) == 24, "place of SCHEDIN.tgid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SCHEDIN, f_is_kernel) == 28, "place of SCHEDIN.is_kernel");

/* A process has created another one. */
struct mete_record_FORK {
	struct mete_head head;
	/* The process that created it. */
	mete_s32 f_parent;
	/* The new process. */
	mete_s32 f_child;
	/* The process that the new one belongs to: itself, unless it is a thread. */
	mete_s32 f_child_tgid;
	/* Its name. */
	char f_name[16];
	mete_u8 padding[4];
};

#define METE_ID_FORK 21
#define METE_FINGERPRINT_FORK 0xc4fae8b26da4ef54ull
METE_ASSERT_(sizeof(struct mete_record_FORK) == 48, "size of FORK");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FORK, f_parent) == 16, "place of FORK.parent");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FORK, f_child) == 20, "place of FORK.child");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FORK, f_child_tgid) == 24, "place of FORK.child_tgid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FORK, f_name) == 28, "place of FORK.name");

/* A process runs another program from now on. */
struct mete_record_EXEC {
	struct mete_head head;
	/* The process. */
	mete_s32 f_pid;
	/* Its number before: a thread that runs another program becomes its process. */
	mete_s32 f_old_pid;
	/* The name of the program. */
	char f_name[16];
};

#define METE_ID_EXEC 22
#define METE_FINGERPRINT_EXEC 0x85ba9784f2255896ull
METE_ASSERT_(sizeof(struct mete_record_EXEC) == 40, "size of EXEC");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXEC, f_pid) == 16, "place of EXEC.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXEC, f_old_pid) == 20, "place of EXEC.old_pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXEC, f_name) == 24, "place of EXEC.name");

/* A process has ended, and leaves the processor for the last time. */
struct mete_record_EXIT {
	struct mete_head head;
	/* All the processor time that it has used, in nanoseconds, as the kernel accounts for it. */
	mete_u64 f_runtime_ns;
	/* The process. */
	mete_s32 f_pid;
	/* The process that it belongs to. */
	mete_s32 f_tgid;
	/* Its name at the end. */
	char f_name[16];
};

#define METE_ID_EXIT 23
#define METE_FINGERPRINT_EXIT 0x4aa04391e09a6ae5ull
METE_ASSERT_(sizeof(struct mete_record_EXIT) == 48, "size of EXIT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXIT, f_runtime_ns) == 16, "place of EXIT.runtime_ns");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXIT, f_pid) == 24, "place of EXIT.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXIT, f_tgid) == 28, "place of EXIT.tgid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_EXIT, f_name) == 32, "place of EXIT.name");

struct sched_entity;
struct task_struct;
struct thread_info;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	mete_u64 sum_exec_runtime;
};

struct thread_info {
	mete_u32 cpu;
};

struct task_struct {
	char comm[16];
	mete_s32 exit_state;
	mete_u32 flags;
	mete_s32 pid;
	mete_s32 prio;
	struct sched_entity se;
	mete_s32 tgid;
	struct thread_info thread_info;
};

#pragma clang attribute pop

SEC("tp_btf/sched_waking")
int mete_at_0(mete_u64 *ctx)
{
	struct task_struct *a_p = (void *)(ctx[0]);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_TRY_TO_WAKEUP *record = METE_BEGIN(&place, &here, METE_ID_TRY_TO_WAKEUP, sizeof(*record));

			if (record) {
				record->f_pid = a_p->pid;
				record->f_waker = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_last_cpu = a_p->thread_info.cpu;
				record->f_priority = a_p->prio;
				METE_END(&place, record, METE_ID_TRY_TO_WAKEUP, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int mete_at_1(mete_u64 *ctx)
{
	struct task_struct *a_p = (void *)(ctx[0]);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_ADD_TO_RUNQ *record = METE_BEGIN(&place, &here, METE_ID_ADD_TO_RUNQ, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_pid = a_p->pid;
				record->f_target_cpu = a_p->thread_info.cpu;
				record->f_priority = a_p->prio;
				record->f_is_new = 0;
				METE_END(&place, record, METE_ID_ADD_TO_RUNQ, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int mete_at_2(mete_u64 *ctx)
{
	struct task_struct *a_p = (void *)(ctx[0]);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_ADD_TO_RUNQ *record = METE_BEGIN(&place, &here, METE_ID_ADD_TO_RUNQ, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_pid = a_p->pid;
				record->f_target_cpu = a_p->thread_info.cpu;
				record->f_priority = a_p->prio;
				record->f_is_new = 1;
				METE_END(&place, record, METE_ID_ADD_TO_RUNQ, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int mete_at_3(mete_u64 *ctx)
{
	_Bool a_preempt = (mete_u8)(ctx[0]);
	struct task_struct *a_prev = (void *)(ctx[1]);
	struct task_struct *a_next = (void *)(ctx[2]);
	mete_u32 a_prev_state = ctx[3];
	struct mete_here here = {};

	if (1) {
		if (((a_prev_state & 128) && (!a_preempt))) {
			struct mete_place place;
			struct mete_record_EXIT *record = METE_BEGIN(&place, &here, METE_ID_EXIT, sizeof(*record));

			if (record) {
				record->f_runtime_ns = a_prev->se.sum_exec_runtime;
				record->f_pid = a_prev->pid;
				record->f_tgid = a_prev->tgid;
				__builtin_memcpy(record->f_name, a_prev->comm, 16);
				METE_END(&place, record, METE_ID_EXIT, sizeof(*record));
			}
		}
		if ((a_prev_state && (!a_preempt))) {
			struct mete_place place;
			struct mete_record_REMOVE_FROM_RUNQ *record = METE_BEGIN(&place, &here, METE_ID_REMOVE_FROM_RUNQ, sizeof(*record));

			if (record) {
				record->f_pid = a_prev->pid;
				record->f_state = ((a_prev_state & 128) ? ((mete_u32)(a_prev->exit_state)) : ((a_prev_state & 1024) ? 128 : ((a_prev_state & 127) ? (a_prev_state & 127) : 2)));
				METE_END(&place, record, METE_ID_REMOVE_FROM_RUNQ, sizeof(*record));
			}
		}
		if (1) {
			struct mete_place place;
			struct mete_record_SCHEDOUT *record = METE_BEGIN(&place, &here, METE_ID_SCHEDOUT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_runtime_ns = a_prev->se.sum_exec_runtime;
				record->f_pid = a_prev->pid;
				record->f_state = (((!a_prev_state) || a_preempt) ? 0 : ((a_prev_state & 128) ? ((mete_u32)(a_prev->exit_state)) : ((a_prev_state & 1024) ? 128 : ((a_prev_state & 127) ? (a_prev_state & 127) : 2))));
				record->f_is_preempted = a_preempt;
				METE_END(&place, record, METE_ID_SCHEDOUT, sizeof(*record));
			}
		}
		if (1) {
			struct mete_place place;
			struct mete_record_SCHEDIN *record = METE_BEGIN(&place, &here, METE_ID_SCHEDIN, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_pid = a_next->pid;
				record->f_priority = a_next->prio;
				record->f_tgid = a_next->tgid;
				record->f_is_kernel = ((a_next->flags & 2097152) != 0);
				METE_END(&place, record, METE_ID_SCHEDIN, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/sched_process_fork")
int mete_at_4(mete_u64 *ctx)
{
	struct task_struct *a_parent = (void *)(ctx[0]);
	struct task_struct *a_child = (void *)(ctx[1]);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_FORK *record = METE_BEGIN(&place, &here, METE_ID_FORK, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_parent = a_parent->pid;
				record->f_child = a_child->pid;
				record->f_child_tgid = a_child->tgid;
				__builtin_memcpy(record->f_name, a_child->comm, 16);
				METE_END(&place, record, METE_ID_FORK, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int mete_at_5(mete_u64 *ctx)
{
	struct task_struct *a_p = (void *)(ctx[0]);
	mete_s32 a_old_pid = ctx[1];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_EXEC *record = METE_BEGIN(&place, &here, METE_ID_EXEC, sizeof(*record));

			if (record) {
				record->f_pid = a_p->pid;
				record->f_old_pid = a_old_pid;
				__builtin_memcpy(record->f_name, a_p->comm, 16);
				METE_END(&place, record, METE_ID_EXEC, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("socket")
int mete_benchmark_0(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_TRY_TO_WAKEUP *record = METE_BEGIN(&place, &here, METE_ID_TRY_TO_WAKEUP, sizeof(*record));

	if (record) {
		record->f_pid = dummy;
		record->f_waker = dummy;
		record->f_last_cpu = dummy;
		record->f_priority = dummy;
		METE_END(&place, record, METE_ID_TRY_TO_WAKEUP, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_1(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_ADD_TO_RUNQ *record = METE_BEGIN(&place, &here, METE_ID_ADD_TO_RUNQ, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_pid = dummy;
		record->f_target_cpu = dummy;
		record->f_priority = dummy;
		record->f_is_new = dummy;
		METE_END(&place, record, METE_ID_ADD_TO_RUNQ, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_2(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_REMOVE_FROM_RUNQ *record = METE_BEGIN(&place, &here, METE_ID_REMOVE_FROM_RUNQ, sizeof(*record));

	if (record) {
		record->f_pid = dummy;
		record->f_state = dummy;
		METE_END(&place, record, METE_ID_REMOVE_FROM_RUNQ, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_3(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_SCHEDOUT *record = METE_BEGIN(&place, &here, METE_ID_SCHEDOUT, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_pid = dummy;
		record->f_state = dummy;
		record->f_runtime_ns = dummy;
		record->f_is_preempted = dummy;
		METE_END(&place, record, METE_ID_SCHEDOUT, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_4(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_SCHEDIN *record = METE_BEGIN(&place, &here, METE_ID_SCHEDIN, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_pid = dummy;
		record->f_priority = dummy;
		record->f_tgid = dummy;
		record->f_is_kernel = dummy;
		METE_END(&place, record, METE_ID_SCHEDIN, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_5(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_FORK *record = METE_BEGIN(&place, &here, METE_ID_FORK, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_parent = dummy;
		record->f_child = dummy;
		record->f_child_tgid = dummy;
		__builtin_memset(record->f_name, 0, 16);
		METE_END(&place, record, METE_ID_FORK, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_6(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_EXEC *record = METE_BEGIN(&place, &here, METE_ID_EXEC, sizeof(*record));

	if (record) {
		record->f_pid = dummy;
		record->f_old_pid = dummy;
		__builtin_memset(record->f_name, 0, 16);
		METE_END(&place, record, METE_ID_EXEC, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_7(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_EXIT *record = METE_BEGIN(&place, &here, METE_ID_EXIT, sizeof(*record));

	if (record) {
		record->f_pid = dummy;
		record->f_tgid = dummy;
		record->f_runtime_ns = dummy;
		__builtin_memset(record->f_name, 0, 16);
		METE_END(&place, record, METE_ID_EXIT, sizeof(*record));
	}
	return 0;
}

