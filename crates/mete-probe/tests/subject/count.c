/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The same in C as the Rust subject's "count", with one thread. It is compiled as C11 and as C++17. */
#include <mete.h>
#include <poll.h>
#include <stdio.h>

METE_EVENT(number, METE_ACCESS);
METE_EVENT(phase, METE_PHASE);
METE_EVENT(value, METE_SAMPLED);

static int is_over(void)
{
	struct pollfd input;

	input.fd = 0;
	input.events = POLLIN;
	return poll(&input, 1, 0) != 0;
}

int main(void)
{
	unsigned long long number = 0;

	do {
		struct mete_phase phase = METE_ENTER_VALUE(phase, number);

		METE_PROBE(number, 1, number);
		METE_SAMPLE(value, number);
		METE_EXIT_VALUE(phase, phase, 1, number + 3);
	} while (number++ % 64 || !is_over());
	printf("%llu\n", number);
	return 0;
}
