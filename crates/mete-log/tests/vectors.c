/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The C handler as a program: reads an area and calls from standard input, performs the calls on the area and
 * writes the area to standard output. Each call is six 64-bit words: what, a, b, c, d, clock.
 */
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;

static __u64 the_clock;

static inline __u64 clock_of(__u32 source)
{
	switch (source) {
	case 1:
		return the_clock;
	case 2:
		return the_clock / 1000;
	case 4:
		return the_clock / 2;
	}
	return 0;
}

#define METE_FILES_LOG2 3
#define METE_DOMAINS_LOG2 3
#define METE_EVENTS_LOG2 3
#define METE_DATA_LOG2 14
#define METE_CLOCK(source) clock_of(source)
#include "mete_handler.h"

enum { LOG, ENTER_EXIT, POKE };

static void perform(struct mete_area *area, const __u64 *call)
{
	struct mete_record r = { call[1], call[2], call[3], call[4] };

	the_clock = call[5];
	switch (call[0]) {
	case LOG:
		mete_log(area, &r);
		break;
	case ENTER_EXIT:
		if (mete_enter(area, r.domain, r.event))
			mete_exit(area, &r, 1);
		break;
	case POKE:
		((__u64 *)area)[call[1] % (sizeof(*area) / 8)] = call[2];
		break;
	}
}

int main(void)
{
	struct mete_area *area = aligned_alloc(64, sizeof(*area));
	__u64 call[6];

	if (!area || fread(area, sizeof(*area), 1, stdin) != 1)
		return 1;
	while (fread(call, sizeof(call), 1, stdin) == 1)
		perform(area, call);
	return fwrite(area, sizeof(*area), 1, stdout) != 1;
}
