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

/* A handler of a hardware interrupt begins. */
struct mete_record_IRQ_ENTRY {
	struct mete_head head;
	/* The interrupt's number, as in /proc/interrupts. */
	mete_s32 f_irq;
	/* The process that it interrupts. */
	mete_s32 f_pid;
	/* The name of the device or driver. */
	char f_name[16];
};

#define METE_ID_IRQ_ENTRY 16
#define METE_FINGERPRINT_IRQ_ENTRY 0x5a517c74be1ca73dull
METE_ASSERT_(sizeof(struct mete_record_IRQ_ENTRY) == 40, "size of IRQ_ENTRY");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IRQ_ENTRY, f_irq) == 16, "place of IRQ_ENTRY.irq");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IRQ_ENTRY, f_pid) == 20, "place of IRQ_ENTRY.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IRQ_ENTRY, f_name) == 24, "place of IRQ_ENTRY.name");

/* The handler is done. */
struct mete_record_IRQ_EXIT {
	struct mete_head head;
	/* The interrupt's number. */
	mete_s32 f_irq;
	/* 0 if the interrupt was not for this handler. */
	mete_s32 f_handled;
};

#define METE_ID_IRQ_EXIT 17
#define METE_FINGERPRINT_IRQ_EXIT 0x6499d45ed20880f6ull
METE_ASSERT_(sizeof(struct mete_record_IRQ_EXIT) == 24, "size of IRQ_EXIT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IRQ_EXIT, f_irq) == 16, "place of IRQ_EXIT.irq");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IRQ_EXIT, f_handled) == 20, "place of IRQ_EXIT.handled");

/* The kernel begins to handle a soft interrupt. */
struct mete_record_SOFTIRQ_ENTRY {
	struct mete_head head;
	/* Which one: 0 high, 1 timer, 2 network out, 3 network in, 4 block, 5 poll, 6 tasklet, 7 scheduler,
	 * 8 high-resolution timer, 9 RCU. */
	mete_u32 f_vector;
	/* The process that it interrupts, or the kernel's own thread for it. */
	mete_s32 f_pid;
};

#define METE_ID_SOFTIRQ_ENTRY 18
#define METE_FINGERPRINT_SOFTIRQ_ENTRY 0x525829e1f3e0976aull
METE_ASSERT_(sizeof(struct mete_record_SOFTIRQ_ENTRY) == 24, "size of SOFTIRQ_ENTRY");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SOFTIRQ_ENTRY, f_vector) == 16, "place of SOFTIRQ_ENTRY.vector");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SOFTIRQ_ENTRY, f_pid) == 20, "place of SOFTIRQ_ENTRY.pid");

/* The soft interrupt is done. */
struct mete_record_SOFTIRQ_EXIT {
	struct mete_head head;
	/* Which one. */
	mete_u32 f_vector;
	mete_u8 padding[4];
};

#define METE_ID_SOFTIRQ_EXIT 19
#define METE_FINGERPRINT_SOFTIRQ_EXIT 0xd69c9f05fbcbb693ull
METE_ASSERT_(sizeof(struct mete_record_SOFTIRQ_EXIT) == 24, "size of SOFTIRQ_EXIT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_SOFTIRQ_EXIT, f_vector) == 16, "place of SOFTIRQ_EXIT.vector");

/* The processor's own timer interrupt begins. */
struct mete_record_TIMER_ENTRY {
	struct mete_head head;
	/* Its vector. */
	mete_s32 f_vector;
	/* The process that it interrupts. */
	mete_s32 f_pid;
};

#define METE_ID_TIMER_ENTRY 20
#define METE_FINGERPRINT_TIMER_ENTRY 0xb8a8e99a574e9059ull
METE_ASSERT_(sizeof(struct mete_record_TIMER_ENTRY) == 24, "size of TIMER_ENTRY");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TIMER_ENTRY, f_vector) == 16, "place of TIMER_ENTRY.vector");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TIMER_ENTRY, f_pid) == 20, "place of TIMER_ENTRY.pid");

/* The timer interrupt is done. */
struct mete_record_TIMER_EXIT {
	struct mete_head head;
	/* Its vector. */
	mete_s32 f_vector;
	mete_u8 padding[4];
};

#define METE_ID_TIMER_EXIT 21
#define METE_FINGERPRINT_TIMER_EXIT 0x33b498e79c72f4a6ull
METE_ASSERT_(sizeof(struct mete_record_TIMER_EXIT) == 24, "size of TIMER_EXIT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_TIMER_EXIT, f_vector) == 16, "place of TIMER_EXIT.vector");

/* An interrupt begins by which another processor, or the kernel on this one, asks this processor to schedule, to
 * call a function, or to do work that was not possible where it came up. */
struct mete_record_IPI_ENTRY {
	struct mete_head head;
	/* Its vector. */
	mete_s32 f_vector;
	/* The process that it interrupts. */
	mete_s32 f_pid;
};

#define METE_ID_IPI_ENTRY 22
#define METE_FINGERPRINT_IPI_ENTRY 0x8a6e65b31e65c1c6ull
METE_ASSERT_(sizeof(struct mete_record_IPI_ENTRY) == 24, "size of IPI_ENTRY");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IPI_ENTRY, f_vector) == 16, "place of IPI_ENTRY.vector");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IPI_ENTRY, f_pid) == 20, "place of IPI_ENTRY.pid");

