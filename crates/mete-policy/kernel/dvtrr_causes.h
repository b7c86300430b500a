/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What wakes clients: the twin of the causes in src/distributed/boosting.rs. */
#ifndef METE_DVTRR_CAUSES_H
#define METE_DVTRR_CAUSES_H

/* What wakes a client. Other numbers are those of no event. */
enum dvtrr_event {
	DVTRR_NO_EVENT, /* another client */
	DVTRR_INTERRUPT, /* as that of a timer */
	DVTRR_BLOCK, /* a read or write of a block is complete */
	DVTRR_PACKET, /* one has arrived for a port */
} __attribute__((packed));

/* Events by which a client is judged: these, and the ports of packets are divided among what is left. A power of two. */
#define DVTRR_CAUSES 8
#define DVTRR_PORTS 5

static __always_inline __u32 dvtrr_cause_of(__u32 event, __u32 port)
{
	if (event == DVTRR_PACKET)
		return DVTRR_PACKET + port % DVTRR_PORTS;
	return event < DVTRR_PACKET ? event : DVTRR_NO_EVENT;
}

#endif
