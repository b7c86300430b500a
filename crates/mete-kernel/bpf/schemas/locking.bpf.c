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

/* A processor begins to wait for a lock of the kernel by spinning. */
struct mete_record_SPIN {
	struct mete_head head;
	/* The lock. */
	mete_u64 f_lock;
	/* The task that waits. */
	mete_s32 f_pid;
	/* The kernel's flags for the kind of lock: 1 spinning, 2 reader, 4 writer, 8 real-time, 16 per
	 * processor, 32 mutex. */
	mete_u32 f_flags;
};

#define METE_ID_SPIN 16
#define METE_FINGERPRINT_SPIN 0x363a0c2123c985b4ull
METE_ASSERT_(sizeof(struct mete_record_SPIN) == 32, "size of SPIN");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SPIN, f_lock) == 16, "place of SPIN.lock");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SPIN, f_pid) == 24, "place of SPIN.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SPIN, f_flags) == 28, "place of SPIN.flags");

/* A task begins to wait for a lock of the kernel for reading. */
struct mete_record_READ {
	struct mete_head head;
	/* The lock. */
	mete_u64 f_lock;
	/* The task that waits. */
	mete_s32 f_pid;
	/* As in SPIN. */
	mete_u32 f_flags;
};

#define METE_ID_READ 17
#define METE_FINGERPRINT_READ 0xb326b9c09a12b068ull
METE_ASSERT_(sizeof(struct mete_record_READ) == 32, "size of READ");
METE_ASSERT_(__builtin_offsetof(struct mete_record_READ, f_lock) == 16, "place of READ.lock");
METE_ASSERT_(__builtin_offsetof(struct mete_record_READ, f_pid) == 24, "place of READ.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_READ, f_flags) == 28, "place of READ.flags");

/* A task begins to wait for a lock of the kernel for writing, or for one that excludes all other tasks. */
struct mete_record_WRITE {
	struct mete_head head;
	/* The lock. */
	mete_u64 f_lock;
	/* The task that waits. */
	mete_s32 f_pid;
	/* As in SPIN. */
	mete_u32 f_flags;
};

#define METE_ID_WRITE 18
#define METE_FINGERPRINT_WRITE 0x07e3fd2d601f9297ull
METE_ASSERT_(sizeof(struct mete_record_WRITE) == 32, "size of WRITE");
METE_ASSERT_(__builtin_offsetof(struct mete_record_WRITE, f_lock) == 16, "place of WRITE.lock");
METE_ASSERT_(__builtin_offsetof(struct mete_record_WRITE, f_pid) == 24, "place of WRITE.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_WRITE, f_flags) == 28, "place of WRITE.flags");

/* The wait that began last on this processor, or for this task, is over. */
struct mete_record_ACQUIRED {
	struct mete_head head;
	/* The lock. */
	mete_u64 f_lock;
	/* The task that waited. */
	mete_s32 f_pid;
	/* 0, or the negative number of the error with which the wait was given up. */
	mete_s32 f_result;
};

#define METE_ID_ACQUIRED 19
#define METE_FINGERPRINT_ACQUIRED 0x12b76d445e9fc7e2ull
METE_ASSERT_(sizeof(struct mete_record_ACQUIRED) == 32, "size of ACQUIRED");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ACQUIRED, f_lock) == 16, "place of ACQUIRED.lock");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ACQUIRED, f_pid) == 24, "place of ACQUIRED.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_ACQUIRED, f_result) == 28, "place of ACQUIRED.result");

/* A thread of a program enters the kernel to wait for a lock, or to wake threads that wait. */
struct mete_record_FUTEX {
	struct mete_head head;
	/* The lock, as the program sees it. */
	mete_u64 f_lock;
	/* The thread. */
	mete_s32 f_pid;
	/* The process: the same address means different locks in different processes. */
	mete_s32 f_tgid;
	/* The operation: its lowest seven bits are 0 to wait, 1 to wake. */
	mete_s32 f_operation;
	/* The lock's value when the thread decided to wait, or the number of threads that it wakes. */
	mete_u32 f_value;
};

#define METE_ID_FUTEX 20
#define METE_FINGERPRINT_FUTEX 0x555c5aad6de72429ull
METE_ASSERT_(sizeof(struct mete_record_FUTEX) == 40, "size of FUTEX");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX, f_lock) == 16, "place of FUTEX.lock");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX, f_pid) == 24, "place of FUTEX.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX, f_tgid) == 28, "place of FUTEX.tgid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX, f_operation) == 32, "place of FUTEX.operation");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX, f_value) == 36, "place of FUTEX.value");

/* The thread returns from the kernel: it has waited since its last FUTEX. */
struct mete_record_FUTEX_DONE {
	struct mete_head head;
	/* The thread. */
	mete_s32 f_pid;
	/* 0 if it was woken, or the number of threads that it woke, or the negative number of an error: -11 if the
	 * lock had changed before the thread could wait, -110 if its time was up. */
	mete_s32 f_result;
};

#define METE_ID_FUTEX_DONE 21
#define METE_FINGERPRINT_FUTEX_DONE 0x1d053098c50a6344ull
METE_ASSERT_(sizeof(struct mete_record_FUTEX_DONE) == 24, "size of FUTEX_DONE");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX_DONE, f_pid) == 16, "place of FUTEX_DONE.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_FUTEX_DONE, f_result) == 20, "place of FUTEX_DONE.result");

