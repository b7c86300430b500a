/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The C producer as a program. It reads an area and then calls from standard input, performs the
 * calls and writes the area to standard output. Each call is two 64-bit words: fields, clock.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;

#include "mete_trace.h"

#define DATA_BYTES (1 << 16)
#define AREA_BYTES METE_TRACE_AREA_BYTES(DATA_BYTES)

/* Field n is the clock plus n. The area counts how often the mark is crossed. */
static void perform(struct mete_trace_area *area, __u64 fields, __u64 clock)
{
	__u32 bytes = METE_TRACE_RECORD_HEADER_BYTES + 8 * fields;
	struct mete_trace_place place;
	__u64 *record = mete_trace_reserve(area, DATA_BYTES, bytes, &place, clock);

	if (!record)
		return;
	for (__u64 at = 0; at < fields; at++)
		record[2 + at] = clock + at;
	mete_trace_commit(record, 7, bytes, &place);
	area->calls += place.at_mark;
}

int main(void)
{
	struct mete_trace_area *area = aligned_alloc(64, AREA_BYTES);
	__u64 call[2];

	if (!area || fread(area, AREA_BYTES, 1, stdin) != 1)
		return 1;
	while (fread(call, sizeof(call), 1, stdin) == 1)
		perform(area, call[0], call[1]);
	return fwrite(area, AREA_BYTES, 1, stdout) != 1;
}
