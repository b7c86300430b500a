/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A server with probes. It runs for some seconds and prints nothing.
 *
 *	cc -O2 -Icrates/mete-probe/include examples/c/requests.c -lmete_probe -o requests
 *	./requests 5
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <mete.h>
#include <stdlib.h>
#include <time.h>

METE_EVENT(request, METE_ACCESS);
METE_EVENT(service, METE_PHASE);
METE_EVENT(queue_length, METE_SAMPLED);

static const struct timespec the_work = { 0, 50000 };

/* Serves one client. The domain at the other end is the one that the scheduler bound the client to. */
static void serve(uint32_t client, uint64_t waiting)
{
	struct mete_phase phase;

	METE_SAMPLE(queue_length, waiting);
	METE_PROBE(request, mete_domain_of_process(client), 1);
	phase = METE_ENTER(service);
	nanosleep(&the_work, NULL);
	METE_EXIT(service, phase, mete_domain_of_process(client));
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2);
	uint64_t served;

	for (served = 0; time(NULL) < end; served++)
		serve(1000 + served % 3, served % 5);
	return 0;
}