struct task_struct;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	mete_s32 pid;
	mete_s32 tgid;
};

#pragma clang attribute pop

SEC("tp_btf/contention_begin")
int mete_at_0(mete_u64 *ctx)
{
	void *a_lock = (void *)(ctx[0]);
	mete_u32 a_flags = ctx[1];
	struct mete_here here = {};

	if (1) {
		if ((a_flags & 1)) {
			struct mete_place place;
			struct mete_record_SPIN *record = METE_BEGIN(&place, &here, METE_ID_SPIN, sizeof(*record));

			if (record) {
				record->f_lock = (mete_u64)(unsigned long)a_lock;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_flags = a_flags;
				METE_END(&place, record, METE_ID_SPIN, sizeof(*record));
			}
		}
		if (((!(a_flags & 1)) && (a_flags & 2))) {
			struct mete_place place;
			struct mete_record_READ *record = METE_BEGIN(&place, &here, METE_ID_READ, sizeof(*record));

			if (record) {
				record->f_lock = (mete_u64)(unsigned long)a_lock;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_flags = a_flags;
				METE_END(&place, record, METE_ID_READ, sizeof(*record));
			}
		}
		if ((!(a_flags & 3))) {
			struct mete_place place;
			struct mete_record_WRITE *record = METE_BEGIN(&place, &here, METE_ID_WRITE, sizeof(*record));

			if (record) {
				record->f_lock = (mete_u64)(unsigned long)a_lock;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_flags = a_flags;
				METE_END(&place, record, METE_ID_WRITE, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/contention_end")
int mete_at_1(mete_u64 *ctx)
{
	void *a_lock = (void *)(ctx[0]);
	mete_s32 a_ret = ctx[1];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_ACQUIRED *record = METE_BEGIN(&place, &here, METE_ID_ACQUIRED, sizeof(*record));

			if (record) {
				record->f_lock = (mete_u64)(unsigned long)a_lock;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_result = a_ret;
				METE_END(&place, record, METE_ID_ACQUIRED, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_futex")
int mete_at_2(mete_u64 *ctx)
{
	void *a_uaddr = (void *)(*(mete_u64 *)((char *)ctx + 16));
	mete_u64 a_op = *(mete_u64 *)((char *)ctx + 24);
	mete_u64 a_val = *(mete_u64 *)((char *)ctx + 32);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_FUTEX *record = METE_BEGIN(&place, &here, METE_ID_FUTEX, sizeof(*record));

			if (record) {
				record->f_lock = ((mete_u64)((mete_u64)(unsigned long)a_uaddr));
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_tgid = ((struct task_struct *)bpf_get_current_task_btf())->tgid;
				record->f_operation = ((mete_s32)(a_op));
				record->f_value = ((mete_u32)(a_val));
				METE_END(&place, record, METE_ID_FUTEX, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_futex")
int mete_at_3(mete_u64 *ctx)
{
	mete_s64 a_ret = *(mete_s64 *)((char *)ctx + 16);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_FUTEX_DONE *record = METE_BEGIN(&place, &here, METE_ID_FUTEX_DONE, sizeof(*record));

			if (record) {
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_result = ((mete_s32)(a_ret));
				METE_END(&place, record, METE_ID_FUTEX_DONE, sizeof(*record));
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
	struct mete_record_SPIN *record = METE_BEGIN(&place, &here, METE_ID_SPIN, sizeof(*record));

	if (record) {
		record->f_lock = dummy;
		record->f_pid = dummy;
		record->f_flags = dummy;
		METE_END(&place, record, METE_ID_SPIN, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_1(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_READ *record = METE_BEGIN(&place, &here, METE_ID_READ, sizeof(*record));

	if (record) {
		record->f_lock = dummy;
		record->f_pid = dummy;
		record->f_flags = dummy;
		METE_END(&place, record, METE_ID_READ, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_2(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_WRITE *record = METE_BEGIN(&place, &here, METE_ID_WRITE, sizeof(*record));

	if (record) {
		record->f_lock = dummy;
		record->f_pid = dummy;
		record->f_flags = dummy;
		METE_END(&place, record, METE_ID_WRITE, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_3(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_ACQUIRED *record = METE_BEGIN(&place, &here, METE_ID_ACQUIRED, sizeof(*record));

	if (record) {
		record->f_lock = dummy;
		record->f_pid = dummy;
		record->f_result = dummy;
		METE_END(&place, record, METE_ID_ACQUIRED, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_4(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_FUTEX *record = METE_BEGIN(&place, &here, METE_ID_FUTEX, sizeof(*record));

	if (record) {
		record->f_lock = dummy;
		record->f_pid = dummy;
		record->f_tgid = dummy;
		record->f_operation = dummy;
		record->f_value = dummy;
		METE_END(&place, record, METE_ID_FUTEX, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_5(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_FUTEX_DONE *record = METE_BEGIN(&place, &here, METE_ID_FUTEX_DONE, sizeof(*record));

	if (record) {
		record->f_pid = dummy;
		record->f_result = dummy;
		METE_END(&place, record, METE_ID_FUTEX_DONE, sizeof(*record));
	}
	return 0;
}

