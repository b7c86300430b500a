/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A shared object with an event of its own, loaded and unloaded by host.c. */
#include <mete.h>

METE_EVENT(plugged, METE_ACCESS);

void plugin_work(uint64_t number)
{
	METE_PROBE(plugged, 1, number);
}