/* The interrupt from another processor is done. */
struct mete_record_IPI_EXIT {
	struct mete_head head;
	/* Its vector. */
	mete_s32 f_vector;
	mete_u8 padding[4];
};

#define METE_ID_IPI_EXIT 23
#define METE_FINGERPRINT_IPI_EXIT 0x26ad3ff07bc0c82bull
METE_ASSERT_(sizeof(struct mete_record_IPI_EXIT) == 24, "size of IPI_EXIT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_IPI_EXIT, f_vector) == 16, "place of IPI_EXIT.vector");

/* An access to memory was not possible: the exception that the kernel now handles. */
struct mete_record_PAGE_FAULT {
	struct mete_head head;
	/* The address that the program, or the kernel, wanted to read or write. */
	mete_u64 f_where;
	/* The process. */
	mete_s32 f_pid;
	/* The processor's reason. Bit 0: the access was not allowed; otherwise the page was missing. Bit 1: it was
	 * a write. Bit 2: it was a program's. Bit 4: it was for an instruction. */
	mete_u32 f_reason;
};

#define METE_ID_PAGE_FAULT 24
#define METE_FINGERPRINT_PAGE_FAULT 0xf6242edc4eb83473ull
METE_ASSERT_(sizeof(struct mete_record_PAGE_FAULT) == 32, "size of PAGE_FAULT");
METE_ASSERT_(__builtin_offsetof(struct mete_record_PAGE_FAULT, f_where) == 16, "place of PAGE_FAULT.where");
METE_ASSERT_(__builtin_offsetof(struct mete_record_PAGE_FAULT, f_pid) == 24, "place of PAGE_FAULT.pid");
METE_ASSERT_(__builtin_offsetof(struct mete_record_PAGE_FAULT, f_reason) == 28, "place of PAGE_FAULT.reason");

struct irqaction;
struct task_struct;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	mete_s32 pid;
};

struct irqaction {
	void *name;
};

#pragma clang attribute pop

