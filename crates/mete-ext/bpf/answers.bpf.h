/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a policy outside the kernel answers: for each processor the task that runs next.
 *
 * An answer is one number, so it is taken as a whole. It names the generation of the task that it is about: one that was decided
 * before the task came back is late. So is one about a task that does not wait.
 */
#ifndef METE_ANSWERS_BPF_H
#define METE_ANSWERS_BPF_H

#include "numbers.bpf.h"

/* Where the parts are, from the lowest bit on. The one that is left says that it is an answer. */
enum answer_bits {
	CLIENT_BITS = 14,
	GENERATION_BITS = 22, /* the last ones of the generation */
	SLICE_BITS = 26, /* in microseconds */
	GENERATION_AT = CLIENT_BITS,
	SLICE_AT = GENERATION_AT + GENERATION_BITS,
	/* A bit: no task that wakes takes its processor from it before its slice is over. */
	KEEPS_AT = SLICE_AT + SLICE_BITS,
};

_Static_assert(1u << CLIENT_BITS == CLIENTS && KEEPS_AT == 62, "an answer is one number");

/* A line of the cache for each. */
struct answer {
	__u64 bits;
	__u64 gives_way; /* one more than the number of the client that gives way, if the processor is among shared.preempts */
	enum answer_bits parts[0]; /* none: so that Rust is told of the type */
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
	return !((answer >> GENERATION_AT ^ generation) & ((1u << GENERATION_BITS) - 1));
}

static __always_inline int answer_keeps(__u64 answer)
{
	return answer >> KEEPS_AT & 1;
}

static __always_inline __u64 answer_slice_ns(__u64 answer)
{
	return (answer >> SLICE_AT & ((1u << SLICE_BITS) - 1)) * 1000;
}

#endif
