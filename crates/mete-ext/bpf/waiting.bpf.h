/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The tasks that wait for a processor, a bit each, so that the kernel's side finds one by itself: when the policy outside does not
 * answer, and when a task has waited for long. It takes them in turn, by their numbers.
 */
#ifndef METE_WAITING_BPF_H
#define METE_WAITING_BPF_H

#include "numbers.bpf.h"

#define WORDS (CLIENTS / 64)

struct line {
	__u64 words[WORDS];
	__u64 count;
};

struct line waiting SEC(".bss.waiting");
/* Those of them that have waited for long. */
struct line overdue SEC(".bss.overdue");

/* The task that began to wait last. */
__u32 last_put;

static __always_inline int is_in(const struct line *line, __u32 client)
{
	return line->words[masked(client >> 6, WORDS)] >> (client & 63) & 1;
}

static __always_inline void put_in(struct line *line, __u32 client)
{
	__u64 bit = 1ull << (client & 63);

	if (!(__sync_fetch_and_or(&line->words[masked(client >> 6, WORDS)], bit) & bit))
		__sync_fetch_and_add(&line->count, 1);
}

static __always_inline void take_out(struct line *line, __u32 client)
{
	__u64 *word = &line->words[masked(client >> 6, WORDS)], bit = 1ull << (client & 63);

	/* As a rule it is not there, and others do not have to give the line of the cache away. */
	if (!(*word & bit))
		return;
	if (__sync_fetch_and_and(word, ~bit) & bit)
		__sync_fetch_and_add(&line->count, -1);
}

/* The place of the lowest bit of a word that has one. Without branches: the verifier would follow each. */
static __always_inline __u32 lowest_bit(__u64 word)
{
	/* As many ones as there are zeroes below it, which are counted by pairs, by fours, and by eights. */
	__u64 below = (word & -word) - 1;

	below -= below >> 1 & 0x5555555555555555ull;
	below = (below & 0x3333333333333333ull) + (below >> 2 & 0x3333333333333333ull);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return below * 0x0101010101010101ull >> 56;
}

/* The first one from a number on, and round to it; CLIENTS if there is none. */
static __always_inline __u32 first_from(const struct line *line, __u32 from)
{
	__u32 nth, at, found = CLIENTS;

	/* The first word comes twice: from the number on, and up to it. */
	bpf_for(nth, 0, WORDS + 1)
	{
		__u64 word;

		at = masked((from >> 6) + nth, WORDS);
		word = line->words[at];
		if (nth == 0)
			word &= ~0ull << (from & 63);
		if (word) {
			found = at * 64 + lowest_bit(word);
			break;
		}
	}
	return found;
}

/* Functions of their own: the verifier looks at each once, whatever calls it. */
__noinline int first_waiting(__u32 from)
{
	return first_from(&waiting, from);
}

__noinline int first_overdue(__u32 from)
{
	return first_from(&overdue, from);
}

#endif