SEC("tp_btf/irq_handler_entry")
int mete_at_0(mete_u64 *ctx)
{
	mete_s32 a_irq = ctx[0];
	struct irqaction *a_action = (void *)(ctx[1]);
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IRQ_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IRQ_ENTRY, sizeof(*record));

			if (record) {
				record->f_irq = a_irq;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				__builtin_memset(record->f_name, 0, 16);
				bpf_probe_read_kernel_str(record->f_name, 16, a_action->name);
				METE_END(&place, record, METE_ID_IRQ_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int mete_at_1(mete_u64 *ctx)
{
	mete_s32 a_irq = ctx[0];
	mete_s32 a_ret = ctx[2];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IRQ_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IRQ_EXIT, sizeof(*record));

			if (record) {
				record->f_irq = a_irq;
				record->f_handled = a_ret;
				METE_END(&place, record, METE_ID_IRQ_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/softirq_entry")
int mete_at_2(mete_u64 *ctx)
{
	mete_u32 a_vec_nr = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_SOFTIRQ_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_SOFTIRQ_ENTRY, sizeof(*record));

			if (record) {
				record->f_vector = a_vec_nr;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				METE_END(&place, record, METE_ID_SOFTIRQ_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/softirq_exit")
int mete_at_3(mete_u64 *ctx)
{
	mete_u32 a_vec_nr = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_SOFTIRQ_EXIT *record = METE_BEGIN(&place, &here, METE_ID_SOFTIRQ_EXIT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_vector = a_vec_nr;
				METE_END(&place, record, METE_ID_SOFTIRQ_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/local_timer_entry")
int mete_at_4(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_TIMER_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_TIMER_ENTRY, sizeof(*record));

			if (record) {
				record->f_vector = a_vector;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				METE_END(&place, record, METE_ID_TIMER_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/local_timer_exit")
int mete_at_5(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_TIMER_EXIT *record = METE_BEGIN(&place, &here, METE_ID_TIMER_EXIT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_vector = a_vector;
				METE_END(&place, record, METE_ID_TIMER_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/reschedule_entry")
int mete_at_6(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IPI_ENTRY, sizeof(*record));

			if (record) {
				record->f_vector = a_vector;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				METE_END(&place, record, METE_ID_IPI_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/reschedule_exit")
int mete_at_7(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IPI_EXIT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_vector = a_vector;
				METE_END(&place, record, METE_ID_IPI_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/call_function_single_entry")
int mete_at_8(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IPI_ENTRY, sizeof(*record));

			if (record) {
				record->f_vector = a_vector;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				METE_END(&place, record, METE_ID_IPI_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/call_function_single_exit")
int mete_at_9(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IPI_EXIT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_vector = a_vector;
				METE_END(&place, record, METE_ID_IPI_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/call_function_entry")
int mete_at_10(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IPI_ENTRY, sizeof(*record));

			if (record) {
				record->f_vector = a_vector;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				METE_END(&place, record, METE_ID_IPI_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/call_function_exit")
int mete_at_11(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IPI_EXIT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_vector = a_vector;
				METE_END(&place, record, METE_ID_IPI_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/irq_work_entry")
int mete_at_12(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IPI_ENTRY, sizeof(*record));

			if (record) {
				record->f_vector = a_vector;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				METE_END(&place, record, METE_ID_IPI_ENTRY, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/irq_work_exit")
int mete_at_13(mete_u64 *ctx)
{
	mete_s32 a_vector = ctx[0];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_IPI_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IPI_EXIT, sizeof(*record));

			if (record) {
				__builtin_memset(record->padding, 0, sizeof(record->padding));
				record->f_vector = a_vector;
				METE_END(&place, record, METE_ID_IPI_EXIT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/page_fault_user")
int mete_at_14(mete_u64 *ctx)
{
	mete_u64 a_address = ctx[0];
	mete_u64 a_error_code = ctx[2];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_PAGE_FAULT *record = METE_BEGIN(&place, &here, METE_ID_PAGE_FAULT, sizeof(*record));

			if (record) {
				record->f_where = a_address;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_reason = ((mete_u32)(a_error_code));
				METE_END(&place, record, METE_ID_PAGE_FAULT, sizeof(*record));
			}
		}
	}
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int mete_at_15(mete_u64 *ctx)
{
	mete_u64 a_address = ctx[0];
	mete_u64 a_error_code = ctx[2];
	struct mete_here here = {};

	if (1) {
		if (1) {
			struct mete_place place;
			struct mete_record_PAGE_FAULT *record = METE_BEGIN(&place, &here, METE_ID_PAGE_FAULT, sizeof(*record));

			if (record) {
				record->f_where = a_address;
				record->f_pid = ((struct task_struct *)bpf_get_current_task_btf())->pid;
				record->f_reason = ((mete_u32)(a_error_code));
				METE_END(&place, record, METE_ID_PAGE_FAULT, sizeof(*record));
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
	struct mete_record_IRQ_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IRQ_ENTRY, sizeof(*record));

	if (record) {
		record->f_irq = dummy;
		record->f_pid = dummy;
		__builtin_memset(record->f_name, 0, 16);
		METE_END(&place, record, METE_ID_IRQ_ENTRY, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_1(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_IRQ_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IRQ_EXIT, sizeof(*record));

	if (record) {
		record->f_irq = dummy;
		record->f_handled = dummy;
		METE_END(&place, record, METE_ID_IRQ_EXIT, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_2(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_SOFTIRQ_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_SOFTIRQ_ENTRY, sizeof(*record));

	if (record) {
		record->f_vector = dummy;
		record->f_pid = dummy;
		METE_END(&place, record, METE_ID_SOFTIRQ_ENTRY, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_3(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_SOFTIRQ_EXIT *record = METE_BEGIN(&place, &here, METE_ID_SOFTIRQ_EXIT, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_vector = dummy;
		METE_END(&place, record, METE_ID_SOFTIRQ_EXIT, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_4(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_TIMER_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_TIMER_ENTRY, sizeof(*record));

	if (record) {
		record->f_vector = dummy;
		record->f_pid = dummy;
		METE_END(&place, record, METE_ID_TIMER_ENTRY, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_5(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_TIMER_EXIT *record = METE_BEGIN(&place, &here, METE_ID_TIMER_EXIT, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_vector = dummy;
		METE_END(&place, record, METE_ID_TIMER_EXIT, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_6(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_IPI_ENTRY *record = METE_BEGIN(&place, &here, METE_ID_IPI_ENTRY, sizeof(*record));

	if (record) {
		record->f_vector = dummy;
		record->f_pid = dummy;
		METE_END(&place, record, METE_ID_IPI_ENTRY, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_7(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_IPI_EXIT *record = METE_BEGIN(&place, &here, METE_ID_IPI_EXIT, sizeof(*record));

	if (record) {
		__builtin_memset(record->padding, 0, sizeof(record->padding));
		record->f_vector = dummy;
		METE_END(&place, record, METE_ID_IPI_EXIT, sizeof(*record));
	}
	return 0;
}

SEC("socket")
int mete_benchmark_8(void *ctx)
{
	mete_u32 dummy = *(mete_u32 *)ctx;
	struct mete_here here = {};
	struct mete_place place;
	struct mete_record_PAGE_FAULT *record = METE_BEGIN(&place, &here, METE_ID_PAGE_FAULT, sizeof(*record));

	if (record) {
		record->f_where = dummy;
		record->f_pid = dummy;
		record->f_reason = dummy;
		METE_END(&place, record, METE_ID_PAGE_FAULT, sizeof(*record));
	}
	return 0;
}

