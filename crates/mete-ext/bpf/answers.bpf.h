/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a policy outside the kernel answers: for each processor the task that runs next.
 *
 * An answer is one number, so it is taken as a whole. It names the generation of the task that it is about: one that was decided
 * before the task came back is late. So is one about a task that does not wait.
 *
 *	bit 63		it is an answer
 *	bits 36 to 62	the slice in microseconds
 *	bits 14 to 35	the generation's last bits
 *	bits 0 to 13	the task's number
 */
#ifndef METE_ANSWERS_BPF_H
#define METE_ANSWERS_BPF_H

#include "numbers.bpf.h"

#define GENERATION_BITS 22
#define SLICE_BITS 27

/* A line of the cache for each. */
struct answer {
	__u64 bits;
} __attribute__((aligned(64)));

struct answer answers[PROCESSORS] SEC(".bss.answers");

/* The answer; 0 if there is none. */
static __always_inline __u64 take_answer(__u32 processor)
{
	__u64 *bits = &answers[masked(processor, PROCESSORS)].bits;

	return *bits ? __sync_lock_test_and_set(bits, 0) : 0;
}

static __always_inline __u32 answer_client(__u64 answer)
{
	return masked(answer, CLIENTS);
}

static __always_inline int is_of_generation(__u64 answer, __u32 generation)
{
	return !((answer >> 14 ^ generation) & ((1u << GENERATION_BITS) - 1));
}

static __always_inline __u64 answer_slice_ns(__u64 answer)
{
	return (answer >> 36 & ((1u << SLICE_BITS) - 1)) * 1000;
}

#endif
